-- Changes the deadlines of leases.
-- KEYS  prelude.lua
-- ARGV  5... four for each: number of the lease, its nonce, new deadline in ms, 1 to keep a deadline that is later
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: held_by) its deadline now, or 0 for a stale lease
local said = {false, 0}
go_on_when_full(NEXT)
local held, count = held_by(5, 4)
for i = 1, count do
  local job = held[i]
  if job and NOW < job[2][UNTIL] then
    local id, head, tail = unpack(job)
    local deadline = tonumber(ARGV[3 + 4 * i])
    if ARGV[4 + 4 * i] == '1' then deadline = math.max(deadline, head[UNTIL]) end
    head[UNTIL] = deadline
    store(id, head, tail)
    call('ZADD', LEASES, deadline, id)
    wake_by('l', deadline)
    said[#said + 1] = deadline
  else
    said[#said + 1] = 0
  end
end
return answer(said)
