-- Makes due jobs of a topic ready.
-- KEYS  prelude.lua
-- ARGV  5 how many at most
-- RETURNS prelude.lua
go_on_when_full(NEXT)
move_due(tonumber(ARGV[5]))
delay_wake_anew()
return answer({false, 0})
