"""What the redis engine promises when something dies, one test for each cell of the table in docs/guide/redis.md. Nothing
here is random: what must have reached a replica is waited for, and what must not is kept from it."""
import subprocess

import harness
import redis_topology
from harness import DEADLINE, PROGRAM, Refused
from redis_harness import RedisTest, dict_of, ids

ONE, SENTINELS, CLUSTER = redis_topology.One, redis_topology.Sentinels, redis_topology.Cluster


class Promises(RedisTest):
    def two_servers(self, kind, *options):
        self.start(kind, *options)
        self.at_a, self.at_b = (self.connect(server) for server in self.two())
        return self.topology

    def two(self):
        self.a, self.b = self.over(), self.over()
        return self.a, self.b

    def fill(self):
        """Jobs in every state, by way of one server: 20 delayed, 20 ready, 20 reserved, 20 done. Answers the leases."""
        for state in ("done", "reserved", "ready", "delayed"):
            for number in range(20):
                self.at_a.ask("PUSH", state, "1h" if state == "delayed" else "0", "x", "ID", f"{state} {number}")
        done = self.take("done", 20)
        self.assertEqual(self.at_a.ask("ACK", *done), 20)
        return self.take("reserved", 20)

    def take(self, topic, count, client=None):
        """In a Cluster a pop is answered with what the first shards have."""
        leases = []
        while len(leases) < count:
            jobs = self.until_available(client or self.at_a, "POP", topic, "COUNT", count, "WAIT", "5s", "LEASE", "1h")
            self.assertTrue(jobs, f"{len(leases)} of {count} came")
            leases += [job[0] for job in jobs]
        return leases

    def assert_all_is_there(self, client, leases):
        for state in ("delayed", "ready", "reserved", "done"):
            self.assertEqual(dict_of(self.until_available(client, "STATS", state))[state], 20)
        self.assertFalse(self.until_available(client, "POP", "reserved", "COUNT", 20), "they are with their consumer")
        self.assertEqual(self.until_available(client, "ACK", *leases), 20, "whose leases hold")
        self.assertEqual(len(self.take("ready", 20, client)), 20)
        self.push_until_taken(client, "new")

    def replicate(self):
        """Until all replicas have what was answered."""
        for master in self.topology.masters():
            replicas = 2 if isinstance(self.topology, SENTINELS) else 1
            offset = int(master.info("replication")["master_repl_offset"])
            self.wait_for(lambda m=master, o=offset, r=replicas: self.reached(m, o) >= r, "the replicas have it")

    @staticmethod
    def reached(master, offset):
        facts = master.info("replication")
        return sum(1 for name, fact in facts.items() if name.startswith("slave") and "offset=" in fact
                   and int(dict(part.split("=") for part in fact.split(","))["offset"]) >= offset)


class ServerIsKilled(Promises):
    def check(self, kind):
        self.two_servers(kind)
        leases = self.fill()
        self.a.kill()
        self.assert_all_is_there(self.at_b, leases)

    def test_over_one_redis(self):
        self.check(ONE)

    def test_over_sentinel(self):
        self.check(SENTINELS)

    def test_over_a_cluster(self):
        self.check(CLUSTER)


