-- Looks a schedule up.
-- KEYS  prelude_schedules.lua
-- ARGV  5 name
-- RETURNS nothing when there is none; else 1 its changing part   2 its definition
local turn, definition = call('HGET', TURNS, ARGV[5]), call('HGET', DEFINITIONS, ARGV[5])
if not turn or not definition then return {} end
return {turn, definition}
