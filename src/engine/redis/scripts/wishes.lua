-- Returns jobs whose bodies must come back from the cold store now, and puts off their next report.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 how many at most   6 by how many ms to put off   7 stop at this many bytes of bodies
-- RETURNS 1 and 2 not used   3 1 if there are more   4... seven for each: topic, id, version, hops, step, partition, offset
local most, bytes, said, wishes = tonumber(ARGV[5]), tonumber(ARGV[7]), {false, {}, 0}, in_shard('warm')
local later, gone, looked = {}, {}, 0
go_on_when_full(NEXT)
local members = call('ZRANGE', wishes, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, most)
for _, member in ipairs(members) do
  if bytes <= 0 then break end
  looked = looked + 1
  local slash = string.find(member, '/', 1, true)
  local topic, id = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
  enter(topic)
  local record = call('HGET', POOL, id)
  local head, tail
  if record then head, tail = open(record) end
  if head and is_cold(head) then
    local at, place = #said, cold_of(tail, 0)
    said[at + 1], said[at + 2] = topic, id
    for i = 1, 5 do said[at + 2 + i] = place[i] end
    bytes = bytes - place[6]
    later[#later + 1] = NOW + tonumber(ARGV[6])
    later[#later + 1] = member
  else
    gone[#gone + 1] = member
  end
end
if #later > 0 then call('ZADD', wishes, unpack(later)) end
if #gone > 0 then call('ZREM', wishes, unpack(gone)) end
said[3] = (looked == most or looked < #members) and 1 or 0
return said
