"""The delayq command as people use it: pipes, commands that run for jobs, shells, a terminal."""
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import harness

MANUAL = harness.ROOT / "docs" / "man" / "delayq.1"


def environment(server):
    values = {name: value for name, value in os.environ.items() if not name.startswith("DELAYQ_")}
    return {**values, "DELAYQ_RESP": f"127.0.0.1:{server.port}" if server else "127.0.0.1:1"}


class CliTest(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.client = self.connect(self.server)

    def run_cli(self, *words, stdin="", server=None):
        return subprocess.run([harness.PROGRAM, *words], input=stdin, capture_output=True, text=True, check=False,
                              timeout=harness.DEADLINE, env=environment(server or self.server))

    def start_cli(self, *words):
        process = subprocess.Popen([harness.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment(self.server))
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.wait(harness.DEADLINE)
        process.stdout.close()
        process.stderr.close()

    def wait_for_file(self, path):
        self.wait_for(path.exists, f"{path} is there")

    def make_durable(self):
        """What the server did until now: changes are on disk in their order, and this one when it is answered."""
        self.client.ask("PUSH", "another", "1h", "x")

    def state(self, topic, job):
        flat = self.client.ask("GET", topic, job)
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)} if flat else None

    def run_on_terminal(self, *words):
        """What a person sees."""
        master, slave = self.open_terminal()
        try:
            process = subprocess.Popen([harness.PROGRAM, *words], stdin=slave, stdout=slave, stderr=slave, env=environment(self.server))
            seen = b""
            while process.poll() is None or select.select([master], [], [], 0)[0]:
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 1 << 16)
            return process.returncode, seen.decode().replace("\r\n", "\n")
        finally:
            os.close(slave)
            os.close(master)


class PushTest(CliTest):
    def test_a_body_arrives_as_it_was_written(self):
        for body in ["[1,2]", "[a]", "{}", "@x", "-"]:
            done = self.run_cli("push", "order", "0", body, stdin="-")
            self.assertEqual(done.returncode, 0, done.stderr)
            [[_, _, _, came, _, _]] = self.client.ask("POP", "order", "AUTOACK")
            self.assertEqual(came.decode(), body)

    def test_many_lines(self):
        lines = "".join(f"line {i}\n" for i in range(20_000))
        path = self.directory / "lines"
        path.write_text(lines, encoding="utf-8")
        done = self.run_cli("push", "order", "--lines", str(path))
        self.assertEqual(json.loads(done.stdout), {"pushed": 20_000}, done.stderr)
        done = self.run_cli("push", "order", "0", "--lines", stdin=lines)
        self.assertEqual(json.loads(done.stdout), {"pushed": 20_000}, done.stderr)
        self.assertEqual(self.client.stats("order")["ready"], 40_000)
        self.assertEqual(self.client.ask("POP", "order")[0][3], b"line 0")

    def test_a_line_that_is_too_large_is_named(self):
        done = self.run_cli("push", "order", "--lines", stdin="a\n" + "x" * 2_000_000 + "\nb\n")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("line 2", done.stderr)


