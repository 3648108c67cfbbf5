-- Writes down how a deployment's data is laid out, unless that has been done.
-- KEYS  1 meta
-- ARGV  1 version of the layout   2 number of shards   3 their tags, '' for none
-- RETURNS the version, the number of shards and the tags that hold
-- Written only where it is missing: a Redis whose memory is full refuses all writes, and a server may start all the same.
local said = call('HMGET', KEYS[1], 'version', 'shards', 'tags')
if said[1] and said[2] then return said end
call('HSETNX', KEYS[1], 'version', ARGV[1])
call('HSETNX', KEYS[1], 'shards', ARGV[2])
if ARGV[3] ~= '' then call('HSETNX', KEYS[1], 'tags', ARGV[3]) end
return call('HMGET', KEYS[1], 'version', 'shards', 'tags')
