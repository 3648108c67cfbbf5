-- For scripts about schedules.
--
-- KEYS  those of a topic without a name (prelude_look.lua), and behind them four of the shard, as keys.h has them
-- TURNS has the changing part of each schedule, DEFINITIONS the other one; a schedule is in both. NAMES and ALARMS have its
-- name, by itself and by when it is to be reported; one that is never reported has the last of all times.
local TURNS, DEFINITIONS, NAMES, ALARMS = KEYS[15], KEYS[16], KEYS[17], KEYS[18]
-- Places in the changing part. The revision is a text: it has more digits than a number of Lua.
local REVISION, WHEN = 2, 3

local function first_alarm()
  return call('ZRANGE', ALARMS, 0, 0, 'WITHSCORES')[2]
end
local alarm_before = first_alarm()

-- For the end of a script: when the first schedule is to be reported, as text, '' for never. Other servers hear of it when
-- that is earlier than before.
local function next_alarm()
  local first = first_alarm()
  if first and (not alarm_before or tonumber(first) < tonumber(alarm_before)) then
    call('PUBLISH', CHANNEL, 'e' .. SENDER .. ':' .. first)
  end
  return first or ''
end

-- Nothing is left of them.
local function erase_schedules(names)
  if #names == 0 then return end
  call('HDEL', TURNS, unpack(names))
  call('HDEL', DEFINITIONS, unpack(names))
  call('ZREM', NAMES, unpack(names))
  call('ZREM', ALARMS, unpack(names))
end
