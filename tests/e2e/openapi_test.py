"""The description and the server, compared in both directions: routes, fields, answers, examples."""
import hashlib
import http.client
import json
import socket
import threading
import urllib.parse

import harness
import openapi
import webhook_test

UNKNOWN = "no_such_name"
NEEDS_A_BROKEN_DISK = {"DamagedLine.topic", "DamagedLine.state", "DamagedLine.damaged", "JobLine.outcome_base64",
                       "DamagedSchedule.name", "DamagedSchedule.problem", "DamagedScheduleLine.schedule", "DamagedScheduleLine.damaged"}
NEEDS_ANOTHER_SERVER = {"Schedule.problem",  # a zone that only that one knows
                        "TotalFigures.bodies_in_kafka"}  # one with the kafka engine

# Seen by Watching.
NEEDS_TOKENS_AND_CALLS = {"server 200.name"} | {f"WaitingPop.{name}" for name in ("client", "protocol", "token", "topics", "since", "until")} | {
    f"CalledHost.{name}" for name in ("host", "breaker", "open_until", "failures_in_a_row", "in_flight", "waiting", "calls", "failed", "latency_ms",
                                      "last_call_at")} | {"Job.delivery_problem", "server 200.sync_interval_ms", "server 200.limits.jobs", "server 200.limits.memory_bytes"} | {
    f"FailedCall.{name}" for name in ("at", "topic", "id", "host", "attempt", "dead", "status", "error", "took_ms")}


class Asking(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.description = openapi.Description()
        self.server = self.serve(*self.options())
        self.connection = self.open()

    def options(self):
        # Callbacks are asked for, and nobody is to be called.
        return ("--set", "limits.waiters=1", "--set", "limits.topics=40", "--set", "limits.schedules=2",
                "--set", "webhook.in_flight=0")

    def open(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=harness.DEADLINE)
        self.addCleanup(connection.close)
        return connection

    def ask(self, method, target, body=None, kind=openapi.JSON, connection=None, **headers):
        """Every answer is held against the description."""
        connection = connection or self.connection
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, data, {"Content-Type": kind, **headers})
        response = connection.getresponse()
        text = response.read()
        self.description.check(method, target, response, text)
        is_json = method != "HEAD" and response.headers["Content-Type"].endswith("json")
        return response, openapi.value_of(response.headers["Content-Type"], text) if is_json else text


