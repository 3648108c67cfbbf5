-- Returns the topics of a shard, and how many jobs each has in it.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 the topic after which to begin, '' for the first   6 how many at most
-- RETURNS 1 the topic after which to continue, '' if these were all   2... name and number of jobs of each
local most = tonumber(ARGV[6])
local topics = topics_after(ARGV[5], most)
local said = {#topics == most and topics[most] or ''}
for _, topic in ipairs(topics) do
  said[#said + 1] = topic
  said[#said + 1] = call('HLEN', KEYS[1] .. topic)
end
return said
