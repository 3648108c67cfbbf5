-- Shared by the scripts that read.

-- Removes a trace from the place of jobs in a state: 0 delayed ... 4 dead. `member` is its member there; `head` belongs
-- to the job that has the id now, if there is one.
local function remove_trace(state, id, member, head)
  is_smaller = true
  if state == 0 then
    undelay(id)
  elseif state == 1 then
    call('ZREM', READY, member)
    call('ZREM', CALLED, member)
  elseif state == 2 then
    leave_held({id})
  else
    call('ZREM', state == IS_DONE and DONE or DEAD, id)
    if not head or head[STATE] < IS_DONE then call('ZREM', KEPT, id) end
  end
end

-- Whether a job with this record belongs to the place of jobs in a state.
local function is_there(state, member, head)
  if state == 0 then return head[STATE] == WAITING end
  if state == 1 then return head[STATE] == WAITING and string.sub(member, 1, RANK_BYTES) == rank(head) end
  return head[STATE] == state
end

-- Does what is due in the topic, for about `most` jobs, so that the script reads what it would find with a driver that
-- is on time. With 0 it writes nothing.
local function catch_up(most)
  if most > 0 then clear_traces() end
  move_due(most)
  expire(most)
end

-- For scripts about many topics of a shard. Their KEYS are those of a topic with an empty name, which are the prefixes
-- of the keys of all topics. All have the shard's tag.
local function enter(topic)
  TOPIC = topic
  POOL, DELAY, READY, CALLED, HELD = KEYS[1] .. topic, KEYS[2] .. topic, KEYS[3] .. topic, KEYS[4] .. topic, KEYS[5] .. topic
  LEASES, DONE, DEAD, KEPT, FULL = KEYS[6] .. topic, KEYS[7] .. topic, KEYS[8] .. topic, KEYS[9] .. topic, KEYS[10] .. topic
end

-- Ends the work in a topic, as answer() does for a single one. Adds the topic to `told` if it got ready jobs.
local function depart(told)
  if is_smaller and call('EXISTS', POOL) == 0 then call('ZREM', TOPICS, TOPIC) end
  if is_delay_shorter then delay_wake_anew() end
  if news > 0 then
    told[#told + 1] = TOPIC
    told[#told + 1] = news
  end
  is_smaller, is_delay_shorter, is_listed, news, is_told = false, false, false, 0, {}
end

-- Up to `most` names of topics after `name`, sorted; '' starts at the first.
local function topics_after(name, most)
  return call('ZRANGE', TOPICS, name == '' and '-' or '(' .. name, '+', 'BYLEX', 'LIMIT', 0, most)
end

-- Adds how many jobs of the topic are delayed, ready, reserved, done, dead; then priority and due time of the first job
-- in line, or -1 and 0; then the lowest number of a lease, or 0.
local function add_counts(said)
  local waiting, due = delayed_count()
  local at = #said
  said[at + 1] = waiting
  said[at + 2] = due + call('ZCARD', READY) + call('ZCARD', CALLED)
  said[at + 3], said[at + 4], said[at + 5] = call('ZCARD', HELD), call('ZCARD', DONE), call('ZCARD', DEAD)
  local first
  for outlet = 0, 1 do
    local member = call('ZRANGE', line_of(outlet), 0, 0)[1]
    if member and (not first or member < first) then first = member end
  end
  if first then said[at + 6], said[at + 7] = struct.unpack('>I4I8', first) else said[at + 6], said[at + 7] = -1, 0 end
  said[at + 8] = tonumber(call('ZRANGE', HELD, 0, 0, 'WITHSCORES')[2] or '0')
end
