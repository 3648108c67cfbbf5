-- Finishes jobs by their leases.
-- KEYS  prelude.lua
-- ARGV  5... four for each: lease number, until when and how many done jobs are kept (0 and 0: none), outcome ("": as
--       it was)
-- RETURNS prelude.lua; 3... for each 0 acked, 1 stale
local said = {false, 0}
local is_over, ids, gone, kept = {}, {}, {}, {}
for at = 5, #ARGV, 4 do
  local lease = ARGV[at]
  local id, head, tail
  if not is_over[lease] then id, head, tail = held_by(lease) end
  if id and NOW < head[UNTIL] then
    is_over[lease] = true
    ids[#ids + 1] = id
    leave_group(id, tail)
    if ARGV[at + 1] == '0' or ARGV[at + 2] == '0' then
      gone[#gone + 1] = id
    else
      if ARGV[at + 3] ~= '' then head[OUTCOME] = ARGV[at + 3] end
      kept[#kept + 1] = {id, head, tail, tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])}
    end
    said[#said + 1] = 0
  else
    said[#said + 1] = 1
  end
end
if #ids > 0 then leave_held(ids) end
if #gone > 0 then forget(gone) end
if #kept > 0 then expire(100) end
for _, it in ipairs(kept) do keep(it[1], it[2], it[3], IS_DONE, it[4], it[5]) end
return answer(said)
