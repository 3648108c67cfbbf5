-- Makes the dead jobs of a topic that died first ready again.
-- KEYS  prelude.lua
-- ARGV  5 how many at most   6 stop at this many bytes of records
-- RETURNS prelude.lua; 3 how many became ready   4 1 if there are more
local bytes = tonumber(ARGV[6])
local redriven = 0
clear_traces()
expire(1000)
for _, id in ipairs(call('ZRANGE', DEAD, 0, tonumber(ARGV[5]) - 1)) do
  if bytes <= 0 then break end
  local record = call('HGET', POOL, id)
  local head, tail
  if record then
    bytes = bytes - #record
    head, tail = open(record)
  end
  if not head or head[STATE] ~= IS_DEAD then
    remove_trace(IS_DEAD, id, id, head)
  elseif head[UNTIL] <= NOW then
    leave(id, head)
    forget({id})  -- there are more of these than were forgotten above
  else
    leave(id, head)
    join_group(id, tail)
    head[ATTEMPTS] = 0
    wait(id, head, tail, NOW)
    redriven = redriven + 1
  end
end
return answer({false, 0, redriven, call('EXISTS', DEAD)})