class RedisIsKilled(Promises):
    def test_one_that_comes_back_has_all_that_was_answered(self):
        topology = self.two_servers(ONE, "--appendfsync", "always")
        leases = self.fill()
        topology.redis.kill()
        with self.assertRaises(Refused) as caught:
            self.at_a.ask("PUSH", "order", "0", "x")
        self.assertEqual(caught.exception.code, "UNAVAILABLE")
        topology.redis.start()
        self.assert_all_is_there(self.at_b, leases)

    def fail_over(self, kind):
        topology = self.two_servers(kind)
        leases = self.fill()
        self.replicate()
        before = topology.masters()
        before[0].kill()
        self.wait_for(lambda: len(topology.masters()) == len(before) and before[0] not in topology.masters(), "another master")
        self.assert_all_is_there(self.at_b, leases)
        before[0].start()
        self.wait_for(topology.is_settled, "the old master follows")
        self.push_until_taken(self.at_a, "afterwards")

    def test_under_sentinel_what_had_reached_a_replica_is_there(self):
        self.fail_over(SENTINELS)

    def test_in_a_cluster_what_had_reached_a_replica_is_there(self):
        self.fail_over(CLUSTER)

    def test_what_had_not_reached_a_replica_is_lost_and_its_leases_are_stale(self):
        topology = self.two_servers(SENTINELS, "--min-replicas-to-write", "0")
        for name in ("first", "second"):
            self.at_a.ask("PUSH", "order", "0", "x", "ID", name)
        self.replicate()
        master = topology.master()
        replicas = [member for member in topology.members if member is not master]
        for replica in replicas:
            replica.pause()
        master.ask("CLIENT", "KILL", "TYPE", "replica")
        lost = self.pops(self.at_a, "order", "LEASE", "1h")
        self.assertEqual(ids(lost), ["first"])
        self.at_a.ask("PUSH", "order", "0", "x", "ID", "third")
        master.kill()
        for replica in replicas:
            replica.resume()
        self.wait_for(lambda: topology.master() in replicas, "another master")
        again = []
        while len(again) < 2:
            again += self.until_available(self.at_b, "POP", "order", "COUNT", 2, "WAIT", "1s", "LEASE", "1h") or []
        self.assertEqual(ids(again), ["first", "second"], "handed over again; the push of the third is lost")
        self.assertEqual([job[4] for job in again], [1, 1], "and nothing is known of the first time")
        self.assertNotIn(lost[0][0], [job[0] for job in again])
        self.assertEqual(self.at_b.ask("ACK", lost[0][0]), 0, "the lost lease is nobody's")
        self.assertEqual(self.at_b.ask("ACK", *[job[0] for job in again]), 2)
        self.assertIsNone(self.at_b.ask("GET", "order", "third"))

    def test_a_file_that_lacks_the_end_gives_no_lease_twice(self):
        topology = self.two_servers(ONE, "--appendfsync", "always", "--aof-use-rdb-preamble", "no")
        self.at_a.ask("PUSH", "order", "0", "x", "ID", "first")
        files = topology.redis.directory / "appendonlydir"
        kept = {file.name: file.read_bytes() for file in files.iterdir()}
        lost = self.pops(self.at_a, "order", "LEASE", "1h")[0][0]
        topology.redis.kill()
        for name, content in kept.items():
            (files / name).write_bytes(content)
        topology.redis.start()
        again = self.until_available(self.at_b, "POP", "order", "WAIT", "5s", "LEASE", "1h")[0][0]
        self.assertNotEqual(lost, again)
        self.assertEqual((self.at_b.ask("ACK", lost), self.at_b.ask("ACK", again)), (0, 1))


class NetworkIsCut(Promises):
    def check(self, kind):
        topology = self.two_servers(kind)
        leases = self.fill()
        waiting = self.connect(self.b)
        for number in range(5):
            waiting.send(("POP", "order", "WAIT", "30s"))
            for master in topology.masters():
                master.cut_connections()
            self.push_until_taken(self.at_a, number)
            came = waiting.read()
            if isinstance(came, Refused):
                self.assertEqual(came.code, "UNAVAILABLE", came)
                came = self.until_available(waiting, "POP", "order", "WAIT", "30s")
            self.assertEqual(ids(came), [str(number)])
        self.assert_all_is_there(self.at_b, leases)

    def test_from_one_redis(self):
        self.check(ONE)

    def test_from_a_master_under_sentinel(self):
        self.check(SENTINELS)

    def test_from_the_masters_of_a_cluster(self):
        self.check(CLUSTER)


