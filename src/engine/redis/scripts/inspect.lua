-- What the queue must know of running jobs. Changes nothing.
-- KEYS  prelude.lua
-- ARGV  5... lease numbers
-- RETURNS prelude.lua; 3... two for each lease: attempts and options; nil and nil for a stale one
local said = {false, 0}
for at = 5, #ARGV do
  local id, head, tail = held_by(ARGV[at])
  local attempts, options = false, false
  if id and NOW < head[UNTIL] then
    attempts = head[ATTEMPTS]
    options = options_of(tail)
  end
  said[#said + 1] = attempts
  said[#said + 1] = options
end
return said
