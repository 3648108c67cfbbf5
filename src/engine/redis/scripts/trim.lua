-- Applies new bounds to done or dead jobs of a topic that are already kept.
-- KEYS  prelude.lua
-- ARGV  5 state: 3 done, 4 dead   6 how many are kept   7 and for how many ms after their end
--       8 the number after which to continue, 0 for the first   9 stop after this many jobs
--       10 or this many bytes of records
-- RETURNS prelude.lua; 3 how many were removed   4 the number after which to continue, '' if all have been visited
local state, count, time = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local last, most, bytes = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local line = state == IS_DONE and DONE or DEAD

go_on_when_full(NEXT)
clear_traces()
expire(1000)
local forgotten = forget_oldest(line, count, most)
local found, ids, numbers_found = {}, {}, {}
if forgotten < most then
  found = call('ZRANGE', line, '(' .. last, '+inf', 'BYSCORE', 'LIMIT', 0, most - forgotten, 'WITHSCORES')
end
for i = 1, #found, 2 do
  ids[#ids + 1] = found[i]
  numbers_found[#ids] = found[i + 1]
end
local records = records_of(ids, bytes)
local over, sooner, changed, first_end = {}, {}, {}, math.huge
for i, record in ipairs(records) do
  local id, head, tail = ids[i], nil, nil
  if record then head, tail = open(record) end
  if not head or head[STATE] ~= state then
    remove_trace(state, id, id, head)
  else
    local ends = (head[LEASE] > 0 and head[LEASE] or NOW) + time
    if ends <= NOW then
      over[#over + 1] = {id, head, tail}
    elseif ends < head[UNTIL] then
      head[UNTIL] = ends
      local place = #sooner + 1
      sooner[place], sooner[place + 1] = ends, id
      changed[place], changed[place + 1] = id, cmsgpack.pack(head) .. tail
      first_end = math.min(first_end, ends)
    end
  end
end
if #over > 0 then erase(over) end
if #sooner > 0 then
  call('ZADD', KEPT, unpack(sooner))
  wake_by('k', first_end)
  call('HSET', POOL, unpack(changed))
end
local at = ''
if forgotten == most then
  at = last
elseif #records < #ids or #ids == most - forgotten then
  at = numbers_found[#records]
end
return answer({false, 0, forgotten + #over, at})
