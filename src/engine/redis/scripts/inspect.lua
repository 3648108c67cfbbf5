-- Returns what the queue needs to know about running jobs. Changes nothing.
-- KEYS  prelude.lua
-- ARGV  5... two for each lease: its number, its nonce
-- RETURNS prelude.lua; 3... two for each of the first (prelude_life.lua: held_by): attempts and
--         options; nil and nil for a stale one
local said = {false, 0}
local held, count = held_by(5, 2)
for i = 1, count do
  local job = held[i]
  local attempts, options = false, false
  if job and NOW < job[2][UNTIL] then
    attempts = job[2][ATTEMPTS]
    options = options_of(job[3])
  end
  said[#said + 1] = attempts
  said[#said + 1] = options
end
return said
