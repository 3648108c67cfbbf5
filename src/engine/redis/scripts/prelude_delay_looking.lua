-- The delay stage, for scripts that only read it. Only this file and prelude_delay.lua use DELAY.

-- Up to `most` ids that are not due yet.
local function delayed_ids(most)
  return call('ZRANGE', DELAY, '(' .. NOW, '+inf', 'BYSCORE', 'LIMIT', 0, most)
end

-- How many are not due, and how many are due.
local function delayed_count()
  local due = call('ZCOUNT', DELAY, '-inf', NOW)
  return call('ZCARD', DELAY) - due, due
end

-- How many are in the stage, due or not; 0 if another program uses the key.
local function delay_size()
  local count = redis.pcall('ZCARD', DELAY)
  return type(count) == 'number' and count or 0
end

-- The smallest step of a walk through all delayed jobs: where the next one begins ('0': end of the
-- walk), and the sorted ids.
local function delayed_step(from)
  local step = call('ZSCAN', DELAY, from, 'COUNT', 1)
  local ids = {}
  for i = 1, #step[2], 2 do
    if tonumber(step[2][i + 1]) > NOW then ids[#ids + 1] = step[2][i] end
  end
  table.sort(ids)
  return step[1], ids
end

-- Up to `most` jobs that are due from `from` on and before `to`, in the order of their due times: {id, due, id, due, ...}.
-- With `at` it begins after the job `last` of that due time, or with all of that due time if that job has left it.
local function delayed_between(from, to, at, last, most)
  from = math.max(from, NOW + 1)
  local first
  if at then
    from = math.max(from, at)
    if tonumber(call('ZSCORE', DELAY, last) or '') == at then first = call('ZRANK', DELAY, last) + 1 end
  end
  first = first or call('ZCOUNT', DELAY, '-inf', '(' .. string.format('%.0f', from))
  local found = call('ZRANGE', DELAY, first, first + most - 1, 'WITHSCORES')
  while #found > 0 and tonumber(found[#found]) >= to do
    found[#found] = nil
    found[#found] = nil
  end
  return found
end

-- Adds to `counts` how many jobs fall due between each of the `edges` and the next. Few jobs are read and sorted into
-- their bins; if there are many, each bin is counted.
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
