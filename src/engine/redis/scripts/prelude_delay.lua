-- The delay stage: where jobs wait for their time. No other file touches DELAY.

-- `timed` is {due, id, due, id, ...}, `earliest` the least of these times.
local function delay(timed, earliest)
  call('ZADD', DELAY, unpack(timed))
  wake_by('d', earliest)
end

-- Something was taken out: answer() lets the shard look later.
local is_delay_shorter = false

-- Whether it was there.
local function undelay(id)
  if call('ZREM', DELAY, id) == 0 then return false end
  is_delay_shorter = true
  return true
end

-- The same of many. Answers a table that is true at the places of those that were there.
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

local function is_delayed(id)
  local due = call('ZSCORE', DELAY, id)
  return due and tonumber(due) > NOW
end

-- Takes out up to `most` ids whose time has come, fewer when they have `most_bytes` before. Answers ids of which the first
-- are taken out, the records of these (read() in prelude.lua), and their bytes.
local function take_due(most, most_bytes)
  local ids = call('ZRANGE', DELAY, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, most)
  if #ids == 0 then return ids end
  local records, bytes = read(ids, most_bytes)
  call('ZREMRANGEBYRANK', DELAY, 0, #records - 1)
  is_delay_shorter = true
  return ids, records, bytes
end

local function delay_wake_anew()
  wake_anew('d', DELAY)
end
