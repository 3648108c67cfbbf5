"""`delayq migrate`: everything of one server, or data directory, into another one."""
import json
import os
import signal
import subprocess

import harness
import redis_topology
from transfer_test import after_import, fill


class MigrateTest(harness.ServerTest):
    def another(self, name, *options):
        server = harness.Server(self.directory / name, *options)
        self.addCleanup(server.close)
        return server

    def migrate(self, source, target, *options, code=0):
        done = subprocess.run([harness.PROGRAM, "migrate", "--from", source, "--to", target, *options], capture_output=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return json.loads(done.stdout) if done.stdout else done.stderr.decode()

    @staticmethod
    def url(server, token=""):
        return f"delayq://{token}127.0.0.1:{server.port}"

    def lines(self, server):
        done = subprocess.run([harness.PROGRAM, "export", "--server", f"127.0.0.1:{server.port}"], capture_output=True,
                              timeout=harness.DEADLINE, check=True)
        return done.stdout.decode().splitlines()


class Migrate(MigrateTest):
    def test_from_one_engine_to_another_and_back_again(self):
        one = self.serve()
        fill(self.connect(one))
        before = self.lines(one)
        other = self.another("other", "--engine", "memory")
        told = self.migrate(self.url(one), self.url(other))
        self.assertTrue(told["dry_run"])
        self.assertEqual([row["from"]["waiting"] for row in told["topics"]], [1, 2502, 1])
        self.assertEqual(self.lines(other), [], "a dry run stores nothing")

        told = self.migrate(self.url(one), self.url(other), "--yes")
        self.assertEqual((told["created"], told["failed"]), (len(before), 0))
        for row in told["topics"]:
            for kind in ("waiting", "done", "dead"):
                self.assertEqual(row["from"][kind], row["to"][kind], told)
        self.assertEqual(sorted(self.lines(other)), after_import(before))
        self.assertEqual(self.lines(one), before, "the source is as it was")

        again = self.migrate(self.url(one), self.url(other), "--yes")
        self.assertEqual((again["created"], again["kept"]), (0, len(before)))

    def test_from_a_directory(self):
        one = self.serve()
        fill(self.connect(one))
        before = self.lines(one)
        self.assertEqual(one.stop()[0], 0)
        other = self.another("other", "--engine", "memory")
        told = self.migrate(str(self.directory / "data"), self.url(other), "--yes")
        self.assertEqual(told["created"], len(before))
        self.assertEqual(sorted(self.lines(other)), after_import(before))

    def test_what_is_missing_at_the_end_is_told(self):
        one = self.serve()
        self.connect(one).ask("PUSH", "t", "1h", "x" * 2000, "ID", "large")
        small = self.another("other", "--set", "limits.body=1KiB")
        self.migrate(self.url(one), self.url(small), "--yes", code=3)

    def test_places_that_are_none(self):
        server = self.serve()
        for place, words in [("http://127.0.0.1:1", "at its port for RESP, 9278"), ("redis://127.0.0.1:1", "cannot be reached"),
                             ("redis://127.0.0.1:1?database=1", "prefix=NAME"), ("delayq://nowhere", "--from"), ("here", "--from")]:
            done = subprocess.run([harness.PROGRAM, "migrate", "--from", place, "--to", self.url(server)], capture_output=True, check=False)
            self.assertNotEqual(done.returncode, 0, done.stderr)
            self.assertIn(words, done.stderr.decode())


class BetweenEngines(MigrateTest):
    """Data directories and Redises, without a server between, in each direction."""
    redis = None

    @classmethod
    def setUpClass(cls):
        cls.redis = redis_topology.One()
        cls.addClassCleanup(cls.redis.close)

    def setUp(self):
        super().setUp()
        self.redis.redis.ask("FLUSHALL")

    def over(self, name, url, *options):
        return self.another(name, "--engine", "redis", "--redis", url, *options)

    def filled_directory(self):
        server = self.serve()
        fill(self.connect(server))
        lines = self.lines(server)
        self.assertEqual(server.stop()[0], 0)
        return str(self.directory / "data"), lines

    def lines_in(self, url, name="look"):
        server = self.over(name, url)
        lines = sorted(self.lines(server))
        self.assertEqual(server.stop()[0], 0)
        return lines

    def test_from_a_journal_to_redis_and_back(self):
        data, before = self.filled_directory()
        told = self.migrate(data, self.redis.url)
        self.assertEqual([row["to"]["waiting"] for row in told["topics"]], [0, 0, 0], "a dry run stores nothing")
        told = self.migrate(data, self.redis.url, "--yes")
        self.assertEqual((told["created"], told["removed"]), (len(before), 0))
        self.assertEqual(self.lines_in(self.redis.url), after_import(before))

        empty = self.another("back")
        self.assertEqual(empty.stop()[0], 0)
        told = self.migrate(self.redis.url, str(self.directory / "back"), "--yes", "--remove")
        jobs = len([line for line in before if '"id"' in line])
        self.assertEqual(told["removed"], jobs, told)
        empty.start()
        self.assertEqual(sorted(self.lines(empty)), after_import(before))
        self.assertEqual([line for line in self.lines_in(self.redis.url) if '"id"' in line], [], "all were moved")

    def test_two_names_of_one_place_lose_nothing(self):
        server = self.over("one", self.redis.url)
        fill(self.connect(server))
        before = self.lines(server)
        for source, target in ((self.redis.url, self.redis.url + "/0"), (self.url(server), self.redis.url),
                               (self.redis.url, self.url(server)), (self.url(server), f"delayq://localhost:{server.port}")):
            for options in (["--yes"], ["--yes", "--remove"]):
                self.assertIn("it is the same place", self.migrate(source, target, *options, code=2))
        self.assertEqual(self.lines(server), before)

    def test_from_redis_to_a_cluster(self):
        server = self.over("one", self.redis.url)
        fill(self.connect(server))
        before = self.lines(server)
        with redis_topology.Cluster() as cluster:
            told = self.migrate(self.redis.url, cluster.url + "?prefix=other", "--yes")
            self.assertEqual((told["created"], told["failed"]), (len(before), 0))
            other = self.over("two", cluster.url, "--set", "redis.prefix=other")
            self.assertEqual(sorted(self.lines(other)), after_import(before))
            other.close()

    def test_a_move_leaves_what_is_running(self):
        data, before = self.filled_directory()
        done = subprocess.run([harness.PROGRAM, "migrate", "--from", data, "--to", self.redis.url, "--yes", "--remove"],
                              capture_output=True, timeout=harness.DEADLINE, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("topic work: 1 are with consumers of the source", done.stderr.decode())
        moved = sorted(line for line in before if '"state":"reserved"' not in line)
        self.assertEqual(self.lines_in(self.redis.url), moved)
        server = self.serve()
        left = [json.loads(line)["id"] for line in self.lines(server) if '"id"' in line]
        self.assertEqual(left, ["running", "done", "dead"], "what is finished stays while its topic is not")
        client = self.connect(server)
        client.ask("PURGE", "work", "reserved")
        told = self.migrate(self.url(server), self.redis.url, "--yes", "--remove")
        self.assertEqual((told["kept"], told["removed"]), (3, 2), "settings, and the two")

    def test_it_is_killed_and_run_again(self):
        choices = harness.new_random()
        server = self.serve()
        client = self.connect(server)
        for begin in range(0, 20_000, 1000):
            client.ask_all([("PUSH", f"t{i % 3}", "1h", f"body {i}", "ID", f"job{i}") for i in range(begin, begin + 1000)])
        before = sorted(self.lines(server))
        self.assertEqual(server.stop()[0], 0)
        data = str(self.directory / "data")
        kills = 0
        for _ in range(12):
            process = subprocess.Popen([harness.PROGRAM, "migrate", "--from", data, "--to", self.redis.url, "--yes", "--remove"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # Some time on its way, told by what Redis has so far.
            wanted = choices.randrange(20_000)
            self.wait_for(lambda: process.poll() is not None or self.stored() >= wanted, "it gets on")  # pylint: disable=cell-var-from-loop
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            process.wait(harness.DEADLINE)
            if process.returncode == 0:
                break
        told = self.migrate(data, self.redis.url, "--yes", "--remove")
        self.assertEqual(told["failed"], 0)
        self.assertEqual(self.lines_in(self.redis.url), before, "none is lost or there twice")
        print(f"killed {kills} times")
        self.assertEqual([line for line in self.lines(self.serve()) if '"id"' in line], [])

    def stored(self):
        return sum(self.redis.redis.ask("HLEN", f"delayq:{{0}}:job:t{i}") for i in range(3))


if __name__ == "__main__":
    harness.main()
