"""The kafka engine as users run it: a real broker, a real Redis, and servers that die."""
import time

import harness
from harness import DEADLINE, Refused, now_ms
from kafka_harness import Kafka
from redis_harness import RedisTest, dict_of

BODY = b"b" * 2_000
# Steps and horizon so short that a test sees the whole way of a body.
SHORT = ("--set", "kafka.ladder=1s,2s", "--set", "kafka.horizon=1s")


class KafkaEngine(RedisTest):
    @classmethod
    def setUpClass(cls):
        cls.kafka = Kafka()
        cls.addClassCleanup(cls.kafka.close)

    def setUp(self):
        super().setUp()
        self.start()
        self.ladder = f"ladder{now_ms()}"

    def server(self, *options):
        return self.serve("--engine", "kafka", "--redis", self.topology.url, "--set", f"kafka.brokers={self.kafka.addresses()}",
                          "--set", f"kafka.prefix={self.ladder}", "--set", "kafka.partitions=2", *(options or SHORT))

    def is_cold(self, topic, id_):
        size = self.topology.masters()[0].ask("HSTRLEN", f"delayq:{{0}}:job:{topic}", id_)
        return 0 < size < len(BODY)

    def wait_until_cold(self, topic, ids):
        self.wait_for(lambda: all(self.is_cold(topic, each) for each in ids), "the bodies are in Kafka")

    def take(self, client, topic, count, seconds=DEADLINE):
        """Jobs by id, with the moment at which each came."""
        found = {}
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            for job in client.ask("POP", topic, "COUNT", 100, "WAIT", "1s", "LEASE", "1m") or []:
                self.assertNotIn(job[2].decode(), found, "handed out twice")
                self.assertEqual(job[3], BODY)
                found[job[2].decode()] = now_ms()
                client.ask("ACK", job[0])
        return found

    def test_jobs_come_on_time_with_their_bodies_although_the_server_that_moved_them_is_killed(self):
        a, b = self.server(), self.server()
        at_a, at_b = self.connect(a), self.connect(b)
        pushed = now_ms()
        for i in range(50):
            at_a.ask("PUSH", "t", f"{6_000 + 20 * i}ms", BODY, "ID", f"job{i}")
        self.wait_until_cold("t", [f"job{i}" for i in range(50)])
        self.assertEqual(dict_of(at_b.ask("STATS", "t"))["delayed"], 50, "counts do not change")
        a.kill()
        found = self.take(at_b, "t", 50)
        self.assertEqual(len(found), 50)
        for i in range(50):
            late = found[f"job{i}"] - pushed - (6_000 + 20 * i)
            self.assertGreaterEqual(late, 0, f"job{i} came early")
            self.assertLess(late, 5_000, f"job{i} came late")
        self.assertFalse(at_b.ask("POP", "t"), "each came once")

    def test_cancelled_and_rescheduled_jobs_do_not_come_at_the_old_time(self):
        client = self.connect(self.server())
        for name in ("cancelled", "later", "now", "replaced"):
            client.ask("PUSH", "t", "6s", BODY, "ID", name)
        self.wait_until_cold("t", ["cancelled", "later", "now", "replaced"])
        self.assertEqual(dict_of(client.ask("GET", "t", "later"))["body"], BODY, "a look-up reads it there")
        client.ask("CANCEL", "t", "cancelled")
        client.ask("RESCHEDULE", "t", "later", "1h")
        client.ask("RESCHEDULE", "t", "now", "0")
        client.ask("PUSH", "t", "1h", BODY, "ID", "replaced", "REPLACE")
        self.assertEqual(list(self.take(client, "t", 1)), ["now"])
        self.assertEqual(self.take(client, "t", 1, seconds=8), {}, "nothing at the old time")
        self.wait_until_cold("t", ["later", "replaced"])

    def test_kafka_away(self):
        client = self.connect(self.server())
        client.ask("PUSH", "t", "7s", BODY, "ID", "cold")
        self.wait_until_cold("t", ["cold"])
        self.kafka.brokers[0].kill()
        try:
            client.ask("PUSH", "t", "1s", BODY, "ID", "near")
            client.ask("PUSH", "t", "8s", BODY, "ID", "far")
            self.assertEqual(set(self.take(client, "t", 2, seconds=20)), {"near", "far"}, "what Redis has goes on")
            with self.assertRaises(Refused) as refused:
                client.ask("GET", "t", "cold")
            self.assertEqual(refused.exception.code, "UNAVAILABLE")
        finally:
            self.kafka.brokers[0].start()
        self.assertEqual(list(self.take(client, "t", 1, seconds=60)), ["cold"], "it catches up by itself")

    def refusal(self, *options):
        with self.assertRaises(Exception) as failed:
            self.serve(*options)
        return str(failed.exception)

    def test_three_brokers_that_learn_of_new_topics_one_after_the_other(self):
        with Kafka(brokers=3) as kafka:
            for i in range(8):
                server = self.server("--set", f"kafka.brokers={kafka.addresses()}", "--set", f"kafka.prefix={self.ladder}.{i}", "--set",
                                     f"redis.prefix=d{i}", "--set", "kafka.replication=3", *SHORT)
                self.assertEqual(server.stop()[0], 0)

    def test_a_retention_that_would_lose_bodies_is_refused(self):
        self.kafka.create(f"{self.ladder}.delay.1s", retention_ms=3_600_000)
        said = self.refusal("--engine", "kafka", "--redis", self.topology.url, "--set", f"kafka.brokers={self.kafka.addresses()}",
                            "--set", f"kafka.prefix={self.ladder}", *SHORT)
        self.assertIn("set its retention.ms to at least 259201000", said)

    def test_a_server_with_the_redis_engine_refuses_such_a_deployment(self):
        self.server().stop()
        said = self.refusal("--engine", "redis", "--redis", self.topology.url)
        self.assertIn('server.engine = "kafka"', said)


if __name__ == "__main__":
    harness.main()
