-- Renews a server's hold on a shard, or gets it if it is free, and returns what is due there.
-- KEYS  1 driver   2 next   3 alarm; of servers with a cold store also   4 cool   5 warm (prelude_delay.lua)
-- ARGV  1 now in ms   2 server   3 how long it holds the shard, in ms   4 how many entries at most
-- RETURNS an array of
--   1 1 if this server drives the shard, 0 if another does
--   2 how long the driver still holds it, in ms
--   3 when the shard must be visited next, in ms, as text; "" for never
--   4 when a schedule must be reported next, in the same form
--   5... for the driver: the due entries of `next`; "c" if jobs are to be moved to the cold store, "w" if bodies must come
--        back from it
local driver, next_looks = KEYS[1], KEYS[2]
local owner = call('GET', driver)
if owner and owner ~= ARGV[2] then return {0, call('PTTL', driver), '', ''} end
go_on_when_full(next_looks)
call('SET', driver, ARGV[2], 'PX', ARGV[3])
-- An `alarm` that another program has is no reason not to look after the jobs.
local alarm = redis.pcall('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local said = {1, tonumber(ARGV[3]), call('ZRANGE', next_looks, 0, 0, 'WITHSCORES')[2] or '', alarm[2] or ''}
for i, entry in ipairs(call('ZRANGE', next_looks, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, ARGV[4])) do said[4 + i] = entry end
if KEYS[4] then
  -- As with `alarm`: another program may have these keys.
  local far = redis.pcall('ZCARD', KEYS[4])
  if type(far) == 'number' and far > 0 then said[#said + 1] = 'c' end
  local wished = redis.pcall('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
  if wished and tonumber(wished) <= NOW then said[#said + 1] = 'w' end
end
return said
