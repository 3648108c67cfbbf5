-- Pushes jobs of one topic, in their order.
-- KEYS  prelude.lua
-- ARGV  5... five for each job: id, its record before and after its sequence number, due in ms, and
--       flags: 0 reject, 1 replace, 2 keep; +4 unique across topics; +8 it has a group; +16 adds none
-- RETURNS prelude.lua; 3... four for each job that was not simply created: its position in the batch from 0,
--         1 replaced | 2 kept | 3 conflict | 4 absent, and state and due time of the job that now has the id, if any
local EACH = 5
local count = (#ARGV - 4) / EACH
local place = numbers(count)
local said = {false, 0}

local function say(i, outcome, state, due)
  local at = #said
  said[at + 1], said[at + 2], said[at + 3], said[at + 4] = i - 1, outcome, state, due
end

-- Returns state and due time of a live job with this id in another topic. Checks every topic of the shard: the caller
-- limits how many ids need this in one call (arguments.h).
local topics
local function elsewhere(id)
  local pools = string.sub(POOL, 1, -#TOPIC - 1)
  topics = topics or call('ZRANGE', TOPICS, 0, -1)
  for _, other in ipairs(topics) do
    local record = other ~= TOPIC and call('HGET', pools .. other, id)
    if record then
      local head = open(record)
      if head[STATE] == RESERVED then return RESERVED, head[DUE] end
      if head[STATE] == WAITING then return is_delayed_elsewhere(other, id) and 0 or 1, head[DUE] end
    end
  end
end

local function push_one(i)
  local at = 4 + (i - 1) * EACH
  local id, due, flags = ARGV[at + 1], tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  if flags % 8 >= 4 then
    local state, other_due = elsewhere(id)
    if state then return say(i, 3, state, other_due) end
  end
  local outcome, state, its_due =
    push_job(id, ARGV[at + 2], place + i, ARGV[at + 3], due, flags % 4, flags % 16 >= 8, flags >= 16)
  if outcome ~= 0 then say(i, outcome, state, its_due) end
end

-- Pushes all jobs at once if none of them conflicts.
local function push_all()
  local fields, timed, earliest, lines = {}, {}, math.huge, {}
  for i = 1, count do
    local at = 4 + (i - 1) * EACH
    local id, due, record = ARGV[at + 1], tonumber(ARGV[at + 4]), new_record(ARGV[at + 2], place + i, ARGV[at + 3])
    fields[2 * i - 1], fields[2 * i] = id, record
    if due > NOW then
      timed[#timed + 1] = due
      timed[#timed + 1] = id
      if due < earliest then earliest = due end
    else
      local _, head = cmsgpack.unpack_one(record)
      line_up(lines, id, head)
    end
    if tonumber(ARGV[at + 5]) % 16 >= 8 then join_group(id, select(2, open(record))) end
  end
  note_topic()
  if #timed > 0 then delay(timed, earliest) end
  for outlet, members in pairs(lines) do ready(outlet, members) end
  call('HSET', POOL, unpack(fields))
end

local function is_plain()
  local ids, seen = {}, {}
  for i = 1, count do
    local at = 4 + (i - 1) * EACH
    local id, flags = ARGV[at + 1], tonumber(ARGV[at + 5])
    if seen[id] or flags % 8 >= 4 or flags >= 16 then return false end
    seen[id] = true
    ids[i] = id
  end
  for _, record in ipairs(call('HMGET', POOL, unpack(ids))) do
    if record then return false end
  end
  leave_kept(ids)
  return true
end

clear_traces()
if is_plain() then
  push_all()
else
  for i = 1, count do push_one(i) end
end
return answer(said)
