-- Keeps the queue's note on a topic, and tells other servers of it.
-- KEYS  1 the notes
-- ARGV  1 not used   2 topic   3 channel of the news   4 not used   5 the note; '' removes it
-- RETURNS 1
if ARGV[5] == '' then
  call('HDEL', KEYS[1], TOPIC)
else
  call('HDEL', KEYS[1], '')  -- as go_on_when_full(): a full Redis can still be paused
  call('HSET', KEYS[1], TOPIC, ARGV[5])
end
call('PUBLISH', CHANNEL, 's' .. TOPIC)
return 1
