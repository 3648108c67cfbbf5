-- Pushing a job, for the scripts that do.

-- A record is given in two pieces: its sequence number, which only the script knows, is between them.
local function new_record(before, number, after)
  return before .. struct.pack('>BI8', 0xcf, number) .. after
end

-- The topic has jobs now. Once for each topic that a script enters.
local function note_topic()
  if not is_listed then call('ZADD', TOPICS, 0, TOPIC) end
  is_listed = true
end

-- Pushes one job. `policy` says what becomes of it when a live job has the id: 0 reject, 1 replace, 2 keep. Returns 0 created,
-- 1 replaced, 2 kept, 3 conflict or 4 absent; and state and due of the job that now has the id, if one has.
--
-- Places first, and then the record: when a place cannot be written (another program has its key), what was written before is
-- a trace (prelude_life.lua), and no job. So a push that fails can be repeated.
local function push_job(id, before, number, after, due, policy, has_group, adds_none)
  local existing = call('HGET', POOL, id)
  local outcome = 0
  if existing then
    local head, tail = open(existing)
    local is_live = head[STATE] < IS_DONE
    if is_live and policy ~= 1 then
      local state = head[STATE] == RESERVED and RESERVED or (is_delayed(id) and 0 or 1)
      return policy == 0 and 3 or 2, state, head[DUE]
    end
    leave(id, head)
    if is_live then
      leave_group(id, tail)
      outcome = 1
    end
  else
    leave_kept({id})
    if adds_none then return 4, 0, 0 end
  end
  local record = new_record(before, number, after)
  local head, tail = open(record)
  if has_group then join_group(id, tail) end
  note_topic()
  settle(id, head)
  call('HSET', POOL, id, record)
  return outcome, due <= NOW and 1 or 0, due
end
