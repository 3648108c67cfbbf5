-- Finds the topics that have a job with an id.
-- KEYS  prelude_look.lua: those of a topic with an empty name
-- ARGV  5 id   6 the topic after which to begin, '' for the first   7 how many topics to check
--       8 '1': also done and dead jobs
-- RETURNS 1 the topic after which to continue, '' if these were all   2... topics that have such a job
local most = tonumber(ARGV[7])
local topics = topics_after(ARGV[6], most)
local said = {#topics == most and topics[most] or ''}
for _, topic in ipairs(topics) do
  local record = call('HGET', KEYS[1] .. topic, ARGV[5])
  if record then
    local _, head = cmsgpack.unpack_one(record)
    if ARGV[8] == '1' or head[STATE] < IS_DONE then said[#said + 1] = topic end
  end
end
return said
