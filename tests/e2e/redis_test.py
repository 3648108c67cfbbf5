"""Several servers over one Redis: any of them takes a push, any hands it over, any may die. Among these tests are the
faults that were seen in other delay queues on Redis."""
import http.client
import http.server
import itertools
import json
import queue
import threading
import time
from contextlib import closing

import harness
import redis_topology
from harness import DEADLINE, Refused, now_ms
from redis_harness import RedisTest, dict_of, ids

PREFIXES = itertools.count()


class SharedRedis(RedisTest):
    """One Redis for all tests of a class, and a prefix of its keys for each test."""

    @classmethod
    def setUpClass(cls):
        cls.topology = redis_topology.One()
        cls.addClassCleanup(cls.topology.close)

    def setUp(self):
        super().setUp()
        self.prefix = f"test{next(PREFIXES)}"


class Pipelining(SharedRedis):
    def test_commands_of_one_connection_take_effect_in_their_order(self):
        client = self.connect(self.over("--set", "redis.shards=8"))
        for number in range(100):
            pushed, popped = client.ask_all([("PUSH", "order", "0", "x", "ID", number), ("POP", "order")])
            self.assertEqual((pushed, ids(popped)), (str(number).encode(), [str(number)]))
            lease = popped[0][0]
            _, again = client.ask_all([("NACK", lease, "DELAY", "0"), ("POP", "order", "WAIT", "10s")])
            acked, empty, cancelled, found = client.ask_all([
                ("ACK", again[0][0]), ("POP", "order"), ("CANCEL", "order", number), ("GET", "order", number)])
            self.assertEqual((acked, empty, cancelled, dict_of(found)["state"]), (1, [], "done", b"done"))
            pushed, moved, popped = client.ask_all([
                ("PUSH", "order", "1h", "x", "ID", f"later{number}"), ("RESCHEDULE", "order", f"later{number}", "0"),
                ("POP", "order", "AUTOACK")])
            self.assertEqual(ids(popped), [f"later{number}"])


