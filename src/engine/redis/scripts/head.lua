-- Renews a server's hold on a shard, or gets it if it is free, and returns what is due there.
-- KEYS  1 driver   2 next   3 alarm
-- ARGV  1 now in ms   2 server   3 how long it holds the shard, in ms   4 how many entries at most
-- RETURNS an array of
--   1 1 if this server drives the shard, 0 if another does
--   2 how long the driver still holds it, in ms
--   3 when the shard must be visited next, in ms, as text; "" for never
--   4 when a schedule must be reported next, in the same form
--   5... for the driver: the due entries of `next`
local driver, next_looks = KEYS[1], KEYS[2]
local owner = call('GET', driver)
if owner and owner ~= ARGV[2] then return {0, call('PTTL', driver), '', ''} end
go_on_when_full(next_looks)
call('SET', driver, ARGV[2], 'PX', ARGV[3])
-- An `alarm` that another program has is no reason not to look after the jobs.
local alarm = redis.pcall('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local said = {1, tonumber(ARGV[3]), call('ZRANGE', next_looks, 0, 0, 'WITHSCORES')[2] or '', alarm[2] or ''}
for i, entry in ipairs(call('ZRANGE', next_looks, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, ARGV[4])) do said[4 + i] = entry end
return said