class RedisHangs(Promises):
    def test_one_that_goes_on(self):
        self.start(ONE)
        self.a, self.b = self.over("--set", "redis.timeout=500ms"), self.over("--set", "redis.timeout=500ms")
        self.at_a, self.at_b = self.connect(self.a), self.connect(self.b)
        leases = self.fill()
        self.topology.redis.pause()
        for words in (("PUSH", "order", "0", "x", "ID", "asked"), ("POP", "ready"), ("ACK", leases[0])):
            with self.assertRaises(Refused) as caught:
                self.at_a.ask(*words)
            self.assertEqual(caught.exception.code, "UNAVAILABLE", words)
        self.topology.redis.resume()
        # What was under way may have been carried out, once: the push with the same id finds it, or is the first.
        self.push_until_taken(self.at_a, "asked")
        self.assertEqual(self.at_b.stats("order")["ready"], 1)
        self.assertIn(self.until_available(self.at_b, "ACK", *leases), (19, 20))
        self.assertEqual(self.at_b.stats("reserved")["reserved"], 0)
        stats = self.at_b.stats("ready")
        self.assertEqual(stats["ready"] + stats["reserved"], 20)

    def replaced(self, kind):
        topology = self.two_servers(kind)
        leases = self.fill()
        self.replicate()
        before = topology.masters()
        before[0].pause()
        self.wait_for(lambda: len(topology.masters()) == len(before), "another master")
        self.push_until_taken(self.at_b, "meanwhile")
        before[0].resume()
        self.wait_for(topology.is_settled, "the old master follows")
        self.assertNotIn(before[0], topology.masters())
        self.assert_all_is_there(self.at_b, leases)
        self.assertEqual(len(self.take("order", 2)), 2)

    def test_a_master_under_sentinel_that_hangs_is_replaced(self):
        self.replaced(SENTINELS)

    def test_a_master_in_a_cluster_that_hangs_is_replaced(self):
        self.replaced(CLUSTER)


class RedisIsFull(Promises):
    def check(self, kind):
        topology = self.two_servers(kind)
        self.at_a.ask("PUSH", "nacked", "0", "x", "ID", "nacked", "BACKOFF", "10ms")
        leases = self.fill()
        nacked = self.take("nacked", 1)
        for master in topology.masters():
            master.ask("CONFIG", "SET", "maxmemory", "1")
        before = self.everything()
        for name in ("one", "two", "three"):
            with self.assertRaises(Refused) as caught:
                self.at_a.ask("PUSH", "order", "1h", "x" * 100, "ID", name, "GROUP", "g")
            self.assertEqual(caught.exception.code, "OVERLOADED")
            self.assertIn("memory", str(caught.exception))
            self.assertNotIn("script", str(caught.exception))
            status, said = self.get(self.a, "/readyz")
            self.assertEqual(status, 429, said)
            self.assertIn("Redis is out of memory", said)
        self.assertEqual(self.get(self.a, "/healthz")[0], 200)
        self.assertEqual(self.everything(), before, "nothing is half done")
        self.assertEqual(self.at_b.ask("ACK", *leases), 20, "what frees memory goes on")
        self.assertEqual(self.at_b.ask("NACK", nacked[0]), "OK")
        self.assertEqual(len(self.take("ready", 20, self.at_b)), 20)
        for master in topology.masters():
            master.ask("CONFIG", "SET", "maxmemory", "0")
        self.assertEqual(self.get(self.a, "/readyz")[0], 200)
        self.push_until_taken(self.at_a, "new")
        self.assertEqual(self.take("nacked", 1, self.at_b)[0] != nacked[0], True)

    def test_jobs_still_fall_due_and_leases_still_end(self):
        topology = self.two_servers(ONE)
        for name in ("forgotten", "extended"):
            self.at_a.ask("PUSH", "order", "0", "x", "ID", name, "BACKOFF", "10ms")
        forgotten, extended = self.pops(self.at_a, "order", "COUNT", 2, "LEASE", "2s")
        self.at_a.ask("PUSH", "order", "2s", "x", "ID", "delayed")
        topology.redis.ask("CONFIG", "SET", "maxmemory", "1")
        self.assertGreater(self.at_a.ask("EXTEND", extended[0], "1h"), harness.now_ms())
        came = []
        while len(came) < 2:
            jobs = self.pops(self.at_b, "order", "WAIT", "30s", "LEASE", "1h")
            self.assertTrue(jobs, f"only {came} came")
            came += ids(jobs)
        self.assertEqual(sorted(came), ["delayed", "forgotten"])
        self.assertEqual(self.at_b.ask("ACK", forgotten[0], extended[0]), 1)

    def test_a_topic_can_be_paused_and_a_limit_holds(self):
        topology = self.start(ONE)
        server = self.over("--set", "topics.order.concurrency=1")
        client = self.connect(server)
        for number in range(2):
            client.ask("PUSH", "order", "0", "x", "ID", number)
        first = self.pops(client, "order", "LEASE", "1h")
        topology.redis.ask("CONFIG", "SET", "maxmemory", "1")
        self.assertEqual(self.pops(client, "order"), [], "one at a time")
        client.ask("PAUSE", "order")
        self.assertEqual(client.ask("ACK", first[0][0]), 1)
        self.assertEqual(self.pops(client, "order"), [])
        client.ask("RESUME", "order")
        self.assertEqual(ids(self.pops(client, "order", "WAIT", "5s")), ["1"])

    def everything(self):
        """All keys about jobs, and what they hold."""
        found = {}
        for master in self.topology.masters():
            with master.client() as client:
                for key in client.scan_iter():
                    if not key.endswith(b":driver"):
                        found[key] = client.dump(key)
        return found

    def test_one(self):
        self.check(ONE)

    def test_a_master_under_sentinel(self):
        self.check(SENTINELS)

    def test_the_masters_of_a_cluster(self):
        self.check(CLUSTER)


