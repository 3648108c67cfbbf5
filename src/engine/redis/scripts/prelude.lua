-- In front of every script: the keys and arguments that all scripts about a topic are given, and the record.
--
-- KEYS  as keys.h has them: 14 of one topic in one shard. (Scripts about a whole shard have others, and say so.)
-- ARGV  1 now in ms   2 topic   3 channel of the news   4 shard and server, "3@name"   5... the script's own
-- RETURNS of every script that calls answer(): an array of
--   1 when the shard is to be looked at next, in ms, as text; "" for never; nil when that has not changed
--   2 which outlets got ready jobs: 1 the topic's own, 2 callbacks, 3 both, 0 none
--   3... what the script says
local POOL, DELAY, READY, CALLED, HELD, LEASES, DONE, DEAD, KEPT, FULL, TOPICS, SEQUENCE, NEXT, GROUPS = unpack(KEYS)
local NOW, TOPIC, CHANNEL, SENDER = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local call = redis.call

-- Places in a record's head, and its states. A job that waits is delayed or ready: ready unless DELAY has it.
local STATE, PRIORITY, DUE, PUSHED, PLACE, OUTLET, ATTEMPTS, LEASE, UNTIL, FLAGS, OUTCOME = 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local WAITING, RESERVED, IS_DONE, IS_DEAD = 0, 2, 3, 4
-- Bit 0 of the flags; above it a reserved job has the nonce of its lease.
local CANCEL_REQUESTED = 1

-- The head of a record as a table, and its tail as it is.
local function open(record)
  local at, head = cmsgpack.unpack_one(record)
  return head, string.sub(record, at + 1)
end

local function store(id, head, tail)
  call('HSET', POOL, id, cmsgpack.pack(head) .. tail)
end

-- The records of the first of `ids`, with false where there is none, and no further one once these have `enough` bytes.
-- Bodies may be large: they are read a few at a time, so that hardly more are read than are answered. Redis would need as
-- much memory again for hundreds of large ones at once, and do nothing else. Answers the bytes, too.
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
    -- As many as fit when they go on like that.
    step = math.min(16, math.floor((enough - bytes) * count / (bytes + 1)) + 1)
  end
  return records, bytes
end

-- The first text of a tail, without reading the others.
local function group_of(tail)
  local _, group = cmsgpack.unpack_one(tail, 1)
  return group
end

-- The second.
local function options_of(tail)
  local _, _, options = cmsgpack.unpack_limit(tail, 2, 1)
  return options
end

-- `count` numbers of the shard's sequence: those after the answer.
local function numbers(count)
  return call('INCRBY', SEQUENCE, count) - count
end

-- For scripts that only move jobs on, or end them: a Redis whose memory is full (maxmemory) refuses a script's first write
-- if that could need memory, and none behind it. So they begin with one that needs none, and removes nothing.
local function go_on_when_full(zset)
  call('ZREM', zset, '')
end

-- The shard has to look at this topic at `at` at the latest. `kind`: 'd' delay, 'l' leases, 'k' kept.
local is_next_changed, lowered = false, {}
local function wake_by(kind, at)
  if call('ZADD', NEXT, 'LT', 'CH', at, kind .. TOPIC) == 1 then
    is_next_changed = true
    lowered[kind .. TOPIC] = true
  end
end

-- The same, anew, after something was taken out of `from`, the zset that `kind` stands for.
local function wake_anew(kind, from)
  local first = call('ZRANGE', from, 0, 0, 'WITHSCORES')
  if first[2] then
    call('ZADD', NEXT, first[2], kind .. TOPIC)
  else
    call('ZREM', NEXT, kind .. TOPIC)
  end
  is_next_changed = true
end

-- What the shard has to look at first, for answer().
local function next_wake()
  if not is_next_changed then return false end
  local first = call('ZRANGE', NEXT, 0, 0, 'WITHSCORES')
  if not first[1] then return '' end
  if lowered[first[1]] then call('PUBLISH', CHANNEL, 'e' .. SENDER .. ':' .. first[2]) end
  return first[2]
end
