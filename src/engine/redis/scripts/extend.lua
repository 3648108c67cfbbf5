-- Moves the deadlines of leases.
-- KEYS  prelude.lua
-- ARGV  5... two for each: lease number, new deadline in ms
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: leave_to_next) 1, or 0 for a stale lease
local said, leases = {false, 0}, {}
go_on_when_full(NEXT)
for at = 5, #ARGV, 2 do leases[#leases + 1] = tonumber(ARGV[at]) end
local held = held_by(leases)
for i, lease in ipairs(leases) do
  local job = held[lease]
  if job and NOW < job[2][UNTIL] then
    local id, head, tail = unpack(job)
    head[UNTIL] = tonumber(ARGV[4 + 2 * i])
    store(id, head, tail)
    call('ZADD', LEASES, head[UNTIL], id)
    wake_by('l', head[UNTIL])
    said[#said + 1] = 1
  else
    said[#said + 1] = 0
  end
end
return answer(said)
