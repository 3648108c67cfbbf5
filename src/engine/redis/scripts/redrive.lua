-- Gives dead jobs of a topic another life, by their ids.
-- KEYS  prelude.lua
-- ARGV  5... ids
-- RETURNS prelude.lua; 3 how many of them were dead
local redriven = 0
local ids = {unpack(ARGV, 5)}
local jobs = find(ids)
for _, id in ipairs(ids) do
  local _, head, tail = unpack(jobs[id] or {})
  if head and head[STATE] == IS_DEAD then
    leave(id, head)
    join_group(id, tail)
    head[ATTEMPTS] = 0
    wait(id, head, tail, NOW)
    redriven = redriven + 1
  end
end
return answer({false, 0, redriven})
