-- Cancels jobs by their ids.
-- KEYS  prelude.lua
-- ARGV  5... ids
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: leave_to_next) 0 cancelled, 1 reserved (it runs to
--         its end and is not retried), 2 done, 3 dead, 4 unknown
local said = {false, 0}
local ids = {unpack(ARGV, 5)}
local jobs, waiting = find(ids), {}
for i, id in ipairs(ids) do
  local job = jobs[id]
  local head = job and job[2]
  local outcome = 4
  if head and head[STATE] == WAITING then
    waiting[#waiting + 1] = job
    jobs[id] = nil
    outcome = 0
  elseif head then
    outcome = head[STATE] - 1
    if head[STATE] == RESERVED and head[FLAGS] % 2 ~= CANCEL_REQUESTED then
      head[FLAGS] = head[FLAGS] + CANCEL_REQUESTED
      store(id, head, job[3])
    end
  end
  said[i + 2] = outcome
end
if #waiting > 0 then erase(waiting) end
return answer(said)