class OpenApi(Asking):
    def test_the_server_answers_the_file(self):
        response, text = self.ask("GET", "/openapi.yaml")
        self.assertEqual(response.headers["Content-Type"], "application/yaml")
        self.assertEqual(text, openapi.FILE.read_bytes())

    def test_the_methods_of_every_path(self):
        for path in self.description.api["paths"]:
            described = {method for method, name, _ in self.description.operations() if name == path}
            response, _ = self.ask("OPTIONS", path.replace("{", "").replace("}", ""))
            self.assertEqual(response.status, 405)
            allowed = set(response.headers["Allow"].split(", "))
            self.assertEqual(allowed - {"HEAD"}, described, path)
            self.assertEqual("HEAD" in allowed, "GET" in described, path)

    def test_events_show_what_the_calls_do(self):
        self.ask("POST", "/v1/topics/a/jobs", {"body": 1})
        self.ask("HEAD", "/v1/events")
        self.connection.request("GET", "/v1/events?interval=1s")
        response = self.connection.getresponse()
        self.assertEqual((response.status, response.headers["Content-Type"]), (200, "text/event-stream"))
        schemas = {"stats": "TotalFigures", "topic": "TopicSummary"}
        while schemas:  # the connection has a deadline
            line = response.readline().decode().rstrip()
            if line.startswith("event: "):
                data = response.readline().decode().removeprefix("data: ")
                schema = schemas.pop(line.removeprefix("event: "), None)
                if schema:
                    self.description.check_value(schema, {"$ref": f"#/components/schemas/{schema}"}, json.loads(data), line)

    def known(self, method, target, body=None, kind=openapi.JSON):
        """What the server knows where it was asked something that nobody knows."""
        response, problem = self.ask(method, target, body, kind)
        self.assertEqual((response.status, problem["code"]), (400, "invalid"), f"{method} {target}: {problem}")
        self.assertEqual(problem["field"].rsplit(".", 1)[-1], UNKNOWN, f"{method} {target}: {problem}")
        self.assertEqual(len(problem["known"]), len(set(problem["known"])))
        return set(problem["known"])

    def test_the_query_parameters_of_every_call(self):
        for method, path, operation in self.description.operations():
            target = f"{self.description.example_target(path, operation)}?{UNKNOWN}=1"
            described = {one["name"] for one in self.description.parameters(path, operation, "query")}
            takes_bytes = "text/plain" in operation.get("requestBody", {}).get("content", {})
            body, kind = (b"x", "text/plain") if takes_bytes else (None, openapi.JSON)
            self.assertEqual(self.known(method, target, body, kind), described, f"{method} {path}")
            if takes_bytes:  # and with JSON there is no query
                response, _ = self.ask(method, target, {"body": 1})
                self.assertEqual(response.status, 400)

    def test_the_fields_of_every_call(self):
        for method, path, operation in self.description.operations():
            target = self.description.example_target(path, operation)
            content = operation.get("requestBody", {}).get("content", {}).get(openapi.JSON)
            if content is None:
                if method == "POST" and "requestBody" not in operation:
                    self.assertEqual(self.known(method, target, {UNKNOWN: 1}), set(), f"{method} {path}")
                continue
            schema = self.description.resolve(content["schema"])
            if schema["type"] == "array":
                _, answer = self.ask(method, target, [{UNKNOWN: 1}])
                fields = self.description.resolve(schema["items"])["properties"]
                self.assertEqual(set(answer["results"][0]["known"]), set(fields), f"{method} {path}")
                continue
            self.assertEqual(self.known(method, target, {UNKNOWN: 1}), set(schema["properties"]), f"{method} {path}")
            for name, member in schema["properties"].items():
                inner = self.description.resolve(member).get("properties")
                if inner:
                    self.assertEqual(self.known(method, target, {name: {UNKNOWN: 1}}), set(inner), f"{method} {path} {name}")

    def test_required_fields_are_required_and_no_others(self):
        for method, path, operation in self.description.operations():
            content = operation.get("requestBody", {}).get("content", {}).get(openapi.JSON)
            if content is None or self.description.resolve(content["schema"])["type"] == "array":
                continue
            target = self.description.example_target(path, operation)
            required = self.description.resolve(content["schema"]).get("required", [])
            response, answer = self.ask(method, target, {})
            self.assertEqual(answer.get("field") if response.status == 400 else None,
                             required[0] if required else ("delay" if operation["operationId"] == "reschedule" else None), path)

    def test_the_examples_are_what_they_show(self):
        for method, path, operation in self.description.operations():
            target = self.description.example_target(path, operation)
            for answer in map(self.description.resolve, operation["responses"].values()):
                for content in answer["content"].values():
                    if "example" in content:
                        self.assertTrue(self.description.is_valid(content["schema"], content["example"]), f"{method} {path}")
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                if "example" not in content or "wait" in content["example"]:
                    continue
                example = content["example"]
                self.assertTrue(self.description.is_valid(content["schema"], example), f"{method} {path}")
                response, answer = self.ask(method, target, example.encode() if isinstance(example, str) else example, kind)
                self.assertIn(response.status, (200, 201, 404), f"{method} {path}: {answer}")


