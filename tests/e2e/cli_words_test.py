"""What the command line prints: JSON with HTTP's names and shapes, and messages in the words that were typed."""
import http.client
import json
import signal

import cli_test
import harness
import openapi


class HttpTooTest(cli_test.CliTest):
    def setUp(self):
        super().setUp()
        self.description = openapi.Description()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=harness.DEADLINE)
        self.addCleanup(self.connection.close)

    def ask(self, method, path, body=None, content_type="application/json"):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": content_type})
        response = self.connection.getresponse()
        text = response.read()
        self.description.check(method, path, response, text)
        return json.loads(text)

    def cli(self, *words, stdin="", code=0):
        """The lines of JSON that it prints."""
        done = self.run_cli(*words, stdin=stdin)
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, *words, code=2, stdin=""):
        done = self.run_cli(*words, stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        return done.stderr


class SameJsonTest(HttpTooTest):
    """One fact has one shape, whoever tells it."""

    def same(self, words, path):
        [shown] = self.cli(*words)
        self.assertEqual(shown, self.ask("GET", path))
        return shown

    def test_a_job(self):
        bodies = {"number": "17", "object": '{"a":\n[1, "x"]}', "text": "plain \u4e2d\u6587", "empty": "", "text17": '"17"'}
        for name, body in bodies.items():
            self.client.ask("PUSH", "order", "1h", body, "ID", name)
            self.same(("get", "order", name), f"/v1/topics/order/jobs/{name}")
        self.client.ask("PUSH", "order", "1h", b"\xff\x00", "ID", "bytes")
        self.assertEqual(self.same(("get", "order", "bytes"), "/v1/topics/order/jobs/bytes")["body_base64"], "/wA=")
        self.ask("POST", "/v1/topics/order/jobs?id=typed&delay=1h", b'{"a":1}', "application/vnd.x+json; v=1")
        self.assertEqual(self.same(("get", "order", "typed"), "/v1/topics/order/jobs/typed")["body"], '{"a":1}')

    def test_a_job_with_all_its_options_in_each_state(self):
        self.client.ask("PUSH", "order", "1h", "x", "ID", "12", "GROUP", "7", "PRI", "3", "HEADER", "trace", "1",
                        "CALLBACK", "http://127.0.0.1:1/", "CALLBACKHEADER", "Authorization", "Bearer hidden")
        shown = self.same(("get", "order", "12"), "/v1/topics/order/jobs/12")
        self.assertEqual((shown["id"], shown["group"], shown["callback_header_names"]), ("12", "7", ["Authorization"]))
        self.assertNotIn("hidden", self.run_cli("get", "order", "12").stdout)
        self.client.ask("PUSH", "mail", "0", "x", "ID", "a", "ATTEMPTS", "1")
        self.same(("get", "mail", "a"), "/v1/topics/mail/jobs/a")
        [[lease, *_]] = self.client.ask("POP", "mail")
        self.client.ask("CANCEL", "mail", "a")
        shown = self.same(("get", "mail", "a"), "/v1/topics/mail/jobs/a")
        self.assertTrue(shown["cancel_requested"] and shown["lease_until"])
        self.client.ask("PUSH", "mail", "0", "x", "ID", "b")
        self.client.ask("NACK", lease)
        [[lease, *_]] = self.client.ask("POP", "mail")
        self.client.ask("NACK", lease, "DEAD", "REASON", "closed")
        self.assertEqual(self.same(("get", "mail", "b"), "/v1/topics/mail/jobs/b")["outcome"], "closed")
        listed = self.ask("GET", "/v1/topics/mail/jobs?state=dead")["jobs"]
        self.assertEqual(self.cli("dead", "mail"), listed)

    def test_topics_and_figures(self):
        self.client.ask("PUSH", "order", "0", "x")
        self.client.ask("PUSH", "mail", "1h", "x")
        self.client.ask("PAUSE", "mail")
        self.client.ask("POP", "order")
        self.assertEqual(self.cli("topics"), self.ask("GET", "/v1/topics")["topics"])
        self.client.ask("SETTINGS", "SET", "mail", "rate", "5/1m", "keep_done.count", "7", "callback_secrets", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        for topic in ("order", "mail", "unused"):
            self.same(("stats", topic), f"/v1/topics/{topic}")
        [shown], told = self.cli("stats"), self.ask("GET", "/v1/stats")
        for figures in (shown, told):
            self.assertGreater(figures.pop("disk_free_bytes"), 0)
            for moving in ("memory_bytes", "disk_bytes", "live_bytes", "unsynced_bytes", "commits"):
                figures.pop(moving)
        self.assertEqual(shown, told)

    def test_push_and_pop_and_what_follows(self):
        [pushed] = self.cli("push", "order", "1h", "x", "--id", "a")
        self.assertEqual(pushed, {"topic": "order", "id": "a", "state": "delayed", "due_at": pushed["due_at"], "result": "created"})
        again = self.ask("POST", "/v1/topics/order/jobs", {"id": "a", "body": 1, "on_conflict": "keep"})
        self.assertEqual(again, {**pushed, "result": "kept"})
        self.assertEqual(self.cli("push", "order", "2h", "y", "--id", "a", "--keep"), [again])
        replaced = self.ask("PUT", "/v1/topics/order/jobs/a", {"body": {"b": 1}})
        self.assertEqual(replaced["result"], "replaced")
        self.client.ask("PUSH", "order", "0", '{"c":2}', "ID", "b", "HEADER", "n", "5")
        [of_http, *_] = self.ask("POST", "/v1/topics/order/pop", {})["jobs"]
        [of_cli] = self.cli("pop", "order")
        self.assertEqual((of_http["id"], of_http["body"], of_cli["id"], of_cli["body"]), ("a", {"b": 1}, "b", {"c": 2}))
        self.assertEqual(set(of_cli) - set(of_http), {"headers"})
        self.assertEqual(of_cli["lease_until"], self.ask("GET", "/v1/topics/order/jobs/b")["lease_until"])

        [extended] = self.cli("extend", of_cli["lease"], "5m")
        told = self.ask("POST", "/v1/extend", {"leases": [of_http["lease"]], "lease": "5m"})["results"][0]
        self.assertEqual((set(extended), extended["result"]), (set(told), told["result"]))
        [retried] = self.cli("nack", of_cli["lease"], "--delay", "1h")
        told = self.ask("POST", "/v1/nack", {"leases": [of_http["lease"]], "delay": "1h"})["results"][0]
        self.assertEqual((set(retried), retried["result"]), (set(told), "retried"))
        self.client.ask("PUSH", "other", "0", "x")
        [popped] = self.cli("pop", "other")
        self.assertEqual(self.cli("nack", popped["lease"], "--dead"), [{"result": "dead"}])
        self.client.ask("PUSH", "other", "0", "x")
        [popped] = self.cli("pop", "other")
        leases = [popped["lease"], of_cli["lease"]]
        acked = self.cli("ack", *leases, code=6)
        self.assertEqual(acked[0], {"result": "acked"})
        self.assertEqual(acked[1], self.ask("POST", "/v1/ack", {"leases": [of_cli["lease"]]})["results"][0])

    def test_verbs_that_change_something(self):
        for topic in ("a", "b"):
            self.client.ask("PUSH", topic, "1h", "x", "ID", "1", "GROUP", "g")
        self.assertEqual(self.cli("reschedule", "a", "1", "2h"), [self.ask("PATCH", "/v1/topics/b/jobs/1", {"delay": "2h"})])
        self.assertEqual(self.cli("pause", "a"), [self.ask("POST", "/v1/topics/b/pause")])
        self.assertEqual(self.cli("resume", "a"), [self.ask("POST", "/v1/topics/b/resume")])
        self.assertEqual(self.cli("redrive", "a"), [self.ask("POST", "/v1/topics/b/redrive")])
        self.assertEqual(self.cli("cancel", "a", "1"), [self.ask("DELETE", "/v1/topics/b/jobs/1")])
        self.assertEqual(self.cli("cancel", "--group", "none"), [self.ask("DELETE", "/v1/groups/none")])

    def test_a_schedule(self):
        self.cli("schedule", "set", "nightly", '{"kind":"daily"}', "--cron", "0 2 * * *", "--topic", "report", "--runs", "9",
                 "--start", "2030-01-31T08:00:00Z", "--callback", "http://127.0.0.1:1/", "--callback-method", "PUT",
                 "--callback-format", "cloudevents", "--header", "n=5", "--attempts", "3", "--jitter", "5s")
        self.cli("schedule", "set", "often", "x", "--every", "1h", "--topic", "report")
        for name in ("nightly", "often"):
            self.same(("schedule", "show", name), f"/v1/schedules/{name}")
        self.assertEqual(self.cli("schedule", "list"), self.ask("GET", "/v1/schedules")["schedules"])
        [ran] = self.cli("schedule", "run", "often")
        self.assertEqual(set(ran), set(self.ask("POST", "/v1/schedules/often/run")))
        self.assertEqual(self.cli("schedule", "remove", "often"), [self.ask("DELETE", "/v1/schedules/nightly")])


class SettingsTest(HttpTooTest):
    SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    def test_from_set_to_unset(self):
        self.assertEqual(self.cli("settings", "set", "order", "attempts", "5", "backoff", "10s,1m", "rate", "100/1s",
                                  "keep_done.time", "1d", "paused", "true"), [{"result": "ok"}])
        told = self.ask("GET", "/v1/topics/order")["settings"]
        self.assertEqual(self.cli("settings", "get", "order"), [told])
        self.assertEqual((told["rate"], told["keep_done"]), ("100/1s", {"time": "1d", "count": 1000}))
        self.assertEqual(self.cli("settings", "get", "order", "rate", "keep_done"), [{"rate": "100/1s", "keep_done": told["keep_done"]}])
        own = {"attempts": 5, "backoff": "10s,1m", "keep_done": {"time": "1d"}, "rate": "100/1s", "paused": True}
        self.assertEqual(self.cli("settings", "get", "order", "--own"), [own])
        self.cli("settings", "unset", "order", "attempts", "rate")
        self.assertEqual(set(self.cli("settings", "get", "order", "--own")[0]), {"backoff", "keep_done", "paused"})
        self.assertIn("--all", self.refused("settings", "unset", "order"))
        self.cli("settings", "unset", "order", "--all")
        self.assertEqual(self.cli("settings", "get", "order", "--own"), [{}])

    def test_the_defaults(self):
        self.cli("settings", "set", "*", "lease", "2m")
        self.assertEqual(self.cli("settings", "get", "order", "lease"), [{"lease": "2m"}])
        self.assertEqual(self.cli("settings", "get", "*", "--own"), [{"lease": "2m"}])
        self.cli("settings", "unset", "*", "lease")
        self.assertEqual(self.cli("settings", "get", "*", "lease"), [{"lease": "1m"}])

    def test_all_or_none_is_changed(self):
        error = self.refused("settings", "set", "order", "attempts", "5", "lease", "1ms")
        self.assertIn("lease 1ms is out of range", error)
        self.assertEqual(self.cli("settings", "get", "order", "--own"), [{}])
        for words, expected in ((("atempts", "5"), "did you mean attempts?"), (("attempts", "many"), 'attempts: expected a whole number, got "many"'),
                                (("attempts", "-1"), 'attempts: expected a whole number, got "-1"'),
                                (("attempts",), "a value is missing"), (("keep_done", "1h"), "say keep_done.time or keep_done.count"),
                                (("rate", "100"), 'rate: "100" is not a rate: use "100/1s"'), (("paused", "maybe"), "true or false"),
                                (("delivery", "post"), "pull")):
            self.assertIn(expected, self.refused("settings", "set", "order", *words))

    def test_secrets_are_never_shown(self):
        self.cli("settings", "set", "order", "callback_secrets", "-", stdin=self.SECRET + "\n")
        self.cli("settings", "set", "order", "callback_headers", json.dumps(["Authorization: Bearer a, b", "X-K: 2"]))
        [own] = self.cli("settings", "get", "order", "--own")
        self.assertEqual(own, {"callback_secret_count": 1, "callback_header_count": 2})
        for value in ("whsec_tooshort!", '["whsec_tooshort!"]', "[whsec_tooshort!"):
            self.assertNotIn("tooshort", self.refused("settings", "set", "order", "callback_secrets", value))

    def test_a_rate_is_written_in_one_way(self):
        for written in ("100/1s", {"count": 100, "per": "1s"}):
            self.ask("PATCH", "/v1/topics/order", {"rate": written})
            self.assertEqual(self.ask("GET", "/v1/topics/order")["settings"]["rate"], "100/1s")
        self.ask("PATCH", "/v1/topics/order", {"rate": "0"})
        self.assertEqual(self.cli("settings", "get", "order", "rate"), [{"rate": "0"}])
        lines = self.run_cli("export").stdout
        self.assertIn('"rate":"0"', lines)
        older = '{"topic":"old","settings":{"rate":{"count":3,"per":"2s"}}}\n'
        done = self.run_cli("import", "-", stdin=older)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.cli("settings", "get", "old", "rate"), [{"rate": "3/2s"}])


class TypedWordsTest(HttpTooTest):
    def test_errors_name_what_was_typed(self):
        for words, expected in (
                (("push", "order", "0", "x", "--priority", "soon"), '--priority: "soon" is not a whole number'),
                (("push", "order", "0", "x", "--priority", "99999999999"), "--priority: 99999999999"),
                (("push", "order", "0", "x", "--priority", "-1"), '--priority: "-1" is not a whole number'),
                (("push", "order", "0", "x", "--attempts", "99999999"), "--attempts 99999999 is out of range"),
                (("push", "order", "0", "x", "--backoff", "never"), '--backoff: "never"'),
                (("push", "order", "0", "x", "--callback-format", "soap"), "--callback-format: "),
                (("push", "order", "0", "x", "--callback", "gopher://x"), "--callback"),
                (("push", "order", "soon", "x"), 'DELAY: "soon" is not a duration'),
                (("push", "order", "-5s", "x"), 'DELAY: "-5s" is negative'),
                (("push", "order", "x", "--at", "yesterday"), '--at: "yesterday" is not a moment'),
                (("push", "a b", "0", "x"), 'TOPIC "a b"'),
                (("push", "order", "0", "x", "--id", ""), "--id is empty"),
                (("nack", "order/1", "--delay", "-1s"), '--delay: "-1s" is negative'),
                (("nack", "nonsense"), 'LEASE "nonsense"'),
                (("pop", "order", "--count", "many"), '--count: "many"'),
                (("pop", "order", "--lease", "1ms"), "--lease 1ms is out of range"),
                (("reschedule", "order", "a", "--", "-5s"), 'DELAY: "-5s" is negative'),
                (("schedule", "set", "n", "x", "--cron", "x", "--topic", "t"), '"x" is not a cron rule'),
                (("schedule", "set", "n", "x", "--every", "1s", "--topic", "t"), "--every")):
            self.assertIn(f"delayq {words[0] if words[0] != 'schedule' else 'schedule set'}: invalid: {expected}", self.refused(*words))

    def test_an_id_that_is_there_names_the_way_out(self):
        self.cli("push", "order", "1h", "x", "--id", "a")
        error = self.refused("push", "order", "1h", "x", "--id", "a", code=4)
        self.assertIn('--id "a" is already delayed', error)
        self.assertIn("--on-conflict replace", error)
        self.assertEqual(self.cli("push", "order", "2h", "y", "--id", "a", "--on-conflict", "keep")[0]["result"], "kept")
        self.assertEqual(self.cli("push", "order", "2h", "y", "--id", "a", "--on-conflict", "replace")[0]["result"], "replaced")
        self.refused("push", "order", "1h", "x", "--id", "a", "--on-conflict", "reject", code=4)
        self.refused("push", "other", "1h", "x", "--id", "a", "--unique", code=4)
        self.assertEqual(self.cli("push", "other", "1h", "x", "--id", "a")[0]["result"], "created")
        code, said = self.run_on_terminal("push", "order", "1h", "x", "--id", "a", "--keep")
        self.assertEqual((code, said), (0, "a kept\n"))
        code, said = self.run_on_terminal("push", "order", "1h", "x", "--id", "new")
        self.assertEqual((code, said), (0, "new\n"))

    def test_what_became_of_a_nack(self):
        self.client.ask("PUSH", "order", "0", "x")
        [popped] = self.cli("pop", "order")
        code, said = self.run_on_terminal("nack", popped["lease"], "--delay", "1h")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"^retried at \d{4}-\d\d-\d\dT[\d:.]+Z, in (59m59s|1h)\n$")
        self.client.ask("PUSH", "order", "0", "x")
        [popped] = self.cli("pop", "order")
        self.assertEqual(self.run_on_terminal("nack", popped["lease"], "--dead"), (0, "dead\n"))

    def test_redrive_of_one_error(self):
        for name, reason in (("a", "timeout"), ("b", "closed"), ("c", "read timeout")):
            self.client.ask("PUSH", "order", "0", "x", "ID", name)
            [[lease, *_]] = self.client.ask("POP", "order")
            self.client.ask("NACK", lease, "DEAD", "REASON", reason)
        self.assertEqual(self.cli("redrive", "order", "--error", "timeout"), [{"jobs": 2}])
        self.assertEqual(self.state("order", "b")["state"], b"dead")
        self.refused("redrive", "order", "b", "--error", "x")

    def test_an_address_of_http(self):
        error = self.refused("topics", "--server", f"http://127.0.0.1:{self.server.http_port}")
        self.assertIn("--server 127.0.0.1:9278", error)
        error = self.refused("topics", "--server", f"127.0.0.1:{self.server.http_port}", code=9)
        self.assertIn("speaks HTTP; name the port of RESP", error)
        self.assertEqual(self.cli("topics", "--server", f"redis://127.0.0.1:{self.server.port}"), [])

    def test_no_step_of_the_program_is_shown(self):
        blocked = self.directory / "file"
        blocked.write_text("x", encoding="utf-8")
        for words in (("check", str(self.directory / "none")), ("check", str(blocked)), ("serve", "--data", str(blocked / "x")),
                      ("export", "--data", str(blocked))):
            error = self.run_cli(*words).stderr
            self.assertNotRegex(error, r"(?m)(disk|journal)\.[a-z]+:|: (check|open): ", words)
            self.assertRegex(error, r"(?m)^(delayq [a-z]+: [a-z_]+: |server\.data: )", words)


class SecondSignalTest(cli_test.CliTest):
    def test_a_command_that_ignores_the_first_is_ended(self):
        started = self.directory / "started"
        process = self.start_cli("pop", "order", "--forever", "--exec", f"trap '' TERM; touch {started}; while :; do sleep 1; done")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        self.wait_for_file(started)
        process.send_signal(signal.SIGINT)
        self.assertIn("waiting for 1 command to end (order a); a second Ctrl-C ends them at once", process.stderr.readline())
        begun = harness.now_ms()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.assertLess(harness.now_ms() - begun, 10_000, "it did not wait for the command's ten minutes")
        self.assertIn("killed by signal 9", self.state("order", "a")["outcome"].decode())

    def test_a_server_that_hangs_does_not_hold_it(self):
        started = self.directory / "started"
        process = self.start_cli("pop", "order", "--forever", "--exec", f"touch {started}; exec sleep 600")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        self.wait_for_file(started)
        self.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.process.send_signal, signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.DEADLINE), 130)
        self.assertIn("when their leases expire", process.stderr.read())


if __name__ == "__main__":
    harness.main()
