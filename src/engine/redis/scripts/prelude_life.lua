-- Where a job is besides the pool, and the steps between these places.

-- A ready job's place in line: priority, then due time, then push order. Its member is this with its id behind it.
local RANK_BYTES = 20
local function rank(head)
  return struct.pack('>I4I8I8', head[PRIORITY], math.max(head[DUE], 0), head[PLACE])
end

local function line_of(outlet)
  if outlet == 0 then return READY end
  return CALLED
end

-- `members` is {0, member, 0, member, ...}. Says so to other servers when the line was empty.
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

-- Adds a job to `lines`: what ready() is given, by outlet.
local function line_up(lines, id, head)
  local line = lines[head[OUTLET]] or {}
  lines[head[OUTLET]] = line
  line[#line + 1] = 0
  line[#line + 1] = rank(head) .. id
end

-- Records that are gone though no script removed them. Redis evicts whole keys, and people delete them: then the places below
-- have ids without a record, or with that of a job that was pushed later under the same id. These are traces of jobs that
-- are gone. Who meets one passes over it and removes it.

-- All records are gone, so all places have traces only. Called before jobs are stored or looked at. Writes only when there
-- are some, and removes no key of another program: ZCARD fails on those.
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

-- Lets up to `most` jobs whose time has come become ready, fewer when they are large, and answers whether more are due. The
-- bytes are those of the whole script, which may be about many topics.
local moved_bytes = 0
local function move_due(most)
  local moved = 0
  while moved < most do
    local ids = due_ids(math.min(most - moved, 500))
    if #ids == 0 then return false end
    if moved_bytes >= ENOUGH_BYTES then return true end
    local records, bytes = records_of(ids, ENOUGH_BYTES - moved_bytes)
    moved, moved_bytes = moved + #records, moved_bytes + bytes
    local lines = {}
    for i, record in ipairs(records) do
      if record then
        local _, head = cmsgpack.unpack_one(record)
        if head[STATE] == WAITING then line_up(lines, ids[i], head) end
      end
    end
    -- They leave one place when they are in the other: a line whose key another program has keeps them delayed.
    go_on_when_full(NEXT)
    for outlet, members in pairs(lines) do ready(outlet, members) end
    take_due(#records)
  end
  return #due_ids(1) > 0
end

-- A take was held back by a limit, and now there is room: who waits may try again.
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

-- Takes jobs that wait out of where they do.
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

-- Takes a job out of wherever its state has it; the pool and its group are another matter.
local function leave(id, head)
  local state = head[STATE]
  if state == RESERVED then
    leave_held({id})
  elseif state == WAITING then
    if not undelay(id) then call('ZREM', line_of(head[OUTLET]), rank(head) .. id) end
  else
    call('ZREM', state == IS_DONE and DONE or DEAD, id)
    call('ZREM', KEPT, id)
  end
end

-- New jobs have these ids, and no record was there. One that was lost, and was kept as done or dead, left its traces: they
-- would end the new job with the retention of the old one.
local function leave_kept(ids)
  local kept = {}
  for i, until_when in ipairs(call('ZMSCORE', KEPT, unpack(ids))) do
    if until_when then kept[#kept + 1] = ids[i] end
  end
  if #kept == 0 then return end
  for _, place in ipairs({KEPT, DONE, DEAD}) do call('ZREM', place, unpack(kept)) end
end

-- Groups have the live jobs. The name of a group is in the record only, so its key is made here; it has the shard's
-- tag like all others.
local function join_group(id, tail)
  local group = group_of(tail)
  if group ~= '' then call('SADD', GROUPS .. group, TOPIC .. '/' .. id) end
end

local function leave_group(id, tail)
  local group = group_of(tail)
  if group ~= '' then call('SREM', GROUPS .. group, TOPIC .. '/' .. id) end
end

-- A job of the pool that is in no other place goes where its due time has it: it is delayed, or ready.
local function settle(id, head)
  local due = head[DUE]
  if due <= NOW then
    ready(head[OUTLET], {0, rank(head) .. id})
  else
    delay({due, id}, due)
  end
end

-- A job that is in no place waits for `due` from now on, or is ready at once.
local function wait(id, head, tail, due)
  head[STATE], head[DUE], head[UNTIL], head[LEASE], head[FLAGS] = WAITING, due, 0, 0, 0
  settle(id, head)
  store(id, head, tail)
end

-- Forgets jobs that are in no place and no group any more.
local function forget(ids)
  call('HDEL', POOL, unpack(ids))
  is_smaller = true
end

-- Jobs are gone, whatever they were. Each is {id, head, tail}, and named once.
local function erase(jobs)
  local ids, waiting = {}, {}
  for i, job in ipairs(jobs) do
    local id, head, tail = unpack(job)
    ids[i] = id
    if head[STATE] < IS_DONE then leave_group(id, tail) end
    if head[STATE] == WAITING then waiting[#waiting + 1] = job else leave(id, head) end
  end
  leave_waiting(waiting)
  forget(ids)
end

-- Forgets up to `most` kept jobs whose retention has ended. Answers how many.
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

-- Forgets the oldest of DONE or DEAD that are more than `count`, up to `most`. Answers how many.
local function forget_oldest(line, count, most)
  local excess = math.min(call('ZCARD', line) - count, most)
  if excess <= 0 then return 0 end
  local oldest = call('ZRANGE', line, 0, excess - 1)
  call('ZREMRANGEBYRANK', line, 0, excess - 1)
  call('ZREM', KEPT, unpack(oldest))
  forget(oldest)
  return excess
end

-- Jobs that are in no place and no group are kept as done or dead, and the oldest of these make room. Each of `jobs` is
-- {id, head, tail, until when it is kept}; `count` is how many are kept. A job that is kept has the moment at which it ended
-- in the place of its lease; 0 when that is not known.
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

-- A script that is given many jobs does the first of them, when they are large, and says nothing of the others: its caller
-- asks again for those. Takes all from `first` on out of what a script was given.
local function leave_to_next(given, first)
  for i = #given, first, -1 do given[i] = nil end
end

-- Jobs in the pool, by id: {id, head, tail}; nothing of those that are not there, or whose retention has ended. Of `ids` those
-- remain that were looked for.
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

-- The jobs that are held under leases, whether or not their deadlines have passed. The leases are in ARGV, `step` places for
-- each from `first` on: number, nonce, and what is the script's own. Answers {id, head, tail} by the place of the lease,
-- nothing of those that are stale, and how many leases it has looked for; a lease that is named twice has the same table. One
-- look finds them all, unless very many others lie between them. Two masters may have given the same number to two jobs (a
-- failover that the old one did not notice): the nonce tells them apart.
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

-- The end of every script that changed something. `said` has the script's own answers, from place 3 on.
local function answer(said)
  if is_smaller and call('EXISTS', POOL) == 0 then call('ZREM', TOPICS, TOPIC) end
  if is_delay_shorter then delay_wake_anew() end
  said[1] = next_wake()
  said[2] = news
  return said
end
