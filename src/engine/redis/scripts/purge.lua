-- Removes jobs of a topic in one state.
-- KEYS  prelude.lua
-- ARGV  5 state: 0 delayed ... 4 dead   6 how many at most   7 stop at this many bytes of records
-- RETURNS prelude.lua; 3 how many were removed   4 1 if there may be more
local state, most, bytes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local function ready_members()
  local members = {}
  for outlet = 0, 1 do
    if #members < most then
      for _, member in ipairs(call('ZRANGE', line_of(outlet), 0, most - #members - 1)) do
        members[#members + 1] = member
      end
    end
  end
  return members
end

-- Members of the place of jobs in this state.
local function candidates()
  if state == 0 then return delayed_ids(most) end
  if state == 1 then return ready_members() end
  return call('ZRANGE', ({HELD, DONE, DEAD})[state - 1], 0, most - 1)
end

catch_up(1000)
local members, jobs, looked = candidates(), {}, 0
for i, member in ipairs(members) do
  if bytes <= 0 then break end
  looked = i
  local id = state == 1 and string.sub(member, RANK_BYTES + 1) or member
  local record = call('HGET', POOL, id)
  local head, tail
  if record then
    bytes = bytes - #record
    head, tail = open(record)
  end
  if head and is_there(state, member, head) then
    jobs[#jobs + 1] = {id, head, tail}
  else
    remove_trace(state, id, member, head)
  end
end
if #jobs > 0 then erase(jobs) end
-- Due jobs that were too many to be moved to a line are left to the next call.
local _, due = delayed_count()
local is_more = looked < #members or #members == most or (state == 1 and due > 0)
return answer({false, 0, #jobs, is_more and 1 or 0})
