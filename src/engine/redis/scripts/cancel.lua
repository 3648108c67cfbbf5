-- Takes jobs back by their ids.
-- KEYS  prelude.lua
-- ARGV  5... ids
-- RETURNS prelude.lua; 3... for each 0 cancelled, 1 reserved (it runs to its end, and is not retried), 2 done, 3 dead,
--         4 unknown
local said = {false, 0}
for at = 5, #ARGV do
  local id = ARGV[at]
  local head, tail = find(id)
  local outcome = 4
  if head and head[STATE] == WAITING then
    erase(id, head, tail)
    outcome = 0
  elseif head then
    outcome = head[STATE] - 1
    if head[STATE] == RESERVED and head[FLAGS] % 2 ~= CANCEL_REQUESTED then
      head[FLAGS] = head[FLAGS] + CANCEL_REQUESTED
      store(id, head, tail)
    end
  end
  said[#said + 1] = outcome
end
return answer(said)
