-- Reads one job.
-- KEYS  prelude.lua
-- ARGV  5 id
-- RETURNS an empty array if there is none; otherwise 1 its state, 0 delayed ... 4 dead   2 its record
local record = call('HGET', POOL, ARGV[5])
if not record then return {} end
local _, head = cmsgpack.unpack_one(record)
local state = head[STATE]
if state >= IS_DONE and head[UNTIL] <= NOW then return {} end
if state == WAITING and not is_delayed(ARGV[5]) then state = 1 end
return {state, record}
