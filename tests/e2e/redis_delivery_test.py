"""Jobs that the server writes to lists and streams in Redis, read by plain Redis clients."""
import json
import threading
import unittest
import urllib.error
import urllib.request

import harness
import redis_topology

NEEDED = ["+ping", "+select", "+role", "+time"]  # as the guide says


class RedisDelivery(harness.ServerTest):
    def setUp(self):
        super().setUp()
        topology = redis_topology.One("--appendfsync", "always")  # what is answered survives a kill
        self.addCleanup(topology.close)
        self.redis = topology.redis
        self.reader = self.redis.client()
        self.addCleanup(self.reader.close)

    def start(self, *options):
        return self.serve("--set", f"redis_delivery.url={self.redis.url()}", "--set", "redis_delivery.timeout=1s", *options)

    def set(self, server, topic, expected=200, **settings):
        request = urllib.request.Request(f"http://127.0.0.1:{server.http_port}/v1/topics/{topic}", method="PATCH",
                                         data=json.dumps(settings).encode())
        try:
            with urllib.request.urlopen(request, timeout=harness.DEADLINE) as answer:
                self.assertEqual(answer.status, expected)
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                self.assertEqual(error.code, expected)
                return json.load(error)

    def push(self, client, topic, ids, delay="0"):
        replies = client.ask_all([("PUSH", topic, delay, f'{{"n":"{each}"}}', "ID", each) for each in ids])
        self.assertFalse([reply for reply in replies if isinstance(reply, harness.Refused)])

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
        self.wait_until(lambda: client.stats("order")["done"] == 1000, "all are done, of which 1,000 are kept")
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
        self.wait_until(lambda: client.stats("order")["ready"] + client.stats("order")["reserved"] == 0, "all are written")
        self.assertLess(self.reader.xlen("s"), 500, "MAXLEN is kept, about")

    def test_what_redis_refuses_is_retried_and_dies(self):
        server = self.start()
        client = self.connect(server)
        self.reader.set("taken", "a string")
        self.set(server, "order", delivery="redis_list", redis_key="taken", attempts=2, backoff="50ms")
        self.push(client, "order", ["a"])
        self.wait_until(lambda: client.stats("order")["dead"] == 1, "it is dead")
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
            self.wait_until(lambda: self.reader.llen("order") > before or not pushing.is_alive(), "some have come")
            self.redis.kill()
            self.redis.start()
        pushing.join()
        self.wait_until(lambda: self.counts(client) == (0, 0), "all are written")
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
        self.wait_until(lambda: client.stats("order")["done"] == 1, "it is written")
        self.wait_until(lambda: client.stats("other")["dead"] == 1, "it is refused")
        with self.redis.client(2) as second:
            self.assertEqual(second.lrange("orders", 0, -1), [b"a"])

    def test_a_server_killed_while_it_writes_loses_nothing(self):
        server = self.start()
        client = self.connect(server)
        self.set(server, "order", delivery="redis_list", redis_content="id")
        ids = [f"id{i}" for i in range(5_000)]
        self.push(client, "order", ids, delay="500ms")
        self.wait_until(lambda: self.reader.llen("order") > 0, "the first have come")
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


if __name__ == "__main__":
    harness.main()
