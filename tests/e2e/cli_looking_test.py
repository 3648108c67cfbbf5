"""The verbs of the delayq command that look and clear up: list, purge, topics rm, forecast, events, consumers, doctor."""
import fcntl
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

import cli_test
import harness
import redis_harness

# What a reason may have that would turn the direction of a terminal's text.
HOSTILE = "gotcha\u202e\u2066\t"


class LookingTest(cli_test.CliTest):
    def lines(self, *words):
        done = self.run_cli(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, code, said, *words):
        done = self.run_cli(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(said, done.stderr)

    def start_on_terminal(self, *words):
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 100, 0, 0))
        process = subprocess.Popen([harness.PROGRAM, *words], stdin=slave, stdout=slave, stderr=slave,
                                   env={**cli_test.environment(self.server), "TERM": "xterm"})
        os.close(slave)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait(harness.DEADLINE)))
        self.screen = b""
        return master, process

    def read_until(self, master, wanted):
        deadline = time.monotonic() + harness.DEADLINE
        seen = b""
        while wanted not in seen:
            self.assertLess(time.monotonic(), deadline, f"never: {wanted}; the screen: {seen[-2000:]}")
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 1 << 16)
        self.screen += seen


class ListTest(LookingTest):
    def fill(self):
        self.client.ask_all([("PUSH", "order", "1h", "x", "ID", f"later:{i:04}") for i in range(1_500)])
        for number in range(3):
            self.client.ask("PUSH", "order", "0", "x", "ID", f"now:{number}")
        [[lease, *_]] = self.client.ask("POP", "order")
        self.client.ask("NACK", lease, "DEAD", "REASON", "the bank is closed")
        self.client.ask("POP", "order")

    def test_lists_by_state_prefix_error_and_count(self):
        self.fill()
        self.assertEqual([job["state"] for job in self.lines("list", "order", "ready", "dead")], ["ready", "dead"])
        self.assertEqual(len(self.lines("list", "order")), 100)
        self.assertEqual(len({job["id"] for job in self.lines("list", "order", "delayed", "--count", "2000")}), 1_500)
        self.assertEqual([job["id"] for job in self.lines("list", "order", "--prefix", "later:001", "--count", "3")],
                         ["later:0010", "later:0011", "later:0012"])
        [dead] = self.lines("list", "order", "--error", "bank")
        self.assertEqual((dead["state"], dead["outcome"]), ("dead", "the bank is closed"))
        self.assertEqual(self.lines("list", "nothing"), [])
        self.refused(2, "gone", "list", "order", "gone")
        self.refused(2, "TOPIC", "list")
        self.refused(2, "--watch: needs a terminal", "list", "order", "--watch")
        self.refused(2, "a character that is not allowed", "list", "a b")

    def test_for_people(self):
        self.fill()
        code, seen = self.run_on_terminal("list", "order", "--count", "4")
        self.assertEqual(code, 0, seen)
        self.assertRegex(seen, r"^ID +STATE +DUE +ATTEMPTS +UNTIL\nnow:\d +reserved .*\nnow:\d +ready .*\n(later:000\d +delayed +in \S+ +0\n){2}"
                               r"and more, of 1,500 delayed, 1 ready, 1 reserved, 1 dead: see --count\n$")
        self.assertEqual(self.run_on_terminal("list", "nothing"), (0, "no jobs in nothing\n"))

    def test_a_reader_may_stop_early(self):
        self.client.ask_all([("PUSH", "order", "1h", "x", "ID", f"later:{i}") for i in range(20_000)])
        done = subprocess.run(["bash", "-c", f"{harness.PROGRAM} list order --count 20000 | head -1"], capture_output=True, text=True,
                              check=False, env=cli_test.environment(self.server), timeout=harness.DEADLINE)
        self.assertEqual((json.loads(done.stdout)["id"], done.stderr), ("later:0", ""))

    def test_watches_while_the_server_is_away_and_back(self):
        self.client.ask("PUSH", "order", "1h", "x", "ID", "first")
        master, process = self.start_on_terminal("list", "order", "--watch", "--interval", "100ms")
        self.read_until(master, b"first")
        self.client.ask("PUSH", "order", "1h", "x", "ID", "second")
        self.read_until(master, b"second")
        self.make_durable()
        self.server.kill()
        self.read_until(master, b"NOT NEW")
        self.server.resp = f"127.0.0.1:{self.server.port}"
        self.server.start()
        self.client = self.connect(self.server)
        self.client.ask("PUSH", "order", "1h", "x", "ID", "third")
        self.read_until(master, b"third")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.read_until(master, b"\x1b[?1049l")


    def test_keys_work_while_the_server_hangs(self):
        self.client.ask("PUSH", "order", "1h", "x", "ID", "first")
        for words in (("list", "order", "--watch", "--interval", "100ms"), ("top", "--interval", "100ms")):
            for keys in (b"q", b"\x03", b"\x1b[B\x1b[B", b"xxq"):
                with self.subTest(words=words, keys=keys):
                    master, process = self.start_on_terminal(*words)
                    self.read_until(master, b"order")
                    self.server.process.send_signal(signal.SIGSTOP)
                    try:
                        # The screen is drawn anew until the first look that is not answered.
                        while select.select([master], [], [], 1)[0]:
                            os.read(master, 1 << 16)
                        os.write(master, keys)
                        if keys.startswith(b"\x1b"):
                            with self.assertRaises(subprocess.TimeoutExpired):
                                process.wait(0.3)  # scrolling does not end it
                            os.write(master, b"q")
                        begun = time.monotonic()
                        self.assertEqual(process.wait(harness.DEADLINE), 0)
                        self.assertLess(time.monotonic() - begun, 5)
                    finally:
                        self.server.process.send_signal(signal.SIGCONT)

    def test_lists_by_due_time(self):
        for delay in ("1h", "2h", "3h"):
            self.client.ask("PUSH", "order", delay, "x", "ID", delay)
        for words, wanted in ((("--due-after", "90m"), {"2h", "3h"}), (("--due-before", "150m"), {"1h", "2h"}),
                              (("--due-after", "90m", "--due-before", "150m"), {"2h"}), (("--due-before", "now"), set()),
                              (("--due-after", "-5m"), {"1h", "2h", "3h"}), (("--due-after", "2080-01-01T00:00:00Z"), set())):
            self.assertEqual({job["id"] for job in self.lines("list", "order", "delayed", *words)}, wanted, words)
        self.refused(2, "--due-after", "list", "order", "--due-after", "soon")
        self.refused(2, "--due-before must be after due_after", "list", "order", "--due-after", "2h", "--due-before", "1h")


