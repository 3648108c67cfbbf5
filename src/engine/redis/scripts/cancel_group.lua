-- Takes back jobs of a group, whatever their topics. All that are met leave the group: who waits is gone, and who runs
-- is not retried, so that nobody is met again.
-- KEYS  prelude_look.lua: those of a topic without a name
-- ARGV  5 group   6 how many at most   7 how many bytes of records are enough for one call
-- RETURNS 1 as prelude.lua   2 topics that got ready jobs, each with its outlets   3 how many were cancelled
--         4 how many were running   5 1 when there are more
local group, bytes = GROUPS .. ARGV[5], tonumber(ARGV[7])
local cancelled, reserved, told = 0, 0, {}

local waiting = {}

local function take_back(id)
  local job = find({id})[id]
  local head = job and job[2]
  -- Another job may have the id of one that is gone.
  if not head or head[STATE] >= IS_DONE or group_of(job[3]) ~= ARGV[5] then return end
  bytes = bytes - #job[3]
  if head[STATE] == WAITING then
    waiting[#waiting + 1] = job
  elseif head[FLAGS] % 2 ~= CANCEL_REQUESTED then
    head[FLAGS] = head[FLAGS] + CANCEL_REQUESTED
    store(id, head, job[3])
    reserved = reserved + 1
  end
end

local by_topic = {}
for _, member in ipairs(call('SRANDMEMBER', group, ARGV[6])) do
  local slash = string.find(member, '/', 1, true)
  local topic = string.sub(member, 1, slash - 1)
  by_topic[topic] = by_topic[topic] or {}
  table.insert(by_topic[topic], string.sub(member, slash + 1))
end
for topic, ids in pairs(by_topic) do
  enter(topic)
  for _, id in ipairs(ids) do
    if bytes <= 0 then break end
    take_back(id)
    call('SREM', group, topic .. '/' .. id)
  end
  if #waiting > 0 then erase(waiting) end
  cancelled, waiting = cancelled + #waiting, {}
  depart(told)
end
return {next_wake(), told, cancelled, reserved, call('EXISTS', group)}
