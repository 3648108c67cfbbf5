-- The places of a job besides the pool, and the transitions between them.

-- A ready job's rank: priority, then due time, then push order. Its member in the zset is the rank followed by the id.
local RANK_BYTES = 20
local function rank(head)
  return struct.pack('>I4I8I8', head[PRIORITY], math.max(head[DUE], 0), head[PLACE])
end

local function line_of(outlet)
  if outlet == 0 then return READY end
  return CALLED
end

-- `members` is {0, member, 0, member, ...}. Publishes this to other servers if the line was empty.
local news, is_told = 0, {}
local function ready(outlet, members)
  if not is_told[outlet] then
    is_told[outlet] = true
    news = news + outlet + 1
    if call('EXISTS', line_of(outlet)) == 0 then
      call('PUBLISH', CHANNEL, 'r' .. SENDER .. ':' .. outlet .. TOPIC)
    end
  end
  call('ZADD', line_of(outlet), unpack(members))
end

-- Adds a job to `lines`, the arguments of ready() by outlet.
local function line_up(lines, id, head)
  local line = lines[head[OUTLET]] or {}
  lines[head[OUTLET]] = line
  line[#line + 1] = 0
  line[#line + 1] = rank(head) .. id
end

-- Traces: records may disappear although no script removed them. Redis evicts whole keys, and people delete them. The
-- places below then have ids without a record, or with the record of a job that was pushed later under the same id.
-- These are traces of lost jobs. A script that finds one skips and removes it.

-- If the whole pool is lost, all places have only traces: removes them. Called before jobs are stored or read. Writes
-- only if there are traces, and removes no key of another program, because ZCARD fails on those.
local is_smaller, is_listed = false, false
local function clear_traces()
  if call('EXISTS', POOL) == 1 then return end
  if call('EXISTS', READY, CALLED, HELD, LEASES, DONE, DEAD, KEPT) == 0 and not is_any_delayed() then return end
  undelay_everything()
  for _, place in ipairs({READY, CALLED, HELD, LEASES, DONE, DEAD, KEPT}) do
    if call('ZCARD', place) > 0 then call('UNLINK', place) end
  end
  is_smaller = true
end

local function is_watched()
  return string.sub(SENDER, -2) == ' w'
end

-- Publishes that these jobs became ready. `named` is {id, group, id, group, ...}.
local function tell_due(named)
  local texts = {#TOPIC .. ':' .. TOPIC}
  for i, text in ipairs(named) do texts[i + 1] = #text .. ':' .. text end
  call('PUBLISH', CHANNEL, 'd' .. SENDER .. ':' .. table.concat(texts))
end

-- Makes up to `most` due jobs ready, fewer if they are large. Returns whether more are due. The bytes are counted over
-- the whole script, which may handle many topics.
local moved_bytes = 0
local function move_due(most)
  local moved = 0
  while moved < most do
    local ids = due_ids(math.min(most - moved, 500))
    if #ids == 0 then return false end
    if moved_bytes >= ENOUGH_BYTES then return true end
    local records, bytes = records_of(ids, ENOUGH_BYTES - moved_bytes)
    moved, moved_bytes = moved + #records, moved_bytes + bytes
    local lines, cold = {}, {}
    local named = is_watched() and {}
    for i, record in ipairs(records) do
      if record then
        local at, head = cmsgpack.unpack_one(record)
        if is_cold(head) then
          cold[#cold + 1] = ids[i]
        elseif head[STATE] == WAITING then
          line_up(lines, ids[i], head)
          if named then
            named[#named + 1] = ids[i]
            named[#named + 1] = group_of(string.sub(record, at + 1))
          end
        end
      end
    end
    -- Jobs are removed from the delay stage only after they are in a line: if another program uses the key of the
    -- line, they stay delayed.
    go_on_when_full(NEXT)
    for outlet, members in pairs(lines) do ready(outlet, members) end
    take_due(#records)
    if #cold > 0 then postpone(cold) end
    if named and #named > 0 then tell_due(named) end
  end
  return #due_ids(1) > 0
end

-- Removes ids from HELD and LEASES. If a take was limited (FULL), there is room now: reports the ready jobs again.
local function leave_held(ids)
  call('ZREM', HELD, unpack(ids))
  call('ZREM', LEASES, unpack(ids))
  if call('DEL', FULL) == 0 then return end
  for outlet = 0, 1 do
    if call('EXISTS', line_of(outlet)) == 1 then
      call('PUBLISH', CHANNEL, 'r' .. SENDER .. ':' .. outlet .. TOPIC)
      if not is_told[outlet] then
        is_told[outlet] = true
        news = news + outlet + 1
      end
    end
  end
end

-- Removes waiting jobs from the delay stage or their lines.
local function leave_waiting(jobs)
  if #jobs == 0 then return end
  local ids, lines = {}, {}
  for i, job in ipairs(jobs) do ids[i] = job[1] end
  local is_taken = undelay_all(ids)
  for i, job in ipairs(jobs) do
    if not is_taken[i] then
      local line = line_of(job[2][OUTLET])
      lines[line] = lines[line] or {}
      table.insert(lines[line], rank(job[2]) .. job[1])
    end
  end
  for line, members in pairs(lines) do call('ZREM', line, unpack(members)) end
end

-- Removes a job from the place of its state, but not from the pool and its group.
local function leave(id, head)
  local state = head[STATE]
  if state == RESERVED then
    leave_held({id})
  elseif state == WAITING then
    if not undelay(id) then call('ZREM', line_of(head[OUTLET]), rank(head) .. id) end
    if is_cold(head) then count_cold(-1) end  -- after a write that a full Redis accepts
  else
    call('ZREM', state == IS_DONE and DONE or DEAD, id)
    call('ZREM', KEPT, id)
  end
end

-- New jobs get these ids, for which there was no record. If a done or dead job with the same id was lost, its traces
-- are removed: otherwise its retention would end the new job.
local function leave_kept(ids)
  local kept = {}
  for i, until_when in ipairs(call('ZMSCORE', KEPT, unpack(ids))) do
    if until_when then kept[#kept + 1] = ids[i] end
  end
  if #kept == 0 then return end
  for _, place in ipairs({KEPT, DONE, DEAD}) do call('ZREM', place, unpack(kept)) end
end

-- Groups contain live jobs. The name of a group is only in the record, so its key is made here; it has the shard's
-- tag like all others.
local function join_group(id, tail)
  local group = group_of(tail)
  if group ~= '' then call('SADD', GROUPS .. group, TOPIC .. '/' .. id) end
end

local function leave_group(id, tail)
  local group = group_of(tail)
  if group ~= '' then call('SREM', GROUPS .. group, TOPIC .. '/' .. id) end
end

-- Puts a job of the pool that is in no other place into the delay stage or a line, by its due time. One without its body
-- stays in the delay stage.
local function settle(id, head)
  local due = head[DUE]
  if due <= NOW and head[FLAGS] ~= COLD then
    ready(head[OUTLET], {0, rank(head) .. id})
  else
    delay({due, id}, due)
  end
end

-- Makes a job that is in no place wait for `due`, or ready at once. If its body is in the cold store, it may be needed
-- earlier than it would come back by itself.
local function wait(id, head, tail, due)
  local flags = is_cold(head) and COLD or 0
  if flags == COLD then count_cold(1) end
  if flags == COLD and due < head[DUE] then wish({id}) end
  head[STATE], head[DUE], head[UNTIL], head[LEASE], head[FLAGS] = WAITING, due, 0, 0, flags
  settle(id, head)
  store(id, head, tail)
end

-- Removes jobs that are in no place and no group any more from the pool.
local function forget(ids)
  call('HDEL', POOL, unpack(ids))
  is_smaller = true
end

-- Removes jobs in any state completely. Each is {id, head, tail}; none may be named twice.
local function erase(jobs)
  local ids, waiting, cold = {}, {}, 0
  for i, job in ipairs(jobs) do
    local id, head, tail = unpack(job)
    ids[i] = id
    if is_cold(head) then cold = cold + 1 end
    if head[STATE] < IS_DONE then leave_group(id, tail) end
    if head[STATE] == WAITING then waiting[#waiting + 1] = job else leave(id, head) end
  end
  leave_waiting(waiting)
  if cold > 0 then count_cold(-cold) end
  forget(ids)
end

-- Removes up to `most` kept jobs whose retention has ended. Returns how many.
local function expire(most)
  local ids = call('ZRANGE', KEPT, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, most)
  if #ids == 0 then return 0 end
  call('ZREMRANGEBYRANK', KEPT, 0, #ids - 1)
  call('ZREM', DONE, unpack(ids))
  call('ZREM', DEAD, unpack(ids))
  forget(ids)
  wake_anew('k', KEPT)
  return #ids
end

-- Removes the oldest jobs of DONE or DEAD beyond `count`, at most `most`. Returns how many.
local function forget_oldest(line, count, most)
  local excess = math.min(call('ZCARD', line) - count, most)
  if excess <= 0 then return 0 end
  local oldest = call('ZRANGE', line, 0, excess - 1)
  call('ZREMRANGEBYRANK', line, 0, excess - 1)
  call('ZREM', KEPT, unpack(oldest))
  forget(oldest)
  return excess
end

-- Keeps jobs that are in no place and no group as done or dead, and removes the oldest beyond `count`. Each of `jobs`
-- is {id, head, tail, end of retention}. The LEASE field of a kept job is the time at which it ended, or 0 if unknown.
local MOST_TRIMMED = 1000
local function keep_all(jobs, state, count, ended)
  local line = state == IS_DONE and DONE or DEAD
  local number = numbers(#jobs)
  local records, order, ends, first_end = {}, {}, {}, math.huge
  for i, job in ipairs(jobs) do
    local id, head, keep_until = job[1], job[2], job[4]
    head[STATE], head[UNTIL], head[LEASE], head[FLAGS] = state, keep_until, ended, 0
    local at = 2 * i
    records[at - 1], records[at] = id, cmsgpack.pack(head) .. job[3]
    order[at - 1], order[at] = number + i, id
    ends[at - 1], ends[at] = keep_until, id
    first_end = math.min(first_end, keep_until)
  end
  call('HSET', POOL, unpack(records))
  call('ZADD', line, unpack(order))
  call('ZADD', KEPT, unpack(ends))
  wake_by('k', first_end)
  forget_oldest(line, count, MOST_TRIMMED)
end

-- If the jobs passed to a script are large, it processes only the first of them and returns no result for the others;
-- the caller calls again for these. Removes all items from `first` on from `given`.
local function leave_to_next(given, first)
  for i = #given, first, -1 do given[i] = nil end
end

-- Returns jobs in the pool, by id: {id, head, tail}; missing jobs and those whose retention has ended are left out.
-- Only the ids that were looked up remain in `ids`.
local function find(ids)
  local jobs = {}
  local records = records_of(ids, ENOUGH_BYTES)
  for i, record in ipairs(records) do
    if record then
      local head, tail = open(record)
      if head[STATE] < IS_DONE or head[UNTIL] > NOW then jobs[ids[i]] = {ids[i], head, tail} end
    end
  end
  leave_to_next(ids, #records + 1)
  return jobs
end

-- Finds the jobs of leases, whether or not the deadlines have passed. The leases are in ARGV, `step` places for each
-- from `first` on: number, nonce, and the script's own arguments. Returns {id, head, tail} by the position of the
-- lease, nothing for stale leases, and how many leases were processed. A lease that is named twice gets the same table.
-- One ZRANGE finds all of them, unless very many others are between them. Two masters may have given the same number to
-- two jobs (in a failover that the old master did not notice): the nonce distinguishes them.
local function held_by(first, step)
  local low, high = math.huge, 0
  local leases, held, ids, places, jobs = {}, {}, {}, {}, {}
  for at = first, #ARGV, step do
    local lease = tonumber(ARGV[at])
    leases[#leases + 1] = lease
    low, high = math.min(low, lease), math.max(high, lease)
  end
  local most = 4 * #leases
  local found = call('ZRANGE', HELD, low, high, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  for i = 1, #found, 2 do held[tonumber(found[i + 1])] = found[i] end
  if #found == 2 * most then
    for _, lease in ipairs(leases) do held[lease] = call('ZRANGE', HELD, lease, lease, 'BYSCORE')[1] end
  end
  for place, lease in ipairs(leases) do
    if held[lease] then
      ids[#ids + 1] = held[lease]
      places[#ids] = place
    end
  end
  local records = records_of(ids, ENOUGH_BYTES)
  local by_id = {}
  for i, record in ipairs(records) do
    local job, place = by_id[ids[i]], places[i]
    if record and not job then
      job = {ids[i], open(record)}
      by_id[ids[i]] = job
    end
    if job then
      local head, nonce = job[2], tonumber(ARGV[first + (place - 1) * step + 1])
      local is_mine = head[STATE] == RESERVED and head[LEASE] == leases[place] and head[FLAGS] - head[FLAGS] % 2 == 2 * nonce
      if is_mine then jobs[place] = job end
    end
  end
  return jobs, #records < #ids and places[#records + 1] - 1 or #leases
end

-- Ends every script that changed something. `said` has the script's own results, from place 3 on.
local function answer(said)
  if is_smaller and call('EXISTS', POOL) == 0 then call('ZREM', TOPICS, TOPIC) end
  if is_delay_shorter then delay_wake_anew() end
  said[1] = next_wake()
  said[2] = news
  return said
end
