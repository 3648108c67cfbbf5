"""The server among the systems around it: in the background, under a service manager, with logs that others move."""
import fcntl
import hashlib
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import termios
import time
import unittest
import urllib.request

import harness
from harness import DEADLINE, PROGRAM, ROOT

LOCAL = ("--resp", "127.0.0.1:0", "--http", "127.0.0.1:0")


class Operations(harness.ServerTest):
    def run_program(self, *arguments, **more):
        return subprocess.run([PROGRAM, *arguments], text=True, capture_output=True, timeout=DEADLINE, check=False,
                              cwd=self.directory, **more)

    def wait_until_gone(self, process):
        """Also for a process that is not our child."""
        descriptor = os.pidfd_open(process)
        self.addCleanup(os.close, descriptor)
        self.assertTrue(select.select([descriptor], [], [], DEADLINE)[0], f"process {process} did not end")

    def kill_if_there(self, process):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    # ---- in the background

    def test_a_daemon_is_ready_when_the_command_returns_and_stops_by_its_pid_file(self):
        pid_file, log = self.directory / "delayq.pid", self.directory / "delayq.log"
        done = self.run_program("serve", "-d", *LOCAL, "--pid-file", str(pid_file), "--set", f"log.file={log}")
        self.assertEqual(done.returncode, 0, done.stderr)
        process = int(pid_file.read_text())
        self.addCleanup(self.kill_if_there, process)
        client = harness.Client(int(re.search(r"redis-cli -p (\d+)", done.stdout)[1]))
        self.addCleanup(client.close)
        client.ask("PUSH", "t", "1h", "b", "ID", "a")
        self.assertNotEqual(os.getsid(process), os.getsid(0))
        for number in range(3):
            self.assertEqual(os.readlink(f"/proc/{process}/fd/{number}"), "/dev/null")

        again = self.run_program("serve", *LOCAL, "--data", "other", "--pid-file", str(pid_file))
        self.assertEqual(again.returncode, 9)
        self.assertIn(f"held by process {process}", again.stderr)
        self.assertEqual(int(pid_file.read_text()), process)

        os.kill(process, signal.SIGTERM)
        self.wait_until_gone(process)
        self.assertFalse(pid_file.exists())
        self.assertIn("stopped; everything that was answered is on disk", log.read_text())

    def test_a_daemon_that_cannot_start_says_so_and_fails(self):
        server = self.serve()
        taken = self.run_program("serve", "-d", *LOCAL, "--data", str(server.data), "--pid-file", "x.pid")
        self.assertEqual(taken.returncode, 9)
        self.assertIn(str(server.data), taken.stderr)
        self.assertFalse((self.directory / "x.pid").exists())
        self.assertEqual(self.run_program("serve", "-d", "--set", "server.grace=soon").returncode, 2)

    def test_a_pid_file_of_a_killed_server_is_taken_over(self):
        pid_file = self.directory / "delayq.pid"
        server = self.serve("--pid-file", str(pid_file))
        server.kill()
        self.assertTrue(pid_file.exists())
        server.start()
        self.assertEqual(int(pid_file.read_text()), server.process.pid)

    def test_a_server_in_a_terminal_stops_when_that_is_closed(self):
        terminal, end = self.open_terminal()

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        log = self.directory / "delayq.log"
        process = subprocess.Popen([PROGRAM, "serve", *LOCAL, "--set", f"log.file={log}"], stdin=end, stdout=subprocess.PIPE,
                                   cwd=self.directory, preexec_fn=take_terminal)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, DEADLINE)
        self.addCleanup(process.kill)
        os.close(end)
        while b"Ctrl-C" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "SIGHUP:" in log.read_text(), "with a terminal it is a reload")
        os.close(terminal)
        self.assertEqual(process.wait(DEADLINE), 0)
        self.assertIn("the terminal was closed", log.read_text())

    # ---- under a service manager

    def listen_for_news(self, name):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.settimeout(DEADLINE)
        listener.bind(name)
        return lambda: listener.recv(4096).decode().split("\n")

    def serve_under(self, **environment):
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            return self.serve()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def test_systemd_is_told_of_a_life(self):
        for name, given in ((str(self.directory / "notify"), None), (f"\0delayq-{os.getpid()}", f"@delayq-{os.getpid()}")):
            news = self.listen_for_news(name)
            server = self.serve_under(NOTIFY_SOCKET=given or name)
            ready = news()
            self.assertEqual(ready[:2], ["READY=1", f"MAINPID={server.process.pid}"])
            self.assertRegex(ready[2], r"STATUS=delayq \S+ listens on 127\.0\.0\.1:\d+ \(HTTP\)")
            server.process.send_signal(signal.SIGHUP)
            reloading = news()
            self.assertEqual(reloading[0], "RELOADING=1")
            self.assertGreater(int(reloading[1].removeprefix("MONOTONIC_USEC=")), 0)
            self.assertEqual(news(), ready)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(news()[0], "STOPPING=1")
            self.assertEqual(server.process.wait(DEADLINE), 0)

    def test_an_idle_server_gives_signs_of_life(self):
        news = self.listen_for_news(str(self.directory / "notify"))
        began = time.monotonic()
        self.serve_under(NOTIFY_SOCKET=str(self.directory / "notify"), WATCHDOG_USEC="400000")
        signs = 0
        while signs < 5:
            signs += news() == ["WATCHDOG=1"]
        self.assertGreater(time.monotonic() - began, 0.6, "it does more than it was asked for")

    # ---- logs

    def test_logs_are_opened_again_at_a_sighup(self):
        log, access = self.directory / "delayq.log", self.directory / "access.log"
        server = self.serve("--set", f"log.file={log}", "--set", f"log.access={access}", "--set", "log.format=json",
                            "--set", "log.level=info")
        for path in (log, access):
            path.rename(path.with_suffix(".moved"))
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: log.exists() and access.exists(), "the files are there again")
        self.assertEqual(server.stop()[0], 0)
        messages = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertIn("stopping: SIGTERM", [each["message"] for each in messages])
        self.assertEqual({each["level"] for each in messages}, {"info"})
        self.assertTrue(log.with_suffix(".moved").read_text().startswith('{"time":"'))

    def test_each_request_is_a_line_without_what_is_in_it(self):
        access = self.directory / "access.log"
        server = self.serve("--set", f"log.access={access}", "--set", "log.format=json")
        self.ask(server, "POST", "/v1/topics/order/jobs?unknown=classified", body=b'{"body": "classified", "id": "a"}')
        self.ask(server, "GET", "/v1/topics/order/jobs/none")
        self.connect(server).ask("PUSH", "order", "1h", "classified")
        self.assertEqual(server.stop()[0], 0)
        text = access.read_text()
        self.assertNotIn("classified", text)
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([(line["verb"], line["target"]) for line in lines],
                         [("POST", "/v1/topics/order/jobs"), ("GET", "/v1/topics/order/jobs/none"), ("PUSH", "order")])
        self.assertEqual(lines[1]["status"], 404)
        self.assertEqual(lines[1]["code"], "not_found")
        self.assertTrue(all(line["bytes_in"] > 0 or line["bytes_out"] > 0 for line in lines))
        self.assertTrue(all(line["took_us"] > 0 for line in lines), lines)
        for line in lines:
            self.assertRegex(line["peer"], r"^127\.0\.0\.1:\d+$")

    def test_tokens_are_read_again_at_a_sighup_and_refusals_are_in_the_log(self):
        config, log = self.directory / "delayq.toml", self.directory / "delayq.log"

        def write(secret, more=""):
            digest = hashlib.sha256(secret.encode()).hexdigest()
            config.write_text(f'[[tokens]]\nname = "shop"\nsha256 = "{digest}"\nscopes = ["push"]\n{more}')

        def status(secret):
            return self.ask(server, "POST", "/v1/topics/t/jobs", body=b'{"body": 1}', Authorization=f"Bearer {secret}")

        write("old-secret")
        server = self.serve("-c", str(config), "--set", f"log.file={log}")
        self.assertEqual(status("old-secret"), 201)
        self.assertEqual(status("new-secret"), 401)
        write("new-secret", "[nonsense]\n")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "stays as it was" in log.read_text(), "the error is told")
        self.assertEqual(status("old-secret"), 201)
        write("new-secret")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: status("new-secret") == 201, "the new one is known")
        self.assertEqual(status("old-secret"), 401)
        self.assertRegex(log.read_text(), r"warning turned away: http \S+ \S+ POST /v1/topics/t/jobs: unauthorized")
        self.assertNotIn("secret", log.read_text())

    def test_topics_are_read_again_at_a_sighup(self):
        config = self.directory / "delayq.toml"
        config.write_text('[topics."*"]\nlease = "7s"\n[topics.order]\nattempts = 3\n')
        server = self.serve("-c", str(config))

        def settings(topic):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/v1/topics/{topic}", timeout=DEADLINE) as answer:
                said = json.load(answer)["settings"]
            return said["lease"], said["attempts"]

        self.assertEqual(self.ask(server, "POST", "/v1/topics/other/jobs", body=b'{"body": 1}'), 201)
        self.assertEqual((settings("order"), settings("other")), (("7s", 3), ("7s", 16)))
        config.write_text('[topics."*"]\nlease = "9s"\n[topics.order]\nattempts = 4\n')
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: settings("order") == ("9s", 4), "the new ones hold")
        self.assertEqual(settings("other"), ("9s", 16))

    def ask(self, server, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)
        self.addCleanup(connection.close)
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        response.read()
        return response.status

    def test_a_log_that_cannot_be_written_is_named(self):
        for key in ("log.file", "log.access", "server.pid_file"):
            done = self.run_program("serve", *LOCAL, "--set", f"{key}=/proc/none/x")
            self.assertEqual(done.returncode, 9, done.stderr)
            self.assertIn(f"{key}: /proc/none/x", done.stderr)
        self.assertFalse((self.directory / "data").exists(), "something was started")

    def test_it_serves_on_when_the_reader_of_its_log_is_gone(self):
        ends = os.pipe()
        # pylint: disable=consider-using-with
        process = subprocess.Popen([PROGRAM, "serve", *LOCAL, "--data", str(self.directory / "data")], stdout=subprocess.PIPE,
                                   stderr=ends[1], text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(ends[1])
        line = process.stdout.readline()
        while line and not (found := re.search(r"redis-cli -p (\d+)", line)):
            line = process.stdout.readline()
        os.close(ends[0])
        process.send_signal(signal.SIGHUP)  # which it says in its log
        client = harness.Client(int(found[1]))
        self.addCleanup(client.close)
        self.assertEqual(client.ask("PING"), "PONG")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 0)

    # ---- configuration

    def test_config_check_tells_everything_at_once_and_starts_nothing(self):
        config = self.directory / "delayq.toml"
        config.write_text('[server]\nhttp = "0.0.0.0:1"\ngrace = "soon"\n\n[log]\nformat = "xml"\n')
        done = self.run_program("config", "check", "-c", "delayq.toml", env={"DELAYQ_LOG_KEEP_DAYS": "many"})
        self.assertEqual(done.returncode, 2)
        for part in ("delayq.toml:3: server.grace: ", "delayq.toml:6: log.format: ", "DELAYQ_LOG_KEEP_DAYS",
                     "server.http: 0.0.0.0:1 can be reached"):
            self.assertIn(part, done.stderr)
        self.assertEqual(os.listdir(self.directory), ["delayq.toml"])

    def test_config_check_prints_what_is_in_force(self):
        (self.directory / "delayq.toml").write_text('[server]\ngrace = "3s"\n[topics."a.b"]\nattempts = 2\n')
        done = self.run_program("config", "check", "-c", "delayq.toml", "--data", "/elsewhere", "--print",
                                env={"DELAYQ_LOG_SLOW": "2s"})
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ('grace = "3s"  # delayq.toml:2', 'data = "/elsewhere"  # command line', 'slow = "2s"  # DELAYQ_LOG_SLOW',
                     'engine = "journal"  # default', '[topics."a.b"]'):
            self.assertIn(line, done.stdout.splitlines())
        (self.directory / "again.toml").write_text(done.stdout)
        again = self.run_program("config", "check", "-c", "again.toml")
        self.assertEqual((again.returncode, again.stdout), (0, "again.toml is right.\n"))

    def test_config_example_is_the_committed_file(self):
        done = self.run_program("config", "example")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, (ROOT / "conf" / "delayq.example.toml").read_text())


