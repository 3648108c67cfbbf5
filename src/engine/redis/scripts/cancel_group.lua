-- Cancels jobs of a group in topics that match one of the patterns. Every job that is visited leaves the group, so that
-- it is not visited again: a waiting job is removed, a running job will not be retried. The members of the group are
-- read page by page; a member whose topic does not match is skipped and stays.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 group   6 how many at most   7 stop at this many bytes of records
--       8 where to continue, "0" at first   9... patterns: the name of a topic, or a prefix of names and a star
-- RETURNS 1 as prelude.lua   2 topics that got ready jobs, each with its outlets
--         3 topics, each with the number of its cancelled jobs   4 how many jobs were running
--         5 where to continue; "" if there are no more
local group, left, bytes = GROUPS .. ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local cancelled, reserved, told = {}, 0, {}

local waiting = {}

local function take_back(id)
  local job = find({id})[id]
  local head = job and job[2]
  -- Another job may have the id of a lost one.
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

local function is_meant(topic)
  for i = 9, #ARGV do
    local pattern = ARGV[i]
    if pattern == topic then return true end
    if string.sub(pattern, -1) == '*' and string.sub(topic, 1, #pattern - 1) == string.sub(pattern, 1, -2) then return true end
  end
  return false
end

local page = call('SSCAN', group, ARGV[8], 'COUNT', ARGV[6])
-- A page may have more members than requested, and members of an earlier page again. Those not processed come again.
local is_whole = true
local by_topic, meant = {}, {}
for _, member in ipairs(page[2]) do
  local slash = string.find(member, '/', 1, true)
  local topic = string.sub(member, 1, slash - 1)
  if meant[topic] == nil then meant[topic] = is_meant(topic) end
  if meant[topic] then
    if left == 0 then
      is_whole = false
      break
    end
    left = left - 1
    by_topic[topic] = by_topic[topic] or {}
    table.insert(by_topic[topic], string.sub(member, slash + 1))
  end
end
for topic, ids in pairs(by_topic) do
  enter(topic)
  for _, id in ipairs(ids) do
    if bytes <= 0 then
      is_whole = false
      break
    end
    take_back(id)
    call('SREM', group, topic .. '/' .. id)
  end
  if #waiting > 0 then
    erase(waiting)
    local at = #cancelled
    cancelled[at + 1], cancelled[at + 2] = topic, #waiting
    waiting = {}
  end
  depart(told)
end
local cursor = is_whole and page[1] or ARGV[8]
if is_whole and cursor == '0' or call('EXISTS', group) == 0 then cursor = '' end
return {next_wake(), told, cancelled, reserved, cursor}
