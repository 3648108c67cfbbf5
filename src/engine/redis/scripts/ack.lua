-- Finishes jobs by their leases.
-- KEYS  prelude.lua
-- ARGV  5 until when and   6 how many done jobs are kept (0 and 0: none)
--       7... two for each: lease number, outcome ("": as it was)
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: leave_to_next) 0 acked, 1 stale
local keep_until, keep_count = tonumber(ARGV[5]), tonumber(ARGV[6])
local said, leases = {false, 0}, {}
for at = 7, #ARGV, 2 do leases[#leases + 1] = tonumber(ARGV[at]) end
local held = held_by(leases)
local ids, kept = {}, {}
for i, lease in ipairs(leases) do
  local job = held[lease]
  held[lease] = nil
  if job and NOW < job[2][UNTIL] then
    ids[#ids + 1] = job[1]
    leave_group(job[1], job[3])
    local outcome = ARGV[6 + 2 * i]
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
    keep_all(kept, IS_DONE, keep_count)
  end
end
return answer(said)
