-- Tells the leases of a topic that have run out, and puts off the next time they are told.
-- KEYS  prelude.lua
-- ARGV  5 how many at most   6 by how many ms to put off
-- RETURNS prelude.lua; 3... three for each lease: lease, attempts, options
-- What the lease of a reserved job is: its number and nonce, as lease.h writes them behind the shard.
local function lease_of(head)
  local nonce = math.floor(head[FLAGS] / 2)
  if nonce == 0 then return string.format('%.0f', head[LEASE]) end
  return string.format('%.0f.%.0f', head[LEASE], nonce)
end

local said = {false, 0}
go_on_when_full(NEXT)
local ids = call('ZRANGE', LEASES, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, ARGV[5])
local looks, gone = {}, {}
for i, record in ipairs(records_of(ids, ENOUGH_BYTES)) do
  local head, tail
  if record then head, tail = open(record) end
  if head and head[STATE] == RESERVED then
    local look = head[UNTIL]
    if look <= NOW then
      look = NOW + tonumber(ARGV[6])
      local at = #said
      said[at + 1], said[at + 2], said[at + 3] = lease_of(head), head[ATTEMPTS], options_of(tail)
      -- Whoever ends it finds the job by its number, also when HELD was lost.
      call('ZADD', HELD, head[LEASE], ids[i])
    end
    looks[#looks + 1] = look
    looks[#looks + 1] = ids[i]
  else
    gone[#gone + 1] = ids[i]
  end
end
if #looks > 0 then call('ZADD', LEASES, unpack(looks)) end
if #gone > 0 then leave_held(gone) end
wake_anew('l', LEASES)
return answer(said)