class EveryMember(Asking):
    """All that an answer may have is seen in one; the story below makes each of them happen."""

    def pop(self, topic, **fields):
        return self.ask("POST", f"/v1/topics/{topic}/pop", fields)[1]["jobs"][0]

    def test_every_member_of_every_answer_is_seen(self):
        self.tell_of_producers()
        self.tell_of_consumers()
        self.tell_of_operators()
        self.tell_of_everything()
        self.tell_of_schedules()
        self.tell_of_bounds()
        unseen = self.description.members() - self.description.seen - NEEDS_A_BROKEN_DISK - NEEDS_ANOTHER_SERVER - NEEDS_TOKENS_AND_CALLS
        self.assertEqual(unseen, set(), "in the description, in no answer")

    def tell_of_producers(self):
        self.ask("POST", "/v1/topics/a/jobs", {"body": 1, "id": "x", "group": "g"})
        self.ask("POST", "/v1/topics/a/jobs", {"body": 1, "id": "x", "on_conflict": "keep"})
        self.ask("POST", "/v1/topics/a/jobs", {"body": 1, "id": "x"})
        self.ask("POST", "/v1/topics/a/jobs", {UNKNOWN: 1})
        self.ask("PUT", "/v1/topics/a/jobs/x", {"body": 2, "delay": 100, "group": "g"})
        self.ask("PATCH", "/v1/topics/a/jobs/x", {"delay": "1h"})
        self.ask("PATCH", "/v1/topics/a/jobs/none", {"delay": "1h"})
        self.ask("GET", "/v1/topics/a/jobs/x")
        self.ask("GET", "/v1/topics/a/jobs/none")
        self.ask("HEAD", "/v1/topics/a/jobs/x")
        self.ask("DELETE", "/v1/groups/g")
        self.ask("DELETE", "/v1/topics/a/jobs/x")
        self.ask("POST", "/v1/jobs", [{"topic": "a", "body": 1}, {"topic": "a", UNKNOWN: 1}, 7])
        self.ask("POST", "/v1/jobs", b'{"topic": "a", "body": 1}\n', "application/x-ndjson")
        self.ask("POST", "/v1/topics/a/jobs", b"\xff\xfe", "application/octet-stream")
        self.ask("POST", "/v1/jobs", [{}] * 10_001)
        for replayed in (None, "true"):
            response, _ = self.ask("POST", "/v1/topics/a/jobs", {"body": 1}, Idempotency_Key="k")
            self.assertEqual(response.headers["Idempotency-Replayed"], replayed)
        response, problem = self.ask("POST", "/v1/topics/a/jobs", {"body": 2}, Idempotency_Key="k")
        self.assertEqual((response.status, problem["field"]), (409, "Idempotency-Key"))

    def tell_of_consumers(self):
        self.ask("POST", "/v1/topics/a/pop", {"count": 10, "ack": "auto"})
        self.ask("POST", "/v1/topics/b/jobs?id=raw", b"\xff", "application/octet-stream")
        self.ask("GET", "/v1/topics/b/jobs/raw")
        self.ask("POST", "/v1/topics/b/jobs", {"body": 1, "id": "last", "attempts": 1, "lease": "1m"})
        self.ask("GET", "/v1/topics/b")
        self.ask("GET", "/v1/stats")
        self.ask("GET", "/v1/topics")
        self.assertEqual(self.ask("GET", "/v1/jobs/raw")[1]["topic"], "b")
        self.assertEqual(self.ask("GET", "/v1/jobs/none")[0].status, 404)
        for path in ("consumers", "callbacks", "server"):
            self.ask("GET", f"/v1/{path}")
        raw, last = self.pop("b"), self.pop("b")
        self.ask("GET", "/v1/topics/b")
        self.ask("GET", "/v1/topics")
        self.ask("DELETE", "/v1/topics/b/jobs/last")
        self.ask("GET", "/v1/topics/b/jobs/last")
        self.ask("POST", "/v1/extend", {"leases": [last["lease"], "b/none", "nonsense"], "lease": "2m"})
        self.ask("POST", "/v1/nack", {"leases": [last["lease"], raw["lease"], raw["lease"]], "delay": 0, "reason": "no"})
        self.ask("POST", "/v1/nack", {"leases": [self.pop("b", wait=10)["lease"]], "dead": True, "reason": "no bank"})
        self.ask("GET", "/v1/topics/b/jobs?state=dead&bodies=true")
        self.ask("POST", "/v1/topics/b/redrive", {"error": "bank"})
        self.ask("POST", "/v1/ack", {"leases": [self.pop("b")["lease"], "b/none"]})
        self.ask("GET", "/v1/topics/b/jobs/raw")
        self.ask("POST", "/v1/pop", {"topics": ["a", "b"]})

    def tell_of_operators(self):
        self.ask("PATCH", "/v1/topics/a", {"attempts": 3, "keep_done": {"time": "1h"}, "rate": {"count": 5}})
        self.ask("PATCH", "/v1/topics/*", {"attempts": 4, "delivery": "redis_list"})  # and there is no Redis
        self.ask("GET", "/v1/topics/a")
        self.ask("PATCH", "/v1/topics/*", {"delivery": "pull"})
        self.ask("POST", "/v1/topics/a/pause")
        self.ask("POST", "/v1/topics/a/resume", b"")
        self.ask("GET", "/v1/forecast?bins=3&topic=a")
        self.ask("POST", "/v1/topics/a/forget")
        self.ask("DELETE", "/v1/topics/a")
        self.ask("PATCH", "/v1/topics/b", {"attempts": None, "rate": None})
        self.ask("POST", "/v1/topics/nobody/forget")
        line = b'{"topic": "a", "id": "old", "state": "dead", "due_at": "2020-01-01T00:00:00Z", "body": 1, "kept_until": "2090-01-01T00:00:00Z"}'
        self.ask("POST", "/v1/import?on_conflict=keep", line + b"\n{}", openapi.LINES)
        self.ask("POST", "/v1/import", line.replace(b"2090", b"2027"), openapi.LINES)
        self.ask("GET", "/v1/export?limit=1")
        self.ask("GET", "/v1/export?topic=a&state=dead")
        self.ask("POST", "/v1/backups", {"name": "copy"})
        self.ask("POST", "/v1/backups", {"name": "copy"})
        self.ask("POST", "/v1/backups", {"name": "../copy"})
        for path in ("/healthz", "/readyz", "/openapi.yaml", "/metrics", "/nothing"):
            self.ask("GET", path)

    def tell_of_everything(self):
        settings = {"attempts": 1, "backoff": "1s", "lease": "1m", "keep_done": {"time": "1h", "count": 1}, "keep_dead": {"time": "1h", "count": 1},
                    "rate": {"count": 1, "per": "1s"}, "concurrency": 1, "paused": True, "priority": 1, "delivery": "pull",
                    "on_dead": "graves", "redis_key": "orders", "redis_content": "id", "redis_maxlen": 9,
                    "kafka_topic": "orders", "kafka_key": "group", "kafka_content": "job", "kafka_headers": "id",
                    "callback": "http://x", "callback_method": "PUT", "callback_timeout": "1s", "callback_format": "cloudevents"}
        labelled = {"topic": "e", "id": "n", "state": "delayed", "due_at": "2030-01-31T08:00:00Z", "body": 1, "name": "label", "is_notice": True,
                    "kafka_topic": "orders", "kafka_record_base64": "kQA="}
        lines = [{"topic": "e", "settings": settings}, {"topic": "e"}, labelled]
        self.ask("POST", "/v1/import", "".join(json.dumps(line) + "\n" for line in lines).encode(), openapi.LINES)
        said = {"id": "own", "group": "g", "attempts": 2, "backoff": "1s", "lease": "1m"}
        self.ask("POST", "/v1/topics/f/jobs", {"body": 1, "headers": {"traceparent": "00-1"}, **said})
        called = {"id": "called", "callback": "http://x", "callback_method": "PUT", "callback_format": "cloudevents",
                  "callback_headers": ["Authorization: Bearer b"]}
        self.ask("POST", "/v1/topics/h/jobs", {"body": 1, "headers": {"tenant": "acme"}, **called})
        self.assertEqual(self.ask("GET", "/v1/topics/h/jobs/called")[1]["callback_header_names"], ["Authorization"])
        for body in (b"text", b"\xff"):
            self.ask("POST", "/v1/topics/f/jobs", body, "text/plain")
        self.assertEqual(self.pop("f")["headers"], {"traceparent": "00-1"})
        self.ask("DELETE", "/v1/topics/f/jobs/own")
        self.ask("POST", "/v1/topics/g/jobs", {"body": 1})
        self.ask("POST", "/v1/nack", {"leases": [self.pop("g")["lease"]], "dead": True, "reason": "no"})
        response, _ = self.ask("GET", "/v1/export?limit=1")
        self.ask("GET", "/v1/export?cursor=" + urllib.parse.quote(response.headers["Delayq-Cursor"]))
        self.ask("GET", "/v1/export")
        self.ask("POST", "/v1/backups", {"name": "now"})

    def tell_of_schedules(self):
        said = {"group": "g", "priority": 1, "attempts": 2, "backoff": "1s", "lease": "1m",
                "callback": "http://x", "callback_method": "PUT", "callback_format": "cloudevents", "headers": {"tenant": "acme"},
                "callback_headers": ["Authorization: Bearer b"]}
        rule = {"cron": "* * * * * *", "zone": "Asia/Shanghai", "start": "2020-01-01T00:00:00Z", "end": "2090-01-01T00:00:00Z",
                "runs": 1, "jitter": "1ms", "overlap": "skip", "missed": "all"}
        for status in (201, 200):
            response, _ = self.ask("PUT", "/v1/schedules/s", {"topic": "s", "body": 1, **rule, **said})
            self.assertEqual(response.status, status)
        self.wait_for(lambda: "previous" in self.ask("GET", "/v1/schedules/s")[1], "an occurrence")
        self.wait_for(lambda: self.ask("GET", "/v1/schedules/s")[1]["state"] == "ended", "there is one run")
        for body in (b"text", b"\xff"):
            self.ask("PUT", "/v1/schedules/raw?every=1h&topic=s", body, "text/plain")
        for verb in ("pause", "resume", "run"):
            self.ask("POST", f"/v1/schedules/raw/{verb}")
            self.ask("POST", f"/v1/schedules/none/{verb}")
        self.ask("POST", "/v1/schedules/raw/run", Idempotency_Key="run")
        self.ask("GET", "/v1/schedules?bodies=true&limit=1")
        self.ask("GET", "/v1/schedules?cursor=raw")
        self.ask("GET", "/v1/schedules/preview?cron=@daily&zone=Europe/Berlin&count=1000")
        self.ask("GET", "/v1/schedules/preview?count=100000")
        self.ask("GET", "/v1/forecast?bins=3")
        self.ask("PUT", "/v1/schedules/none", {"topic": "s", "body": 1, "cron": "0 0 30 2 *"})
        self.ask("PUT", "/v1/schedules/a%2Fb", {"topic": "s", "body": 1, "every": "1h"})
        self.ask("GET", "/v1/schedules/none")
        self.tell_of_moved_schedules()
        for status in (200, 404):
            self.assertEqual(self.ask("DELETE", "/v1/schedules/raw")[0].status, status)
        response, problem = self.ask("PUT", "/v1/schedules/second", {"topic": "s", "body": 1, "every": "1h"})
        self.assertEqual(response.status, 201)
        response, problem = self.ask("PUT", "/v1/schedules/third", {"topic": "s", "body": 1, "every": "1h"})
        self.assertEqual((response.status, problem["code"]), (429, "overloaded"))
        self.assertIn("limits.schedules", problem["detail"])
        self.assertEqual(self.ask("GET", "/v1/schedules/third")[0].status, 404)

    def tell_of_moved_schedules(self):
        for body in (b"text", b"\xff"):
            self.ask("PUT", "/v1/schedules/raw?every=1h&topic=s", body, "text/plain")
            self.ask("GET", "/v1/export")
        progress = {"created_at": "2020-01-01T00:00:00Z", "decided_until": "2020-01-01T00:00:00Z", "made": 1, "skipped": 1, "missed": 1,
                    "previous_at": "2020-01-01T00:00:00Z", "previous_topic": "s", "catch_up_until": "2020-01-01T00:00:00Z", "paused": True}
        line = {"schedule": "s", "topic": "s", "cron": "@daily", "zone": "UTC", "runs": 9, "start": "2020-01-01T00:00:00Z", "end": "2090-01-01T00:00:00Z",
                "jitter": "1s", "overlap": "skip", "missed": "all", "priority": 1, "group": "g", "body": 1, "max_attempts": 1, "backoff": "1s",
                "lease": "1m", "callback": "http://x", "callback_method": "PUT", "callback_format": "cloudevents", "callback_headers": ["Authorization: Bearer b"], "content_type": "text/plain",
                "name": "label", "headers": {"tenant": "acme"}, "from_configuration": True, "progress": progress}
        lines = [line, {"schedule": "s", "moving": True}]
        _, answer = self.ask("POST", "/v1/import?on_conflict=replace", "".join(json.dumps(one) + "\n" for one in lines).encode(), openapi.LINES)
        self.assertEqual([one["result"] for one in answer["results"]], ["replaced", "replaced"])
        self.ask("GET", "/v1/schedules/s")
        self.ask("GET", "/v1/export")

    def tell_of_bounds(self):
        waiter = self.open()
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(self.ask("POST", "/v1/topics/w/pop", {"wait": "60s"}, connection=waiter)))
        thread.start()
        self.wait_for(lambda: self.ask("GET", "/v1/stats")[1]["waiters"] == 1, "it waits")
        response, problem = self.ask("POST", "/v1/topics/w/pop")
        self.assertEqual((response.status, int(response.headers["Retry-After"])), (429, problem["retry_after_ms"] / 1000))
        self.ask("POST", "/v1/topics/w/jobs", {"body": 1})
        thread.join(harness.DEADLINE)
        self.assertEqual(answers[0][1]["jobs"][0]["body"], 1)
        _, answer = self.ask("POST", "/v1/jobs", [{"topic": f"t{i}", "body": 1} for i in range(50)])
        self.assertEqual(answer["results"][-1]["code"], "overloaded")
        self.assertGreater(answer["results"][-1]["retry_after_ms"], 0)


