"""`delayq migrate`: everything of one server, or data directory, into another one."""
import datetime
import json
import os
import pathlib
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

    def test_schedules_are_copied_and_moved(self):
        one = self.serve()
        client = self.connect(one)
        client.ask("SCHEDULE", "SET", "nightly", "CRON", "0 2 * * *", "ZONE", "Asia/Shanghai", "TOPIC", "report", "BODY", b"\xff\x00")
        client.ask("SCHEDULE", "SET", "often", "EVERY", "1h", "TOPIC", "t", "BODY", "x", "OVERLAP", "skip", "RUNS", 5)
        client.ask("SCHEDULE", "PAUSE", "often")
        before = self.lines(one)
        self.assertEqual(len(before), 2)
        other = self.another("other", "--engine", "memory")
        told = self.migrate(self.url(one), self.url(other))
        self.assertEqual(told["schedules"], {"from": 2, "to": 0})
        told = self.migrate(self.url(one), self.url(other), "--yes")
        self.assertEqual((told["created"], told["schedules"]), (2, {"from": 2, "to": 2, "removed": 0}))
        self.assertEqual((self.lines(one), self.lines(other)), (before, before))
        told = self.migrate(self.url(one), self.url(other), "--yes", "--remove")
        self.assertEqual((told["kept"], told["schedules"]), (2, {"from": 0, "to": 2, "removed": 2}))
        self.assertEqual((self.lines(one), self.lines(other)), ([], before))
        told = self.migrate(self.url(other), self.url(one), "--yes", "--remove")
        self.assertEqual((self.lines(one), self.lines(other)), (before, []))
        client.ask("SCHEDULE", "DEL", "nightly")
        self.connect(other).ask("SCHEDULE", "SET", "often", "EVERY", "2h", "TOPIC", "t", "BODY", "another")
        self.migrate(self.url(one), self.url(other), "--yes", "--remove", code=4)
        self.assertNotIn("moving", self.lines(one)[0], "it goes on where it is")

    def test_each_occurrence_is_made_in_one_place(self):
        """While both serve, and the schedule is due every second."""
        one = self.serve()
        other = self.another("other")
        self.connect(one).ask("SCHEDULE", "SET", "tick", "CRON", "* * * * * *", "TOPIC", "t", "BODY", "x", "MISSED", "all")

        def ids(server):
            return [json.loads(line)["id"] for line in self.lines(server) if "id" in json.loads(line)]
        self.wait_for(lambda: len(ids(one)) >= 2, "some are made there")
        self.migrate(self.url(one), self.url(other), "--yes", "--remove")
        count = len(ids(other))
        self.wait_for(lambda: len(ids(other)) >= count + 2, "and some here")
        self.assertEqual(self.lines(one), [])
        moments = sorted(datetime.datetime.fromisoformat(name.removeprefix("tick@").replace("Z", "+00:00")).timestamp() for name in ids(other))
        self.assertEqual(moments, [moments[0] + i for i in range(len(moments))], "none is missing, none is twice")

    def test_what_the_targets_schedules_make_meanwhile_is_no_difference(self):
        """So many that some are always made between the last look at the source and the count of the target."""
        one = self.serve()
        other = self.another("other")
        client = self.connect(one)
        for reply in client.ask_all([("SCHEDULE", "SET", f"s{i}", "CRON", "* * * * * *", "TOPIC", f"t{i % 3}", "BODY", "x",
                                      "OVERLAP", "replace" if i % 2 else "allow") for i in range(300)]):
            self.assertNotIsInstance(reply, harness.Refused)
        client.ask_all([("PUSH", f"t{i % 3}", "1h", "x" * 1000) for i in range(20_000)])
        for source, target in ((one, other), (other, one)):
            told = self.migrate(self.url(source), self.url(target), "--yes", "--remove")
            self.assertEqual(told["schedules"]["removed"], 300)

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

    def test_schedules_from_a_journal_to_redis_and_back(self):
        one = self.serve()
        self.connect(one).ask("SCHEDULE", "SET", "tick", "CRON", "* * * * * *", "TOPIC", "t", "BODY", "x", "RUNS", 1)
        self.wait_for(lambda: any('"id"' in line for line in self.lines(one)), "its only job is made")
        self.connect(one).ask("SCHEDULE", "SET", "later", "EVERY", "1h", "TOPIC", "t", "BODY", b"\xff")
        before = sorted(self.lines(one))
        self.assertEqual(one.stop()[0], 0)
        data = str(self.directory / "data")
        done = subprocess.run([harness.PROGRAM, "export", "--data", data], capture_output=True, timeout=harness.DEADLINE, check=True)
        self.assertEqual(sorted(done.stdout.decode().splitlines()), before, "without a server, and nothing is made meanwhile")
        self.assertEqual(self.migrate(data, self.redis.url)["schedules"], {"from": 2, "to": 0})
        told = self.migrate(data, self.redis.url, "--yes", "--remove")
        self.assertEqual(told["schedules"], {"from": 0, "to": 2, "removed": 2})
        self.assertEqual(self.lines_in(self.redis.url), before)
        told = self.migrate(self.redis.url, data, "--yes", "--remove")
        self.assertEqual(told["schedules"], {"from": 0, "to": 2, "removed": 2})
        one.start()
        self.assertEqual(sorted(self.lines(one)), before)

    def test_two_names_of_one_place_keep_their_schedules(self):
        server = self.over("one", self.redis.url)
        self.connect(server).ask("SCHEDULE", "SET", "later", "EVERY", "1h", "TOPIC", "t", "BODY", "x")
        before = self.lines(server)
        for options in (["--yes"], ["--yes", "--remove"]):
            self.assertIn("it is the same place", self.migrate(self.url(server), self.redis.url, *options, code=2))
        self.assertEqual(self.lines(server), before)

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

    def keys(self):
        """All that Redis has, as it has it."""
        names = sorted(self.redis.redis.ask("KEYS", "*"))
        return {name: self.redis.redis.ask("DUMP", name) for name in names}

    @staticmethod
    def files(directory):
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(pathlib.Path(directory).iterdir())}

    def test_a_dry_run_writes_nothing_to_a_new_redis(self):
        data, before = self.filled_directory()
        there = self.files(data)
        self.redis.redis.ask("CONFIG", "RESETSTAT")
        told = self.migrate(data, self.redis.url + "?shards=3")
        self.assertEqual((told["from_is_new"], told["to_is_new"], told["to_shards"]), (False, True, 3))
        self.assertEqual(sum(sum(row["from"].values()) - row["from"]["waiting"] for row in told["topics"]),
                         len([line for line in before if '"id"' in line]))
        told = self.migrate(self.redis.url, data)
        self.assertEqual((told["from_is_new"], told["to_is_new"], told["topics"]), (True, False, []))
        self.assertEqual(self.redis.redis.ask("DBSIZE"), 0)
        self.assertEqual(self.files(data), there, "a directory is not touched either")
        calls = self.redis.redis.calls()
        self.assertFalse({"set", "hset", "hsetnx", "zadd", "publish"} & set(calls), "not even for a moment")

    def test_a_dry_run_writes_nothing_to_what_others_use(self):
        """Not even what is due, which a server that looked would make ready."""
        server = self.over("one", self.redis.url)
        client = self.connect(server)
        client.ask("PUSH", "t", "1h", "x", "ID", "later")
        client.ask("PUSH", "t", "1d", "x", "ID", "much later")
        server.kill()
        driver = "delayq:{0}:driver"
        self.wait_for(lambda: self.redis.redis.ask("EXISTS", driver) == 0, "it is missed")
        self.redis.redis.ask("ZADD", "delayq:{0}:delay:t", "1", "later")
        before = self.keys()
        empty = self.directory / "empty"
        empty.mkdir()
        told = self.migrate(self.redis.url, str(empty))
        self.assertEqual((told["from_is_new"], told["to_is_new"]), (False, True))
        self.assertEqual([row["from"] for row in told["topics"]],
                         [{"waiting": 2, "delayed": 1, "ready": 1, "reserved": 0, "done": 0, "dead": 0}])
        self.assertEqual(self.keys(), before)
        self.assertEqual(list(empty.iterdir()), [])
        self.assertEqual(self.migrate(str(empty), self.redis.url)["topics"], [])
        self.assertEqual(self.keys(), before)

    def test_a_dry_run_needs_no_right_to_write(self):
        redis = self.redis.redis
        server = self.over("one", self.redis.url)
        self.connect(server).ask("PUSH", "t", "1h", "x")
        self.assertEqual(server.stop()[0], 0)
        redis.ask("ACL", "SETUSER", "reader", "on", ">secret", "~delayq:*", "+@read", "+@scripting", "+@connection", "+info", "+time", "-@write")
        told = self.migrate(f"redis://reader:secret@127.0.0.1:{redis.port}", f"{self.redis.url}/1")
        self.assertEqual([row["from"]["waiting"] for row in told["topics"]], [1])

    def test_a_dry_run_of_a_directory_in_use_is_refused(self):
        server = self.serve()
        said = self.migrate(str(self.directory / "data"), self.redis.url, code=9)
        self.assertIn(f"in use by another delayq (process {server.process.pid})", said)

    def test_what_is_wrong_is_named_as_it_was_typed(self):
        """By the option, and not by a setting of a server that nobody has here."""
        port = self.redis.redis.port
        self.redis.redis.ask("HSET", "delayq:meta", "version", "1", "shards", "2")
        self.redis.redis.ask("SET", "taken:meta", "x")
        empty = str(self.directory)
        for url, words in (("redis://127.0.0.1:1", "--from: redis at 127.0.0.1:1: cannot be reached"),
                           ("redis://", "--from: "), ("redis-nothing://x", "--from: "), (f"redis://127.0.0.1:{port}/abc", "--from: "),
                           (f"redis://127.0.0.1:{port}?prefix=", "--from: prefix"),
                           (f"redis://127.0.0.1:{port}?prefix=a b", "--from: prefix"),
                           (f"redis://127.0.0.1:{port}?shards=x", "--from: shards"),
                           (f"redis://127.0.0.1:{port}?shards=3", "shards=3"),
                           (f"redis://127.0.0.1:{port}?database=3", "--from: after ? only prefix=NAME and shards=N"),
                           (f"redis://:hush@127.0.0.1:{port}", "redis://USER:PASSWORD@HOST:PORT in --from"),
                           (f"redis://127.0.0.1:{port}/99", "the database in --from"),
                           (f"redis-cluster://127.0.0.1:{port}", "it is not a Cluster: set --from to redis://HOST:PORT"),
                           (f"redis-sentinel://127.0.0.1:{port}/main", "name the Sentinels in --from"),
                           (f"redis://127.0.0.1:{port}?prefix=taken", "?prefix=NAME in --from")):
            for options in ([], ["--yes"]):
                done = subprocess.run([harness.PROGRAM, "migrate", "--from", url, "--to", empty + "/", *options], capture_output=True,
                                      timeout=harness.DEADLINE, check=False)
                said = done.stderr.decode()
                self.assertNotEqual(done.returncode, 0, url)
                self.assertIn(words, said)
                self.assertNotRegex(said, r"redis\.[a-z_]+\b|-t journal", "settings are a server's")
                self.assertNotIn("hush", said, "secrets are not told")
        said = self.migrate(empty + "/none", self.redis.url, code=5)
        self.assertIn(f"--from: there is no directory {empty}/none", said)
        self.assertIn("make it first", self.migrate(self.redis.url, empty + "/none", code=5))
        said = self.migrate(f"rediss://127.0.0.1:{port}", empty + "/", code=9)
        self.assertIn("does it speak TLS at that port?", said)
        self.assertNotIn("is --from right?", said, "one question is enough")

    def test_a_source_that_never_had_jobs_is_not_made_one(self):
        server = self.serve()
        nothing = self.directory / "nothing"
        nothing.mkdir()
        for place in (str(nothing), self.redis.url, self.redis.url + "?prefix=other"):
            for options in (["--yes"], ["--yes", "--remove"]):
                said = self.migrate(place, self.url(server), *options, code=5)
                self.assertRegex(said, "--from: .* has no jobs of delayq, and never had")
        self.assertEqual((list(nothing.iterdir()), self.redis.redis.ask("DBSIZE")), ([], 0))

    def stored(self):
        return sum(self.redis.redis.ask("HLEN", f"delayq:{{0}}:job:t{i}") for i in range(3))


if __name__ == "__main__":
    harness.main()
