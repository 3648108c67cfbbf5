-- Servers share groups of Kafka partitions. A server renews those that it reads, learns which it must give back because it
-- has more than its share, and gets free ones up to its share.
-- KEYS  1 readers: zset of the servers by when they count as gone   2... one for each group: the server that reads it
-- ARGV  1 now in ms   2 server   3 for how many ms it has a group   4 1 if it goes: it gives up everything
--       5... numbers of the groups, from 1, that it has stopped to read
-- RETURNS for each group 1 if this server reads it, 2 if it must stop to read it, 0 if another server does or none
local readers, server, hold, goes = KEYS[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local count = #KEYS - 1
local owners, others, mine, said = {}, {}, 0, {}
go_on_when_full(readers)
for at = 5, #ARGV do
  local key = KEYS[1 + tonumber(ARGV[at])]
  if call('GET', key) == server then call('DEL', key) end
end
if goes then call('ZREM', readers, server) else call('ZADD', readers, NOW + tonumber(hold), server) end
for _, gone in ipairs(call('ZRANGE', readers, '-inf', NOW, 'BYSCORE')) do call('ZREM', readers, gone) end
for i = 1, count do
  owners[i], said[i] = call('GET', KEYS[1 + i]), 0
  if owners[i] == server then
    mine = mine + 1
  elseif owners[i] then
    others[owners[i]] = (others[owners[i]] or 0) + 1
  end
end

-- Each server has the same number of groups, and some have one more.
local servers = math.max(call('ZCARD', readers), 1)
local share, more = math.floor(count / servers), count % servers
for _, has in pairs(others) do
  if has > share then more = more - 1 end
end
if more > 0 then share = share + 1 end

for i = 1, count do
  if owners[i] == server and goes then
    call('DEL', KEYS[1 + i])
  elseif owners[i] == server then
    call('SET', KEYS[1 + i], server, 'PX', hold)
    said[i] = 1
  elseif not owners[i] and mine < share and not goes then
    call('SET', KEYS[1 + i], server, 'NX', 'PX', hold)
    said[i], mine = 1, mine + 1
  end
end
for i = count, 1, -1 do
  if mine <= share then break end
  if said[i] == 1 then said[i], mine = 2, mine - 1 end
end
return said
