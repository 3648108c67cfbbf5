-- Moves the deadlines of leases.
-- KEYS  prelude.lua
-- ARGV  5... three for each: number of the lease, its nonce, new deadline in ms
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: held_by) 1, or 0 for a stale lease
local said = {false, 0}
go_on_when_full(NEXT)
local held, count = held_by(5, 3)
for i = 1, count do
  local job = held[i]
  if job and NOW < job[2][UNTIL] then
    local id, head, tail = unpack(job)
    head[UNTIL] = tonumber(ARGV[4 + 3 * i])
    store(id, head, tail)
    call('ZADD', LEASES, head[UNTIL], id)
    wake_by('l', head[UNTIL])
    said[#said + 1] = 1
  else
    said[#said + 1] = 0
  end
end
return answer(said)
