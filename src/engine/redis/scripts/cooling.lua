-- Returns jobs whose bodies are to be moved to the cold store, those that are due last first. Changes only the list of
-- these jobs: removes those that need not be moved.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 how many at most   6 stop at this many bytes of records
-- RETURNS 1 as prelude.lua   2 not used   3 1 if there are more   4... three for each: topic, id, record
local most, bytes, said = tonumber(ARGV[5]), tonumber(ARGV[6]), {false, {}, 0}
local cool, gone, looked = in_shard('cool'), {}, 0
go_on_when_full(NEXT)
local soon = call('ZRANGE', cool, '-inf', '(' .. string.format('%.0f', NOW + COOLED_FROM), 'BYSCORE', 'LIMIT', 0, 1000)
if #soon > 0 then call('ZREM', cool, unpack(soon)) end
local members = call('ZRANGE', cool, 0, most - 1, 'REV')
for _, member in ipairs(members) do
  if bytes <= 0 then break end
  looked = looked + 1
  local slash = string.find(member, '/', 1, true)
  local topic, id = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
  enter(topic)
  local record = call('HGET', POOL, id)
  local head = record and open(record)
  if head and head[STATE] == WAITING and head[FLAGS] ~= COLD and is_delayed(id) then
    local at = #said
    said[at + 1], said[at + 2], said[at + 3] = topic, id, record
    bytes = bytes - #record
  else
    gone[#gone + 1] = member
  end
end
if #gone > 0 then call('ZREM', cool, unpack(gone)) end
said[3] = (looked == most or looked < #members or #soon == 1000) and 1 or 0
return said
