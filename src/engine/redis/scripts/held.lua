-- Finds the jobs of leases. Changes nothing.
-- KEYS  prelude.lua
-- ARGV  5 '1' with bodies, '0' without
--       6... two for each: number of the lease, its nonce
-- RETURNS prelude.lua; 3... for each of the first (prelude_life.lua: held_by) an array: nothing where the lease is stale;
--       id and group without bodies; id and the record with them
local said = {false, 0}
local held, count = held_by(6, 2)
for i = 1, count do
  local job = held[i]
  if not job then
    said[#said + 1] = {}
  elseif ARGV[5] == '1' then
    said[#said + 1] = {job[1], cmsgpack.pack(job[2]) .. job[3]}
  else
    said[#said + 1] = {job[1], group_of(job[3])}
  end
end
return said
