-- Returns the topics of a shard with their counts.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 the topic after which to begin, '' for the first   6 how many at most
--       7 as ARGV 5 of counts.lua, for each topic
-- RETURNS 1 as prelude.lua   2 topics that got ready jobs, each with its outlets
--         3 the topic after which to continue, '' if these were all   4... nine for each topic: its name, and the
--         results of counts.lua
local most, told, said = tonumber(ARGV[6]), {}, {}
local topics = topics_after(ARGV[5], most)
said[3] = #topics == most and topics[most] or ''
said[1], said[2] = false, told
for _, topic in ipairs(topics) do
  enter(topic)
  catch_up(tonumber(ARGV[7]))
  depart(told)
  said[#said + 1] = topic
  add_counts(said)
end
said[1] = next_wake()
return said