class ClearingTest(LookingTest):
    def test_purge(self):
        for number in range(3):
            self.client.ask("PUSH", "order", "1h", "x")
        self.client.ask("PUSH", "order", "0", "x")
        self.refused(2, "would delete 3 delayed, 1 ready of topic order", "purge", "order")
        self.refused(2, "wrong", "purge", "order", "--state", "wrong")
        self.assertEqual(self.client.stats("order")["delayed"], 3, "nothing was deleted")
        self.assertEqual(self.lines("purge", "order", "--state", "delayed,dead", "--yes"), [{"jobs": 3}])
        self.assertEqual(self.lines("purge", "order", "--state", "dead"), [{"jobs": 0}], "nothing is there, so nothing is asked")
        self.assertEqual(self.client.stats("order")["ready"], 1)
        for answer, left in [("n", 1), ("\x04", 1), ("y", 0)]:
            master, process = self.start_on_terminal("purge", "order")
            self.read_until(master, b"Delete 1 ready of topic order? [y/N] ")
            os.write(master, f"{answer}\n".encode())
            self.assertEqual(process.wait(harness.DEADLINE), 0)
            self.assertEqual(self.client.stats("order")["ready"], left)

    def test_topics_rm(self):
        self.client.ask("PUSH", "order", "1h", "x", "ID", "a")
        self.client.ask("PAUSE", "order")
        self.refused(4, "there are jobs in topic order: 1 delayed. To remove these: delayq purge order", "topics", "rm", "order")
        self.client.ask("PURGE", "order")
        self.assertEqual([topic["topic"] for topic in self.lines("topics")], ["order"])
        self.refused(5, 'there is no topic "ordr"', "topics", "rm", "ordr")
        self.assertEqual(self.lines("topics", "rm", "order"), [{"result": "ok"}])
        self.refused(5, "there is no topic", "topics", "rm", "order")
        self.assertEqual(self.lines("topics"), [])
        self.refused(2, "TOPIC is required", "topics", "rm")
        self.refused(2, 'there is no command "rn"', "topics", "rn")


