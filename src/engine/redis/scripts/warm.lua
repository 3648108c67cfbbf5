-- Bodies come back from the cold store. Jobs that are due become ready. Does nothing for a job that has changed
-- since, so that doing it twice changes nothing.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5... four for each: topic, id, version, body
-- RETURNS 1 as prelude.lua   2 topics that got ready jobs, each with its outlets   3... for each 0 done, 1 not
local EACH = 4
local said, told, wishes = {false, false}, {}, in_shard('warm')

-- MessagePack's text in the form for its length.
local function text(body)
  local size = #body
  if size < 32 then return string.char(0xa0 + size) .. body end
  if size < 2 ^ 8 then return struct.pack('>BB', 0xd9, size) .. body end
  if size < 2 ^ 16 then return struct.pack('>BI2', 0xda, size) .. body end
  return struct.pack('>BI4', 0xdb, size) .. body
end

local function warm(at)
  local id = ARGV[at + 2]
  enter(ARGV[at + 1])
  local record = call('HGET', POOL, id)
  if not record then return 1 end
  local head, tail = open(record)
  if not is_cold(head) or cold_of(tail, 0)[1] ~= tonumber(ARGV[at + 3]) then return 1 end
  count_cold(-1)
  head[FLAGS] = 0
  -- First the record: a job in line without its body could not be handed over.
  store(id, head, string.sub(tail, 1, (cmsgpack.unpack_limit(tail, 2, 1))) .. text(ARGV[at + 4]))
  settle(id, head)
  if head[DUE] <= NOW then
    undelay(id)
    if is_watched() then tell_due({id, group_of(tail)}) end
  end
  call('ZREM', wishes, TOPIC .. '/' .. id)
  depart(told)
  return 0
end

go_on_when_full(NEXT)
for at = 4, #ARGV - 1, EACH do said[#said + 1] = warm(at) end
said[1], said[2] = next_wake(), told
return said
