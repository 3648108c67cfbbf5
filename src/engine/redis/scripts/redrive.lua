-- Gives dead jobs of a topic another life, by their ids.
-- KEYS  prelude.lua
-- ARGV  5... ids
-- RETURNS prelude.lua; 3 how many of them were dead
local redriven = 0
for at = 5, #ARGV do
  local id = ARGV[at]
  local head, tail = find(id)
  if head and head[STATE] == IS_DEAD then
    leave(id, head)
    join_group(id, tail)
    head[ATTEMPTS] = 0
    wait(id, head, tail, NOW)
    redriven = redriven + 1
  end
end
return answer({false, 0, redriven})
