-- Pushes of jobs with bodies of 128 bytes, an hour ahead.
local body = '{"delay":"1h","body":"' .. string.rep("x", 126) .. '"}'
wrk.method = "POST"
wrk.body = body
wrk.headers["Content-Type"] = "application/json"
