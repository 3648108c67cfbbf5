-- Changes schedules, and pushes a job with each change: a schedule moves on together with its job, or neither happens.
-- KEYS  prelude_schedules.lua
-- ARGV  5... seventeen for each turn:
--       1 name   2 the revision that is expected, '0' for none   3 the new one, '0' removes the schedule   4 next in ms
--       5 '1' when there is a new definition   6 the definition   7 the progress   8 the same when the job is skipped
--       9 overlap: 0 allow, 1 skip, 2 replace   10 topic and   11 id of the job before; '' for none
--       12 topic and   13 id of the job; '' for none   14 its record before and   15 after the place of its sequence number
--       16 due in ms   17 its group, '' for none
-- RETURNS 1 as prelude.lua   2 topics that got ready jobs, each with its outlets   3 the next alarm (prelude_schedules.lua)
--         4... three for each turn: 0 turned | 1 skipped | 2 changed, 0 created | 2 kept, and 1 when the job before was
--         cancelled; or -1, an error, and 0 when nothing happened because a key of the topic is not as it should be.
--         2 also when it was left for another call, because the turns before it have read enough: nothing happened
--
-- Of the job before, only the head is of interest, but Redis reads a field of a hash as a whole, body included. So its places
-- tell where it is, and its record is read only if it is small or about to be cancelled; those bytes are bounded.
--
-- Redis does not undo what a script wrote before it failed. A turn must not end between job and schedule: the occurrence would
-- come twice, or never. So each turn reads a job and all keys that it is about to write, and fails there if one belongs to
-- another program. A turn that fails is no hindrance to the others of the call, whose topics may be in order.
local EACH = 17
local count = (#ARGV - 4) / EACH
local said, told = {false, false, false}, {}

-- The keys that every turn writes. With one of these the whole call fails.
for _, zset in ipairs({NAMES, ALARMS, NEXT, TOPICS}) do call('ZCARD', zset) end
for _, hash in ipairs({TURNS, DEFINITIONS}) do call('HLEN', hash) end

-- The same of topics. ZCARD and HLEN fail on keys of another type.
local is_sound = {}
local function check_topic()
  if is_sound[TOPIC] then return end
  call('HLEN', POOL)
  delayed_count()
  for _, zset in ipairs({READY, CALLED, HELD, LEASES, DONE, DEAD, KEPT}) do call('ZCARD', zset) end
  is_sound[TOPIC] = true
end

local function is_current(name, expected)
  local stored = call('HGET', TURNS, name)
  local revision = stored and cmsgpack.unpack(stored)[REVISION] or '0'
  -- What is left of one whose definition was lost is no schedule: another may be stored in its place.
  if expected == '0' and revision ~= '0' and call('HEXISTS', DEFINITIONS, name) == 0 then return true end
  return revision == expected
end

local SMALL_BYTES = 4096
local unread = ENOUGH_BYTES
-- Whether the call may read so many bytes more. The first turn may always.
local function may_read(bytes, is_first)
  if bytes > unread and not is_first then return false end
  unread = unread - bytes
  return true
end

-- The state of the job before: WAITING, RESERVED, or nil when it is not live; and the bytes of its record.
local function state_of_previous(topic, id)
  if id == '' then return nil, 0 end
  enter(topic)
  local bytes = call('HSTRLEN', POOL, id)
  if bytes == 0 then return nil, 0 end
  if bytes <= SMALL_BYTES then
    local job = find({id})[id]
    if not job or job[2][STATE] >= IS_DONE then return nil, bytes end
    return job[2][STATE], bytes
  end
  if call('ZSCORE', DELAY, id) then return WAITING, bytes end
  if call('ZSCORE', HELD, id) then return RESERVED, bytes end
  for _, place in ipairs({KEPT, DONE, DEAD}) do
    if call('ZSCORE', place, id) then return nil, bytes end
  end
  -- In a line, unless these are empty: then it is the record of a job whose places were lost.
  if call('EXISTS', READY, CALLED) == 0 then return nil, bytes end
  return WAITING, bytes
end

-- The job before, which is about to be cancelled.
local function find_previous(topic, id)
  enter(topic)
  local job = find({id})[id]
  if not job or job[2][STATE] ~= WAITING then return nil end
  check_topic()
  local group = group_of(job[3])
  if group ~= '' then call('SREM', GROUPS .. group, '') end
  return job
end

-- Returns what is said of the turn at that place of ARGV.
local function turn(at, number, is_first)
  local name, expected, revision, overlap = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 9]
  local topic, id, group = ARGV[at + 12], ARGV[at + 13], ARGV[at + 17]
  if not is_current(name, expected) then return 2, 0, 0 end
  local outcome, pushed, has_replaced = 0, 0, 0
  if id ~= '' then
    local state, bytes
    if overlap ~= '0' then state, bytes = state_of_previous(ARGV[at + 10], ARGV[at + 11]) end
    if state and overlap == '1' then
      outcome = 1
    else
      local is_replaced = state == WAITING and overlap == '2'
      enter(topic)
      if not may_read((is_replaced and bytes or 0) + call('HSTRLEN', POOL, id), is_first) then return 2, 0, 0 end
      local previous = is_replaced and find_previous(ARGV[at + 10], ARGV[at + 11])
      enter(topic)
      check_topic()
      local existing = call('HGET', POOL, id)
      if existing then open(existing) end
      if group ~= '' then call('SREM', GROUPS .. group, '') end
      -- From here on nothing fails.
      if previous then
        enter(ARGV[at + 10])
        erase({previous})
        depart(told)
        has_replaced = 1
        enter(topic)
      end
      clear_traces()
      pushed = push_job(id, ARGV[at + 14], number, ARGV[at + 15], tonumber(ARGV[at + 16]), 2, group ~= '', false)
      depart(told)
    end
  end
  if revision == '0' then
    erase_schedules({name})
    return outcome, pushed, has_replaced
  end
  local progress = outcome == 1 and ARGV[at + 8] or ARGV[at + 7]
  call('HSET', TURNS, name, cmsgpack.pack({1, revision, tonumber(ARGV[at + 4]), progress}))
  if ARGV[at + 5] == '1' then call('HSET', DEFINITIONS, name, ARGV[at + 6]) end
  call('ZADD', NAMES, 0, name)
  call('ZADD', ALARMS, ARGV[at + 4], name)
  return outcome, pushed, has_replaced
end

-- A Redis whose memory is full refuses new jobs and definitions. It can still pause schedules and remove them.
local stores_more = false
for i = 1, count do
  local at = 4 + (i - 1) * EACH
  stores_more = stores_more or ARGV[at + 5] == '1' or ARGV[at + 13] ~= ''
end
local place = 0
if stores_more then place = numbers(count) else go_on_when_full(NEXT) end
for i = 1, count do
  local is_done, outcome, pushed, has_replaced = pcall(turn, 4 + (i - 1) * EACH, place + i, i == 1)
  if not is_done then
    outcome, pushed, has_replaced = -1, type(outcome) == 'table' and outcome.err or tostring(outcome), 0
  end
  local to = 3 * i
  said[to + 1], said[to + 2], said[to + 3] = outcome, pushed, has_replaced
end
said[1], said[2], said[3] = next_wake(), told, next_alarm()
return said