class ForecastTest(LookingTest):
    def test_counts_jobs_and_occurrences(self):
        self.client.ask("PUSH", "order", "30m", "x")
        self.client.ask("PUSH", "mail", "90m", "x")
        self.client.ask("SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "order", "BODY", "")
        [told] = self.lines("forecast", "--for", "2h", "--bins", "2")
        self.assertEqual((told["bins"], told["scheduled_complete"]), ([1, 1], True))
        self.assertIn(sum(told["scheduled"]), (1, 2), "the second one may just be outside")
        [told] = self.lines("forecast", "mail", "--bins", "1")
        self.assertEqual((told["bins"], told["scheduled"]), ([1], [0]))
        code, seen = self.run_on_terminal("forecast", "order", "--for", "2h", "--bins", "2")
        self.assertEqual(code, 0)
        self.assertRegex(seen, r"^order: 1 \+ \d scheduled due within 2h\n\d\d-\d\d \d\d:\d\d  \S+ +1")
        self.refused(2, "--for", "forecast", "--for", "soon")
        self.refused(2, "--to: must be after --from", "forecast", "--from", "10", "--to", "9")


class EventsTest(LookingTest):
    def start_events(self, *words):
        process = self.start_cli("events", *words)
        # It listens when it tells the first thing.
        deadline = time.monotonic() + harness.DEADLINE
        while not select.select([process.stdout], [], [], 0.05)[0]:
            self.assertLess(time.monotonic(), deadline)
            self.client.ask("PUSH", "probe", "0", "x", "ID", "probe", "REPLACE")
        return process

    def next_of(self, process, news):
        while True:
            line = process.stdout.readline()
            self.assertTrue(line, "it has ended")
            told = json.loads(line)
            if told["news"] == news and told.get("topic") != "probe":
                return told

    def test_tells_what_happens_and_ends_at_ctrl_c(self):
        process = self.start_events()
        self.client.ask("PUSH", "order", "0", "x", "ID", "a", "GROUP", "g")
        told = self.next_of(process, "pushed")
        self.assertEqual((told["topic"], told["id"], told["group"], told["state"]), ("order", "a", "g", "ready"))
        [[lease, *_]] = self.client.ask("POP", "order")
        self.assertEqual(self.next_of(process, "handed_over")["attempt"], 1)
        self.client.ask("NACK", lease, "DEAD", "REASON", HOSTILE.encode())
        self.assertIn("gotcha", self.next_of(process, "dead")["error"])
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.wait(harness.DEADLINE), process.stderr.read()), (0, ""))

    def test_goes_on_when_the_server_is_back_and_tells_what_was_missed(self):
        process = self.start_events()
        self.make_durable()
        self.server.kill()
        self.assertIn("again in", process.stderr.readline())
        self.server.resp = f"127.0.0.1:{self.server.port}"
        self.server.start()
        self.client = self.connect(self.server)
        self.assertEqual(self.next_of(process, "missed"), {"news": "missed"})
        self.client.ask("PUSH", "order", "0", "x", "ID", "after")
        self.assertEqual(self.next_of(process, "pushed")["id"], "after")
        self.server.kill()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.DEADLINE), 0, "also while the server is away")

    def test_a_cursor_goes_on_behind_it(self):
        process = self.start_events("--of", "pushed")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        cursor = self.next_of(process, "pushed")["cursor"]
        process.send_signal(signal.SIGINT)
        process.wait(harness.DEADLINE)
        self.client.ask("PUSH", "order", "0", "x", "ID", "b")
        again = self.start_cli("events", "--of", "pushed", "--after", cursor)
        self.assertEqual(self.next_of(again, "pushed")["id"], "b")

    def test_a_reader_that_goes_ends_it(self):
        process = subprocess.Popen(["bash", "-c", f"{harness.PROGRAM} events | head -1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=cli_test.environment(self.server))
        self.addCleanup(self.end, process)
        self.wait_for(lambda: self.client.ask("PUSH", "order", "0", "x") and process.poll() is not None, "it has ended")
        self.assertEqual(json.loads(process.stdout.read())["news"], "pushed")
        self.assertEqual(process.stderr.read(), "")

    def test_mistakes(self):
        self.refused(2, "--of", "events", "--of", "pushd")
        self.refused(2, "topic", "events", "--topic", "a b")
        self.refused(2, "after", "events", "--after", "what")
        self.server.kill()
        self.refused(9, "connection refused", "events")


class ConsumersTest(LookingTest):
    def test_shows_who_waits_and_what_is_held(self):
        self.client.ask("PUSH", "order", "0", "x", "ID", "held")
        self.client.ask("POP", "order", "LEASE", "1h")
        waiting = self.connect(self.server)
        waiting.send(("POP", "a", "b", "WAIT", "1h"))
        self.wait_for(lambda: self.client.stats()["waiters"] == 1, "it waits")
        [told] = self.lines("consumers")
        self.assertEqual((told["waiting_total"], told["waiting"][0]["topics"], told["waiting"][0]["protocol"]), (1, ["a", "b"], "resp"))
        self.assertEqual((told["leases_total"], told["leases"][0]["id"]), (1, "held"))
        self.assertEqual(told["oldest_lease_at"], told["leases"][0]["handed_over_at"])
        self.assertGreaterEqual(told["connections"], 3)
        code, seen = self.run_on_terminal("consumers")
        self.assertEqual(code, 0)
        self.assertRegex(seen, r"connections: \d \(this one included\), waiting pops: 1\nCLIENT .*\n127.0.0.1:\d+ +resp .* a b\nleases held: 1, the oldest since .+\nTOPIC .*HELD SINCE")


class HarmlessTest(LookingTest):
    def test_texts_of_jobs_do_nothing_to_the_terminal(self):
        for number in range(3):
            self.client.ask("PUSH", "t", "0", "x", "ID", f"id\u202e{number}", "GROUP", "g\u2066")
        lease = self.client.ask("POP", "t")[0][0]
        self.client.ask("NACK", lease, "DEAD", "REASON", HOSTILE.encode())
        self.client.ask("POP", "t")
        for words in (["list", "t"], ["consumers"], ["doctor"], ["forecast", "t"], ["purge", "t", "--yes"]):
            for more in ([], ["--json"]):
                with self.subTest(" ".join(words + more)):
                    _, seen = self.run_on_terminal(*words, *more)
                    for bad in "\x1b\x07\x9b\u202e\u2066":
                        self.assertNotIn(bad, seen)


class TokenTest(LookingTest):
    """Tokens for some topics see only these."""

    def setUp(self):
        harness.ServerTest.setUp(self)
        made = [json.loads(subprocess.run([harness.PROGRAM, "token", "new", "--name", name, "--scopes", scopes, "--topics", topics, "--json"],
                                          capture_output=True, text=True, check=True).stdout)
                for name, scopes, topics in (("boss", "push,consume,read,admin,schedule", "*"), ("shop", "read", "order"))]
        path = self.directory / "delayq.toml"
        path.write_text("".join(token["toml"] for token in made), encoding="utf-8")
        self.server = self.serve("-c", str(path))
        self.boss, self.shop = (token["secret"] for token in made)
        self.client = self.connect(self.server)
        self.client.ask("AUTH", self.boss)
        for topic in ("order", "mail"):
            self.client.ask("PUSH", topic, "0", "x", "ID", f"of-{topic}")
            self.client.ask("POP", topic)

    def as_shop(self, *words):
        return self.run_cli(*words, "--token", self.shop)

    def test_a_token_for_some_topics(self):
        self.assertIn("of-order", self.as_shop("list", "order").stdout)
        for words in (["list", "mail"], ["forecast", "mail"], ["events", "--topic", "mail"], ["purge", "order", "--yes"], ["topics", "rm", "order"]):
            done = self.as_shop(*words)
            self.assertEqual((done.returncode, done.stdout), (12, ""), (words, done.stderr))
        self.assertIn("delayq forecast TOPIC", self.as_shop("forecast").stderr)
        self.assertEqual(self.as_shop("forecast", "order").returncode, 0)
        told = json.loads(self.as_shop("consumers").stdout)
        self.assertEqual([job["id"] for job in told["leases"]], ["of-order"])
        self.assertNotIn("waiting", told)

    def test_doctor_and_tokens(self):
        done = self.as_shop("doctor")
        self.assertEqual(done.returncode, 0, done.stdout)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual((checks["token"]["text"], checks["room"]["result"]), ("shop: read on topics order", "skipped"))
        self.assertNotIn("mail", done.stdout)
        for words, said in [(["--token", "dq_wrong"], "refuses the token"), ([], "needs a token")]:
            done = self.run_cli("doctor", *words)
            self.assertEqual(done.returncode, 11)
            self.assertIn(said, done.stdout)
            self.assertNotIn("dq_wrong", done.stdout + done.stderr)

    def test_without_a_token(self):
        for words in (["list", "order"], ["consumers"], ["events"], ["forecast"], ["purge", "order", "--yes"]):
            done = self.run_cli(*words)
            self.assertEqual((done.returncode, done.stdout), (11, ""), words)


class DoctorTest(LookingTest):
    def doctor(self, *words, server=None):
        done = self.run_cli("doctor", *words, server=server)
        told = json.loads(done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertEqual(told["ok"], done.returncode == 0)
        return done.returncode, {check["check"]: check for check in told["checks"]}

    def test_a_server_that_is_well(self):
        code, checks = self.doctor()
        self.assertEqual(code, 0, checks)
        self.assertEqual({check["result"] for check in checks.values()}, {"ok"}, checks)
        code, seen = self.run_on_terminal("doctor")
        self.assertTrue(code == 0 and seen.endswith("\nall is well\n"), seen)

    def test_jobs_that_died(self):
        self.client.ask("PUSH", "order", "0", "x")
        self.client.ask("NACK", self.client.ask("POP", "order")[0][0], "DEAD")
        code, checks = self.doctor()
        self.assertEqual((code, checks["dead jobs"]["result"]), (0, "warning"))
        self.assertIn("delayq dead order", checks["dead jobs"]["advice"])

    def test_what_answers_instead(self):
        code, checks = self.doctor("--server", f"127.0.0.1:{self.server.http_port}")
        self.assertEqual(code, 9)
        self.assertIn("speaks HTTP", checks["server"]["text"])
        self.assertIn(f"--server 127.0.0.1:{self.server.port}", checks["server"]["advice"])
        code, checks = self.doctor("--tls")
        self.assertEqual((code, "without TLS" in checks["server"]["text"]), (9, True), checks)
        code, checks = self.doctor("--token", "dq_x")
        self.assertEqual((code, "none configured" in checks["token"]["text"]), (11, True), checks)
        code, checks = self.doctor("--ca", "/nowhere.pem")
        self.assertEqual((code, checks["TLS"]["result"]), (2, "problem"), checks)
        self.server.kill()
        code, checks = self.doctor()
        self.assertEqual((code, "connection refused" in checks["server"]["text"]), (9, True), checks)

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl here")
    def test_tls(self):
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
                        "/CN=delayq", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
                       check=True, capture_output=True)
        path = self.directory / "delayq.toml"
        path.write_text(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n', encoding="utf-8")
        server = harness.Server(self.directory / "encrypted", "-c", str(path))
        self.addCleanup(server.close)
        code, checks = self.doctor(server=server)
        self.assertEqual((code, "speaks TLS" in checks["server"]["text"]), (9, True), checks)
        code, checks = self.doctor("--tls", server=server)
        self.assertEqual(code, 9)
        self.assertIn("--ca FILE", checks["server"]["text"] + checks["server"].get("advice", ""))
        self.assertEqual(self.doctor("--ca", str(certificate), server=server)[1]["TLS"]["result"], "ok")
        self.assertEqual(self.doctor("--insecure", server=server)[1]["TLS"]["result"], "warning")


class CompletionTest(LookingTest):
    def test_words(self):
        self.client.ask("PUSH", "order", "1h", "x")
        for words, offered in [(["purge", "o"], ["order"]), (["topics", ""], ["rm"]), (["topics", "rm", ""], ["order"]),
                               (["list", "order", "re"], ["ready", "reserved"]), (["events", "--of", "d"], ["dead", "done", "due"]),
                               (["events", "--topic", ""], ["order"]), (["forecast", "--b"], ["--bins"])]:
            self.assertEqual(self.run_cli("complete", "--", *words).stdout.split(), offered, words)


@unittest.skipUnless(shutil.which("redis-server"), "there is no redis-server here")
class RedisLookingTest(redis_harness.RedisTest):
    """FORECAST and CONSUMERS over the other engine, whose clock is Redis's."""

    def test_forecast_consumers_and_doctor(self):
        self.start()
        server = self.over()
        client = self.connect(server)
        client.ask("PUSH", "order", "30m", "x")
        client.ask("PUSH", "order", "0", "x", "ID", "held")
        client.ask("POP", "order", "LEASE", "1h")

        def told(*words):
            done = subprocess.run([harness.PROGRAM, *words], capture_output=True, text=True, check=False, timeout=harness.DEADLINE,
                                  env=cli_test.environment(server))
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            return json.loads(done.stdout)

        self.assertEqual(sum(told("forecast", "order", "--for", "1h", "--bins", "2")["bins"]), 1)
        self.assertEqual(told("consumers")["leases"][0]["id"], "held")
        checks = {check["check"]: check for check in told("doctor")["checks"]}
        self.assertIn("redis", checks["engine"]["text"])
        self.assertNotIn("disk", checks, "it is elsewhere")
        self.assertEqual(checks["clock"]["result"], "ok")


if __name__ == "__main__":
    harness.main()
