-- A server stops: it gives up a shard, so that another need not wait until its hold expires.
-- KEYS  1 driver
-- ARGV  1 server
-- RETURNS 1, or 0 if it was not the driver
if call('GET', KEYS[1]) == ARGV[1] then return call('DEL', KEYS[1]) end
return 0
