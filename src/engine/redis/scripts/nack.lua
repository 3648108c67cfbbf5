-- Retries or ends jobs whose attempt failed, by their leases.
-- KEYS  prelude.lua
-- ARGV  5... seven for each: number of the lease, its nonce, when to retry in ms ("": it becomes dead), end of
--       retention and how many dead jobs are kept (0 and 0: none), reason,
--       and flags: 1 the lease has expired, 2 the attempt does not count
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: held_by) 0 retried, 1 dead, 2 cancelled, 3 stale
local said = {false, 0}
local held, count = held_by(5, 7)

local function nack(job, retry_at, keep_until, keep_count, reason, flags)
  if not job or job.is_over then return 3 end
  local id, head, tail = unpack(job)
  if flags % 2 == 0 and head[UNTIL] <= NOW then return 3 end
  -- After its expiry was reported, the lease may have been extended by a server whose clock is a little behind. LEASES
  -- then has its deadline again instead of the next time to report it (ended.lua). The clock alone is not enough,
  -- because it may have been set back.
  if flags % 2 == 1 and head[UNTIL] > NOW and tonumber(call('ZSCORE', LEASES, id)) == head[UNTIL] then return 3 end
  if head[FLAGS] % 2 == CANCEL_REQUESTED then
    erase({job})
    return 2
  end
  leave_held({id})
  local is_counted = flags < 2
  if reason ~= '' and (is_counted or retry_at == '') then head[OUTCOME] = reason end
  if retry_at ~= '' then
    if not is_counted then head[ATTEMPTS] = head[ATTEMPTS] - 1 end
    wait(id, head, tail, tonumber(retry_at))
    return 0
  end
  leave_group(id, tail)
  if keep_until == 0 or keep_count == 0 then
    forget({id})
  else
    expire(100)
    keep_all({{id, head, tail, keep_until}}, IS_DEAD, keep_count, NOW)
  end
  return 1
end

for i = 1, count do
  local at = 7 * i - 1
  local job = held[i]
  local outcome = nack(job, ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), ARGV[at + 4], tonumber(ARGV[at + 5]))
  if outcome ~= 3 then job.is_over = true end
  said[#said + 1] = outcome
end
return answer(said)
