-- Moves the deadlines of leases.
-- KEYS  prelude.lua
-- ARGV  5... two for each: lease number, new deadline in ms
-- RETURNS prelude.lua; 3... for each 1, or 0 for a stale lease
local said = {false, 0}
go_on_when_full(NEXT)
for at = 5, #ARGV, 2 do
  local id, head, tail = held_by(ARGV[at])
  if id and NOW < head[UNTIL] then
    head[UNTIL] = tonumber(ARGV[at + 1])
    store(id, head, tail)
    call('ZADD', LEASES, head[UNTIL], id)
    wake_by('l', head[UNTIL])
    said[#said + 1] = 1
  else
    said[#said + 1] = 0
  end
end
return answer(said)
