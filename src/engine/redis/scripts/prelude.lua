-- Comes before every script: the keys and arguments that all scripts about a topic get, and the record format.
--
-- KEYS  as in keys.h: 14 keys of one topic in one shard. (Scripts about a whole shard have others, and say so.)
-- ARGV  1 now in ms   2 topic   3 channel of the news   4 shard and server, "3@name"; a server with a cold store adds a
--       space and the delay in ms from which on it moves jobs there; one that wants to hear of jobs that become ready adds
--       " w"   5... the script's own
-- RETURNS of every script that calls answer(): an array of
--   1 when the shard must be visited next, in ms, as text; "" for never; nil if that has not changed
--   2 which outlets got ready jobs: 1 the topic's own, 2 callbacks, 3 both, 0 none
--   3... the script's own results
local POOL, DELAY, READY, CALLED, HELD, LEASES, DONE, DEAD, KEPT, FULL, TOPICS, SEQUENCE, NEXT, GROUPS = unpack(KEYS)
local NOW, TOPIC, CHANNEL, SENDER = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local call = redis.call

-- Places in a record's head, and its states. A waiting job is delayed or ready: ready unless it is in DELAY.
local STATE, PRIORITY, DUE, PUSHED, PLACE, OUTLET, ATTEMPTS, LEASE, UNTIL, FLAGS, OUTCOME = 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local OWN_LEASE = 13 -- only in jobs that have one
local WAITING, RESERVED, IS_DONE, IS_DEAD = 0, 2, 3, 4
-- Bit 0 of the flags. In a reserved job the bits above it are the nonce of its lease.
local CANCEL_REQUESTED = 1
-- The flags of a waiting job whose body is in the cold store: the last item of its tail says where (record.h).
local COLD = 2
local function is_cold(head)
  return head[FLAGS] == COLD and head[STATE] == WAITING
end

-- Returns the head of a record as a table, and its tail unchanged.
local function open(record)
  local at, head = cmsgpack.unpack_one(record)
  return head, string.sub(record, at + 1)
end

-- Returns where the body of a cold job is: {version, hops, step, partition, offset, bytes of the body}. The tail begins
-- after `at` bytes.
local function cold_of(record, at)
  local _, _, _, place = cmsgpack.unpack_limit(record, 3, at + 1)
  return place
end

local function store(id, head, tail)
  call('HSET', POOL, id, cmsgpack.pack(head) .. tail)
end

-- Returns the records of the first of `ids`, with false where there is none, and their bytes. Stops once the records
-- have `enough` bytes. Bodies may be large: they are read a few at a time, so that hardly more are read than are
-- returned. Reading hundreds of large ones at once would need as much memory again, and would block Redis meanwhile.
local ENOUGH_BYTES = 4 * 1024 * 1024
local function records_of(ids, enough, pool)
  local records, count, bytes, step = {}, 0, 0, 4
  while count < #ids do
    for _, record in ipairs(call('HMGET', pool or POOL, unpack(ids, count + 1, math.min(count + step, #ids)))) do
      count = count + 1
      records[count] = record
      if record then bytes = bytes + #record end
      if bytes >= enough then return records, bytes end
    end
    -- As many as will fit if the next records have the same average size.
    step = math.min(16, math.floor((enough - bytes) * count / (bytes + 1)) + 1)
  end
  return records, bytes
end

-- Returns the first text of a tail, without reading the others.
local function group_of(tail)
  local _, group = cmsgpack.unpack_one(tail, 1)
  return group
end

-- Returns the second text.
local function options_of(tail)
  local _, _, options = cmsgpack.unpack_limit(tail, 2, 1)
  return options
end

-- Reserves `count` numbers of the shard's sequence. Returns the number before the first of them.
local function numbers(count)
  return call('INCRBY', SEQUENCE, count) - count
end

-- For scripts that only move or end jobs. A Redis with full memory (maxmemory) refuses a script if its first
-- write could need memory, but does not check later writes. So these scripts begin with a write that needs no
-- memory and removes nothing.
local function go_on_when_full(zset)
  call('ZREM', zset, '')
end

-- The shard must visit this topic at `at` at the latest. `kind`: 'd' delay, 'l' leases, 'k' kept.
local is_next_changed, lowered = false, {}
local function wake_by(kind, at)
  if call('ZADD', NEXT, 'LT', 'CH', at, kind .. TOPIC) == 1 then
    is_next_changed = true
    lowered[kind .. TOPIC] = true
  end
end

-- Sets that time again after members were removed from `from`, the zset for `kind`.
local function wake_anew(kind, from)
  local first = call('ZRANGE', from, 0, 0, 'WITHSCORES')
  if first[2] then
    call('ZADD', NEXT, first[2], kind .. TOPIC)
  else
    call('ZREM', NEXT, kind .. TOPIC)
  end
  is_next_changed = true
end

-- Returns the time of the shard's next visit, for answer(). Publishes it if this topic made it earlier, or if the driver
-- must fetch a body at once.
local is_wished = false
local function next_wake()
  if is_wished then
    call('PUBLISH', CHANNEL, 'e' .. SENDER .. ':' .. ARGV[1])
    return ARGV[1]
  end
  if not is_next_changed then return false end
  local first = call('ZRANGE', NEXT, 0, 0, 'WITHSCORES')
  if not first[1] then return '' end
  if lowered[first[1]] then call('PUBLISH', CHANNEL, 'e' .. SENDER .. ':' .. first[2]) end
  return first[2]
end
