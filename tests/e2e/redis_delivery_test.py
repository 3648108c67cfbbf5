"""Jobs that the server writes to lists and streams in Redis, read by plain Redis clients."""
import json
import re
import signal
import threading
import urllib.request

import harness
import redis_topology
from delivery_harness import DeliveryTest

NEEDED = ["+ping", "+select", "+role", "+time"]  # as the guide says


class RedisDelivery(DeliveryTest):
    def setUp(self):
        super().setUp()
        topology = redis_topology.One("--appendfsync", "always")  # what is answered survives a kill
        self.addCleanup(topology.close)
        self.redis = topology.redis
        self.reader = self.redis.client()
        self.addCleanup(self.reader.close)

    def start(self, *options):
        return self.serve("--set", f"redis_delivery.url={self.redis.url()}", "--set", "redis_delivery.timeout=1s", *options)

    def take(self, key, count):
        """What BLPOP brings, until `count` different jobs have come."""
        seen = []
        while len(set(seen)) < count:
            found = self.reader.blpop([key], timeout=harness.DEADLINE)
            self.assertIsNotNone(found, f"{len(set(seen))} of {count} came")
            seen.append(found[1])
        return seen

    def test_a_list_gets_due_jobs_in_their_order(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_key="orders", redis_content="id")
        self.push(client, "order", ["later"], delay="300ms")
        self.push(client, "order", [f"id{i}" for i in range(1000)])
        seen = self.take("orders", 1001)
        self.assertEqual(seen, [f"id{i}".encode() for i in range(1000)] + [b"later"])
        self.wait_for(lambda: client.stats("order")["done"] == 1000, "all are done, of which 1,000 are kept")
        flat = client.ask("GET", "order", "later")
        job = {flat[i]: flat[i + 1] for i in range(0, len(flat), 2)}
        self.assertRegex(job[b"outcome"], rb"^RPUSH orders: \d+$")
        with self.assertRaisesRegex(harness.Refused, "written to Redis"):
            client.ask("POP", "order")

    def test_a_whole_job_is_json(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list")
        self.push(client, "order", ["a"])
        client.ask("PUSH", "order", "0", b"\xff\x00", "ID", "b", "GROUP", "g")
        first, second = (json.loads(text) for text in self.take("order", 2))
        self.assertEqual((first["topic"], first["id"], first["body"], first["attempt"]), ("order", "a", {"n": "a"}, 1))
        self.assertEqual((second["id"], second["body_base64"], second["group"]), ("b", "/wA=", "g"))

    def test_a_stream_gets_them_too_and_is_cut(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_stream", redis_key="s", redis_content="id")
        self.push(client, "order", [f"id{i}" for i in range(500)])
        seen, last = [], "0"
        while len(seen) < 500:
            for _, entries in self.reader.xread({"s": last}, count=100, block=10_000):
                seen += [fields[b"id"].decode() for _, fields in entries]
                last = entries[-1][0]
        self.assertEqual(seen, [f"id{i}" for i in range(500)])
        self.set(server, "order", redis_maxlen=100)
        self.push(client, "order", [f"more{i}" for i in range(1000)])
        self.wait_for(lambda: client.stats("order")["ready"] + client.stats("order")["reserved"] == 0, "all are written")
        self.assertLess(self.reader.xlen("s"), 500, "MAXLEN is kept, about")

    def test_what_redis_refuses_is_retried_and_dies(self):
        server = self.start()
        client = self.connect(server)
        self.reader.set("taken", "a string")
        self.set(server, "order", delivery="redis_list", redis_key="taken", attempts=2, backoff="50ms")
        self.push(client, "order", ["a"])
        self.wait_for(lambda: client.stats("order")["dead"] == 1, "it is dead")
        flat = client.ask("GET", "order", "a")
        job = {flat[i]: flat[i + 1] for i in range(0, len(flat), 2)}
        self.assertIn(b"RPUSH taken: WRONGTYPE", job[b"outcome"])

    def test_a_redis_that_is_killed_and_comes_back_loses_nothing(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_content="id", attempts=1)
        ids = [f"id{i}" for i in range(20_000)]

        def push_all():
            pusher = server.client()
            for begin in range(0, len(ids), 500):
                pusher.ask_all([("PUSH", "order", "0", "x", "ID", each) for each in ids[begin:begin + 500]])
            pusher.close()

        pushing = threading.Thread(target=push_all)
        pushing.start()
        for _ in range(2):
            before = self.reader.llen("order")
            self.wait_for(lambda: self.reader.llen("order") > before or not pushing.is_alive(), "some have come")
            self.redis.kill()
            self.redis.start()
        pushing.join()
        self.wait_for(lambda: self.counts(client) == (0, 0), "all are written")
        seen = self.reader.lrange("order", 0, -1)
        self.assertEqual(set(seen), {each.encode() for each in ids}, "none is lost")
        self.assertEqual(client.stats("order")["dead"], 0, "no attempt was used up")
        print(f"{len(seen) - len(ids)} of {len(ids)} came twice")

    @staticmethod
    def counts(client):
        stats = client.stats("order")
        return stats["ready"] + stats["delayed"], stats["reserved"]

    def test_a_server_starts_without_redis_and_goes_on_when_it_comes(self):
        self.redis.kill()
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_content="id")
        self.push(client, "order", ["a", "b"])
        self.assertEqual(client.stats("order")["ready"], 2)
        self.redis.start()
        self.assertEqual(self.take("order", 2), [b"a", b"b"])

    def test_jobs_survive_a_server_that_is_killed(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_content="id")
        self.redis.kill()
        self.push(client, "order", [f"id{i}" for i in range(100)])
        server.kill()
        self.redis.start()
        server.start()
        self.assertEqual(set(self.take("order", 100)), {f"id{i}".encode() for i in range(100)})

    def test_a_user_needs_little(self):
        self.reader.execute_command("ACL", "SETUSER", "writer", "on", ">secret", "~orders", "+rpush", "+xadd", *NEEDED)
        server = self.serve("--set", f"redis_delivery.url=redis://writer:secret@127.0.0.1:{self.redis.port}/2")
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_key="orders", redis_content="id")
        self.set(server, "other", delivery="redis_list", attempts=1)
        self.push(client, "order", ["a"])
        self.push(client, "other", ["b"])
        self.wait_for(lambda: client.stats("order")["done"] == 1, "it is written")
        self.wait_for(lambda: client.stats("other")["dead"] == 1, "it is refused")
        with self.redis.client(2) as second:
            self.assertEqual(second.lrange("orders", 0, -1), [b"a"])

    def test_a_server_killed_while_it_writes_loses_nothing(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_content="id")
        ids = [f"id{i}" for i in range(5_000)]
        self.push(client, "order", ids, delay="500ms")
        self.wait_for(lambda: self.reader.llen("order") > 0, "the first have come")
        server.kill()
        server.start()
        # What was under way comes once more when its lease has run out.
        seen = self.take("order", len(ids))
        self.assertEqual(set(seen), {each.encode() for each in ids})

    def test_without_a_redis_such_a_topic_is_refused(self):
        server = self.serve()
        problem = self.set(server, "order", expected=400, delivery="redis_list")
        self.assertIn("redis_delivery.url", problem["detail"])
        with self.assertRaisesRegex(AssertionError, "redis_delivery.url"):
            self.serve("--set", "redis_delivery.url=http://x")

    # ---- a URL that is wrong is told of at the start, before any job is due

    def told(self, url, *words):
        """Starts a server, waits for a warning with all these words, and answers the log."""
        log = self.directory / "log"
        log.unlink(missing_ok=True)
        server = self.serve("--set", f"redis_delivery.url={url}", "--set", "log.level=info", "--set", f"log.file={log}")

        def warnings():
            return [line for line in log.read_text().splitlines() if " warning redis delivery: " in line]
        self.wait_for(lambda: any(all(word in line for word in words) for line in warnings()), f"the log says {words}")
        self.assertEqual(len(warnings()), 1, warnings())
        self.assertNotIn("secret", log.read_text())
        return server, log

    def stop(self, server):
        self.assertEqual(server.stop()[0], 0)

    def connected(self, server):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/metrics", timeout=harness.DEADLINE) as answer:
            return b"delayq_redis_delivery_connected 1" in answer.read()

    def test_a_redis_that_is_not_there_is_told_and_when_it_comes(self):
        self.redis.kill()
        server, log = self.told(self.redis.url(), "Connection refused", "is redis_delivery.url right?")
        self.assertFalse(self.connected(server))
        self.redis.start()
        self.wait_for(lambda: "info redis delivery: Redis takes jobs again" in log.read_text(), "it is told, too")
        self.assertTrue(self.connected(server))

    def test_a_wrong_password_and_a_wrong_database_are_told(self):
        port = self.redis.port
        self.stop(self.told(f"redis://nobody:secret@127.0.0.1:{port}", "WRONGPASS", "USER:PASSWORD@HOST:PORT in redis_delivery.url")[0])
        self.stop(self.told(f"redis://127.0.0.1:{port}/99", "DB index", "the database in redis_delivery.url")[0])

    def test_a_replica_is_told(self):
        with redis_topology.One("--replicaof", f"127.0.0.1 {self.redis.port}") as replica:
            self.stop(self.told(replica.url, "it is a replica, not a master", "name its master in redis_delivery.url")[0])

    def test_a_member_of_a_cluster_is_told(self):
        with redis_topology.One("--cluster-enabled", "yes", "--cluster-port", redis_topology.free_ports(1)[0]) as member:
            self.stop(self.told(member.url, "member of a Cluster", "set redis_delivery.url to redis-cluster://HOST,HOST")[0])

    def test_a_right_that_is_missing_is_told_with_the_first_job(self):
        self.reader.execute_command("ACL", "SETUSER", "writer", "on", ">secret", "~orders", "+xadd", *NEEDED)
        log = self.directory / "log"
        server = self.serve("--set", f"redis_delivery.url=redis://writer:secret@127.0.0.1:{self.redis.port}", "--set", f"log.file={log}")
        self.set(server, "order", delivery="redis_list", redis_key="orders", attempts=1)
        client = self.connect(server)
        self.push(client, "order", ["a", "b"])
        self.wait_for(lambda: client.stats("order")["dead"] == 2, "they are refused")
        lines = [line for line in log.read_text().splitlines() if "NOPERM" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("the user of redis_delivery.url needs ~orders +rpush", lines[0])

    # ---- a server that starts without the Redis that its topics were told to use

    def configure(self, path, url):
        path.write_text(f'[redis_delivery]\nurl = "{url}"\n' if url else "")

    def test_a_stored_topic_without_a_redis_is_told_and_a_reload_brings_one(self):
        config, log = self.directory / "delayq.toml", self.directory / "log"
        self.configure(config, self.redis.url())
        server = self.serve("-c", str(config), "--set", f"log.file={log}")
        self.set(server, "order", delivery="redis_list", redis_content="id")
        self.configure(config, "")
        self.assertEqual(server.stop()[0], 0)
        server.start()
        self.wait_for(lambda: "redis_delivery.url" in log.read_text(), "the log says what is missing")
        self.assertRegex(log.read_text(), r'warning topic "order": its jobs wait: delivery = redis_list needs a Redis')
        self.assertIn("redis_delivery.url", self.info(server, "order")["delivery_problem"])
        client = self.connect(server)
        self.push(client, "order", ["a", "b"])
        self.assertEqual(client.stats("order")["ready"], 2)

        self.configure(config, "nonsense://x")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: re.search("stays as it was: .*redis_delivery.url", log.read_text()), "an error changes nothing")
        self.assertIn("delivery_problem", self.info(server, "order"))
        self.configure(config, self.redis.url())
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.take("order", 2), [b"a", b"b"])
        self.assertNotIn("delivery_problem", self.info(server, "order"))

        self.configure(config, self.redis.url(5))
        server.process.send_signal(signal.SIGHUP)
        with self.redis.client(5) as other:
            self.push(client, "order", ["c"])
            self.assertEqual(other.blpop(["order"], timeout=harness.DEADLINE)[1], b"c", "another Redis from now on")
        self.configure(config, "")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "delivery_problem" in self.info(server, "order"), "none any more")
        self.push(client, "order", ["d"])
        self.assertEqual(client.stats("order")["ready"], 1, "it waits")


