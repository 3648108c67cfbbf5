-- Removes done and dead jobs of a topic whose retention has ended.
-- KEYS  prelude.lua
-- ARGV  5 how many at most
-- RETURNS prelude.lua
go_on_when_full(NEXT)
expire(tonumber(ARGV[5]))
wake_anew('k', KEPT)
return answer({false, 0})
