"""What a server says when it starts over a Redis: one that is not there, of another kind, too old, full, damaged, or not
meant for it."""
import os
import signal
import socketserver
import subprocess
import threading
import time
from contextlib import closing

import harness
import redis_topology
from harness import DEADLINE, PROGRAM, Refused
from redis_harness import ids


class EarlierRedis:
    """Says of itself that it is one, and answers nothing else in earnest."""

    def __init__(self, version):
        info = f"# Server\r\nredis_version:{version}\r\nmaxmemory:0\r\naof_enabled:1\r\n"

        class Connection(socketserver.StreamRequestHandler):
            def handle(self):
                while line := self.rfile.readline():
                    words = []
                    for _ in range(int(line[1:])):
                        words.append(self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2].upper())
                    self.wfile.write({b"INFO": f"${len(info)}\r\n{info}\r\n", b"PING": "+PONG\r\n",
                                      b"ROLE": "*1\r\n$6\r\nmaster\r\n"}.get(words[0], "+OK\r\n").encode())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(DEADLINE)


class Starting(harness.ServerTest):
    def try_to_serve(self, *options):
        return subprocess.run([PROGRAM, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--engine", "redis", *options],
                              text=True, capture_output=True, timeout=DEADLINE, check=False, cwd=self.directory)

    def test_nobody_is_there(self):
        port = redis_topology.free_ports(1)[0]
        done = self.try_to_serve("--redis", f"redis://127.0.0.1:{port}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"redis at 127.0.0.1:{port}: cannot be reached: ", done.stderr)
        self.assertIn("redis.start_wait", done.stderr)
        self.assertEqual(os.listdir(self.directory), [])

    def test_it_waits_for_a_redis_that_starts_later(self):
        port = redis_topology.free_ports(1)[0]
        # pylint: disable=consider-using-with
        process = subprocess.Popen(
            [PROGRAM, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--engine", "redis", "--redis",
             f"redis://127.0.0.1:{port}", "--set", "redis.start_wait=1m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        redis = redis_topology.Redis(self.directory / "redis", port)
        self.addCleanup(redis.close)
        self.assertIn(f"is ready, redis at 127.0.0.1:{port}, 1 shard, 0 jobs.", process.stdout.readline().decode())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 0)

    def test_it_waits_for_a_redis_that_takes_no_writes_yet(self):
        with redis_topology.One("--min-replicas-to-write", "1") as topology:
            done = self.try_to_serve("--redis", topology.url)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("NOREPLICAS", done.stderr)
            refusals = int(topology.redis.info("errorstats")["errorstat_NOREPLICAS"].removeprefix("count="))
            # pylint: disable=consider-using-with
            process = subprocess.Popen(
                [PROGRAM, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--engine", "redis", "--redis", topology.url,
                 "--set", "redis.start_wait=1m"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.wait_for(
                lambda: int(topology.redis.info("errorstats")["errorstat_NOREPLICAS"].removeprefix("count=")) > refusals,
                "it is refused")
            topology.redis.ask("CONFIG", "SET", "min-replicas-to-write", "0")
            self.assertIn("is ready", process.stdout.readline().decode())

    def test_the_password_is_asked_for_and_never_told(self):
        with redis_topology.One("--requirepass", "hush-hush") as topology:
            where = topology.url
            for options, expected in ((("--redis", where), "NOAUTH"),
                                      (("--redis", where, "--set", "redis.password=wr0ng"), "WRONGPASS")):
                done = self.try_to_serve(*options)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(expected, done.stderr)
                self.assertIn("redis.password", done.stderr)
                self.assertNotIn("wr0ng", done.stderr + done.stdout)
            (self.directory / "password").write_text("hush-hush\n")
            server = self.serve("--engine", "redis", "--redis", where, "--set", f"redis.password_file={self.directory}/password")
            self.connect(server).ask("PUSH", "order", "0", "x")
            self.assertNotIn("hush", server.stop()[1])

    def test_a_user_with_no_more_than_the_guide_says(self):
        with redis_topology.One() as topology:
            topology.redis.ask("ACL", "SETUSER", "queue", "on", ">hush-hush", "~delayq:*", "&delayq:news", "+@read", "+@write",
                               "+@scripting", "+@pubsub", "+@connection", "+info", "+time", "+role")
            server = self.serve("--engine", "redis", "--redis", topology.url.replace("//", "//queue:hush-hush@"))
            client = self.connect(server)
            client.ask("PUSH", "order", "100ms", "x", "ID", "1")
            jobs = client.ask("POP", "order", "WAIT", "5s")
            self.assertEqual(client.ask("ACK", jobs[0][0]), 1)
            client.ask("PAUSE", "order")
            self.assertEqual(client.stats("order")["done"], 1)
            code, said = server.stop()
            self.assertEqual((code, "NOPERM" in said, "hush" in said), (0, False, False), said)

    def refused_start(self, *options):
        """What it says when it does not start: one line."""
        done = self.try_to_serve(*options)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        return done.stderr

    def test_a_user_with_less_than_that_is_told_what_is_missing(self):
        rights = ["~delayq:*", "&delayq:news", "+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+info", "+time"]
        with redis_topology.One() as topology:
            where = topology.url.replace("//", "//poor:hush-hush@")
            for less, named in (("resetchannels", "PUBLISH"), ("-@pubsub", "PUBLISH"), ("-time", "TIME"), ("-hdel", "HDEL"),
                                ("-@scripting", "eval"), ("-info", "info"), ("resetkeys", "keys")):
                topology.redis.ask("ACL", "SETUSER", "poor", "reset", "on", ">hush-hush", *rights, less)
                said = self.refused_start("--redis", where)
                self.assertIn("NOPERM", said)
                self.assertIn(named, said)
                self.assertIn(" ".join(rights), said)
                self.assertNotIn("hush", said)
                self.assertEqual(topology.redis.ask("DBSIZE"), 0, "nothing is stored")
            topology.redis.ask("ACL", "SETUSER", "poor", "reset", "on", ">hush-hush", *rights, "-subscribe")
            server = self.serve("--engine", "redis", "--redis", where)
            self.connect(server).ask("PUSH", "order", "0", "x")
            self.assertIn("does not allow this server to subscribe: NOPERM", server.stop()[1])

    def test_a_redis_of_another_kind_is_told(self):
        with redis_topology.One() as one, redis_topology.Sentinels() as group:
            port = one.redis.port
            replica = next(member for member in group.members if member is not group.master())
            for where, words in ((f"redis-cluster://127.0.0.1:{port}", "set redis.url to redis://"),
                                 (f"redis-sentinel://127.0.0.1:{port}/mymaster", "it is not a Sentinel"),
                                 (f"rediss://127.0.0.1:{port}", "does it speak TLS at that port?"),
                                 (f"redis://127.0.0.1:{port}/99", "redis.database"),
                                 (f"redis://127.0.0.1:{group.others[0].port}", "redis-sentinel://"),
                                 (f"redis://127.0.0.1:{replica.port}", "name its master")):
                self.assertIn(words, self.refused_start("--redis", where))
            one.redis.ask("SET", "delayq:meta", "mine")
            said = self.refused_start("--redis", one.url)
            self.assertIn("redis.prefix", said)
            self.assertNotIn("script:", said)
            self.assertEqual(one.redis.ask("KEYS", "*"), [b"delayq:meta"])
        with redis_topology.Cluster() as cluster:
            self.assertIn("redis-cluster://", self.refused_start("--redis", f"redis://127.0.0.1:{cluster.members[0].port}"))

    def test_an_earlier_redis_is_refused(self):
        for version in ("6.2.14", "6.0.0", "2.8.24"):
            with closing(EarlierRedis(version)) as redis:
                begin = time.monotonic()
                said = self.refused_start("--redis", f"redis://127.0.0.1:{redis.port}", "--set", "redis.start_wait=1m")
                self.assertIn(f"it is version {version}: 7.0 or later is needed", said)
                self.assertIn("memory is full", said)
                self.assertLess(time.monotonic() - begin, 20, "no waiting mends that")

    def test_keys_of_another_program_are_told(self):
        """Not only that of the layout: with what would be right, to who asks and in the log."""
        with redis_topology.One() as one:
            one.redis.ask("SET", "delayq:settings", "mine")
            self.assertIn("another program has the key delayq:settings (WRONGTYPE): choose another redis.prefix",
                          self.refused_start("--redis", one.url))
            one.redis.ask("FLUSHALL")
            one.redis.ask("SET", "delayq:{0}:topics", "mine")
            self.assertIn("another program has a key that begins with delayq: (WRONGTYPE): choose another redis.prefix",
                          self.refused_start("--redis", one.url))
            one.redis.ask("FLUSHALL")
            log = self.directory / "log"
            server = self.serve("--engine", "redis", "--redis", one.url, "--set", f"log.file={log}")
            one.redis.ask("SET", "delayq:{0}:delay:order", "mine")
            client = self.connect(server)
            for _ in range(3):
                with self.assertRaisesRegex(Refused, "another program has a key that begins with delayq: .*redis.prefix"):
                    client.ask("PUSH", "order", "1h", "x")
            self.wait_for(lambda: "another program" in log.read_text(), "it is told")
            self.assertEqual(log.read_text().count("another program"), 1)
            self.assertNotIn("script:", log.read_text())

    def test_a_damaged_key_is_told_in_the_log_and_not_blamed_on_clients(self):
        with redis_topology.One() as one:
            log = self.directory / "log"
            server = self.serve("--engine", "redis", "--redis", one.url, "--set", f"log.file={log}")
            client = self.connect(server)
            client.ask("PUSH", "order", "0", "x", "ID", "first")
            one.redis.ask("SET", "delayq:{0}:seq", "x")
            for command in (("PUSH", "order", "1h", "x"), ("POP", "order"), ("POP", "order", "COUNT", "50")):
                with self.assertRaises(Refused) as caught:
                    client.ask(*command)
                self.assertEqual(caught.exception.code, "CORRUPT")
                for part in ("script", "ERR", "@"):
                    self.assertNotIn(part, str(caught.exception))
            self.wait_for(lambda: "DEL delayq:{0}:seq" in log.read_text(), "it is told")
            self.assertEqual(log.read_text().count("delayq:{0}:seq is damaged"), 1)
            one.redis.ask("DEL", "delayq:{0}:seq")
            self.assertEqual(ids(client.ask("POP", "order")), ["first"])

    def test_a_full_redis_takes_no_new_deployment_and_keeps_an_old_one(self):
        with redis_topology.One() as topology:
            topology.redis.ask("CONFIG", "SET", "maxmemory", "1")
            said = self.refused_start("--redis", topology.url)
            self.assertIn("raise its maxmemory", said)
            topology.redis.ask("CONFIG", "SET", "maxmemory", "0")
            first = self.serve("--engine", "redis", "--redis", topology.url)
            self.connect(first).ask("PUSH", "order", "0", "x", "ID", "1")
            first.stop()
            topology.redis.ask("CONFIG", "SET", "maxmemory", "1")
            second = self.serve("--engine", "redis", "--redis", topology.url)
            client = self.connect(second)
            with self.assertRaisesRegex(Refused, "OVERLOADED"):
                client.ask("PUSH", "order", "0", "x", "ID", "2")
            self.assertEqual(client.stats("order")["ready"], 1)

    def test_the_number_of_shards_stays(self):
        with redis_topology.One() as topology:
            first = self.serve("--engine", "redis", "--redis", topology.url, "--set", "redis.shards=4")
            self.connect(first).ask("PUSH", "order", "0", "x", "ID", "1")
            done = self.try_to_serve("--redis", topology.url, "--set", "redis.shards=8")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('the jobs under the prefix "delayq" are in 4 shards, and redis.shards is 8', done.stderr)
            second = self.serve("--engine", "redis", "--redis", topology.url)
            self.assertEqual(ids(self.connect(second).ask("POP", "order", "WAIT", "5s")), ["1"])


if __name__ == "__main__":
    harness.main()
