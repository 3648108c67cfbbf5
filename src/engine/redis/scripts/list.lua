-- Returns a page of the jobs of a topic in one state.
-- KEYS  prelude.lua
-- ARGV  5 state: 0 delayed ... 4 dead   6 how many at most   7 1 with bodies   8 prefix of the ids
--       9 text in the outcomes   10 stop after this many jobs   11 or this many bytes of records
--       12... where to continue, as returned with the last page; '' for the start:
--       delayed: a step of the walk, its end, the id after which to continue in it; with a window: the due time and the
--       id after which to continue, with '' between them
--       ready: the outlet, the member after which to continue
--       others: the number after which to continue
--       15 only jobs that are due then or later   16 and before this time; neither: no window
-- RETURNS prelude.lua; 3 ARGV from 12 on for the next page, empty if this was the last
--         4... id and record of each job; without bodies the records have empty ones
local state, most, with_bodies = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local prefix, part = ARGV[8], ARGV[9]
local looks, bytes = tonumber(ARGV[10]), tonumber(ARGV[11])
local due_from, due_before = tonumber(ARGV[15] or ''), tonumber(ARGV[16] or '')
local said = {false, 0, {}}
local listed = 0

-- Returns the record with an empty body: the head of the tail's array, its first two texts, and an empty text.
local function without_body(record, at)
  local body = cmsgpack.unpack_limit(record, 2, at + 1)
  return string.sub(record, 1, body) .. string.char(0xa0)
end

local function is_wanted(head)
  if due_from and (head[DUE] < due_from or head[DUE] >= due_before) then return false end
  return part == '' or string.find(head[OUTCOME], part, 1, true)
end

-- Checks a job, and adds it to the page if it matches. Returns whether there is room for another.
local function look(id, member)
  looks = looks - 1
  if string.sub(id, 1, #prefix) == prefix then
    local record = call('HGET', POOL, id)
    local at, head
    if record then
      at, head = cmsgpack.unpack_one(record)
      bytes = bytes - #record
      if with_bodies and is_cold(head) then bytes = bytes - cold_of(record, at)[6] end
    end
    if not head or not is_there(state, member, head) then
      remove_trace(state, id, member, head)
    elseif is_wanted(head) then
      listed = listed + 1
      said[2 + 2 * listed], said[3 + 2 * listed] = id, with_bodies and record or without_body(record, at)
    end
  end
  return listed < most and looks > 0 and bytes > 0
end

-- A step has a few ids, or all ids if there are few. Within the same step, the sorted ids show what is still to be
-- listed. If the step ends at another place than before, it has changed and is listed from its beginning.
local function list_delayed(from, ended, last)
  if from == '' then from = '0' end
  repeat
    local following, ids = delayed_step(from)
    for i, id in ipairs(ids) do
      if (following ~= ended or id > last) and not look(id) then
        if i < #ids or following ~= '0' then said[3] = {from, following, id} end
        return
      end
    end
    looks = looks - 1
    from, ended = following, ''
    if from == '0' then return end
  until looks <= 0
  said[3] = {from, '', ''}
end

-- By due time: of very many jobs only those in the window are looked at.
local function list_window(at, last)
  local found = delayed_between(due_from, due_before, tonumber(at), last, looks)
  for i = 1, #found, 2 do
    if not look(found[i]) then
      said[3] = {found[i + 1], '', found[i]}
      return
    end
  end
end

local function list_ready(outlet, last)
  for each = outlet == '' and 0 or tonumber(outlet), 1 do
    local from = last == '' and '-' or '(' .. last
    for _, member in ipairs(call('ZRANGE', line_of(each), from, '+', 'BYLEX', 'LIMIT', 0, looks)) do
      if not look(string.sub(member, RANK_BYTES + 1), member) then
        said[3] = {each, member}
        return
      end
    end
    last = ''
  end
end

local function list_entered(line, last)
  local found = call('ZRANGE', line, last == '' and '-inf' or '(' .. last, '+inf', 'BYSCORE', 'LIMIT', 0, looks, 'WITHSCORES')
  for i = 1, #found, 2 do
    if not look(found[i]) then
      said[3] = {found[i + 1]}
      return
    end
  end
end

catch_up(1000)
if state == 0 and due_from then
  list_window(ARGV[12], ARGV[14])
elseif state == 0 then
  list_delayed(ARGV[12], ARGV[13], ARGV[14])
elseif state == 1 then
  list_ready(ARGV[12], ARGV[13])
else
  list_entered(({HELD, DONE, DEAD})[state - 1], ARGV[12])
end
return answer(said)
