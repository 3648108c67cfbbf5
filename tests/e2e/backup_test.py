"""A copy of the data is made while producers push and cancel, and while the server is killed. What was answered before it
began is in it, nothing is in it twice, and the server goes on."""
import http.client
import itertools
import json
import subprocess
import threading
from contextlib import closing, suppress

import harness
from harness import PROGRAM, Refused

TOPIC = "order"
BATCH = 50


def ids_of(client):
    """The ids of all jobs, by a walk over everything."""
    cursor, ids = b"", []
    while True:
        cursor, lines = client.ask("EXPORT", *(["CURSOR", cursor] if cursor else []))
        ids += [json.loads(line)["id"] for line in lines]
        if not cursor:
            return ids


class Load(threading.Thread):
    """Pushes jobs for tomorrow and takes some of them back, until it is told to stop or the server is gone."""

    def __init__(self, port, name, random):
        super().__init__(daemon=True)
        self.port, self.label, self.random = port, name, random
        self.stops = threading.Event()
        self.sent, self.answered = set(), set()
        self.cancel_sent, self.cancelled = set(), set()

    def run(self):
        with suppress(OSError), closing(harness.Client(self.port)) as client:
            for batch in itertools.count():
                if self.stops.is_set():
                    return
                ids = [f"{self.label}-{batch}-{i}" for i in range(BATCH)]
                self.sent.update(ids)
                client.send(*[("PUSH", TOPIC, "24h", name * 20, "ID", name) for name in ids])
                for name in ids:
                    assert not isinstance(client.read(), Refused)
                    self.answered.add(name)
                gone = self.random.sample(ids, BATCH // 2)
                self.cancel_sent.update(gone)
                client.send(*[("CANCEL", TOPIC, name) for name in gone])
                for name in gone:
                    assert client.read() == "cancelled"
                    self.cancelled.add(name)

    def finish(self):
        self.stops.set()
        self.join(harness.DEADLINE)
        assert not self.is_alive()


class Backup(harness.ServerTest):
    def start(self):
        server = self.serve("--set", "journal.segment=1MiB", "--set", f"server.backups={self.directory / 'backups'}")
        client = self.connect(server)
        for first in range(0, 10000, 1000):
            client.ask_all([("PUSH", TOPIC, "1h", f"old {i}" * 100, "ID", f"old-{i}") for i in range(first, first + 1000)])
        return server, client

    def load(self, server, count=2):
        random = harness.new_random()
        threads = [Load(server.port, f"load{i}", random) for i in range(count)]
        for thread in threads:
            thread.start()
        self.wait_for(lambda: all(thread.cancelled for thread in threads), "the load runs")
        return threads

    def serve_copy(self, name):
        path = self.directory / "backups" / name
        checked = subprocess.run([PROGRAM, "check", str(path)], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        copy = harness.Server(path)
        self.addCleanup(copy.close)
        return self.connect(copy)

    def test_a_copy_under_load_has_what_was_answered(self):
        server, client = self.start()
        threads = self.load(server)
        answered = set().union(*[set(thread.answered) for thread in threads])
        cancelled = set().union(*[set(thread.cancelled) for thread in threads])
        report = client.ask("BACKUP", "nightly")
        report = dict(zip(report[::2], report[1::2]))
        for thread in threads:
            thread.finish()
        sent = set().union(*[thread.sent for thread in threads])
        cancel_sent = set().union(*[thread.cancel_sent for thread in threads])
        self.assertEqual(report[b"path"].decode(), str(self.directory / "backups" / "nightly"))
        size = sum(file.stat().st_size for file in (self.directory / "backups" / "nightly").iterdir())
        self.assertEqual(report[b"bytes"], size)

        ids = ids_of(self.serve_copy("nightly"))
        self.assertEqual(len(ids), len(set(ids)), "a job is there twice")
        ids = set(ids)
        old = {f"old-{i}" for i in range(10000)}
        self.assertEqual(old - ids, set(), "answered before, and not in the copy")
        self.assertEqual((answered - cancel_sent) - ids, set(), "answered before, and not in the copy")
        self.assertEqual(cancelled & ids, set(), "cancelled before, and in the copy")
        self.assertEqual(ids - old - sent, set(), "nobody pushed that")
        self.assertGreaterEqual(report[b"jobs"], len(old))
        # The original has not noticed anything.
        now = set(ids_of(client))
        self.assertEqual(now, old | (sent - cancel_sent))

    def test_killed_in_the_middle_it_leaves_nothing_that_looks_whole(self):
        server, client = self.start()
        threads = self.load(server)
        client.send(("BACKUP", "cut"))
        partial = self.directory / "backups" / "cut.partial"
        self.wait_for(partial.exists, "the copy has begun")
        server.kill()
        for thread in threads:
            thread.finish()
        self.assertFalse((self.directory / "backups" / "cut").exists() and partial.exists())
        was_complete = (self.directory / "backups" / "cut").exists()
        server.start()
        client = self.connect(server)
        alive = set(ids_of(client))
        answered = set().union(*[thread.answered - thread.cancel_sent for thread in threads])
        self.assertEqual(answered - alive, set(), "answered, and gone")
        name = "again" if was_complete else "cut"
        client.ask("BACKUP", name)
        self.assertFalse(partial.exists(), "what was left of the other is gone")
        self.assertEqual(set(ids_of(self.serve_copy(name))), alive)

    def test_cleaning_goes_on_afterwards(self):
        server, client = self.start()
        client.ask("BACKUP", "one")
        with self.assertRaises(Refused) as again:
            client.ask("BACKUP", "one")
        self.assertEqual(again.exception.code, "CONFLICT")
        with self.assertRaises(Refused) as wrong:
            client.ask("BACKUP", "../one")
        self.assertEqual(wrong.exception.code, "INVALID")
        client.ask_all([("CANCEL", TOPIC, f"old-{i}") for i in range(10000)])

        def is_small():
            client.ask_all([("PUSH", "churn", "1h", "x" * 10000, "ID", "x", "REPLACE") for _ in range(100)])
            return client.stats()["disk_bytes"] < 8 << 20

        self.wait_for(is_small, "the disk is given back")

    def test_from_the_command_line_and_over_http(self):
        server, _ = self.start()
        done = subprocess.run([PROGRAM, "backup", "by-hand", "--resp", f"127.0.0.1:{server.port}"], capture_output=True, text=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["path"], str(self.directory / "backups" / "by-hand"))
        self.assertEqual(int(report["jobs"]), 10000)
        status, body = self.post(server, "/v1/backups", {"name": "by-http"})
        self.assertEqual(status, 201, body)
        self.assertTrue((self.directory / "backups" / "by-http").is_dir())
        self.assertEqual(self.post(server, "/v1/backups", {"name": "by-http"})[0], 409)

    @staticmethod
    def post(server, path, value):
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)
        with closing(connection):
            connection.request("POST", path, json.dumps(value), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())


if __name__ == "__main__":
    harness.main()
