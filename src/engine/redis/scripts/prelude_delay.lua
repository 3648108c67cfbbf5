-- The delay stage: where jobs wait for their time. Only this file and prelude_delay_looking.lua use DELAY.

-- `timed` is {due, id, due, id, ...}, `earliest` the least of these times.
local function delay(timed, earliest)
  call('ZADD', DELAY, unpack(timed))
  wake_by('d', earliest)
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
