"""The APIs of go-delay-queue, delay_queue_callback and DelayQ on the real program: the examples of their documents, and the
same jobs through every API."""
import http.client
import http.server
import json
import threading
import time

import harness


def compact(text):
    """JSON without the space between its tokens; members, digits and escapes stay as they are."""
    out, in_string, escaped = [], False, False
    for letter in text:
        if in_string:
            out.append(letter)
            in_string = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif not letter.isspace():
            out.append(letter)
            in_string = letter == '"'
    return "".join(out)


class Compat(harness.ServerTest):
    def start(self, *options):
        self.server = self.serve(*options)
        return self.server

    def say(self, method, path, body=None, headers=None, port=None):
        """Status and text of an answer. What curl calls a body when it is not told better is JSON here."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.server.http_port, timeout=harness.DEADLINE)
        try:
            data = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method, path, None if data is None else data.encode(),
                               {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})
            response = connection.getresponse()
            self.assertEqual(response.headers["Content-Type"], "application/json; charset=utf-8")
            return response.status, response.read().decode()
        finally:
            connection.close()

    def ask(self, method, path, body=None):
        status, text = self.say(method, path, body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def native(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=harness.DEADLINE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


class GoDelayQueue(Compat):
    """Requests and answers as the document has them."""

    ADD = """{
  "topic": "order",
  "delay": 3600,
  "body": "{\\"uid\\": 10829378,\\"created\\": 1498657365 }"
}"""
    BY_ID = """{
  "job_id": "15702398321"
}"""
    MISSING = """{
  "code": 0,
  "message": "操作成功",
  "data": null
}"""
    FOUND = """{
    "code": 0,
    "message": "操作成功",
    "data": {
        "topic": "order",
        "id": "15702398321",
        "exec_time": %d,
        "delay": 10,
        "body": "{\\"uid\\": 10829378,\\"created\\": 1498657365 }"

    }
}"""

    def test_the_documents_examples(self):
        self.start()
        status, text = self.say("POST", "/delay-queue/api/jobs/add", self.ADD)
        added = json.loads(text)["data"]["job_id"]
        self.assertEqual((status, text), (200, '{"code":0,"message":"操作成功","data":{"job_id":"%s"}}' % added))
        get, remove = "/delay-queue/api/jobs/get", "/delay-queue/api/jobs/remove"
        self.assertEqual(self.say("POST", get, self.BY_ID), (200, compact(self.MISSING)))
        before = int(time.time())
        self.ask("POST", "/delay-queue/api/jobs/add", {**json.loads(self.ADD), "id": "15702398321", "delay": 10})
        _, found = self.say("POST", get, self.BY_ID)
        due = json.loads(found)["data"]["exec_time"]
        self.assertIn(due, range(before + 10, int(time.time()) + 11))
        self.assertEqual(found, compact(self.FOUND % due))
        self.assertEqual(self.say("GET", get + "?job_id=15702398321"), (200, found))
        self.assertEqual(self.say("POST", remove, self.BY_ID), (200, compact(self.MISSING)))
        self.assertEqual(self.say("GET", remove + "?job_id=" + added), (200, compact(self.MISSING)))
        self.assertEqual(self.native("GET", "/v1/stats")["jobs"], 0)


class Callback(Compat):
    JOB = """{
  "topic": "inform",
  "id": "08019413123",
  "delay": 1567135500,
  "callback":"https://www.baidu.com",
  "body": {"example": true}
}"""
    ADDED = """{
  "success": 1,
  "message": "添加新任务成功",
  "data": null
}"""
    FOUND = """{
  "success": 1,
  "message": "添加新任务成功",
  "data": {
            "topic": "inform",
            "id": "08019413123",
            "delay": 1567135500,
            "body": {"example": true},
            "job_sign":"inform-08019413123"
          }
}


