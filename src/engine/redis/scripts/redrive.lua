-- Makes dead jobs of a topic ready again, by their ids.
-- KEYS  prelude.lua
-- ARGV  5... ids
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: leave_to_next) 1, or 0 if it was not dead
local said = {false, 0}
local ids = {unpack(ARGV, 5)}
local jobs = find(ids)
for _, id in ipairs(ids) do
  local _, head, tail = unpack(jobs[id] or {})
  if head and head[STATE] == IS_DEAD then
    leave(id, head)
    join_group(id, tail)
    head[ATTEMPTS] = 0
    wait(id, head, tail, NOW)
    said[#said + 1] = 1
  else
    said[#said + 1] = 0
  end
end
return answer(said)