class Sharing(SharedRedis):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.over(), self.over()
        self.at_a, self.at_b = self.connect(self.a), self.connect(self.b)

    def test_a_push_at_one_wakes_who_waits_at_the_other(self):
        self.at_b.send(("POP", "order", "WAIT", "30s"))
        self.at_a.ask("PUSH", "order", "300ms", "x", "ID", "1")
        due = now_ms() + 250
        job = self.at_b.read()[0]
        self.assertGreaterEqual(now_ms(), due)
        self.assertLess(now_ms(), due + 2_000)
        self.assertEqual((job[2], job[3], job[4]), (b"1", b"x", 1))
        self.assertEqual(self.at_a.ask("ACK", job[0]), 1, "any server takes the ack")
        self.assertEqual(self.at_b.ask("ACK", job[0]), 0)

    def test_an_earlier_push_is_not_held_up_by_a_later_one(self):
        self.at_b.send(("POP", "order", "WAIT", "30s"))
        self.at_a.ask("PUSH", "order", "1h", "later", "ID", "later")
        begin = now_ms()
        self.at_a.ask("PUSH", "order", "100ms", "sooner", "ID", "sooner")
        self.assertEqual(ids(self.at_b.read()), ["sooner"])
        self.assertLess(now_ms() - begin, 2_000)

    def test_a_removed_job_leaves_no_trace(self):
        for number in range(200):
            self.at_a.ask("PUSH", "order", "400ms", "x", "ID", number)
        due = now_ms() + 400
        for number in range(199):
            self.assertEqual(self.at_b.ask("CANCEL", "order", number), "cancelled")
        self.assertEqual(ids(self.pops(self.at_b, "order", "WAIT", "30s")), ["199"])
        self.assertLess(now_ms() - due, 1_000, "those that were removed held it up")
        self.at_a.ask("PUSH", "order", "0", "x", "ID", "ready")
        self.at_a.ask("CANCEL", "order", "ready")
        self.at_a.ask("PUSH", "order", "0", "x", "ID", "behind")
        self.assertEqual(ids(self.pops(self.at_b, "order", "COUNT", 10)), ["behind"])

    def test_two_servers_on_one_backlog_hand_over_none_twice(self):
        count = 4_000
        for start in range(0, count, 500):
            self.at_a.ask_all([("PUSH", "order", "0", "x", "ID", number) for number in range(start, start + 500)])
        lock, seen = threading.Lock(), []

        def consume(server):
            with closing(server.client()) as client:
                while jobs := client.ask("POP", "order", "COUNT", 20, "LEASE", "1m"):
                    client.ask("ACK", *[job[0] for job in jobs])
                    with lock:
                        seen.extend(ids(jobs))

        threads = [threading.Thread(target=consume, args=(server,)) for server in (self.a, self.b) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(len(seen), len(set(seen)), "some came twice")
        self.assertEqual(len(seen), count)

    def test_a_server_that_starts_leaves_alone_what_is_in_flight(self):
        for number in range(20):
            self.at_a.ask("PUSH", "order", "0", "x", "ID", number)
        jobs = self.pops(self.at_a, "order", "COUNT", 20, "LEASE", "1m")
        self.assertEqual(len(jobs), 20)
        late = self.connect(self.over())
        self.assertEqual(self.pops(late, "order", "COUNT", 20, "WAIT", "1s"), [])
        self.assertEqual(late.ask("ACK", *[job[0] for job in jobs]), 20)

    def test_an_idle_consumer_costs_no_commands(self):
        for number in range(1_000):
            self.at_a.ask("PUSH", "order", "1h", "x", "ID", number)
        redis = self.topology.redis

        def commands_while(seconds, clients):
            """As long as it takes the clients' pops to have waited for nothing."""
            before = redis.calls()
            begin = time.monotonic()
            for client in clients:
                client.send(("POP", "order", "WAIT", f"{seconds}s"))
            for client in clients:
                self.assertFalse(client.read())
            took = time.monotonic() - begin
            after = redis.calls()
            counted = ("evalsha", "eval", "zrange", "zpopmin", "hget", "blpop", "brpop", "lpop", "zrangebyscore")
            return sum(after.get(name, 0) - before.get(name, 0) for name in counted) / took

        few = commands_while(2, [self.at_b])
        many = commands_while(2, [self.connect(server) for server in (self.a, self.b) for _ in range(25)])
        self.assertLess(few, 60, "a second, of two servers with nothing to do")
        # What their pops asked once when they came is in it: two seconds of nothing for 50 of them.
        self.assertLess(many, few + 60)

    def test_settings_reach_the_other_servers(self):
        self.at_a.ask("PUSH", "order", "0", "x", "ID", "1")
        self.at_a.ask("PAUSE", "order")
        self.wait_for(lambda: json.loads(self.get(self.b, "/v1/topics/order")[1])["settings"].get("paused"),
                      "the other server hears that it is paused")
        self.assertEqual(self.pops(self.at_b, "order"), [])
        self.at_b.send(("POP", "order", "WAIT", "30s"))
        self.at_a.ask("RESUME", "order")
        self.assertEqual(ids(self.at_b.read()), ["1"])


    def test_concurrency_is_of_all_servers_together(self):
        for number in range(2):
            self.at_a.ask("PUSH", "order", "0", "x", "ID", number)
        self.set_topic(self.a, "order", {"concurrency": 1})
        self.wait_for(lambda: json.loads(self.get(self.b, "/v1/topics/order")[1])["settings"].get("concurrency") == 1,
                      "the other server hears of the limit")
        lease = self.pops(self.at_a, "order", "LEASE", "1m")[0][0]
        self.assertEqual(self.pops(self.at_b, "order", "WAIT", "200ms"), [])
        self.at_b.send(("POP", "order", "WAIT", "30s"))
        self.assertEqual(self.at_a.ask("ACK", lease), 1)
        self.assertEqual(ids(self.at_b.read()), ["1"], "the place is free for those who wait at another server")

    def set_topic(self, server, topic, settings):
        with closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)) as web:
            web.request("PATCH", f"/v1/topics/{topic}", json.dumps(settings))
            response = web.getresponse()
            self.assertEqual(response.status, 200, response.read())


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.server.called.put(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Dying(SharedRedis):
    def test_another_calls_back_what_a_dead_server_had_taken(self):
        with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
            receiver.called = queue.Queue()
            thread = threading.Thread(target=receiver.serve_forever, daemon=True)
            thread.start()
            self.addCleanup(receiver.shutdown)
            other = self.over()
            a = self.over()
            self.connect(a).ask("PUSH", "call", "500ms", "hello", "CALLBACK", f"http://127.0.0.1:{receiver.server_port}/")
            a.kill()
            self.assertEqual(receiver.called.get(timeout=DEADLINE), b"hello")
            client = self.connect(other)
            self.wait_for(lambda: client.stats("call")["done"] == 1, "its success is noted")
            receiver.shutdown()

    def test_what_a_dead_server_had_handed_out_comes_again(self):
        a, b = self.over(), self.over()
        at_a, at_b = self.connect(a), self.connect(b)
        for number in range(50):
            at_a.ask("PUSH", "order", "0", "x", "ID", number, "BACKOFF", "10ms")
        held = self.pops(at_a, "order", "COUNT", 50, "LEASE", "1s")
        self.assertEqual(len(held), 50)
        a.kill()
        again = []
        while len(again) < 50:
            jobs = self.pops(at_b, "order", "COUNT", 50, "WAIT", "20s", "LEASE", "1m")
            self.assertTrue(jobs, f"only {len(again)} came again")
            self.assertTrue(all(job[4] == 2 for job in jobs))
            at_b.ask("ACK", *[job[0] for job in jobs])
            again += ids(jobs)
        self.assertEqual(sorted(again, key=int), [str(number) for number in range(50)])
        self.assertEqual(at_b.ask("ACK", *[job[0] for job in held]), 0, "the old leases are stale")

    def test_another_drives_when_the_driver_dies(self):
        a = self.over()
        self.connect(a).ask("PUSH", "order", "1h", "x", "ID", "far")  # so that it drives
        b = self.over()
        at_b = self.connect(b)
        at_b.send(("POP", "order", "WAIT", "30s"))
        self.connect(b).ask("PUSH", "order", "700ms", "x", "ID", "near")
        due = now_ms() + 700
        a.kill()
        self.assertEqual(ids(at_b.read()), ["near"])
        self.assertLess(now_ms() - due, 4_000)

    def test_a_kill_between_taking_and_leasing_loses_nothing(self):
        random = harness.new_random()
        count = 2_000
        steady = self.over()
        at_steady = self.connect(steady)
        for start in range(0, count, 500):
            at_steady.ask_all([("PUSH", "order", "0", "x", "ID", number, "BACKOFF", "10ms", "ATTEMPTS", 0)
                               for number in range(start, start + 500)])
        done = set()
        for _ in range(5):
            victim = self.over()

            def consume(port):
                try:
                    with closing(harness.Client(port)) as client:
                        while True:
                            jobs = client.ask("POP", "order", "COUNT", 5, "WAIT", "1s", "LEASE", "1s")
                            if jobs and client.ask("ACK", *[job[0] for job in jobs]) == len(jobs):
                                done.update(ids(jobs))
                except (OSError, Refused):
                    pass

            threads = [threading.Thread(target=consume, args=(victim.port,), daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            enough = len(done) + random.randrange(20, 200)
            self.wait_for(lambda: len(done) >= min(enough, count), "it hands out jobs")
            victim.kill()
            for thread in threads:
                thread.join(DEADLINE)
        # What was acked without an answer may be done, too.
        deadline = time.monotonic() + DEADLINE
        while jobs := self.pops(at_steady, "order", "COUNT", 100, "WAIT", "3s", "LEASE", "1m"):
            at_steady.ask("ACK", *[job[0] for job in jobs])
            done.update(ids(jobs))
            self.assertLess(time.monotonic(), deadline)
        stats = at_steady.stats("order")
        self.assertEqual((stats["delayed"], stats["ready"], stats["reserved"], stats["dead"]), (0, 0, 0, 0))
        missing = {str(number) for number in range(count)} - done
        for name in missing:  # acked by one that was killed before it could say so
            self.assertIn(dict_of(at_steady.ask("GET", "order", name)).get("state"), (b"done", None))
        self.assertLess(len(missing), 5 * 4 * 5 + 1, "at most what each connection had acked at each kill")


class Away(RedisTest):
    """These do things to the Redis, so that each has its own."""

    def test_health_does_not_wait_for_redis(self):
        """Whoever restarts what does not answer would restart a server whose Redis is away."""
        topology = self.start(redis_topology.One)
        server = self.over("--set", "redis.wait=1m", "--set", "redis.timeout=1m")
        client = self.connect(server)
        client.ask("PUSH", "order", "1h", "x")
        redis = topology.redis
        for go_away, come_back in ((redis.pause, redis.resume), (redis.kill, redis.start)):
            go_away()
            waiter = self.connect(server)
            waiter.send(("PUSH", "order", "1h", "x"))
            with closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)) as ready:
                ready.request("GET", "/readyz")
                begin = time.monotonic()
                for _ in range(3):
                    self.assertEqual(self.get(server, "/healthz")[0], 200)
                self.assertLess(time.monotonic() - begin, 20, "the others wait for a minute")
            come_back()
            waiter.read()

    def test_redis_goes_and_comes_back(self):
        # With `everysec` a Redis whose disk is busy answers before it has written, and a kill loses the push.
        topology = self.start(redis_topology.One, "--appendfsync", "always")
        server = self.over()
        client, waiter = self.connect(server), self.connect(server)
        self.assertEqual(self.get(server, "/readyz")[0], 200)
        client.ask("PUSH", "order", "1500ms", "x", "ID", "pending")
        waiter.send(("POP", "order", "WAIT", "50s", "LEASE", "1m"))
        topology.redis.kill()

        def is_refused():
            try:
                client.ask("PUSH", "order", "0", "x", "ID", "lost")
                return False
            except Refused as refused:
                self.assertEqual(refused.code, "UNAVAILABLE", refused)
                return True
        self.wait_for(is_refused, "a push is refused")
        status, body = self.get(server, "/readyz")
        self.assertEqual((status, json.loads(body)["code"]), (503, "unavailable"))
        self.assertEqual(self.get(server, "/healthz")[0], 200, "the server itself is well")
        self.assertIn("\ndelayq_redis_connected 0\n", self.get(server, "/metrics")[1])
        topology.redis.start()
        came = waiter.read()
        while isinstance(came, Refused):  # it was told, instead of waiting for nothing
            self.assertEqual(came.code, "UNAVAILABLE", came)
            waiter.send(("POP", "order", "WAIT", "50s", "LEASE", "1m"))
            came = waiter.read()
        self.assertEqual(ids(came), ["pending"])
        self.push_until_taken(client, "after")
        self.assertEqual(self.get(server, "/readyz")[0], 200)
        figures = self.get(server, "/metrics")[1]
        self.assertIn("\ndelayq_redis_connected 1\n", figures)
        self.assertNotIn("\ndelayq_redis_reconnects_total 0\n", figures)
        code, said = server.stop()
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("cannot be reached"), 1, said)

    def test_connections_that_are_cut_are_made_again(self):
        topology = self.start()
        server = self.over()
        client = self.connect(server)
        for number in range(10):
            topology.redis.cut_connections()
            self.push_until_taken(client, number)
        self.assertEqual(len(self.pops(client, "order", "COUNT", 20, "WAIT", "5s")), 10)

    def test_an_error_in_the_middle_does_not_end_the_program(self):
        topology = self.start()
        server = self.over()
        client = self.connect(server)
        client.ask("PUSH", "order", "0", "x", "ID", "1")
        topology.redis.ask("CONFIG", "SET", "maxmemory", "1")
        with self.assertRaises(Refused) as caught:
            client.ask("PUSH", "order", "0", "x", "ID", "2")
        self.assertIn(caught.exception.code, ("OVERLOADED", "UNAVAILABLE"))
        topology.redis.ask("CONFIG", "SET", "maxmemory", "0")
        topology.redis.ask("SET", "delayq:{0}:job:broken", "not a hash")
        with self.assertRaises(Refused):
            client.ask("PUSH", "broken", "0", "x", "ID", "2")
        topology.redis.ask("SCRIPT", "FLUSH")
        self.push_until_taken(client, "3")
        self.assertEqual(sorted(ids(self.pops(client, "order", "COUNT", 10, "WAIT", "5s"))), ["1", "3"])
        self.assertIsNone(server.process.poll())

    def test_a_redis_that_hangs_is_unavailable(self):
        topology = self.start()
        server = self.over("--set", "redis.timeout=500ms")
        client = self.connect(server)
        client.ask("PUSH", "order", "0", "x", "ID", "1")
        topology.redis.pause()
        with self.assertRaises(Refused) as caught:
            client.ask("PUSH", "order", "0", "x", "ID", "2", "KEEP")
        self.assertEqual(caught.exception.code, "UNAVAILABLE")
        topology.redis.resume()
        self.push_until_taken(client, "3")

    def test_sentinel_chooses_another_master(self):
        self.fail_over(redis_topology.Sentinels)

    def test_a_cluster_chooses_another_master(self):
        self.fail_over(redis_topology.Cluster)

    def fail_over(self, kind):
        topology = self.start(kind)
        a, b = self.over(), self.over()
        at_a, at_b = self.connect(a), self.connect(b)
        for number in range(100):
            self.push_until_taken(at_a, number)
        topology.masters()[0].kill()
        for number in range(100, 200):
            self.push_until_taken(at_a, number)
        seen = set()

        def drained():
            try:
                jobs = self.pops(at_b, "order", "COUNT", 50, "WAIT", "1s", "LEASE", "2s")
                at_b.ask("ACK", *[job[0] for job in jobs]) if jobs else None  # pylint: disable=expression-not-assigned
                seen.update(ids(jobs))
            except Refused as refused:
                self.assertEqual(refused.code, "UNAVAILABLE", refused)
            return len(seen) == 200
        self.wait_for(drained, f"all come; {len(seen)} did")


if __name__ == "__main__":
    harness.main()
