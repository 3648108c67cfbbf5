"""Schedules of the configuration file: they are set at the start and at a reload, and travel with an export."""
import json
import signal
import subprocess

import harness
from harness import PROGRAM

FILE = """
[schedules.nightly-report]
cron = "0 2 * * *"
zone = "Asia/Shanghai"
topic = "report"
body = '{"kind":"daily"}'
[schedules.often]
every = "10s"
start = "2020-01-01T00:00:00Z"
topic = "tick"
"""


class ConfiguredSchedules(harness.ServerTest):
    def write(self, text):
        (self.directory / "delayq.toml").write_text(text, encoding="utf-8")

    def serve_file(self, *options):
        log = self.directory / "delayq.log"
        server = self.serve("-c", str(self.directory / "delayq.toml"), "-t", "memory", "--set", f"log.file={log}", "--set", "log.level=info",
                            *options)
        return server, log

    def schedules(self, server):
        lines = self.connect(server).ask("EXPORT")[1]
        return {line["schedule"]: line for line in map(json.loads, lines) if "schedule" in line}

    def test_they_are_set_at_the_start_and_at_a_reload(self):
        self.write(FILE)
        server, log = self.serve_file()
        found = self.schedules(server)
        self.assertEqual(sorted(found), ["nightly-report", "often"])
        nightly = found["nightly-report"]
        self.assertEqual((nightly["cron"], nightly["zone"], nightly["body"]), ("0 2 * * *", "Asia/Shanghai", {"kind": "daily"}))
        self.assertTrue(nightly["from_configuration"])

        self.write(FILE.replace("0 2 * * *", "0 3 * * *").split("[schedules.often]", maxsplit=1)[0])
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.schedules(server)["nightly-report"]["cron"] == "0 3 * * *", "it is as the file says")
        told = "schedule \"often\" is no longer in the configuration; it is left as it is: delayq schedule remove often"
        self.wait_for(lambda: told in log.read_text(), "what stays is told")
        self.assertIn("often", self.schedules(server))
        self.assertEqual(self.schedules(server)["nightly-report"]["progress"]["created_at"], nightly["progress"]["created_at"])

        self.write("[schedules.nightly-report]\ncron = \"0 0 30 2 *\"\n")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "the configuration stays as it was" in log.read_text(), "a wrong file changes nothing")
        self.assertEqual(self.schedules(server)["nightly-report"]["cron"], "0 3 * * *")

    def test_what_is_above_the_limit_is_told_and_the_server_starts(self):
        self.write(FILE)
        server, log = self.serve_file("--set", "limits.schedules=1")
        self.assertEqual(len(self.schedules(server)), 1)
        self.assertIn("is not as configured, and is tried again at the next reload: there are 1 schedules", log.read_text())

    def test_they_travel_with_an_export(self):
        self.write(FILE)
        one, _ = self.serve_file()
        lines = self.connect(one).ask("EXPORT", "TOPIC", "report")[1]
        self.assertEqual([json.loads(line)["schedule"] for line in lines], ["nightly-report"])
        self.assertEqual(self.connect(one).ask("EXPORT", "TOPIC", "report", "STATE", "ready")[1], [])
        other = harness.Server(self.directory / "other", "-t", "memory")
        self.addCleanup(other.close)
        exported = subprocess.run([PROGRAM, "export", "--topic", "report", "--resp", f"127.0.0.1:{one.port}"], capture_output=True,
                                  timeout=harness.DEADLINE, check=True)
        done = subprocess.run([PROGRAM, "import", "-", "--resp", f"127.0.0.1:{other.port}"], input=exported.stdout, capture_output=True,
                              timeout=harness.DEADLINE, check=True)
        self.assertEqual(json.loads(done.stdout)["created"], 1)
        self.assertEqual(self.schedules(other)["nightly-report"], self.schedules(one)["nightly-report"])


if __name__ == "__main__":
    harness.main()
