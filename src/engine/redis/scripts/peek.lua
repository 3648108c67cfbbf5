-- Records of the cold store have waited for long enough: says what is to become of them. Changes nothing.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5... seven for each record: topic and id of its job, version, hops, step, partition, offset
-- RETURNS 1 and 2 not used   3... for each when its job is due, in ms, as text; "" if the record is not needed: the job is
--         gone, has another body, or its body is in another record
local EACH = 7
local said = {false, {}}

local function due_of(at)
  enter(ARGV[at + 1])
  local record = call('HGET', POOL, ARGV[at + 2])
  if not record then return '' end
  local head, tail = open(record)
  if not is_cold(head) then return '' end
  local place, version, hops = cold_of(tail, 0), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  if place[1] ~= version or place[2] > hops then return '' end
  -- With more hops than the job knows: Redis has lost its last changes (in a failover), and this record is the one.
  if place[2] == hops then
    for i = 3, 5 do
      if place[i] ~= tonumber(ARGV[at + 2 + i]) then return '' end
    end
  end
  return string.format('%.0f', head[DUE])
end

for at = 4, #ARGV - 1, EACH do said[#said + 1] = due_of(at) end
return said
