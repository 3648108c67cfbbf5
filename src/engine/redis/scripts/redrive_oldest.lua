-- Gives another life to the dead jobs of a topic that died first.
-- KEYS  prelude.lua
-- ARGV  5 how many at most   6 how many bytes of records are enough for one call
-- RETURNS prelude.lua; 3 how many there were   4 1 when there are more
local bytes = tonumber(ARGV[6])
local redriven = 0
expire(1000)
for _, id in ipairs(call('ZRANGE', DEAD, 0, tonumber(ARGV[5]) - 1)) do
  if bytes <= 0 then break end
  local record = call('HGET', POOL, id)
  bytes = bytes - #record
  local head, tail = open(record)
  leave(id, head)
  if head[UNTIL] <= NOW then
    forget({id})  -- there are more of these than were forgotten above
  else
    join_group(id, tail)
    head[ATTEMPTS] = 0
    wait(id, head, tail, NOW)
    redriven = redriven + 1
  end
end
return answer({false, 0, redriven, call('EXISTS', DEAD)})
