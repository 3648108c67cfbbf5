-- How many jobs of a topic are in each state.
-- KEYS  prelude.lua
-- ARGV  5 how many jobs whose time has come may become ready, or be forgotten, before
-- RETURNS prelude.lua; 3-7 how many are delayed, ready, reserved, done, dead   8 priority of the first job in line, -1
--         when there is none   9 its due time
local said = {false, 0}
catch_up(tonumber(ARGV[5]))
add_counts(said)
return answer(said)