class Watching(Asking):
    """Consumers that wait, hosts that are called, and the caller itself."""

    def options(self):
        config = self.directory / "delayq.toml"
        config.write_text(f'[[tokens]]\nname = "shop"\nscopes = ["push", "consume", "read"]\ntopics = ["*"]\n'
                          f'sha256 = "{hashlib.sha256(b"secret").hexdigest()}"\n')
        return ("--config", str(config), "--set", "webhook.breaker_failures=1", "--set", "journal.durability=interval",
                "--set", "limits.jobs=100000", "--set", "limits.memory=1GiB")

    def ask(self, method, target, body=None, kind=openapi.JSON, connection=None, **headers):
        return super().ask(method, target, body, kind, connection, Authorization="Bearer secret", **headers)

    def test_the_server_and_the_caller(self):
        _, answer = self.ask("GET", "/v1/server")
        self.assertEqual((answer["engine"], answer["tokens"], answer["name"], answer["scopes"], answer["topics"]),
                         ("journal", True, "shop", ["push", "consume", "read"], ["*"]))
        self.assertEqual(answer["resp"], f"127.0.0.1:{self.server.port}")

    def test_consumers_that_wait(self):
        waiter, client = self.open(), self.connect(self.server)
        client.ask("AUTH", "secret")
        client.send(("POP", "a", "b", "WAIT", "60s"))
        self.wait_for(lambda: self.ask("GET", "/v1/consumers")[1]["waiting_total"] == 1, "one waits")
        thread = threading.Thread(target=lambda: self.ask("POST", "/v1/topics/c/pop", {"wait": "60s"}, connection=waiter))
        thread.start()
        self.wait_for(lambda: self.ask("GET", "/v1/consumers")[1]["waiting_total"] == 2, "two wait")
        _, answer = self.ask("GET", "/v1/consumers")
        self.assertEqual([(one["protocol"], one["token"], one["topics"]) for one in answer["waiting"]],
                         [("resp", "shop", ["a", "b"]), ("http", "shop", ["c"])])
        self.assertGreaterEqual(answer["connections"], 3)
        _, answer = self.ask("GET", "/v1/consumers?limit=1")
        self.assertEqual((len(answer["waiting"]), answer["waiting_total"]), (1, 2))
        for limit in (0, 1001):
            response, problem = self.ask("GET", f"/v1/consumers?limit={limit}")
            self.assertEqual((response.status, problem["field"]), (400, "limit"))
        for topic in ("a", "c"):
            self.ask("POST", f"/v1/topics/{topic}/jobs", {"body": 1})
        thread.join(harness.DEADLINE)
        client.read()
        self.assertEqual(self.ask("GET", "/v1/consumers")[1]["waiting_total"], 0)
        self.assertGreaterEqual(self.description.seen, {one for one in NEEDS_TOKENS_AND_CALLS if one.startswith("WaitingPop")})

    def test_hosts_that_are_called(self):
        receiver = webhook_test.Receiver(lambda seen, times: (503 if b"bad" in seen.body else 200, {}, b""))
        self.addCleanup(receiver.stop)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = free.getsockname()[1]
        self.ask("POST", "/v1/topics/h/jobs", {"body": "good", "id": "good", "callback": receiver.url()})
        self.wait_for(lambda: self.ask("GET", "/v1/callbacks")[1]["delivered"] == 1, "the good one")
        self.ask("POST", "/v1/topics/h/jobs", {"body": "x", "id": "nobody", "callback": f"http://127.0.0.1:{nobody}/"})
        self.wait_for(lambda: len(self.ask("GET", "/v1/callbacks")[1]["failures"]) == 1, "nobody listens")
        self.ask("POST", "/v1/topics/h/jobs", {"body": "bad", "id": "bad", "callback": receiver.url()})
        self.wait_for(lambda: len(self.ask("GET", "/v1/callbacks")[1]["failures"]) == 2, "the bad one")
        _, answer = self.ask("GET", "/v1/callbacks")
        self.assertEqual([(one["id"], one.get("status"), one.get("error")) for one in answer["failures"]], [("bad", 503, None), ("nobody", None, "connect")])
        hosts = {one["host"]: one for one in answer["hosts"]}
        self.assertEqual({(one["breaker"], one["calls"], one["failed"]) for one in hosts.values()}, {("open", 1, 1), ("open", 2, 1)})
        self.assertEqual(len(self.ask("GET", "/v1/callbacks?limit=1")[1]["hosts"]), 1)
        self.assertIn("is not called now", self.ask("GET", "/v1/topics/h/jobs/bad")[1]["delivery_problem"])
        self.ask("GET", "/v1/server")
        seen = self.description.seen
        self.assertEqual({one for one in NEEDS_TOKENS_AND_CALLS if not one.startswith("WaitingPop")} - seen, set())


