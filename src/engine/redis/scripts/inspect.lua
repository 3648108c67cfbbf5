-- What the queue must know of running jobs. Changes nothing.
-- KEYS  prelude.lua
-- ARGV  5... lease numbers
-- RETURNS prelude.lua; 3... two for each of the first (prelude_life.lua: leave_to_next): attempts and
--         options; nil and nil for a stale one
local said, leases = {false, 0}, {}
for at = 5, #ARGV do leases[#leases + 1] = tonumber(ARGV[at]) end
local held = held_by(leases)
for _, lease in ipairs(leases) do
  local job = held[lease]
  local attempts, options = false, false
  if job and NOW < job[2][UNTIL] then
    attempts = job[2][ATTEMPTS]
    options = options_of(job[3])
  end
  said[#said + 1] = attempts
  said[#said + 1] = options
end
return said
