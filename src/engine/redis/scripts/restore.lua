-- Stores jobs of one topic in the state that they had, in their order.
-- KEYS  prelude.lua
-- ARGV  5... five for each job: id, its record before and after its sequence number, what to do if the
--       id is in use (0 reject, 1 replace, 2 keep), and for a done or dead job how many of these are kept
-- RETURNS prelude.lua; 3... three for each: 0 created | 1 replaced | 2 kept | 3 conflict, and state and due time of the
--         job that now has the id
local EACH = 5
local count = (#ARGV - 4) / EACH
local place = numbers(count)
local said = {false, 0}

local function say(outcome, id, head)
  local state = head[STATE]
  if state == WAITING and not is_delayed(id) then state = 1 end
  local at = #said
  said[at + 1], said[at + 2], said[at + 3] = outcome, state, head[DUE]
end

local function make_room(id, head, tail)
  leave(id, head)
  if head[STATE] < IS_DONE then leave_group(id, tail) end
end

local function restore(i)
  local at = 4 + (i - 1) * EACH
  local id, policy = ARGV[at + 1], tonumber(ARGV[at + 4])
  local existing = call('HGET', POOL, id)
  local outcome = 0
  if existing then
    local head, tail = open(existing)
    -- A job whose retention has ended does not count.
    local is_present = head[STATE] < IS_DONE or head[UNTIL] > NOW
    if is_present and policy ~= 1 then return say(policy == 0 and 3 or 2, id, head) end
    make_room(id, head, tail)
    if is_present then outcome = 1 end
  else
    leave_kept({id})
  end
  local head, tail = open(ARGV[at + 2] .. struct.pack('>BI8', 0xcf, place + i) .. ARGV[at + 3])
  if head[STATE] == WAITING then
    join_group(id, tail)
    wait(id, head, tail, head[DUE])
  else
    keep_all({{id, head, tail, head[UNTIL]}}, head[STATE], tonumber(ARGV[at + 5]), 0)
  end
  call('ZADD', TOPICS, 0, TOPIC)
  say(outcome, id, head)
end

clear_traces()
expire(100)
for i = 1, count do restore(i) end
return answer(said)
