-- Calls as the server makes them: a body of 128 bytes and the headers of a webhook.
wrk.method = "POST"
wrk.body = string.rep("x", 128)
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.headers["webhook-id"] = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"
wrk.headers["webhook-timestamp"] = "1674087231"
wrk.headers["delayq-topic"] = "order"
wrk.headers["delayq-job-id"] = "order:1234567"
wrk.headers["delayq-attempt"] = "1"
wrk.headers["delayq-due"] = "2030-01-31T08:00:00.000Z"
