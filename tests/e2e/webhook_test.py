"""Jobs that are called back: the real server, and receivers that answer, fail, hang and die. Loopback only."""
import base64
import collections
import hashlib
import hmac
import http.client
import http.server
import json
import signal
import socket
import threading

import harness

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

Seen = collections.namedtuple("Seen", "at method path headers body")


def read_text(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


class Receiver:
    """An HTTP server that remembers what came. `answer(seen, times)` gives (status, headers, body); `times` is how
    often this job has come, this one included."""

    def __init__(self, answer=None, port=0):
        self.answer = answer or (lambda seen, times: (200, {}, b"thanks"))
        self.seen = []
        self.times = collections.Counter()
        self.changed = threading.Condition()
        self.released = threading.Event()
        self.server = None
        self.connections = set()
        self.port = port
        self.start()

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                receiver.connections.add(self.connection)

            def finish(self):
                receiver.connections.discard(self.connection)
                super().finish()

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                seen = Seen(harness.now_ms(), self.command, self.path, headers, body)
                with receiver.changed:
                    receiver.seen.append(seen)
                    receiver.times[headers.get("delayq-job-id")] += 1
                    times = receiver.times[headers.get("delayq-job-id")]
                    receiver.changed.notify_all()
                status, more, answer = receiver.answer(seen, times)
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 256

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self):
        """Nobody listens there any more."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself

    def close(self):
        self.released.set()
        self.stop()

    def hang(self, _seen, _times):
        self.released.wait(harness.DEADLINE)
        return 200, {}, b""

    def url(self, path="/hook"):
        return f"http://127.0.0.1:{self.port}{path}"

    def jobs(self):
        with self.changed:
            return set(self.times)


def is_signed(seen, secret):
    """As Standard Webhooks describes it, with nothing of ours."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    expected = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return expected in seen.headers.get("webhook-signature", "").split(" ")