class TheEnginesOwn(DeliveryTest):
    """A server with the redis engine needs no other Redis to write to."""

    def over(self, topology, *options):
        return self.serve("--engine", "redis", "--redis", topology.url, *options)

    @staticmethod
    def pop(topology, key):
        """From whichever master has the key."""
        for master in topology.masters():
            try:
                if (found := master.ask("LPOP", key)) is not None:
                    return found
            except harness.Refused as refused:
                if refused.code != "MOVED":
                    raise
        return None

    def take(self, topology, key, count):
        seen = set()

        def has_all():
            if (found := self.pop(topology, key)) is not None:
                seen.add(found)
            return len(seen) == count

        self.wait_for(has_all, f"all {count} came")
        return seen

    def check(self, topology):
        with topology:
            server = self.over(topology)
            client = self.connect(server)
            lists = [f"list{i}" for i in range(8)]  # in a Cluster they are at different masters
            for name in lists:
                self.set(server, name, delivery="redis_list", redis_content="id")
                self.push(client, name, [f"{name}-{i}" for i in range(50)], delay="100ms")
            for name in lists:
                self.assertEqual(self.take(topology, name, 50), {f"{name}-{i}".encode() for i in range(50)})
            self.assertEqual(server.stop()[0], 0)

    def test_one(self):
        self.check(redis_topology.One())

    def test_sentinel(self):
        self.check(redis_topology.Sentinels())

    def test_cluster(self):
        self.check(redis_topology.Cluster())

    def test_keys_of_the_engine_are_refused_and_a_url_goes_before_it(self):
        with redis_topology.One() as topology:
            server = self.over(topology)
            problem = self.set(server, "t", expected=400, delivery="redis_list", redis_key="delayq:{0}:next")
            self.assertIn("redis_key: keys that begin with delayq: are the engine's own", problem["detail"])
            self.assertIn("redis_key", self.set(server, "delayq:t", expected=400, delivery="redis_list")["detail"])
            self.assertEqual(server.stop()[0], 0)
            # By whatever name the URL leads there.
            for host in ("127.0.0.1", "localhost"):
                server = self.over(topology, "--set", f"redis_delivery.url=redis://{host}:{topology.redis.port}/0")
                for key in ("delayq:{0}:next", "delayq:{0}:ready:t", "delayq:settings", "delayq:news"):
                    problem = self.set(server, "t", expected=400, delivery="redis_list", redis_key=key)
                    self.assertIn("are the engine's own", problem["detail"])
                self.assertIn("redis_key", self.set(server, "delayq:settings", expected=400, delivery="redis_list")["detail"])
                self.assertEqual(server.stop()[0], 0)
            another = redis_topology.One()
            self.addCleanup(another.close)
            other = another.redis
            server = self.over(topology, "--set", f"redis_delivery.url={other.url()}")
            self.set(server, "t", delivery="redis_list", redis_content="id")
            self.push(self.connect(server), "t", ["a"])
            with other.client() as reader:
                self.assertEqual(reader.blpop(["t"], timeout=harness.DEADLINE)[1], b"a")
            self.assertIsNone(self.pop(topology, "t"))
            server.close()

    def test_another_server_writes_what_a_dead_one_had_taken_in(self):
        with redis_topology.One() as topology:
            everything = ("--set", "topics.*.delivery=redis_list", "--set", "topics.*.redis_content=id")
            first, second = (harness.Server(self.directory / name, "--engine", "redis", "--redis", topology.url, *everything)
                             for name in ("one", "two"))
            self.addCleanup(first.close)
            self.addCleanup(second.close)
            self.push(self.connect(first), "new", ["a"], delay="1s")
            first.kill()
            self.assertEqual(self.take(topology, "new", 1), {b"a"})
            second.close()


if __name__ == "__main__":
    harness.main()
