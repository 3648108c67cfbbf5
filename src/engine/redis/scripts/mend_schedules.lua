-- Puts schedules back where they belong when a key of theirs was lost (evicted, deleted by hand), and removes what is left of
-- those that are gone: a schedule without its definition, or without its changing part, is none.
-- KEYS  prelude_schedules.lua
-- ARGV  5 where to go on; '' only looks whether all keys have as many   6 how many names   7 and bytes are enough for one call
-- RETURNS 1 and 2 not used   3 the next alarm (prelude_schedules.lua)   4 where to go on; '' when there is nothing to do any more
--         5 how many were put back   6 how many were removed
local from, looks, bytes, mended, gone = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), 0, {}
-- Every name that one of the keys has is met in one of these walks.
local WALKS = {{'HSCAN', TURNS}, {'HSCAN', DEFINITIONS}, {'ZSCAN', NAMES}, {'ZSCAN', ALARMS}}

local function is_even()
  local turns = call('HLEN', TURNS)
  return turns == call('HLEN', DEFINITIONS) and turns == call('ZCARD', NAMES) and turns == call('ZCARD', ALARMS)
end

local function mend(name)
  local turn = call('HGET', TURNS, name)
  if not turn or call('HEXISTS', DEFINITIONS, name) == 0 then
    gone[#gone + 1] = name
    return
  end
  local is_listed_anew = call('ZADD', NAMES, 'NX', 0, name)
  local has_new_alarm = call('ZADD', ALARMS, 'NX', cmsgpack.unpack(turn)[WHEN], name)
  mended = mended + math.max(is_listed_anew, has_new_alarm)
end

if from == '' then return {false, {}, next_alarm(), is_even() and '' or '1 0', 0, 0} end
go_on_when_full(ALARMS)
local walk, cursor = string.match(from, '^(%d) (%d+)$')
walk = tonumber(walk)
repeat
  -- Definitions may be large, and a step has all values.
  local step = call(WALKS[walk][1], WALKS[walk][2], cursor, 'COUNT', walk == 2 and 1 or 10)
  cursor = step[1]
  for i = 1, #step[2], 2 do
    mend(step[2][i])
    looks, bytes = looks - 1, bytes - #step[2][i + 1]
  end
until cursor == '0' or looks <= 0 or bytes <= 0
erase_schedules(gone)
if cursor == '0' then walk, cursor = walk + 1, '0' end
return {false, {}, next_alarm(), walk <= #WALKS and walk .. ' ' .. cursor or '', mended, #gone}
