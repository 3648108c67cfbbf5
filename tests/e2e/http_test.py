"""HTTP as Python's own client speaks it: keep-alive, long polls, JSON both ways. No answer may be outside the description."""
import http.client
import json
import threading

import harness
import openapi


class Http(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.description = openapi.Description()
        self.connection = self.open()

    def open(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=harness.DEADLINE)
        self.addCleanup(connection.close)
        return connection

    def ask(self, method, path, body=None, connection=None, headers=None):
        connection = connection or self.connection
        data = body if isinstance(body, bytes) or body is None else json.dumps(body)
        connection.request(method, path, data, headers or {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        self.description.check(method, path, response, text)
        return response.status, json.loads(text)

    def test_a_jobs_life(self):
        status, pushed = self.ask("POST", "/v1/topics/order/jobs", {"body": {"uid": 1}, "delay": "20ms", "id": "order:1"})
        self.assertEqual((status, pushed["id"], pushed["state"]), (201, "order:1", "delayed"))
        status, popped = self.ask("POST", "/v1/topics/order/pop", {"wait": "10s"})
        self.assertEqual(popped["jobs"][0]["body"], {"uid": 1})
        _, acked = self.ask("POST", "/v1/ack", {"leases": [popped["jobs"][0]["lease"]]})
        self.assertEqual(acked, {"results": [{"result": "acked"}]})
        self.assertEqual(self.ask("GET", "/v1/topics/order/jobs/order:1")[1]["state"], "done")

    def test_both_protocols_see_the_same_jobs(self):
        client = self.connect(self.server)
        client.ask("PUSH", "t", "0", '{"from": "resp"}', "ID", "a")
        self.ask("POST", "/v1/topics/t/jobs", {"body": [1.5, None], "id": "b"})
        _, popped = self.ask("POST", "/v1/topics/t/pop", {"count": 10})
        self.assertEqual([job["body"] for job in popped["jobs"]], [{"from": "resp"}, [1.5, None]])
        self.assertEqual(client.ask("ACK", *[job["lease"] for job in popped["jobs"]]), 2)

    def test_a_long_poll_is_woken_by_the_job(self):
        waiter = self.open()
        answers = []

        def wait():
            answers.append(self.ask("POST", "/v1/pop", {"topics": ["none", "late"], "wait": "60s"}, connection=waiter))

        thread = threading.Thread(target=wait)
        thread.start()
        self.wait_for(lambda: self.ask("GET", "/v1/stats")[1]["waiters"] == 1, "it waits")
        self.ask("POST", "/v1/topics/late/jobs", {"body": "now"})
        thread.join(harness.DEADLINE)
        self.assertEqual(answers[0][1]["jobs"][0]["body"], "now")

    def test_a_large_batch_and_large_bodies(self):
        lines = b"".join(b'{"topic": "bulk", "body": %d, "id": "%d"}\n' % (i, i) for i in range(5000))
        status, answer = self.ask("POST", "/v1/jobs", lines, headers={"Content-Type": "application/x-ndjson"})
        self.assertEqual((status, len(answer["results"])), (200, 5000))
        self.assertEqual(self.ask("GET", "/v1/topics/bulk")[1]["counts"]["ready"], 5000)
        raw = bytes(range(256)) * 1000
        self.ask("POST", "/v1/topics/raw/jobs?id=x", raw, headers={"Content-Type": "application/octet-stream"})
        self.assertEqual(dict(zip(*[iter(self.connect(self.server).ask("GET", "raw", "x"))] * 2))[b"body"], raw)
        status, problem = self.ask("POST", "/v1/topics/raw/jobs", b"x" * ((1 << 20) + 1), headers={"Content-Type": "text/plain"})
        self.assertEqual((status, problem["code"], problem["field"]), (413, "too_large", "body"))

    def test_an_import_larger_than_its_share_of_memory(self):
        line = (json.dumps({"topic": "import", "delay": "1d", "body": "x" * 4096}) + "\n").encode()
        lines, step = 40_000, 1_000
        before = self.server.resident_bytes()
        peak = before

        def pieces():
            nonlocal peak
            for _ in range(lines // step):
                yield line * step
                peak = max(peak, self.server.resident_bytes())
        self.connection.request("POST", "/v1/jobs", pieces(), {"Content-Type": "application/x-ndjson"}, encode_chunked=True)
        answer = json.loads(self.connection.getresponse().read())
        self.assertEqual(answer, {"pushed": lines, "failed": 0, "results": []})
        self.assertEqual(self.ask("GET", "/v1/topics/import")[1]["counts"]["delayed"], lines)
        if not harness.SANITIZED:
            self.assertLess(peak - before, 120 << 20, "it is not kept until it is whole")

    def test_what_is_no_request_is_told_and_closed(self):
        client = harness.Client(self.server.http_port)
        self.addCleanup(client.close)
        client.socket.sendall(b"*1\r\n$4\r\nPING\r\n\r\n")
        self.assertTrue(client.stream.read().startswith(b"HTTP/1.1 400 "))
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)


if __name__ == "__main__":
    harness.main()