class ExecTest(CliTest):
    def test_acks_what_succeeded_and_nacks_the_rest(self):
        self.client.ask("PUSH", "order", "0", "body", "ID", "good")
        done = self.run_cli("pop", "order", "--exec", 'cat; echo "|$DELAYQ_TOPIC|$DELAYQ_ID|$DELAYQ_ATTEMPT|$DELAYQ_DUE_AT"')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^body\|order\|good\|1\|\d{4}-.*Z\n$")
        self.assertEqual(self.state("order", "good")["state"], b"done")

        self.client.ask("PUSH", "order", "0", "body", "HEADER", "trace-id", "a=b $(x)", "HEADER", "b.C", "")
        done = self.run_cli("pop", "order", "--exec", 'echo "$DELAYQ_HEADER_TRACE_ID|${DELAYQ_HEADER_B_C-missing}|"')
        self.assertEqual(done.stdout, "a=b $(x)||\n")

        self.client.ask("PUSH", "order", "0", "body", "ID", "bad")
        done = self.run_cli("pop", "order", "--exec", "echo the bank is closed >&2; exit 75")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: the bank is closed", done.stderr)
        self.assertEqual(self.state("order", "bad")["outcome"], b"the bank is closed")

        self.client.ask("PUSH", "order", "0", "body", "ID", "killed")
        done = self.run_cli("bpop", "order", "--json", "--exec", "--", "sh", "-c", "kill -9 $$")
        told = json.loads(done.stdout)
        self.assertEqual((told["result"], told["signal"], told["id"]), ("nacked", 9, "killed"))
        self.assertIn("killed by signal 9", self.state("order", "killed")["outcome"].decode())

    def test_nothing_to_do(self):
        done = self.run_cli("pop", "order", "--exec", "true")
        self.assertEqual((done.returncode, done.stderr), (0, "delayq: nothing was ready\n"))

    def test_many_workers_until_it_is_told_to_stop(self):
        out = self.directory / "out"
        process = self.start_cli("pop", "order", "--forever", "--workers", "4", "--exec", f"cat >>{out}")
        self.client.ask_all([("PUSH", "order", "0", f"{i}\n") for i in range(100)])
        self.wait_for(lambda: self.client.stats("order")["done"] == 100, "all are done")
        self.assertEqual(sorted(map(int, out.read_text().split())), list(range(100)))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.assertIn("100 done, 0 failed", process.stderr.read())

    def test_a_command_that_runs_may_finish(self):
        started, go = self.directory / "started", self.directory / "go"
        os.mkfifo(go)
        process = self.start_cli("pop", "order", "--forever", "--exec", f"touch {started}; read line <{go}")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        self.wait_for_file(started)
        process.send_signal(signal.SIGINT)
        self.assertIn("waiting for 1 command to end (order a); a second Ctrl-C ends", process.stderr.readline())
        self.client.ask("PUSH", "order", "0", "x", "ID", "b")
        go.write_text("on\n", encoding="utf-8")
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.assertEqual(self.state("order", "a")["state"], b"done")
        self.assertEqual(self.state("order", "b")["state"], b"ready", "no more were taken")

    def test_a_second_signal_stops_the_command(self):
        started = self.directory / "started"
        process = self.start_cli("pop", "order", "--forever", "--exec", f"touch {started}; exec sleep 600")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        self.wait_for_file(started)
        process.send_signal(signal.SIGINT)
        self.assertIn("waiting for 1 command to end (order a); a second Ctrl-C ends", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.assertIn("killed by signal 15", self.state("order", "a")["outcome"].decode())

    def test_the_lease_is_extended_while_the_command_runs(self):
        started, go = self.directory / "started", self.directory / "go"
        os.mkfifo(go)
        process = self.start_cli("bpop", "order", "--lease", "1s", "--exec", f"touch {started}; read line <{go}")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        self.wait_for_file(started)
        begun = harness.now_ms()
        self.wait_for(lambda: self.state("order", "a")["until_ms"] > begun + 2_500, "the lease was extended")
        go.write_text("on\n", encoding="utf-8")
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.assertEqual(self.state("order", "a")["attempts"], 1)

    def test_a_job_comes_back_when_delayq_is_killed(self):
        pid = self.directory / "pid"
        process = self.start_cli("bpop", "order", "--lease", "1s", "--exec", f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600")
        self.client.ask("PUSH", "order", "0", "x", "ID", "a", "BACKOFF", "0s")
        self.wait_for_file(pid)
        process.kill()
        process.wait(harness.DEADLINE)
        os.kill(int(pid.read_text()), signal.SIGKILL)
        [[_, _, job, _, attempt, _]] = self.client.ask("POP", "order", "WAIT", "30s")
        self.assertEqual((job, attempt), (b"a", 2))

    def test_a_job_that_was_taken_away_stops_the_command(self):
        started = self.directory / "started"
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        process = self.start_cli("pop", "order", "--lease", "1s", "--exec", f"touch {started}; exec sleep 600")
        self.wait_for_file(started)
        self.client.ask("PURGE", "order")
        self.assertEqual(process.wait(harness.DEADLINE), 1)
        self.assertIn("lost", process.stderr.read())

    def test_a_job_that_is_cancelled_stops_the_command(self):
        started = self.directory / "started"
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        process = self.start_cli("pop", "order", "--lease", "1s", "--exec", f"touch {started}; exec sleep 600")
        self.wait_for_file(started)
        self.assertEqual(self.client.ask("CANCEL", "order", "a"), "reserved")
        self.assertEqual(process.wait(harness.DEADLINE), 1)
        self.assertIn("lost: the job was cancelled", process.stderr.read())
        self.assertIsNone(self.client.ask("GET", "order", "a"), "it is settled, not only left to run out")

    def test_tells_the_outcome_to_a_server_that_was_started_again_meanwhile(self):
        started, go = self.directory / "started", self.directory / "go"
        os.mkfifo(go)
        self.client.ask("PUSH", "order", "0", "x", "ID", "a")
        process = self.start_cli("pop", "order", "--exec", f"touch {started}; read line <{go}")
        self.wait_for_file(started)
        self.make_durable()
        self.server.kill()
        go.write_text("on\n", encoding="utf-8")
        self.assertIn("again in", process.stderr.readline())
        self.server.resp = f"127.0.0.1:{self.server.port}"
        self.server.start()
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.client = self.connect(self.server)
        self.assertEqual(self.state("order", "a")["state"], b"done")

    def test_survives_a_server_that_is_started_again(self):
        out = self.directory / "out"
        process = self.start_cli("pop", "order", "--forever", "--exec", f"cat >>{out}")
        self.client.ask("PUSH", "order", "0", "before\n")
        self.wait_for(lambda: self.client.stats("order")["done"] == 1, "the first is done")
        self.make_durable()
        self.server.kill()
        self.assertIn("again in", process.stderr.readline())
        self.server.resp = f"127.0.0.1:{self.server.port}"
        self.server.start()
        client = self.connect(self.server)
        client.ask("PUSH", "order", "0", "after\n")
        self.wait_for(lambda: out.read_text() == "before\nafter\n", "the second is done")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.DEADLINE), 0)


