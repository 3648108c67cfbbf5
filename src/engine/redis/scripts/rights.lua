-- Tries all commands of the other scripts once, so that missing rights of the Redis user are reported before a script
-- fails in the middle.
-- KEYS  1 an unused key; it is unused afterwards, too
-- ARGV  1 the channel of the news; servers ignore the message
-- RETURNS an array of the commands that the user may not call
local TRIALS = {
  -- DEL comes first: it removes what the others write.
  {'DEL', KEYS[1]},
  {'EXISTS', KEYS[1]}, {'GET', KEYS[1]}, {'PTTL', KEYS[1]}, {'SET', KEYS[1], '1'}, {'INCRBY', KEYS[1], 1}, {'DEL', KEYS[1]},
  {'HSET', KEYS[1], 'a', 1}, {'HSETNX', KEYS[1], 'a', 1}, {'HGET', KEYS[1], 'a'}, {'HMGET', KEYS[1], 'a'}, {'HLEN', KEYS[1]}, {'HEXISTS', KEYS[1], 'a'}, {'HSTRLEN', KEYS[1], 'a'},
  {'HSCAN', KEYS[1], 0},
  {'HDEL', KEYS[1], 'a'}, {'DEL', KEYS[1]},
  {'SADD', KEYS[1], 'a'}, {'SSCAN', KEYS[1], 0}, {'SREM', KEYS[1], 'a'}, {'DEL', KEYS[1]},
  {'ZADD', KEYS[1], 0, 'a'}, {'ZCARD', KEYS[1]}, {'ZCOUNT', KEYS[1], 0, 0}, {'ZMSCORE', KEYS[1], 'a'}, {'ZRANGE', KEYS[1], 0, 0},
  {'ZSCAN', KEYS[1], 0}, {'ZSCORE', KEYS[1], 'a'}, {'ZRANK', KEYS[1], 'a'}, {'ZREMRANGEBYRANK', KEYS[1], 0, 0}, {'ZREM', KEYS[1], 'a'},
  {'UNLINK', KEYS[1]},
  {'DEL', KEYS[1]},
  {'PUBLISH', ARGV[1], ''}, {'TIME'},
}
local refused, is_refused = {}, {}
for _, trial in ipairs(TRIALS) do
  local reply = redis.pcall(unpack(trial))
  local err = type(reply) == 'table' and reply.err or ''
  -- Other errors, such as full memory, are reported where they matter.
  if (err:find('The user executing', 1, true) or err:find('NOPERM', 1, true) or err:find('ACL', 1, true)) and not is_refused[trial[1]] then
    is_refused[trial[1]] = true
    refused[#refused + 1] = trial[1]
  end
  if is_refused.DEL then break end
end
return refused
