-- The delay stage, for those who only look at it: together with prelude_delay.lua all that touches DELAY.

-- Up to `most` ids that wait for their time.
local function delayed_ids(most)
  return call('ZRANGE', DELAY, '(' .. NOW, '+inf', 'BYSCORE', 'LIMIT', 0, most)
end

-- How many wait, and how many of those that are here are due.
local function delayed_count()
  local due = call('ZCOUNT', DELAY, '-inf', NOW)
  return call('ZCARD', DELAY) - due, due
end

-- How many are here, due or not; none when another program has the key.
local function delay_size()
  local count = redis.pcall('ZCARD', DELAY)
  return type(count) == 'number' and count or 0
end

-- The smallest step through all that wait: where the next one begins ('0': there is none), and the ids, sorted.
local function delayed_step(from)
  local step = call('ZSCAN', DELAY, from, 'COUNT', 1)
  local ids = {}
  for i = 1, #step[2], 2 do
    if tonumber(step[2][i + 1]) > NOW then ids[#ids + 1] = step[2][i] end
  end
  table.sort(ids)
  return step[1], ids
end

-- Adds to `counts` how many fall due from each of the `edges` to the next. A few are fetched and sorted into their
-- bins, of many each bin is counted.
local function count_between(edges, counts)
  local bins = #edges - 1
  local first, last = math.max(edges[1], NOW + 1), edges[bins + 1]
  if first >= last then return end
  local all = call('ZCOUNT', DELAY, first, '(' .. last)
  if all == 0 then return end
  if all > bins then
    for bin = 1, bins do
      local from = math.max(edges[bin], first)
      if from < edges[bin + 1] then counts[bin] = counts[bin] + call('ZCOUNT', DELAY, from, '(' .. edges[bin + 1]) end
    end
    return
  end
  local bin = 1
  local found = call('ZRANGE', DELAY, first, '(' .. last, 'BYSCORE', 'WITHSCORES')
  for i = 2, #found, 2 do
    local due = tonumber(found[i])
    while due >= edges[bin + 1] do bin = bin + 1 end
    counts[bin] = counts[bin] + 1
  end
end