class Scopes(Asking):
    """Who may what is as the description says it."""
    SCOPES = ("push", "consume", "read", "schedule", "admin")

    def options(self):
        tokens = "".join(f'[[tokens]]\nname = "{scope}"\nscopes = ["{scope}"]\ntopics = ["*"]\n'
                         f'sha256 = "{hashlib.sha256(scope.encode()).hexdigest()}"\n' for scope in self.SCOPES)
        config = self.directory / "delayq.toml"
        config.write_text(tokens)
        return ("--config", str(config))

    def test_the_scopes_of_every_call(self):
        for method, path, operation in self.description.operations():
            target = f"{self.description.example_target(path, operation)}?{UNKNOWN}=1"
            described = {scope for way in operation["security"] for scopes in way.values() for scope in scopes}
            for scope in self.SCOPES:
                response, _ = self.ask(method, target, Authorization=f"Bearer {scope}")
                is_allowed = scope in described | {"admin"} or not operation["security"]
                self.assertEqual(response.status, 400 if is_allowed else 403, f"{method} {path} with {scope}")
            response, _ = self.ask(method, target)
            self.assertEqual(response.status, 401 if operation["security"] else 400, f"{method} {path} without a token")
            self.assertEqual("WWW-Authenticate" in response.headers, response.status == 401)


if __name__ == "__main__":
    harness.main()
