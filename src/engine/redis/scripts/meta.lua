-- Writes down how a deployment's data is laid out, unless that has been done.
-- KEYS  1 meta
-- ARGV  1 version of the layout   2 number of shards
-- RETURNS the version and the number of shards that hold
call('HSETNX', KEYS[1], 'version', ARGV[1])
call('HSETNX', KEYS[1], 'shards', ARGV[2])
return call('HMGET', KEYS[1], 'version', 'shards')
