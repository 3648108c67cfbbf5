-- Counts delayed jobs by when they fall due.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  2 the topic, '' for all   5 the topic after which to begin, '' for the first   6 how many topics at most
--       7... the edges of the bins in ms, one more than there are bins
-- RETURNS 1 the topic after which to continue, '' if these were all   2... how many jobs are in each bin
local most, wanted = tonumber(ARGV[6]), TOPIC
local edges, counts = {}, {}
for at = 7, #ARGV do
  edges[#edges + 1] = tonumber(ARGV[at])
  if at < #ARGV then counts[#counts + 1] = 0 end
end
local topics = wanted == '' and topics_after(ARGV[5], most) or {wanted}
for _, topic in ipairs(topics) do
  enter(topic)
  count_between(edges, counts)
end
return {wanted == '' and #topics == most and topics[most] or '', unpack(counts)}
