-- Returns the expired leases of a topic, and postpones the next time they are reported.
-- KEYS  prelude.lua
-- ARGV  5 how many at most   6 by how many ms to postpone
-- RETURNS prelude.lua; 3... three for each lease: lease, attempts, options
-- The text of a reserved job's lease without the shard: number and nonce (lease.h).
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
      -- So that a nack finds the job by its lease number even if HELD was lost.
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
