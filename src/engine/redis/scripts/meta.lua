-- Stores the layout of a deployment, unless there is one.
-- KEYS  1 meta
-- ARGV  1 version of the layout   2 number of shards   3 their tags, '' for none
-- RETURNS the version, the number of shards and the tags in force
-- Writes only if the layout is missing: a Redis with full memory refuses all writes, and a server
-- must be able to start.
local said = call('HMGET', KEYS[1], 'version', 'shards', 'tags')
if said[1] and said[2] then return said end
call('HSETNX', KEYS[1], 'version', ARGV[1])
call('HSETNX', KEYS[1], 'shards', ARGV[2])
if ARGV[3] ~= '' then call('HSETNX', KEYS[1], 'tags', ARGV[3]) end
return call('HMGET', KEYS[1], 'version', 'shards', 'tags')
