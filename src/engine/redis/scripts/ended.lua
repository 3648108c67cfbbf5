-- Tells the leases of a topic that have run out, and puts off the next time they are told.
-- KEYS  prelude.lua
-- ARGV  5 how many at most   6 by how many ms to put off
-- RETURNS prelude.lua; 3... three for each lease: number, attempts, options
local said = {false, 0}
go_on_when_full(NEXT)
local ids = call('ZRANGE', LEASES, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, ARGV[5])
local looks = {}
for i, record in ipairs(#ids > 0 and call('HMGET', POOL, unpack(ids)) or {}) do
  local head, tail = open(record)
  local look = head[UNTIL]
  if look <= NOW then
    look = NOW + tonumber(ARGV[6])
    local at = #said
    said[at + 1], said[at + 2], said[at + 3] = head[LEASE], head[ATTEMPTS], options_of(tail)
  end
  looks[2 * i - 1], looks[2 * i] = look, ids[i]
end
if #ids > 0 then call('ZADD', LEASES, unpack(looks)) end
wake_anew('l', LEASES)
return answer(said)