class ErrorTest(CliTest):
    def test_says_what_to_do(self):
        done = subprocess.run([harness.PROGRAM, "topics"], capture_output=True, text=True, check=False, env=environment(None))
        self.assertEqual(done.returncode, 9)
        self.assertIn("could not connect to 127.0.0.1:1: connection refused", done.stderr)
        self.assertIn("delayq serve", done.stderr)
        for words, said in [(("psh", "order"), "Did you mean push?"), (("push", "order", "--idd", "7"), "Did you mean --id?"),
                            (("push",), "TOPIC is required"), (("token", "new", "--nam", "x"), "Did you mean --name?")]:
            done = self.run_cli(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_every_client_verb_speaks_json(self):
        self.client.ask("PUSH", "order", "1h", "x", "ID", "a")
        for words in [("push", "order", "0", "x"), ("get", "order", "a"), ("cancel", "order", "a"), ("topics",), ("stats",),
                      ("pause", "order"), ("resume", "order"), ("redrive", "order"), ("schedule", "set", "s", "x", "--every", "1h", "--topic", "order"),
                      ("schedule", "next", "s"), ("schedule", "list"), ("schedule", "show", "s"), ("schedule", "remove", "s"), ("top", "--interval", "100ms")]:
            done = self.run_cli(*words, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in done.stdout.splitlines():
                json.loads(line)
            self.assertTrue(done.stdout, words)

    def test_a_new_token(self):
        done = self.run_cli("token", "new", "--name", "shop", "--scopes", "push,consume", "--topics", "order,order.*")
        self.assertEqual(done.returncode, 0, done.stderr)
        secret = re.search(r"^dq_[-_0-9A-Za-z]{43}$", done.stdout, re.M)[0]
        hashed = subprocess.run(["sha256sum"], input=secret, capture_output=True, text=True, check=True).stdout.split()[0]
        self.assertIn(f'[[tokens]]\nname = "shop"\nsha256 = "{hashed}"\nscopes = ["push", "consume"]\n'
                      'topics = ["order", "order.*"]\n', done.stdout)
        self.assertNotIn(secret, self.run_cli("token", "new").stdout)


class ScheduleTest(CliTest):
    """delayq schedule: a server of its own makes the jobs."""

    def set(self, name="nightly", *more):
        done = self.run_cli("schedule", "set", name, '{"kind":"daily"}', "--cron", "0 2 * * *", "--zone", "Asia/Shanghai",
                            "--topic", "report", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_from_set_to_remove(self):
        told = self.set()
        self.assertEqual((told["result"], told["state"], told["topic"]), ("created", "active", "report"))
        self.assertRegex(told["next_local"], r"T02:00:00\+08:00$")
        self.assertEqual(self.set()["result"], "unchanged")
        self.assertEqual(self.set("nightly", "--runs", "9")["result"], "updated")
        shown = json.loads(self.run_cli("schedule", "show", "nightly").stdout)
        self.assertEqual((shown["body"], shown["cron"], shown["zone"], shown["runs"]), ({"kind": "daily"}, "0 2 * * *", "Asia/Shanghai", 9))
        self.assertEqual(json.loads(self.run_cli("schedule", "list").stdout)["name"], "nightly")
        self.assertEqual(json.loads(self.run_cli("schedule", "pause", "nightly").stdout)["state"], "paused")
        self.assertEqual(self.run_cli("schedule", "next", "nightly").stdout, "")
        self.assertEqual(json.loads(self.run_cli("schedule", "resume", "nightly").stdout)["state"], "active")
        made = json.loads(self.run_cli("schedule", "run", "nightly").stdout)
        self.assertEqual((made["topic"], made["state"]), ("report", "ready"))
        self.assertEqual(self.state("report", made["id"])["body"], b'{"kind":"daily"}')
        self.assertEqual(json.loads(self.run_cli("schedule", "remove", "nightly").stdout), {"result": "ok"})
        for verb in ("show", "next", "pause", "resume", "run", "remove"):
            gone = self.run_cli("schedule", verb, "nightly")
            self.assertEqual((gone.returncode, gone.stderr), (5, f'delayq schedule {verb}: not_found: there is no schedule "nightly"\n'))

    def test_an_occurrence_becomes_a_job(self):
        start = int(time.time()) + 1
        self.run_cli("schedule", "set", "soon", "body", "--every", "10s", "--start", str(start), "--topic", "t")
        [[_, _, job, body, _, due]] = self.client.ask("POP", "t", "WAIT", "30s")
        self.assertRegex(job.decode(), r"^soon@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual((body, due), (b"body", start * 1000))

    def test_it_is_kept(self):
        self.set()
        self.server.kill()
        self.server.start()
        self.assertEqual(json.loads(self.run_cli("schedule", "show", "nightly").stdout)["topic"], "report")

    def test_a_rule_that_is_not_stored(self):
        done = self.run_cli("schedule", "next", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-03-28T00:00:00Z",
                            "--count", "3")
        self.assertEqual([json.loads(line)["local"] for line in done.stdout.splitlines()],
                         ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"])
        self.assertEqual(self.run_cli("schedule", "list").stdout, "")

    def test_for_people(self):
        self.set()
        self.run_cli("schedule", "set", "poll", "", "--every", "15m", "--topic", "poll")
        self.run_cli("schedule", "pause", "poll")
        code, seen = self.run_on_terminal("schedule", "list")
        self.assertEqual(code, 0, seen)
        head, nightly, poll = seen.splitlines()
        self.assertEqual(head.split(), ["NAME", "RULE", "ZONE", "TOPIC", "STATE", "NEXT"])
        self.assertRegex(nightly, r"^nightly  0 2 \* \* \*  Asia/Shanghai  report  active  \d{4}-\d\d-\d\dT02:00:00\+08:00, in \S+$")
        self.assertRegex(poll, r"^poll +every 15m +poll +paused$")
        code, seen = self.run_on_terminal("schedule", "next", "nightly", "--count", "2")
        self.assertEqual(code, 0, seen)
        self.assertRegex(seen, r"^LOCAL +UTC +WHEN\n(\S+T02:00:00\+08:00  \S+T18:00:00Z  in \S+\n){2}$")
        self.assertEqual(self.run_on_terminal("schedule", "next", "poll"), (0, "it is paused: no occurrence until it is resumed\n"))

    def test_a_body_does_nothing_to_the_terminal(self):
        self.client.ask("SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", b"\x1b]0;gotcha\x07\xc2\x9b2J", "GROUP", "g\u202e")
        for words in (["show", "s"], ["show", "s", "--json"], ["list"], ["list", "--json"]):
            _, seen = self.run_on_terminal("schedule", *words)
            for bad in "\x1b\x07\x9b\u202e":
                self.assertNotIn(bad, seen, words)

    def test_mistakes(self):
        base = ("schedule", "set", "s", "b", "--topic", "t")
        for words, said in [(base, "--cron or --every is needed"),
                            ((*base, "--every", "1s"), "every"),
                            ((*base, "--cron", "0 0 30 2 *"), '"0 0 30 2 *" is not a cron rule'),
                            ((*base, "--cron", "@daily", "--zone", "Mars/Base"), "Mars/Base"),
                            ((*base, "--cron", "@daily", "--start", "2030-01-01T00:00:00Z", "--end", "2029-01-01T00:00:00Z"), "end"),
                            ((*base, "--every", "1h", "--every", "2h"), "--every"),
                            ((*base, "--every", "1h", "--cron", "@daily"), "--cron excludes --every"),
                            ((*base, "--evry", "1h"), "there is no option --evry. Did you mean --every?"),
                            (("schedule", "sett"), 'delayq schedule: there is no command "sett". Did you mean set?'),
                            (("schedule", "set", "s", "b", "--every", "1h"), "--topic is required"),
                            (("schedule", "next", "s", "--count", "99999999999"), "--count"),
                            (("schedule", "set", "a b", "b", "--every", "1h", "--topic", "t"), "the name of a schedule")]:
            done = self.run_cli(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.run_cli("schedule", "list").stdout, "", "nothing was stored")
        for words in (("schedule", "--help"), ("schedule", "set", "--help"), ("help", "schedule", "next")):
            done = self.run_cli(*words)
            self.assertEqual(done.returncode, 0)
        self.assertIn("delayq schedule next nightly", done.stdout, "examples")


class HarmlessTest(CliTest):
    """What producers and consumers have written does nothing to the terminal of a person."""
    HOSTILE = "\x1b]0;gotcha\x07\x9b2J\u202e\u2066"

    def test_of_jobs(self):
        topic, named = "t\u202e", "id\u202e\u2066"
        for number in range(4):
            self.client.ask("PUSH", topic, "0", self.HOSTILE.encode(), "ID", f"{named}{number}", "GROUP", named)
        lease = self.client.ask("POP", topic)[0][0]
        self.client.ask("NACK", lease, "DEAD", "REASON", "failed\u202e")
        for words in (["get", topic, f"{named}0"], ["get", topic, f"{named}1"], ["dead", topic], ["topics"], ["stats", topic], ["export"],
                      ["pop", topic], ["top", "--once"], ["push", topic, "0", self.HOSTILE, "--id", "x\u202e"], ["cancel", topic, "x\u202e"]):
            for more in ([], ["--json"]):
                if words == ["export"] and more:
                    continue
                with self.subTest(" ".join(words + more)):
                    _, seen = self.run_on_terminal(*words, *more)
                    for bad in "\x1b\x07\x9b\u202e\u2066":
                        self.assertNotIn(bad, seen.replace("\x1b[K", ""), "but what draws the progress of an export")


class TrustTest(harness.ServerTest):
    """Tokens and TLS, with the lines that `delayq token new` prints."""

    def run_cli(self, server, *words, **variables):
        return subprocess.run([harness.PROGRAM, *words], capture_output=True, text=True, check=False, timeout=harness.DEADLINE,
                              env={**environment(server), **variables})

    def configure(self, text):
        path = self.directory / "delayq.toml"
        path.write_text(text, encoding="utf-8")
        return self.serve("-c", str(path))

    def test_a_token(self):
        made = subprocess.run([harness.PROGRAM, "token", "new", "--scopes", "push", "--topics", "order.*", "--json"],
                              capture_output=True, text=True, check=True)
        token = json.loads(made.stdout)
        server = self.configure(token["toml"])
        secret = token["secret"]
        self.assertEqual(self.run_cli(server, "push", "order.eu", "0", "x", "--token", secret).returncode, 0)
        self.assertEqual(self.run_cli(server, "push", "order.eu", "0", "x", DELAYQ_TOKEN=secret).returncode, 0)
        self.assertEqual(self.run_cli(server, "push", "mail", "0", "x", DELAYQ_TOKEN=secret).returncode, 12, "not its topic")
        without = self.run_cli(server, "push", "order.eu", "0", "x")
        self.assertEqual(without.returncode, 11)
        self.assertIn("Give a token with --token or in DELAYQ_TOKEN", without.stderr)
        wrong = self.run_cli(server, "push", "order.eu", "0", "x", "--token", "dq_wrong")
        self.assertEqual(wrong.returncode, 11)
        self.assertIn("refuses the token", wrong.stderr)
        self.assertNotIn("dq_wrong", wrong.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl here")
    def test_tls(self):
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj",
                        "/CN=delayq", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
                       check=True, capture_output=True)
        server = self.configure(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
        self.assertEqual(self.run_cli(server, "push", "order", "0", "x", "--ca", str(certificate)).returncode, 0)
        self.assertEqual(self.run_cli(server, "push", "order", "0", "x", DELAYQ_CA=str(certificate)).returncode, 0)
        self.assertEqual(self.run_cli(server, "push", "order", "0", "x", "--insecure").returncode, 0)
        stranger = self.run_cli(server, "push", "order", "0", "x", "--tls")
        self.assertEqual(stranger.returncode, 9)
        self.assertIn("--ca FILE", stranger.stderr)
        plain = self.run_cli(server, "push", "order", "0", "x")
        self.assertEqual(plain.returncode, 9)
        self.assertIn("--tls", plain.stderr)


class ShellTest(CliTest):
    BASH = r"""
eval "$(delayq completion bash)"
COMP_LINE=$1 COMP_POINT=${#1}
read -ra COMP_WORDS <<<"$1"
_delayq
printf '%s\n' "${COMPREPLY[@]}"
"""
    ZSH = r"""
autoload -Uz compinit && compinit -u -D
eval "$(delayq completion zsh)"
compadd() { print -l -- $candidates }
_files() { print files }
words=(${(z)1}); [[ $1 == *' ' ]] && words+=("")
CURRENT=$#words
_delayq
"""

    # As a package brings it: a file that zsh loads when it is needed.
    ZSH_AUTOLOAD = ZSH.replace('eval "$(delayq completion zsh)"', r"""
folder=$(mktemp -d) && delayq completion zsh >$folder/_delayq
fpath=($folder $fpath) && autoload -Uz _delayq
trap 'rm -r $folder' EXIT
""")

    def complete(self, shell, script, line):
        folder = self.directory / "bin"
        folder.mkdir(exist_ok=True)
        if not (folder / "delayq").exists():
            (folder / "delayq").symlink_to(pathlib.Path(harness.PROGRAM).resolve())
        values = {**environment(self.server), "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run([shell, "-c", script, shell, line], capture_output=True, text=True, check=False,
                              timeout=harness.DEADLINE, env=values)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def check_shell(self, shell, script):
        self.client.ask("PUSH", "order", "1h", "x")
        self.client.ask("PUSH", "order:eu", "1h", "x")
        self.client.ask("PUSH", "mail", "1h", "x")
        self.assertEqual(self.complete(shell, script, "delayq pu"), ["purge", "push"])
        self.assertIn("serve", self.complete(shell, script, "delayq "))
        self.assertNotIn("complete", self.complete(shell, script, "delayq "))
        self.assertEqual(self.complete(shell, script, "delayq pop --wo"), ["--workers"])
        self.assertEqual(self.complete(shell, script, "delayq top --sort re"), ["ready", "reserved"])
        self.assertEqual(self.complete(shell, script, "delayq completion "), ["bash", "zsh"])
        self.assertEqual(self.complete(shell, script, "delayq pause o"), ["order", "order:eu"])
        self.assertEqual(self.complete(shell, script, "delayq stats "), ["mail", "order", "order:eu"])
        for name in ("nightly", "hourly"):
            self.client.ask("SCHEDULE", "SET", name, "EVERY", "1h", "TOPIC", "order", "BODY", "")
        self.assertEqual(self.complete(shell, script, "delayq schedule re"), ["remove", "resume"])
        self.assertEqual(self.complete(shell, script, "delayq schedule show "), ["hourly", "nightly"])
        self.assertEqual(self.complete(shell, script, "delayq schedule set x --topic m"), ["mail"])

    def test_bash(self):
        self.check_shell("bash", self.BASH)
        self.assertEqual(self.complete("bash", self.BASH, "delayq pause order:"), ["eu"], "bash has the rest already")

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh here")
    def test_zsh(self):
        self.check_shell("zsh", self.ZSH)
        self.assertEqual(self.complete("zsh", self.ZSH_AUTOLOAD, "delayq pu"), ["purge", "push"])

    def test_topics_are_not_waited_for(self):
        self.server.kill()
        self.assertEqual(self.run_cli("complete", "--", "pause", "").stdout, "")


class ManualTest(unittest.TestCase):
    """docs/man/delayq.1 is what the program prints. To write it anew: DELAYQ_WRITE_TEXTS=1 tests/e2e/cli_test.py"""

    def setUp(self):
        self.page = subprocess.run([harness.PROGRAM, "manual"], capture_output=True, text=True, check=True).stdout

    def test_is_what_is_committed(self):
        if os.environ.get("DELAYQ_WRITE_TEXTS"):
            MANUAL.parent.mkdir(exist_ok=True)
            MANUAL.write_text(self.page, encoding="utf-8")
        self.assertEqual(MANUAL.read_text(encoding="utf-8"), self.page, "stale: see this class")

    @unittest.skipUnless(shutil.which("groff"), "there is no groff here")
    def test_is_a_good_page(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=self.page, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class TopTest(CliTest):
    """`delayq top` in a terminal that we are."""

    def start_top(self, *words):
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        self.resize(master, 30, 120)
        self.before = termios.tcgetattr(slave)
        process = subprocess.Popen([harness.PROGRAM, "top", "--interval", "100ms", *words], stdin=slave, stdout=slave, stderr=slave,
                                   env={**environment(self.server), "TERM": "xterm"})
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait(harness.DEADLINE)))
        self.slave = slave
        self.addCleanup(os.close, slave)
        self.screen = b""
        return master, process

    @staticmethod
    def resize(terminal, height, width):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read_until(self, master, condition, what):
        deadline = time.monotonic() + harness.DEADLINE
        while not condition(self.screen):
            self.assertLess(time.monotonic(), deadline, f"never: {what}; the screen: {self.screen[-2000:]}")
            if select.select([master], [], [], 1)[0]:
                self.screen += os.read(master, 1 << 16)

    def last_frame(self):
        return self.screen.rsplit(b"\x1b[H", 1)[-1]

    def test_shows_counts_and_rates_and_leaves_the_terminal_as_it_was(self):
        self.client.ask_all([("PUSH", "order", "1h", "x") for _ in range(7)])
        master, process = self.start_top()
        self.read_until(master, lambda screen: b"order " in screen, "the topic is shown")
        self.assertIn(b"\x1b[?1049h", self.screen, "the alternate screen")
        self.client.ask_all([("PUSH", "mail", "0", "x") for _ in range(3)])
        self.read_until(master, lambda screen: b"mail" in screen, "the new topic is shown")
        os.write(master, b"n")
        self.read_until(master, lambda screen: b"TOPIC*" in screen, "sorted by name")
        self.resize(master, 10, 30)
        self.read_until(master, lambda screen: b"DEAD" not in self.last_frame() and b"READY" in self.last_frame(), "the narrow screen")
        os.write(master, b"q")
        self.assertEqual(process.wait(harness.DEADLINE), 0)
        self.read_until(master, lambda screen: screen.endswith(b"\x1b[?1049l"), "the screen is restored")
        self.assertEqual(termios.tcgetattr(self.slave), self.before)

    def test_restores_the_terminal_on_signals(self):
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
            master, process = self.start_top()
            self.read_until(master, lambda screen: b"all topics" in screen, "the screen")
            process.send_signal(number)
            self.assertEqual(process.wait(harness.DEADLINE), 0)
            self.read_until(master, lambda screen: screen.endswith(b"\x1b[?1049l"), "the screen is restored")
            self.assertEqual(termios.tcgetattr(self.slave), self.before)

    def test_asks_for_pages_of_many_topics(self):
        self.client.ask_all([("PUSH", f"t{i:05}", "1h", "x") for i in range(2_000)])
        master, process = self.start_top("--sort", "name", "--page", "1000")
        self.read_until(master, lambda screen: b"2,000 topics" in screen and b"t00001" in screen, "the first page")
        self.assertNotIn(b"t01000", self.screen)
        os.write(master, b">")
        self.read_until(master, lambda screen: b"t01000" in screen and b"from 1,001" in screen, "the second page")
        os.write(master, b"q")
        self.assertEqual(process.wait(harness.DEADLINE), 0)

    def test_goes_on_when_the_server_is_away(self):
        master, process = self.start_top()
        self.read_until(master, lambda screen: b"all topics" in screen, "the screen")
        self.server.kill()
        self.read_until(master, lambda screen: b"NOT NEW" in screen, "it says so")
        os.write(master, b"\x03")
        self.assertEqual(process.wait(harness.DEADLINE), 0)


if __name__ == "__main__":
    harness.main()
