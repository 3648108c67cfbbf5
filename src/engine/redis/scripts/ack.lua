-- Finishes jobs by their leases.
-- KEYS  prelude.lua
-- ARGV  5 end of retention and   6 how many done jobs are kept (0 and 0: none)
--       7... three for each: number of the lease, its nonce, outcome ("": unchanged)
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: held_by) 0 acked, 1 stale
local keep_until, keep_count = tonumber(ARGV[5]), tonumber(ARGV[6])
local said = {false, 0}
local held, count = held_by(7, 3)
local ids, kept = {}, {}
for i = 1, count do
  local job = held[i]
  if job and not job.is_over and NOW < job[2][UNTIL] then
    job.is_over = true
    ids[#ids + 1] = job[1]
    leave_group(job[1], job[3])
    local outcome = ARGV[6 + 3 * i]
    if outcome ~= '' then job[2][OUTCOME] = outcome end
    job[4] = keep_until
    kept[#kept + 1] = job
    said[#said + 1] = 0
  else
    said[#said + 1] = 1
  end
end
if #ids > 0 then
  leave_held(ids)
  if keep_until == 0 or keep_count == 0 then
    forget(ids)
  else
    expire(100)
    keep_all(kept, IS_DONE, keep_count, NOW)
  end
end
return answer(said)
