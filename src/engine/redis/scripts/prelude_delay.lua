-- The delay stage: where jobs wait for their time. Only this file and prelude_delay_looking.lua use DELAY.

-- The cold store keeps the bodies of jobs that are due much later. Two zsets of the shard have members "topic/id": `cool`,
-- by due time, those whose bodies are to be moved there; `warm`, by when to try, those whose bodies must come back.
-- Their names are made here, as those of groups; they have the shard's tag.
local COOLED_FROM = tonumber(string.match(SENDER or '', ' (%d+) ?w?$') or '')
local function in_shard(name)
  return string.sub(NEXT, 1, -5) .. name
end

local function note_far(timed)
  local far = {}
  for i = 1, #timed, 2 do
    if timed[i] - NOW >= COOLED_FROM then
      local at = #far
      far[at + 1], far[at + 2] = timed[i], TOPIC .. '/' .. timed[i + 1]
    end
  end
  if #far > 0 then call('ZADD', in_shard('cool'), unpack(far)) end
end

-- The number of jobs whose bodies are in the cold store.
local function count_cold(change)
  call('INCRBY', in_shard('cold'), change)
end

-- The bodies of these jobs must come back. Servers repeat a wish that is not fulfilled.
local function wish(ids)
  local wishes = {}
  for i, id in ipairs(ids) do wishes[2 * i - 1], wishes[2 * i] = NOW, TOPIC .. '/' .. id end
  if call('ZADD', in_shard('warm'), 'NX', unpack(wishes)) > 0 then is_wished = true end
end

-- `timed` is {due, id, due, id, ...}, `earliest` the least of these times.
local function delay(timed, earliest)
  call('ZADD', DELAY, unpack(timed))
  wake_by('d', earliest)
  if COOLED_FROM then note_far(timed) end
end

-- Due jobs that were removed from the stage and cannot be handed over, because their bodies are not back: they are due
-- again in a moment, unless the body comes before (warm.lua).
local POSTPONED_MS = 1000
local function postpone(ids)
  local timed = {}
  for i, id in ipairs(ids) do timed[2 * i - 1], timed[2 * i] = NOW + POSTPONED_MS, id end
  call('ZADD', DELAY, unpack(timed))
  wish(ids)
end

-- Members were removed: answer() may set the next visit to a later time.
local is_delay_shorter = false

-- Removes a job. Returns whether it was there.
local function undelay(id)
  if call('ZREM', DELAY, id) == 0 then return false end
  is_delay_shorter = true
  return true
end

-- The same for many. Returns a table that is true at the positions of those that were there.
local function undelay_all(ids)
  local is_there, there = {}, {}
  for i, due in ipairs(call('ZMSCORE', DELAY, unpack(ids))) do
    if due then
      is_there[i] = true
      there[#there + 1] = ids[i]
    end
  end
  if #there > 0 then
    call('ZREM', DELAY, unpack(there))
    is_delay_shorter = true
  end
  return is_there
end

-- Whether the job is in the stage, due or not.
local function is_in_delay(id)
  return call('ZSCORE', DELAY, id)
end

local function is_delayed(id)
  local due = call('ZSCORE', DELAY, id)
  return due and tonumber(due) > NOW
end

-- The same for a job of another topic in this shard.
local function is_delayed_elsewhere(topic, id)
  local due = call('ZSCORE', string.sub(DELAY, 1, -#TOPIC - 1) .. topic, id)
  return due and tonumber(due) > NOW
end

-- Up to `most` due ids, the earliest first.
local function due_ids(most)
  return call('ZRANGE', DELAY, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, most)
end

-- Removes the first `count` of these.
local function take_due(count)
  call('ZREMRANGEBYRANK', DELAY, 0, count - 1)
  is_delay_shorter = true
end

local function is_any_delayed()
  return call('EXISTS', DELAY) == 1
end

-- Removes all jobs.
local function undelay_everything()
  if call('ZCARD', DELAY) == 0 then return end
  call('UNLINK', DELAY)
  is_delay_shorter = true
end

local function delay_wake_anew()
  wake_anew('d', DELAY)
end