class Unit(unittest.TestCase):
    """conf/delayq.service, as systemd itself reads it."""

    def setUp(self):
        self.unit = ROOT / "conf" / "delayq.service"
        if not pathlib.Path("/usr/bin/systemd-analyze").exists():
            self.skipTest("there is no systemd-analyze")

    def analyze(self, *arguments):
        return subprocess.run(["/usr/bin/systemd-analyze", *arguments], text=True, capture_output=True, timeout=DEADLINE,
                              check=False)

    def test_it_is_valid(self):
        with harness.tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "delayq.service"
            copy.write_text(self.unit.read_text().replace("/usr/bin/delayq", PROGRAM))
            done = self.analyze("verify", "--man=no", str(copy))
        complaints = [line for line in done.stderr.splitlines() if "delayq.service" in line]
        self.assertEqual((done.returncode, complaints), (0, []), done.stderr)

    def test_it_is_a_sandbox(self):
        done = self.analyze("security", "--offline=true", "--no-pager", str(self.unit))
        found = re.search(r"exposure level for delayq\.service: ([\d.]+)", done.stdout)
        self.assertIsNotNone(found, done.stdout + done.stderr)
        self.assertLess(float(found[1]), 2.0, done.stdout)


if __name__ == "__main__":
    harness.main()