class MasterIsAlone(Promises):
    def test_it_stops_writing_and_goes_on_when_its_replicas_are_back(self):
        topology = self.two_servers(SENTINELS)
        master = topology.master()
        replicas = [member for member in topology.members if member is not master]
        for replica in replicas:
            replica.pause()
        taken = []

        def is_refused():
            try:
                self.at_a.ask("PUSH", "order", "0", "x", "ID", len(taken))
                taken.append(str(len(taken)))
                return False
            except Refused as refused:
                self.assertEqual(refused.code, "UNAVAILABLE", refused)
                self.assertIn("NOREPLICAS", str(refused))
                return True
        self.wait_for(is_refused, "a push is refused: min-replicas-max-lag is 2 s")
        with self.assertRaises(Refused):
            self.at_b.ask("POP", "order")
        for replica in replicas:
            replica.resume()
        self.push_until_taken(self.at_a, "new")
        self.assertIs(topology.master(), master)
        jobs = []
        while len(jobs) < len(taken) + 1:
            more = self.until_available(self.at_b, "POP", "order", "COUNT", 1_000, "WAIT", "5s", "LEASE", "1h")
            self.assertTrue(more, f"{len(jobs)} of {len(taken) + 1} came")
            jobs += more
        self.assertEqual(ids(jobs), [*taken, "new"])


class ReadOnly(Promises):
    def test_a_server_does_not_start_over_a_replica(self):
        master = self.start()
        with ONE("--replicaof", f"127.0.0.1 {master.redis.port}") as replica:
            done = subprocess.run(
                [PROGRAM, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--engine", "redis", "--redis", replica.url],
                text=True, capture_output=True, timeout=DEADLINE, check=False, cwd=self.directory)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, "it is a [a-z]+, not a master")
            self.assertEqual(replica.redis.ask("DBSIZE"), 0)

    def test_a_master_that_becomes_a_replica_is_not_written_and_goes_on_when_it_is_a_master_again(self):
        topology = self.two_servers(ONE)
        leases = self.fill()
        with ONE() as other:
            topology.redis.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
            other.redis.ask("REPLICAOF", "127.0.0.1", topology.redis.port)
            self.wait_for(lambda: redis_topology.has_replicas(topology.redis, 1), "it follows")
            other.redis.ask("REPLICAOF", "NO", "ONE")
            topology.redis.ask("REPLICAOF", "127.0.0.1", other.redis.port)
            for words in (("PUSH", "order", "0", "x", "ID", "1"), ("POP", "ready"), ("ACK", leases[0])):
                with self.assertRaises(Refused) as caught:
                    self.at_a.ask(*words)
                self.assertEqual(caught.exception.code, "UNAVAILABLE", words)
            topology.redis.ask("REPLICAOF", "NO", "ONE")
            self.assert_all_is_there(self.at_b, leases)


if __name__ == "__main__":
    harness.main()
