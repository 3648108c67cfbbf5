-- Stores the settings of a topic and publishes the change to other servers.
-- KEYS  1 the settings
-- ARGV  1 not used   2 topic   3 channel of the news   4 not used   5 the settings; '' removes them
-- RETURNS 1
if ARGV[5] == '' then
  call('HDEL', KEYS[1], TOPIC)
else
  call('HDEL', KEYS[1], '')  -- as go_on_when_full(): a full Redis can still be paused
  call('HSET', KEYS[1], TOPIC, ARGV[5])
end
call('PUBLISH', CHANNEL, 's' .. TOPIC)
return 1
