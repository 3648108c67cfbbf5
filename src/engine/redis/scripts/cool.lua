-- Bodies are in the cold store now: replaces them in Redis by their places there. Does nothing for a job that has changed
-- since, so that doing it twice changes nothing.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5... ten for each job: topic, id, its push order and when it was pushed, version, hops, step, partition, offset,
--       bytes of the body. With 0 hops the body is in Redis, and the push order and time say whether it is the same one; with more
--       hops it has been moved within the cold store, and the version says that. A step below 0: the body cannot
--       be stored there and stays in Redis
-- RETURNS 1 as prelude.lua   2 not used   3... for each 0 done, 1 not
local EACH = 10
local said, cool = {false, {}}, in_shard('cool')
go_on_when_full(NEXT)

-- Whether a body of Redis is the one that was moved. It is removed from the list of those to be moved, unless there is
-- another body by now.
local function is_same(head, id, order, pushed)
  local is_other = head and head[STATE] == WAITING and head[FLAGS] ~= COLD and (head[PLACE] ~= order or head[PUSHED] ~= pushed)
  if is_other then return false end
  call('ZREM', cool, TOPIC .. '/' .. id)
  return head and head[STATE] == WAITING and head[FLAGS] ~= COLD and is_delayed(id)
end

local function move(at)
  local id, place = ARGV[at + 2], {}
  for i = 1, 6 do place[i] = tonumber(ARGV[at + 4 + i]) end
  enter(ARGV[at + 1])
  local record, head, tail = call('HGET', POOL, id), nil, nil
  if record then head, tail = open(record) end
  if place[2] == 0 then
    if not is_same(head, id, tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])) or place[3] < 0 then return 1 end
  else
    if not head or not is_cold(head) then return 1 end
    local now_at = cold_of(tail, 0)
    if now_at[1] ~= place[1] or now_at[2] >= place[2] then return 1 end
  end
  if place[2] == 0 then count_cold(1) end
  head[FLAGS] = COLD
  store(id, head, string.sub(tail, 1, (cmsgpack.unpack_limit(tail, 2, 1))) .. cmsgpack.pack(place))
  return 0
end

for at = 4, #ARGV - 1, EACH do said[#said + 1] = move(at) end
return said
