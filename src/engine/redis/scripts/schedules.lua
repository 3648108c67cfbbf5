-- A page of the schedules of a shard, by name. Changes nothing.
-- KEYS  prelude_schedules.lua
-- ARGV  5 the name after which to begin, '' for the first   6 how many at most   7 how many bytes are enough
-- RETURNS 1 the name after which to go on, '' when those were all   2... three for each: name, changing part, definition
local most, bytes, said = tonumber(ARGV[6]), tonumber(ARGV[7]), {''}
local names = call('ZRANGE', NAMES, ARGV[5] == '' and '-' or '(' .. ARGV[5], '+', 'BYLEX', 'LIMIT', 0, most + 1)
local has_more = #names > most
if has_more then names[#names] = nil end
if #names == 0 then return said end
local definitions = records_of(names, bytes, DEFINITIONS)
local looked = 0
for i, turn in ipairs(call('HMGET', TURNS, unpack(names, 1, #definitions))) do
  looked = i
  if turn and definitions[i] then
    local at = #said
    said[at + 1], said[at + 2], said[at + 3] = names[i], turn, definitions[i]
    bytes = bytes - #turn - #definitions[i]
    if bytes <= 0 then break end
  end
end
if has_more or looked < #names then said[1] = names[looked] end
return said
