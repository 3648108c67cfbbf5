-- What somebody should know of topics of a shard, though the news of it may have been lost: that they have ready jobs, when
-- they are to be looked at, and that they have jobs without a place, which mend.lua puts back.
-- KEYS  prelude_look.lua: those of a topic without a name
-- ARGV  5 the topic after which to begin, '' for the first   6 how many at most
-- RETURNS 1 as prelude.lua   2 topics that have ready jobs, each with its outlets
--         3 the topic after which to go on, '' when that were all   4 topics to be mended
local most, told, damaged = tonumber(ARGV[6]), {}, {}

-- How much a place has. A key of another program has nothing of ours: who needs it says so.
local function size(command, place)
  local count = redis.pcall(command, place)
  return type(count) == 'number' and count or 0
end

-- Whether a place has less than it should. A trace may hide that, until somebody meets it.
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
  -- NEXT is a key that can be evicted, too.
  local looks = call('ZMSCORE', NEXT, 'd' .. topic, 'l' .. topic, 'k' .. topic)
  if not looks[1] and is_any_delayed() then delay_wake_anew() end
  if not looks[2] and call('EXISTS', LEASES) == 1 then wake_anew('l', LEASES) end
  if not looks[3] and call('EXISTS', KEPT) == 1 then wake_anew('k', KEPT) end
  if is_damaged() then damaged[#damaged + 1] = topic end
end
return {next_wake(), told, #topics == most and topics[most] or '', damaged}
