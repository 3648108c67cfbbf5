-- Gives waiting and dead jobs a new due time.
-- KEYS  prelude.lua
-- ARGV  5... two for each: id, new due time in ms
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: leave_to_next) 0 moved, 1 reserved, 2 done, 3 unknown
local said, ids = {false, 0}, {}
for at = 5, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
local jobs = find(ids)
for i, id in ipairs(ids) do
  local _, head, tail = unpack(jobs[id] or {})
  local outcome = 0
  if not head then
    outcome = 3
  elseif head[STATE] == RESERVED or head[STATE] == IS_DONE then
    outcome = head[STATE] - 1
  else
    leave(id, head)
    if head[STATE] == IS_DEAD then
      head[ATTEMPTS] = 0
      join_group(id, tail)
    end
    wait(id, head, tail, tonumber(ARGV[4 + 2 * i]))
  end
  said[#said + 1] = outcome
end
return answer(said)
