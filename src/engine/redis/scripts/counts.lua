-- How many jobs of a topic are in each state.
-- KEYS  prelude.lua
-- ARGV  5 how many due jobs may become ready, or be removed, first
-- RETURNS prelude.lua; 3-7 how many are delayed, ready, reserved, done, dead   8 priority of the first job in line, -1
--         if there is none   9 its due time   10 the number of the oldest lease, 0 if there is none
local said = {false, 0}
catch_up(tonumber(ARGV[5]))
add_counts(said)
return answer(said)