"""
    DELETED = """{
    "success": 1,
    "message": "删除job成功",
    "data": null
}"""

    def test_the_documents_examples(self):
        self.start()
        self.assertEqual(self.say("POST", "/job", self.JOB), (200, compact(self.ADDED)))
        query = "/job?topic=inform&id=08019413123"
        status, found = self.say("GET", query)
        self.assertEqual((status, compact(found)), (200, compact(self.FOUND)))
        self.assertIn('"body":{"example": true}', found, "a body comes back as it was written")
        self.assertEqual(self.say("DELETE", query), (200, compact(self.DELETED)))
        self.assertEqual(self.ask("GET", query)["success"], 0)


    def receive(self, answers):
        """A receiver that gives these answers, one a call, the last again and again. Answers its port and what comes."""
        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                seen.append((harness.now_ms(), self.rfile.read(int(self.headers["Content-Length"])).decode()))
                answer = answers[min(len(seen), len(answers)) - 1]
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        return receiver.server_address[1], seen

    def add_due_in_a_second(self, port):
        text = compact(self.JOB).replace("1567135500", "1").replace("https://www.baidu.com", f"http://127.0.0.1:{port}/")
        pushed = harness.now_ms()
        self.assertEqual(self.say("POST", "/job", text), (200, compact(self.ADDED)))
        return text, pushed

    def test_it_is_called_until_the_answer_is_ok(self):
        self.start("--set", "topics.inform.backoff=10ms")
        port, seen = self.receive([b"no", b"ok"])
        text, pushed = self.add_due_in_a_second(port)
        self.wait_for(lambda: self.native("GET", "/v1/topics/inform/jobs/08019413123")["state"] == "done", "it is done")
        self.assertEqual(len(seen), 2)
        self.assertGreaterEqual(seen[0][0], pushed + 1_000)
        self.assertEqual(compact(seen[0][1]), text, "what is sent is what was added")
        self.assertEqual(self.ask("GET", "/job?topic=inform&id=08019413123")["success"], 0, "over is gone")

    def test_it_is_called_three_times_at_most(self):
        self.start("--set", "topics.inform.backoff=10ms")
        port, seen = self.receive([b"no"])
        self.add_due_in_a_second(port)
        self.wait_for(lambda: self.native("GET", "/v1/topics/inform/jobs/08019413123")["state"] == "dead", "it is dead")
        self.assertEqual(len(seen), 3)
        self.assertEqual(self.native("GET", "/v1/topics/inform/jobs/08019413123")["attempts"], 3)


class DelayQ(Compat):
    def data(self, path, body):
        answer = self.ask("POST", path, body)
        self.assertEqual(answer["code"], "0", answer)
        return json.loads(answer["data"])

    def test_a_consumer_that_waits(self):
        self.start()
        answers = []
        waiter = threading.Thread(target=lambda: answers.append(self.data("/delayq/job/bpop", {"topic": "top1", "timeout": 60})))
        waiter.start()
        self.wait_for(lambda: self.native("GET", "/v1/stats")["waiters"] == 1, "it waits")
        job = {"jobid": "top1_1", "name": "n", "topic": "top1", "data": "http://shop.example/1", "exectime": int(time.time()) + 1, "ttr": 30}
        self.data("/delayq/job/add", job)
        waiter.join(harness.DEADLINE)
        self.assertGreaterEqual(time.time(), job["exectime"])
        self.assertEqual({key: answers[0][key] for key in job}, job, "numbers are numbers")
        self.assertEqual((answers[0]["tryes"], answers[0]["state"]), (1, 2))
        self.assertEqual(self.ask("POST", "/delayq/job/finish", {"jobid": "top1_1"})["code"], "0")
        pool = self.data("/delayq/job/list", {"topic": "top1", "state": 3})
        self.assertEqual([done["jobid"] for done in pool["jobs"]], ["top1_1"])

    def test_a_job_can_be_finished_after_a_restart(self):
        server = self.start()
        self.data("/delayq/job/add", {"jobid": "a", "topic": "t", "ttr": 600})
        self.data("/delayq/job/pop", {"topic": "t"})
        self.assertEqual(server.stop()[0], 0)
        server.start()
        self.assertEqual(self.ask("POST", "/delayq/job/finish", {"jobid": "a"}), {"code": "0", "info": "标识完成任务成功！", "data": ""})
        self.assertEqual(self.native("GET", "/v1/topics/t/jobs/a")["state"], "done")

    def test_logs_of_the_day(self):
        access = self.directory / "access.log"
        self.start("--set", f"log.access={access}")
        self.ask("GET", "/delayq/ping")
        self.ask("POST", "/delayq/job/info", {"jobid": "none"})
        self.assertEqual(self.server.stop()[0], 0)
        log = access.read_text(encoding="utf-8")
        self.assertIn("/delayq/ping", log)
        self.assertRegex(log, r"/delayq/job/info.*not_found", "a failure is one in the log, though its status is 200")


class Together(Compat):
    ADD = {
        "v1": ("/v1/topics/t/jobs", lambda name: {"id": name, "body": name, "delay": "1h"}),
        "go": ("/delay-queue/api/jobs/add", lambda name: {"topic": "t", "id": name, "delay": 3600, "body": json.dumps(name)}),
        "callback": ("/job", lambda name: {"topic": "t", "id": name, "delay": 3600, "callback": "http://127.0.0.1:1/", "body": name}),
        "delayq": ("/delayq/job/add", lambda name: {"topic": "t", "jobid": name, "exectime": int(time.time()) + 3600, "data": json.dumps(name)}),
    }
    LOOK = {
        "v1": lambda self, name: self.native("GET", f"/v1/topics/t/jobs/{name}").get("id"),
        "resp": lambda self, name: dict(zip(*[iter(self.resp.ask("GET", "t", name))] * 2))[b"id"].decode(),
        "go": lambda self, name: (self.ask("POST", "/delay-queue/api/jobs/get", {"job_id": name})["data"] or {}).get("id"),
        "callback": lambda self, name: (self.ask("GET", f"/job?topic=t&id={name}")["data"] or {}).get("id"),
        "delayq": lambda self, name: json.loads(self.ask("POST", "/delayq/job/info", {"jobid": name})["data"] or "{}").get("jobid"),
    }
    CANCEL = {
        "v1": lambda self, name: self.native("DELETE", f"/v1/topics/t/jobs/{name}"),
        "resp": lambda self, name: self.resp.ask("CANCEL", "t", name),
        "go": lambda self, name: self.ask("GET", f"/delay-queue/api/jobs/remove?job_id={name}"),
        "callback": lambda self, name: self.ask("DELETE", f"/job?topic=t&id={name}"),
        "delayq": lambda self, name: self.ask("POST", "/delayq/job/remove", {"jobid": name}),
    }

    def test_a_job_of_one_api_is_everybodys(self):
        self.start()
        self.resp = self.connect(self.server)
        for source in [*self.ADD, "resp"]:
            for target, cancel in self.CANCEL.items():
                name = f"{source}-{target}"
                with self.subTest(name):
                    if source == "resp":
                        self.resp.ask("PUSH", "t", "1h", json.dumps(name), "ID", name)
                    else:
                        path, body = self.ADD[source]
                        self.native("POST", path, body(name))
                    for look in self.LOOK.values():
                        self.assertEqual(look(self, name), name)
                    self.assertEqual(self.resp.stats("t")["delayed"], 1)
                    cancel(self, name)
                    self.assertEqual(self.resp.stats("t")["delayed"], 0)

    def test_switched_off(self):
        self.start("--set", "compat.callback=false", "--set", "compat.delayq=false")
        self.assertEqual(self.native("GET", "/job?topic=t&id=a")["code"], "not_found")
        self.assertEqual(self.native("GET", "/delayq/ping")["code"], "not_found")
        self.assertEqual(self.ask("POST", "/delay-queue/api/jobs/get", {"job_id": "a"})["data"], None)


if __name__ == "__main__":
    harness.main()
