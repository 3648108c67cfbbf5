"""SIGTERM while schedules are due and their Redis is away: the server ends in bounded time, and each occurrence is made once."""
import datetime
import json
import signal
import subprocess
import time

import harness
import redis_topology
from redis_harness import RedisTest

SCHEDULES = 200
GRACE = "2s"
UNAVAILABLE = 9  # the exit code: what got no answer may not be stored
BOUND = 30.0  # grace, and what the server waits for a last count and its last answers


class StoppingWithSchedules(RedisTest):
    def start_over(self, kind, *options):
        self.start(kind, *options)
        self.server = self.serve_over()
        client = self.connect(self.server)
        for reply in client.ask_all([("SCHEDULE", "SET", f"s{i}", "CRON", "* * * * * *", "MISSED", "all", "TOPIC", "t", "BODY", "x")
                                     for i in range(SCHEDULES)]):
            self.assertNotIsInstance(reply, harness.Refused)
        self.wait_for(lambda: client.stats("t")["ready"] >= SCHEDULES, "some occurrences")

    def serve_over(self):
        return self.over("--set", f"server.grace={GRACE}", "--set", "redis.start_wait=1m")

    def stop_within_bound(self, server):
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(BOUND)
        return code, time.monotonic() - begun, server.read_said()

    def assert_each_once(self, server):
        """All occurrences of each schedule, from its first to its last, are there, as jobs that nobody has taken."""
        client = self.connect(server)
        self.wait_for(lambda: self.behind(client) <= 2, "it has caught up")
        done = subprocess.run([harness.PROGRAM, "export", "--server", f"127.0.0.1:{server.port}"], capture_output=True,
                              timeout=harness.DEADLINE, check=True)
        seconds = {}
        for line in done.stdout.decode().splitlines():
            job = json.loads(line)
            if "id" not in job:
                continue
            name, when = job["id"].split("@")
            self.assertEqual(job.get("attempts", 0), 0)
            seconds.setdefault(name, []).append(int(datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()))
        self.assertEqual(len(seconds), SCHEDULES)
        for name, made in seconds.items():
            made.sort()
            self.assertEqual(made, list(range(made[0], made[0] + len(made))), f"{name}: none is missing, none is twice")

    @staticmethod
    def behind(client):
        """How many seconds ago the last occurrence of the slowest was."""
        _, schedules = client.ask("SCHEDULE", "LIST", "COUNT", "1000")
        last = min(each[each.index(b"previous_ms") + 1] for each in schedules)
        return time.time() - last / 1000

    def test_redis_is_killed_and_does_not_come_back(self):
        self.start_over(redis_topology.One, "--appendonly", "yes", "--appendfsync", "always")
        self.topology.masters()[0].kill()
        code, took, said = self.stop_within_bound(self.server)
        self.assertEqual(code, UNAVAILABLE, said)
        self.assertIn("stopped without a flush", said)
        self.assertLess(took, BOUND)
        self.topology.masters()[0].start()
        self.assert_each_once(self.serve_over())

    def test_redis_is_killed_after_the_signal(self):
        self.start_over(redis_topology.One, "--appendonly", "yes", "--appendfsync", "always")
        client = self.connect(self.server)
        client.ask("PUSH", "held", "0", "x")
        client.ask("POP", "held", "LEASE", "1h")  # a consumer keeps it from stopping at once
        self.server.process.send_signal(signal.SIGTERM)
        self.topology.masters()[0].kill()
        self.server.process.wait(BOUND)
        self.topology.masters()[0].start()
        self.assert_each_once_but_held()

    def assert_each_once_but_held(self):
        server = self.serve_over()
        self.connect(server).ask("PURGE", "held")
        self.assert_each_once(server)

    def test_redis_hangs(self):
        self.start_over(redis_topology.One, "--appendonly", "yes", "--appendfsync", "always")
        master = self.topology.masters()[0]
        master.pause()
        code, took, said = self.stop_within_bound(self.server)
        master.resume()
        self.assertEqual(code, UNAVAILABLE, said)
        self.assertIn("stopped without a flush", said)
        self.assertLess(took, BOUND)
        self.assert_each_once(self.serve_over())

    def test_the_other_server_goes_on(self):
        self.start_over(redis_topology.One)
        other = self.serve_over()
        code, _, said = self.stop_within_bound(self.server)
        self.assertEqual(code, 0, said)
        self.assert_each_once(other)


if __name__ == "__main__":
    harness.main()
