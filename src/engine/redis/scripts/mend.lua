-- Puts jobs back into the place of their state if they are missing there: a key was lost (evicted, deleted by hand), or
-- another program used it and a script failed in the middle.
-- KEYS  prelude.lua
-- ARGV  5 where to continue in the pool, '0' for the start   6 stop after this many jobs
--       7 or this many bytes of records
-- RETURNS prelude.lua; 3 where to continue, '0' if these were all   4 how many jobs were put back
local from, looks, bytes, mended = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), 0

-- Returns whether it was missing.
local function put(place, score, id)
  return call('ZADD', place, 'NX', score, id) == 1
end

local function mend(id, head)
  if head[STATE] == WAITING then
    if is_in_delay(id) or call('ZSCORE', line_of(head[OUTLET]), rank(head) .. id) then return false end
    settle(id, head)
    return true
  end
  if head[STATE] == RESERVED then
    local was_held, was_watched = not put(HELD, head[LEASE], id), not put(LEASES, head[UNTIL], id)
    if not was_watched then wake_by('l', head[UNTIL]) end
    return not (was_held and was_watched)
  end
  local line = head[STATE] == IS_DONE and DONE or DEAD
  local was_listed = call('ZSCORE', line, id)
  if not was_listed then put(line, numbers(1) + 1, id) end
  local was_kept = not put(KEPT, head[UNTIL], id)
  if not was_kept then wake_by('k', head[UNTIL]) end
  return not (was_listed and was_kept)
end

go_on_when_full(NEXT)
repeat
  local step = call('HSCAN', POOL, from, 'COUNT', 10)
  from = step[1]
  for i = 1, #step[2], 2 do
    local _, head = cmsgpack.unpack_one(step[2][i + 1])
    if mend(step[2][i], head) then mended = mended + 1 end
    looks, bytes = looks - 1, bytes - #step[2][i + 1]
  end
until from == '0' or looks <= 0 or bytes <= 0
return answer({false, 0, from, mended})
