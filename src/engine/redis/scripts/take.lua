-- Hands out the first ready jobs of a topic, under leases or, with auto-ack, as done.
-- KEYS  prelude.lua
-- ARGV  5 outlet   6 the leases' deadline   7 maximum of reserved jobs, 0 for no limit
--       8 1 for auto-ack, 2 if jobs with a lease length of their own get that from now on, instead of 6; otherwise 0
--       with auto-ack   9 end of retention and   10 how many done jobs are kept, 0 and 0 for none
--       11 how many delayed jobs may become ready first, besides   12 stop at this many bytes of records
--       13 the nonce of the leases   14 how many jobs to take at most
-- RETURNS prelude.lua; 3... id and record of each job; a last 1 if the bytes, or the number of jobs that may become
--         ready first, ended it: there may be more then, even if it returns none
local outlet, deadline, limit = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local is_auto, keep_until, keep_count = ARGV[8] == '1', tonumber(ARGV[9]), tonumber(ARGV[10])
local is_own = ARGV[8] == '2'
local most_bytes, nonce, count = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local said = {false, 0}

local is_more_due = move_due(tonumber(ARGV[11]) + count)

local room = count
if limit > 0 then room = math.min(count, math.max(limit - call('ZCARD', HELD), 0)) end
local line = line_of(outlet)
local ids, records, heads, tails, is_cut = {}, {}, {}, {}, false

-- Reads the first jobs; those that are too many stay. Jobs leave the line at the end, after they are in their new
-- place: so if another program uses a key, no job is left without a place.
if room > 0 then
  local members = call('ZRANGE', line, 0, room - 1)
  for i, member in ipairs(members) do ids[i] = string.sub(member, RANK_BYTES + 1) end
  records = records_of(ids, most_bytes)
  is_cut = #records < #ids or (is_more_due and #ids < room)
  -- A trace of a lost job may have the id of another job, which must not be taken twice, nor early. (After the clock
  -- went back, a job in line may be due later than now.)
  local found, is_found = {}, {}
  for i, record in ipairs(records) do
    local id = ids[i]
    if record and not is_found[id] then
      local head, tail = open(record)
      local is_ready = head[STATE] == WAITING and head[FLAGS] ~= COLD
      if is_ready and head[DUE] > NOW then
        is_ready = string.sub(members[i], 1, RANK_BYTES) == rank(head)
      end
      if is_ready then
        local at = #found + 1
        found[at], heads[at], tails[at], is_found[id] = id, head, tail, true
      end
    end
  end
  -- There may be more jobs after the traces.
  if #found < #records then is_cut = true end
  ids = found
end
-- Returns the number before the first of #ids lease numbers. They start above the time, so that a Redis that has lost
-- its last numbers (in a failover) never gives out a number that a consumer still has. 1,024 numbers per millisecond
-- are more than a shard uses, and scores are exact up to 2^53. Two masters that take at the same time may give out the
-- same numbers; the nonce is different for each server and call.
local function lease_numbers()
  local first, least = numbers(#ids), math.min(NOW * 1024, 2 ^ 52)
  if first >= least then return first end
  call('SET', SEQUENCE, least + #ids)
  return least
end

local function lease_all()
  local lease = lease_numbers()
  local fields, held, leases, first_end = {}, {}, {}, math.huge
  for i, id in ipairs(ids) do
    local head, tail = heads[i], tails[i]
    local lease_end = is_own and head[OWN_LEASE] and NOW + head[OWN_LEASE] or deadline
    head[STATE], head[ATTEMPTS], head[LEASE], head[UNTIL] = RESERVED, head[ATTEMPTS] + 1, lease + i, lease_end
    head[FLAGS] = 2 * nonce
    local record = cmsgpack.pack(head) .. tail
    local at = 2 * i
    fields[at - 1], fields[at] = id, record
    held[at - 1], held[at] = lease + i, id
    leases[at - 1], leases[at] = lease_end, id
    first_end = math.min(first_end, lease_end)
    said[at + 1], said[at + 2] = id, record
  end
  call('ZADD', LEASES, unpack(leases))
  call('ZADD', HELD, unpack(held))
  wake_by('l', first_end)
  call('HSET', POOL, unpack(fields))
end

local function finish_all()
  local is_kept = keep_until ~= 0 and keep_count > 0
  local kept = {}
  for i, id in ipairs(ids) do
    local head, tail = heads[i], tails[i]
    head[ATTEMPTS] = head[ATTEMPTS] + 1
    leave_group(id, tail)
    said[2 * i + 1], said[2 * i + 2] = id, cmsgpack.pack(head) .. tail
    kept[i] = {id, head, tail, keep_until}
  end
  if not is_kept then return forget(ids) end
  expire(100)
  keep_all(kept, IS_DONE, keep_count, NOW)
end

if #ids > 0 then
  go_on_when_full(NEXT)
  if is_auto then finish_all() else lease_all() end
end
if #records > 0 then call('ZREMRANGEBYRANK', line, 0, #records - 1) end
-- When a job leaves HELD, the script then reports that there is room. A take with auto-ack does not limit itself.
if room < count and call('EXISTS', line) == 1 and (not is_auto or call('EXISTS', HELD) == 1) then
  go_on_when_full(NEXT)
  call('SET', FULL, 1)
end
if is_cut then said[#said + 1] = 1 end
return answer(said)
