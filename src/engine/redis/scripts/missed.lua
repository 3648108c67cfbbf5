-- Finds what servers should know about topics of a shard although the news may have been lost: which topics have ready
-- jobs, when the shard must be visited, and which topics have jobs without a place (mend.lua puts these back).
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 the topic after which to begin, '' for the first   6 how many at most
-- RETURNS 1 as prelude.lua   2 topics that have ready jobs, each with its outlets
--         3 the topic after which to continue, '' if these were all   4 topics to be mended
local most, told, damaged = tonumber(ARGV[6]), {}, {}

-- The size of a place. A key of another program counts as 0: scripts that need the key report it.
local function size(command, place)
  local count = redis.pcall(command, place)
  return type(count) == 'number' and count or 0
end

-- Whether a place has fewer members than it should. Traces may hide this until they are removed.
local function is_damaged()
  local held, kept = size('ZCARD', HELD), size('ZCARD', DONE) + size('ZCARD', DEAD)
  local waiting = size('ZCARD', READY) + size('ZCARD', CALLED) + delay_size()
  return size('HLEN', POOL) > waiting + held + kept or size('ZCARD', LEASES) < held or size('ZCARD', KEPT) < kept
end

local topics = topics_after(ARGV[5], most)
for _, topic in ipairs(topics) do
  enter(topic)
  local outlets = call('EXISTS', READY) + 2 * call('EXISTS', CALLED)
  if outlets > 0 then
    told[#told + 1] = topic
    told[#told + 1] = outlets
  end
  -- NEXT may be evicted, too.
  local looks = call('ZMSCORE', NEXT, 'd' .. topic, 'l' .. topic, 'k' .. topic)
  if not looks[1] and is_any_delayed() then delay_wake_anew() end
  if not looks[2] and call('EXISTS', LEASES) == 1 then wake_anew('l', LEASES) end
  if not looks[3] and call('EXISTS', KEPT) == 1 then wake_anew('k', KEPT) end
  if is_damaged() then damaged[#damaged + 1] = topic end
end
return {next_wake(), told, #topics == most and topics[most] or '', damaged}