class Webhooks(harness.ServerTest):
    def receive(self, answer=None):
        receiver = Receiver(answer)
        self.addCleanup(receiver.close)
        return receiver

    def ask(self, server, method, path, body=None, expected=(200, 201)):
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"} if body is not None else {})
            answer = connection.getresponse()
            text = answer.read()
            self.assertIn(answer.status, expected, text)
            return json.loads(text)
        finally:
            connection.close()

    def hook(self, server, topic, receiver, **settings):
        settings = {"delivery": "webhook", "callback": receiver.url(), "backoff": "100ms"} | settings
        self.ask(server, "PATCH", f"/v1/topics/{topic}", settings)

    def push(self, server, topic, **job):
        return self.ask(server, "POST", f"/v1/topics/{topic}/jobs", {"body": {"uid": 1}} | job)["id"]

    def job(self, server, topic, name):
        return self.ask(server, "GET", f"/v1/topics/{topic}/jobs/{name}")

    def wait_for_state(self, server, topic, name, state):
        self.wait_for(lambda: self.job(server, topic, name)["state"] == state, f"{name} is {state}")
        return self.job(server, topic, name)

    def counts(self, server, topic):
        return self.ask(server, "GET", f"/v1/topics/{topic}")["counts"]

    # ---- what a call looks like

    def test_a_topics_callback_is_signed(self):
        server, receiver = self.serve(), self.receive()
        self.hook(server, "order", receiver, callback_secrets=[SECRET, OTHER_SECRET])
        self.push(server, "order", id="7", delay="200ms", body={"uid": 1})
        job = self.wait_for_state(server, "order", "7", "done")
        self.assertRegex(job["outcome"], r"^200 in \d+ ms: thanks$")
        seen, = receiver.seen
        self.assertEqual((seen.method, seen.path, seen.body), ("POST", "/hook", b'{"uid": 1}'))
        self.assertTrue(is_signed(seen, SECRET) and is_signed(seen, OTHER_SECRET), "both, while keys change")
        self.assertFalse(is_signed(seen, "whsec_" + base64.b64encode(b"another key").decode()))
        self.assertEqual(seen.headers["content-type"], "application/json")
        self.assertEqual(seen.headers["delayq-topic"], "order")
        self.assertEqual(seen.headers["delayq-attempt"], "1")
        self.assertEqual(seen.headers["delayq-due"], job["due_at"])
        settings = self.ask(server, "GET", "/v1/topics/order")["settings"]
        self.assertEqual(settings["callback_secret_count"], 2)
        self.assertNotIn("MfKQ9r8G", json.dumps(settings))

    def test_secrets_of_the_server_are_read_again(self):
        config = self.directory / "delayq.toml"
        config.write_text(f'[webhook]\nsecrets = ["{SECRET}"]\n', encoding="utf-8")
        server, receiver = self.serve("-c", str(config)), self.receive()
        self.hook(server, "order", receiver)
        self.push(server, "order", id="before")
        self.wait_for_state(server, "order", "before", "done")
        self.assertTrue(is_signed(receiver.seen[-1], SECRET))
        config.write_text(f'[webhook]\nsecrets = ["{OTHER_SECRET}"]\n', encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)

        def is_changed():
            name = self.push(server, "order")
            self.wait_for_state(server, "order", name, "done")
            return is_signed(receiver.seen[-1], OTHER_SECRET)

        self.wait_for(is_changed, "calls are signed with the new secret")
        self.assertFalse(is_signed(receiver.seen[-1], SECRET))

    def test_whoever_may_push_to_one_topic_gets_no_signature_of_all(self):
        receiver = self.receive()
        token = hashlib.sha256(b"pusher").hexdigest()
        config = self.directory / "delayq.toml"
        config.write_text(f'''[webhook]
secrets = ["{SECRET}"]
[topics."*"]
callback_secrets = ["{OTHER_SECRET}"]
[topics.pay]
delivery = "webhook"
callback = "{receiver.url("/pay")}"
[topics.own]
callback_secrets = ["{OTHER_SECRET}"]
[[tokens]]
name = "pusher"
sha256 = "{token}"
scopes = ["push"]
topics = ["other", "own", "pay"]
''', encoding="utf-8")
        server = self.serve("-c", str(config))
        client = self.connect(server)
        client.ask("AUTH", "pusher", "pusher")
        client.ask("PUSH", "other", "0", "mallory", "CALLBACK", receiver.url("/attacker"))
        client.ask("PUSH", "own", "0", "eve", "CALLBACK", receiver.url("/own"))
        client.ask("PUSH", "pay", "0", "bob")
        self.wait_for(lambda: len(receiver.seen) == 3, "all are called")
        seen = {each.path: each for each in receiver.seen}
        self.assertNotIn("webhook-signature", seen["/attacker"].headers)
        self.assertTrue(is_signed(seen["/own"], OTHER_SECRET), "its topic has a secret of its own")
        self.assertTrue(is_signed(seen["/pay"], OTHER_SECRET), "the topic's own callback is signed as ever")

    def test_secrets_are_in_no_export(self):
        server, receiver = self.serve(), self.receive()
        self.hook(server, "order", receiver, callback_secrets=[SECRET])
        text = read_text(server, "/v1/export")
        self.assertIn('"callback"', text)
        self.assertNotIn("MfKQ9r8G", text)

    def test_header_lines_are_sent_and_shown_nowhere(self):
        server, receiver = self.serve(), self.receive()
        own = receiver.url("/own")
        self.hook(server, "order", receiver, callback_headers=["Authorization: Bearer hunter2"])
        self.push(server, "order", id="7")
        self.push(server, "order", id="8", callback=own, callback_headers=["X-Api-Key: hunter3"])
        client = self.connect(server)
        client.ask("PUSH", "order", "0", "b", "ID", "9", "CALLBACK", own, "CALLBACKHEADER", "Authorization", "hunter4")
        for name in ("7", "8", "9"):
            self.wait_for_state(server, "order", name, "done")
        sent = {seen.headers["delayq-job-id"]: seen.headers for seen in receiver.seen}
        self.assertEqual(sent["7"]["authorization"], "Bearer hunter2")
        self.assertEqual(sent["8"]["x-api-key"], "hunter3")
        self.assertNotIn("authorization", sent["8"], "the topic's are for the topic's callback")
        self.assertEqual(sent["9"]["authorization"], "hunter4")
        job = self.ask(server, "GET", "/v1/topics/order/jobs/8")
        self.assertEqual(job["callback_header_names"], ["X-Api-Key"])
        topic = self.ask(server, "GET", "/v1/topics/order")
        self.assertEqual(topic["settings"]["callback_header_count"], 1)
        problem = self.ask(server, "PATCH", "/v1/topics/t", {"callback_headers": ["Host: hunter5"]}, expected=[400])
        shown = f"{job}{topic}{problem}{client.ask('GET', 'order', '9')}"
        self.assertNotIn("hunter", shown)
        exported = read_text(server, "/v1/export")
        self.assertNotIn("hunter2", exported, "a setting that is a secret")
        self.assertIn("hunter3", exported, "a part of the job; only an admin exports")
        self.assertNotIn("hunter", server.stop()[1])

    def test_an_open_breaker_is_told(self):
        server, receiver = self.serve("--set", "webhook.breaker_failures=2"), self.receive()
        receiver.answer = lambda _seen, _times: (503, {}, b"")
        self.hook(server, "order", receiver, backoff="1h")
        for name in ("7", "8", "9"):
            self.push(server, "order", id=name)
        self.wait_for(lambda: "delivery_problem" in self.ask(server, "GET", "/v1/topics/order"), "the breaker is open")
        self.assertIn("is not called now", self.ask(server, "GET", "/v1/topics/order")["delivery_problem"])
        self.assertIn("is not called now", self.ask(server, "GET", "/v1/topics/order/jobs/7")["delivery_problem"])
        self.assertEqual(server.stop()[1].count("is not called until"), 1)

    def test_a_jobs_own_callback_in_a_topic_that_is_pulled(self):
        server, receiver = self.serve(), self.receive()
        client = self.connect(server)
        client.ask("PUSH", "t", "0", "hello", "ID", "called", "CALLBACK", receiver.url("/own"), "METHOD", "PUT")
        client.ask("PUSH", "t", "0", "hello", "ID", "popped")
        self.wait_for_state(server, "t", "called", "done")
        self.assertEqual([job[2] for job in client.ask("POP", "t", "COUNT", "10")], [b"popped"])
        seen, = receiver.seen
        self.assertEqual((seen.method, seen.path, seen.body), ("PUT", "/own", b"hello"))

    def test_headers_of_the_job_are_sent_and_replace_nothing(self):
        server, receiver = self.serve(), self.receive()
        self.hook(server, "order", receiver)
        given = {"traceparent": "00-4bf9-01", "X-Empty": "", "note": 'a "b" 100%; c', "name": "Zo\u00eb"}
        self.push(server, "order", id="7", headers=given)
        self.push(server, "order", id="8")
        for name in ("7", "8"):
            self.wait_for_state(server, "order", name, "done")
        by_id = {seen.headers["delayq-job-id"]: seen for seen in receiver.seen}
        seen, plain = by_id["7"], by_id["8"]
        more = {name: value for name, value in seen.headers.items() if name not in plain.headers}
        self.assertEqual(more, {"traceparent": "00-4bf9-01", "x-empty": "", "note": given["note"],
                                "name": given["name"].encode().decode("latin-1")}, "http.server reads Latin-1")
        self.assertEqual(seen.headers["content-type"], "application/json")
        self.assertEqual(self.job(server, "order", "7")["headers"], given)
        for name in ("Host", "content_length", "Transfer-Encoding", "webhook-signature", "delayq-topic", "Authorization"):
            problem = self.ask(server, "POST", "/v1/topics/order/jobs", {"body": 1, "headers": {name: "1"}}, expected=(400,))
            self.assertEqual(problem["field"], f"headers.{name}")
        for value in ("a\r\nHost: b", "a\nb", "\x00", " a"):
            problem = self.ask(server, "POST", "/v1/topics/order/jobs", {"body": 1, "headers": {"a": value}}, expected=(400,))
            self.assertEqual(problem["field"], "headers.a")

    def test_cloud_events(self):
        server, receiver = self.serve(), self.receive()
        self.hook(server, "order", receiver, callback_format="cloudevents")
        self.push(server, "order", id="7")
        self.wait_for_state(server, "order", "7", "done")
        seen, = receiver.seen
        self.assertEqual(seen.headers["ce-specversion"], "1.0")
        self.assertEqual(seen.headers["ce-source"], "/delayq/topics/order")
        self.assertEqual(seen.headers["ce-subject"], "7")
        self.assertEqual(seen.headers["ce-id"], seen.headers["webhook-id"])

    def test_the_callback_api_wants_ok(self):
        server = self.serve()
        receiver = self.receive(lambda seen, times: (200, {}, b"ok\n" if times == 2 else b"fine"))
        self.hook(server, "inform", receiver, callback_format="callback-api")
        self.push(server, "inform", id="08019413123", body={"example": True})
        job = self.wait_for_state(server, "inform", "08019413123", "done")
        self.assertEqual(job["attempts"], 2)
        self.assertEqual({seen.method for seen in receiver.seen}, {"PUT"})
        sent = json.loads(receiver.seen[0].body)
        self.assertEqual(list(sent), ["topic", "id", "delay", "callback", "body"])
        self.assertEqual(sent["body"], {"example": True})
        self.assertEqual(sent["callback"], receiver.url())

    def test_a_job_of_the_callback_api_is_called_its_way(self):
        server = self.serve()
        receiver = self.receive(lambda seen, times: (200, {}, b"ok" if times == 2 else b"not now"))
        self.ask(server, "PATCH", "/v1/topics/inform", {"backoff": "100ms"})
        answer = self.ask(server, "POST", "/job", {"topic": "inform", "id": "08019413123", "delay": 1, "callback": receiver.url(),
                                                   "body": {"example": True}})
        self.assertEqual(answer["success"], 1)
        self.assertEqual(self.wait_for_state(server, "inform", "08019413123", "done")["attempts"], 2)
        self.assertEqual({seen.method for seen in receiver.seen}, {"PUT"})
        self.assertEqual(json.loads(receiver.seen[0].body), {"topic": "inform", "id": "08019413123", "delay": 1,
                                                             "callback": receiver.url(), "body": {"example": True}})

    # ---- what an answer means

    def test_retries_with_the_same_message_id_then_success(self):
        server = self.serve()
        receiver = self.receive(lambda seen, times: (200 if times == 3 else 500, {}, b""))
        self.hook(server, "t", receiver, backoff=["100ms", "300ms"])
        self.push(server, "t", id="a")
        job = self.wait_for_state(server, "t", "a", "done")
        self.assertEqual(job["attempts"], 3)
        self.assertEqual([seen.headers["delayq-attempt"] for seen in receiver.seen], ["1", "2", "3"])
        self.assertEqual(len({seen.headers["webhook-id"] for seen in receiver.seen}), 1)
        first, second, third = (seen.at for seen in receiver.seen)
        self.assertGreaterEqual(second - first, 100)
        self.assertGreaterEqual(third - second, 300)

    def test_dead_after_its_attempts_with_the_outcome(self):
        server = self.serve()
        receiver = self.receive(lambda seen, times: (500, {}, b"out of paper"))
        self.hook(server, "t", receiver, attempts=3)
        self.push(server, "t", id="a")
        job = self.wait_for_state(server, "t", "a", "dead")
        self.assertEqual(job["attempts"], 3)
        self.assertRegex(job["outcome"], r"^500 in \d+ ms: out of paper$")
        self.assertEqual(len(receiver.seen), 3)

    def test_gone_is_the_end_and_redirects_are_failures(self):
        server = self.serve()
        target = self.receive()
        receiver = self.receive(
            lambda seen, times: (410, {}, b"") if seen.path == "/gone" else (302, {"Location": target.url()}, b""))
        self.push(server, "t", id="gone", callback=receiver.url("/gone"))
        self.push(server, "t", id="moved", callback=receiver.url("/moved"), attempts=1)
        self.assertEqual(self.wait_for_state(server, "t", "gone", "dead")["attempts"], 1)
        self.assertTrue(self.wait_for_state(server, "t", "moved", "dead")["outcome"].startswith("302 in "))
        self.assertEqual(target.seen, [])

    def test_retry_after(self):
        server = self.serve()
        receiver = self.receive(lambda seen, times: (200, {}, b"") if times > 1 else (429, {"Retry-After": "2"}, b""))
        self.hook(server, "t", receiver, backoff="100ms")
        self.push(server, "t", id="a")
        self.wait_for_state(server, "t", "a", "done")
        first, second = (seen.at for seen in receiver.seen)
        self.assertGreaterEqual(second - first, 2000)

    def test_nobody_listens(self):
        server = self.serve()
        receiver = self.receive()
        receiver.stop()
        self.push(server, "t", id="a", callback=receiver.url(), attempts=1)
        job = self.wait_for_state(server, "t", "a", "dead")
        self.assertTrue(job["outcome"].startswith("connect after "), job["outcome"])

    # ---- what is refused

    def test_what_is_not_a_callback_is_refused(self):
        server = self.serve()
        for bad in ["shop.example", "ftp://x/", "http://user:pass@x/", "http:///x", "http://x:0/"]:
            problem = self.ask(server, "POST", "/v1/topics/t/jobs", {"body": 1, "callback": bad}, expected=[400])
            self.assertEqual(problem["field"], "callback", problem)
        problem = self.ask(server, "PATCH", "/v1/topics/t", {"delivery": "webhook"}, expected=[400])
        self.assertEqual(problem["field"], "callback", problem)
        problem = self.ask(server, "PATCH", "/v1/topics/t", {"delivery": "kafka_topic"}, expected=[400])
        self.assertIn("say kafka.brokers", problem["detail"])
        problem = self.ask(server, "PATCH", "/v1/topics/t", {"callback_secrets": ["hunter2!"]}, expected=[400])
        self.assertNotIn("hunter2", json.dumps(problem))

    def test_a_pop_of_such_a_topic_is_refused(self):
        server, receiver = self.serve(), self.receive()
        self.hook(server, "t", receiver)
        with self.assertRaisesRegex(harness.Refused, "delivery = webhook"):
            self.connect(server).ask("POP", "t")

    def test_nothing_reaches_an_address_on_the_deny_list(self):
        receiver = self.receive()
        server = self.serve("--set", "webhook.deny=127.0.0.0/8,::1")
        for host in ["127.0.0.1", "localhost", "2130706433", "0x7f000001"]:
            url = f"http://{host}:{receiver.port}/hook"
            self.push(server, "t", id=host, callback=url, attempts=2, backoff="50ms")
        for host in ["127.0.0.1", "localhost", "2130706433", "0x7f000001"]:
            job = self.wait_for_state(server, "t", host, "dead")
            self.assertEqual(job["attempts"], 2)
            self.assertTrue(job["outcome"].startswith("refused"), job["outcome"])
        self.assertEqual(receiver.seen, [])

    # ---- when something breaks

    def test_the_receiver_dies_and_comes_back_under_load(self):
        server = self.serve("--set", "webhook.breaker_cooldown=200ms")
        receiver = self.receive()
        self.hook(server, "t", receiver, attempts=0, backoff="100ms", keep_done={"count": 10000})
        client = self.connect(server)
        due = {}

        def push(first, count):
            for number in range(first, first + count):
                due[f"j{number}"] = harness.now_ms() + number % 300
            client.ask_all([("PUSH", "t", "0", "x", "ID", name, "AT", f"{due[name] / 1000:.3f}")
                            for name in list(due)[first:first + count]])

        push(0, 500)
        self.wait_for(lambda: len(receiver.jobs()) > 100, "some have come")
        receiver.stop()
        push(500, 500)
        receiver.start()
        self.wait_for(lambda: self.counts(server, "t")["done"] == 1000, "all are done")
        self.assertEqual(receiver.jobs(), set(due), "each at least once")
        for seen in receiver.seen:
            self.assertGreaterEqual(seen.at, due[seen.headers["delayq-job-id"]], "early")

    def test_both_are_killed_again_and_again_under_load(self):
        """Two topics that differ in what their receiver says: one is well at last, the other never."""
        receiver = self.receive(lambda seen, times: (500 if seen.body == b"bad" else 200, {}, b""))
        server = self.serve("--set", "webhook.timeout=1s", "--set", "webhook.breaker_cooldown=100ms")
        self.hook(server, "good", receiver, attempts=0, backoff="100ms", keep_done={"count": 10000})
        self.hook(server, "bad", receiver, attempts=3, backoff="100ms")
        start = harness.now_ms()
        due = {f"{'bad' if n % 10 == 0 else 'good'}{n}": start + 100 + n // 2 for n in range(4000)}
        bad = {name for name in due if name.startswith("bad")}
        self.connect(server).ask_all([("PUSH", name.rstrip("0123456789"), "0", name[:3], "ID", name, "AT", f"{at / 1000:.3f}")
                                      for name, at in due.items()])
        kills = 5
        for number in range(kills):
            enough = (number + 1) * len(due) // (kills + 2)
            self.wait_for(lambda: len(receiver.jobs()) >= enough, f"{enough} have come")
            server.kill()
            if number % 2 == 1:
                receiver.stop()
            server.start()
            if number % 2 == 1:
                none_refused = 'delayq_webhook_calls_total{result="connect"} 0\n'
                self.wait_for(lambda: none_refused not in read_text(server, "/metrics"), "it found nobody there")
                receiver.start()
        self.wait_for(lambda: self.counts(server, "bad")["dead"] == len(bad)
                        and self.counts(server, "good")["done"] == len(due) - len(bad), "all are done or dead")
        self.assertEqual(receiver.jobs(), set(due), "each at least once")
        for seen in receiver.seen:
            self.assertGreaterEqual(seen.at, due[seen.headers["delayq-job-id"]], "early")
        page = self.ask(server, "GET", "/v1/topics/bad/jobs?state=dead&limit=1000")["jobs"]
        self.assertEqual({job["id"] for job in page}, bad)
        self.assertEqual({job["attempts"] for job in page}, {3}, "as the policy says")
        self.assertLessEqual(max(receiver.times[name] for name in bad), 3 + kills, "at most the unfinished ones repeat")
        repeated = sum(receiver.times[name] - 1 for name in due if name not in bad)
        self.assertLessEqual(repeated, kills * 1000, "webhook.in_flight bounds what a kill leaves unfinished")

    def test_a_stop_waits_for_calls_and_gives_the_others_back(self):
        receiver = self.receive()
        receiver.answer = receiver.hang
        server = self.serve("--set", "server.grace=1s")
        self.hook(server, "t", receiver)
        self.push(server, "t", id="a")
        self.wait_for(lambda: receiver.seen, "it is being called")
        code, _ = server.stop()
        self.assertEqual(code, 0)
        receiver.answer = lambda seen, times: (200, {}, b"")
        server.start()
        job = self.wait_for_state(server, "t", "a", "done")
        self.assertEqual(job["attempts"], 1, "given back, its attempt not counted")

    def test_one_host_of_ten_hangs(self):
        server = self.serve("--set", "webhook.per_host=8", "--set", "webhook.in_flight=64")
        receivers = [self.receive() for _ in range(10)]
        receivers[0].answer = receivers[0].hang
        client = self.connect(server)
        for number, receiver in enumerate(receivers):
            self.hook(server, f"own{number}", receiver)
        start = harness.now_ms()
        for n in range(50):
            client.ask_all([("PUSH", f"own{r}", "0", "x", "ID", f"topic{r}.{n}", "AT", f"{(start + 20 * n) / 1000:.3f}")
                            for r in range(10)] +
                           [("PUSH", "mixed", "0", "x", "ID", f"job{r}.{n}", "AT", f"{(start + 20 * n) / 1000:.3f}",
                             "CALLBACK", receivers[r].url("/job")) for r in range(10)])
        for receiver in receivers[1:]:
            self.wait_for(lambda: len(receiver.jobs()) == 100, "the other nine got theirs")
        took = harness.now_ms() - start
        self.assertLess(took, 20_000, "while one hangs")
        receivers[0].released.set()
        self.wait_for(lambda: len(receivers[0].jobs()) == 100, "and it, when it is well again")

    def test_figures(self):
        server = self.serve()
        receiver = self.receive(lambda seen, times: (200 if times == 2 else 500, {}, b""))
        self.hook(server, "t", receiver)
        self.push(server, "t", id="a")
        self.wait_for_state(server, "t", "a", "done")
        text = read_text(server, "/metrics")
        self.assertIn('delayq_webhook_calls_total{result="2xx"} 1\n', text)
        self.assertIn('delayq_webhook_calls_total{result="5xx"} 1\n', text)
        self.assertIn('delayq_webhook_jobs_total{outcome="delivered"} 1\n', text)
        self.assertIn("delayq_webhook_in_flight 0\n", text)
        self.assertIn("delayq_webhook_call_seconds_count 2\n", text)


if __name__ == "__main__":
    harness.main()
