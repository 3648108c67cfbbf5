-- Reports schedules whose time has come, and puts off their next report.
-- KEYS  prelude_schedules.lua
-- ARGV  5 how many at most   6 how many bytes are enough   7 by how many ms to put off
-- RETURNS 1 and 2 not used   3 the next alarm (prelude_schedules.lua)   4... three for each: name, changing part, definition
local said = {false, {}, false}
go_on_when_full(ALARMS)
local names = call('ZRANGE', ALARMS, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, ARGV[5])
if #names > 0 then
  local definitions = records_of(names, tonumber(ARGV[6]), DEFINITIONS)
  local again, gone = {}, {}
  for i, turn in ipairs(call('HMGET', TURNS, unpack(names, 1, #definitions))) do
    if turn and definitions[i] then
      local at = #said
      said[at + 1], said[at + 2], said[at + 3] = names[i], turn, definitions[i]
      again[#again + 1] = NOW + tonumber(ARGV[7])
      again[#again + 1] = names[i]
    else
      gone[#gone + 1] = names[i]
    end
  end
  if #again > 0 then call('ZADD', ALARMS, unpack(again)) end
  erase_schedules(gone)
end
said[3] = next_alarm()
return said
