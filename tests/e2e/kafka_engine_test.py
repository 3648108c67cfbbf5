"""The kafka engine as users run it: a real broker, a real Redis, and servers that die."""
import base64
import json
import subprocess
import time

import confluent_kafka.admin

import harness
from harness import DEADLINE, Refused, now_ms
from kafka_harness import Kafka
from redis_harness import RedisTest, dict_of

BODY = b"b" * 2_000
# Steps and horizon so short that a test sees the whole way of a body.
SHORT = ("--set", "kafka.ladder=1s,2s", "--set", "kafka.horizon=1s")
# Bodies that are in Kafka stay there for as long as a test takes.
LONG = ("--set", "kafka.ladder=10m", "--set", "kafka.horizon=1m")
GROUPS = (*SHORT, "--set", "kafka.partition_groups=[[0],[1]]")


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

    def metric(self, server, name):
        status, text = self.get(server, "/metrics")
        self.assertEqual(status, 200)
        found = [line for line in text.splitlines() if line.startswith(name + " ")]
        self.assertEqual(len(found), 1, f"{name} in {text}")
        return float(found[0].split()[-1])

    def push_cold(self, client, count, delay="1h", **more):
        """Jobs whose bodies are in Kafka."""
        words = [word for name, value in more.items() for word in (name.upper(), value)]
        ids = [f"job{i}" for i in range(count)]
        for each in ids:
            client.ask("PUSH", "t", delay, BODY, "ID", each, *words)
        self.wait_until_cold("t", ids)
        return ids

    def run_program(self, *words, server=None, code=0):
        at = ("--server", f"127.0.0.1:{server.port}") if server else ()
        done = subprocess.run([harness.PROGRAM, *words, *at], capture_output=True, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode()

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

    def test_foreign_records_in_the_ladder_hold_up_nothing(self):
        client = self.connect(self.server("--set", "kafka.ladder=1s,2s", "--set", "kafka.horizon=4s"))
        for step in ("1s", "2s"):
            for partition in (0, 1):
                self.kafka.write(f"{self.ladder}.delay.{step}", [b"far", b"", None, b"negative", b"none", b"text"], partition=partition, headers=[
                    {"delayq-release": str((1 << 63) - 1).encode()}, {"delayq-release": b"4102444800000"}, {"delayq-release": b"5"},
                    {"delayq-release": b"-5"}, {}, {"delayq-release": b"soon"}])
        ids = [f"job{i}" for i in range(20)]
        for each in ids:
            client.ask("PUSH", "t", "12s", BODY, "ID", each)
        due = now_ms() + 12_000
        self.wait_until_cold("t", ids)
        self.wait_for(lambda: not any(self.is_cold("t", each) for each in ids), "the bodies are back in Redis")
        self.assertLess(now_ms(), due, "before the jobs are due")
        self.assertEqual(sorted(self.take(client, "t", 20)), sorted(ids))

    def test_kafka_away(self):
        server = self.server()
        client = self.connect(server)
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
            self.assertEqual(self.get(server, "/readyz")[0], 200, "jobs within the horizon go on")
            self.wait_for(lambda: self.metric(server, "delayq_kafka_ladder_connected") == 0, "the metric tells it")
        finally:
            self.kafka.brokers[0].start()
        self.assertEqual(list(self.take(client, "t", 1, seconds=60)), ["cold"], "it catches up by itself")

    # ---- groups of partitions

    def until_it_reads(self, server, partitions, seconds=DEADLINE):
        self.wait_for(lambda: self.metric(server, "delayq_kafka_ladder_partitions") == partitions, f"it reads {partitions} partitions", seconds)

    def test_two_servers_have_a_group_each_and_one_takes_over_when_the_other_is_killed(self):
        a = self.server(*GROUPS)
        self.until_it_reads(a, 4)
        b = self.server(*GROUPS)
        self.until_it_reads(a, 2)
        self.until_it_reads(b, 2)
        at_b = self.connect(b)
        pushed = now_ms()
        ids = [f"job{i}" for i in range(60)]
        for i, each in enumerate(ids):
            at_b.ask("PUSH", "t", f"{8_000 + 200 * i}ms", BODY, "ID", each)
        self.wait_until_cold("t", ids[10:])
        a.kill()
        found = self.take(at_b, "t", len(ids), seconds=60)
        self.assertEqual(set(found), set(ids), "none is lost")
        for i, each in enumerate(ids):
            self.assertGreaterEqual(found[each], pushed + 8_000 + 200 * i, f"{each} came early")
        self.until_it_reads(b, 4)
        self.assertFalse(at_b.ask("POP", "t"), "each came once")
        claims = self.topology.masters()[0].client(0)
        self.addCleanup(claims.close)
        keys = {key.decode() for key in claims.scan_iter("delayq:{delay}:partitions:*")}
        self.assertEqual(keys, {"delayq:{delay}:partitions:[0]", "delayq:{delay}:partitions:[1]"})
        self.wait_for(lambda: sum(self.kafka.committed(f"{self.ladder}.delay", f"{self.ladder}.delay.1s").values()) > 20,
                      "offsets are committed in the group")

    def test_a_server_that_stops_gives_its_groups_to_another_at_once(self):
        a = self.server(*GROUPS)
        self.until_it_reads(a, 4)
        self.push_cold(self.connect(a), 20, delay="12s")
        self.assertEqual(a.stop()[0], 0)
        begin = time.monotonic()
        b = self.server(*GROUPS)
        self.until_it_reads(b, 4)
        self.assertLess(time.monotonic() - begin, 9, "it did not wait until claims expired")
        self.assertEqual(len(self.take(self.connect(b), "t", 20)), 20)

    def test_partitions_that_no_group_or_two_groups_name_are_refused(self):
        options = ("--engine", "kafka", "--redis", self.topology.url, "--set", f"kafka.brokers={self.kafka.addresses()}",
                   "--set", f"kafka.prefix={self.ladder}", "--set", "kafka.ladder=1s")
        for partitions, groups, words in [
                (3, "[[0,1]]", "no group names partition 2, and kafka.partitions is 3: add it to a group, or set kafka.partitions = 2"),
                (2, "[[0,1],[2]]", "a group names partition 2, and kafka.partitions is 2: remove it from the group, or set kafka.partitions = 3"),
                (2, "[[0,1],[1]]", "partition 1 is named twice: two servers would read it; remove one"),
                (2, "[0,1]", "write groups of partitions, as [[0,1],[2,3]]")]:
            self.assertIn(words, self.refusal(*options, "--set", f"kafka.partitions={partitions}", "--set", f"kafka.partition_groups={groups}"))
        self.assertNotIn(f"{self.ladder}.delay.1s", self.kafka.topics(), "nothing was made")
        self.kafka.create(f"{self.ladder}.delay.1s", partitions=4, retention_ms=-1)
        self.assertIn("has 4 partitions, and kafka.partition_groups does not name 2, 3: nobody would read them. Add them to a group",
                      self.refusal(*options, "--set", "kafka.partitions=2", "--set", "kafka.partition_groups=[[0,1]]"))
        self.assertIn("has 4 partitions, and kafka.partition_groups names 4: remove them there, or add partitions to the topic",
                      self.refusal(*options, "--set", "kafka.partitions=5", "--set", "kafka.partition_groups=[[0,1,2],[3,4]]"))

    # ---- topics

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

    def refused_topic(self, **config):
        """What the server says of a topic that was made by hand."""
        self.ladder = f"ladder{now_ms()}"
        self.kafka.create(f"{self.ladder}.delay.1s", **config)
        said = self.refusal("--engine", "kafka", "--redis", self.topology.url, "--set", f"kafka.brokers={self.kafka.addresses()}",
                            "--set", f"kafka.prefix={self.ladder}", "--set", "redis.prefix=" + self.ladder, *SHORT)
        self.assertIn(f"the Kafka topic {self.ladder}.delay.1s ", said)
        return said

    def test_topics_that_would_lose_bodies_are_refused(self):
        self.assertIn("keeps records for 1h, and bodies wait there for 1s: set its retention.ms to at least 259201000 (the step and kafka.outage), "
                      "or lower kafka.outage", self.refused_topic(retention_ms=3_600_000))
        self.assertIn("has cleanup.policy compact, which removes bodies: set it to delete", self.refused_topic(cleanup_policy="compact"))
        self.assertIn("keeps at most 1000000 bytes, and more may wait there: set its retention.bytes to -1",
                      self.refused_topic(retention_ms=-1, retention_bytes=1_000_000))

    def test_topics_are_made_as_they_are_needed(self):
        self.server("--set", "kafka.outage=2h", "--set", "kafka.ladder=1s,2m", "--set", "kafka.replication=1", "--set", "limits.body=100KB")
        admin = self.kafka.admin()
        for step, seconds in (("1s", 1), ("2m", 120)):
            topic = f"{self.ladder}.delay.{step}"
            self.assertEqual(self.kafka.partitions(topic), 2)
            asked = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ConfigResource.Type.TOPIC, topic)
            found = admin.describe_configs([asked])[asked].result(DEADLINE)
            self.assertEqual({name: found[name].value for name in ("retention.ms", "retention.bytes", "cleanup.policy", "message.timestamp.type")},
                             {"retention.ms": str((seconds + 7_200) * 1000), "retention.bytes": "-1", "cleanup.policy": "delete",
                              "message.timestamp.type": "LogAppendTime"})
            self.assertGreater(int(found["max.message.bytes"].value), 100_000)

    def test_a_server_with_the_redis_engine_refuses_such_a_deployment(self):
        self.server().stop()
        said = self.refusal("--engine", "redis", "--redis", self.topology.url)
        self.assertIn('server.engine = "kafka"', said)

    # ---- what operators do with jobs whose bodies are in Kafka

    def test_figures(self):
        server = self.server(*LONG)
        client = self.connect(server)
        self.assertEqual(self.metric(server, "delayq_kafka_ladder_bodies"), 0)
        self.push_cold(client, 30)
        self.wait_for(lambda: self.metric(server, "delayq_kafka_ladder_bodies") == 30, "30 bodies")
        self.assertEqual(dict_of(client.ask("STATS"))["bodies_in_kafka"], 30)
        self.assertIn("bodies_in_kafka", self.run_program("stats", server=server))
        self.assertEqual(self.metric(server, 'delayq_kafka_ladder_records_total{event="written"}'), 30)
        self.assertGreater(self.metric(server, 'delayq_kafka_ladder_bytes_total{event="written"}'), 30 * len(BODY))
        self.assertEqual(self.metric(server, 'delayq_kafka_ladder_bodies_total{event="cooled"}'), 30)
        self.assertEqual(self.metric(server, "delayq_kafka_ladder_connected"), 1)
        self.until_it_reads(server, 2)
        client.ask("GET", "t", "job7")
        self.assertEqual(self.metric(server, 'delayq_kafka_ladder_bodies_total{event="fetched"}'), 1)
        client.ask("CANCEL", "t", "job0")
        client.ask("PUSH", "t", "1s", BODY, "ID", "job1", "REPLACE")
        client.ask("RESCHEDULE", "t", "job2", "0")
        client.ask("RESCHEDULE", "t", "job3", "2h")
        self.wait_for(lambda: self.metric(server, "delayq_kafka_ladder_bodies") == 27, "27 bodies")
        client.ask("PURGE", "t")
        self.wait_for(lambda: self.metric(server, "delayq_kafka_ladder_bodies") == 0, "none")

    def test_records_that_come_back_are_counted(self):
        server = self.server()
        client = self.connect(server)
        self.push_cold(client, 10, delay="6s")
        client.ask("CANCEL", "t", "job0")
        self.assertEqual(len(self.take(client, "t", 9)), 9)
        self.wait_for(lambda: self.metric(server, 'delayq_kafka_ladder_dropped_total{reason="stale"}') >= 1, "the cancelled one is dropped")
        self.assertGreaterEqual(self.metric(server, 'delayq_kafka_ladder_bodies_total{event="warmed"}'), 9)
        self.assertGreaterEqual(self.metric(server, 'delayq_kafka_ladder_records_total{event="returned"}'), 10)
        self.wait_for(lambda: self.metric(server, "delayq_kafka_ladder_lag_seconds") < 1, "nothing is late")
        self.assertEqual(self.metric(server, "delayq_kafka_ladder_bodies"), 0)

    def test_counts_listings_forecast_and_export_have_jobs_that_lie_in_kafka(self):
        server = self.server(*LONG)
        client = self.connect(server)
        ids = self.push_cold(client, 40)
        self.assertEqual(dict_of(client.ask("STATS", "t"))["delayed"], 40)
        listed = json.loads(self.get(server, "/v1/topics/t/jobs?state=delayed&limit=100&bodies=true")[1])["jobs"]
        self.assertEqual({job["id"]: job["body"] for job in listed}, {each: BODY.decode() for each in ids})
        self.assertEqual(sum(json.loads(self.get(server, "/v1/forecast?topic=t")[1])["bins"]), 40)
        lines = [json.loads(line) for line in self.run_program("export", server=server).splitlines()]
        bodies = {line["id"]: line.get("body_text") or base64.b64decode(line.get("body_base64", "")).decode() for line in lines if "id" in line}
        self.assertEqual(bodies, {each: BODY.decode() for each in ids})

    def test_purge_cancel_group_and_redrive_of_jobs_that_lie_in_kafka(self):
        client = self.connect(self.server(*LONG))
        self.push_cold(client, 10, group="g")
        self.assertEqual(client.ask("CANCELGROUP", "g"), 10)
        self.push_cold(client, 10)
        self.assertEqual(client.ask("PURGE", "t", "delayed"), 10)
        self.assertEqual(dict_of(client.ask("STATS", "t"))["delayed"], 0)
        self.push_cold(client, 1)
        client.ask("RESCHEDULE", "t", "job0", "0")
        jobs = []
        self.wait_for(lambda: jobs or jobs.extend(client.ask("POP", "t") or []), "its body is back")
        client.ask("NACK", jobs[0][0], "REASON", "broken", "DEAD")
        self.assertEqual(client.ask("REDRIVE", "t"), 1)
        self.assertEqual(client.ask("POP", "t")[0][3], BODY)
        self.assertEqual(client.ask("POP", "t"), [])

    def test_migrate_takes_jobs_that_lie_in_kafka_along(self):
        server = self.server(*LONG)
        ids = self.push_cold(self.connect(server), 30)
        with self.assertRaises(Refused) as refused:
            self.connect(server).ask("BACKUP", "b")
        self.assertIn("export", str(refused.exception), "an engine over Redis has no backups of its own")
        target = self.directory / "journal"
        target.mkdir()
        told = self.run_program("migrate", "--from", f"delayq://127.0.0.1:{server.port}", "--to", f"{target}/", "--yes", "--remove")
        self.assertEqual((json.loads(told)["created"], json.loads(told)["removed"]), (30, 30))
        self.assertEqual(dict_of(self.connect(server).ask("STATS", "t"))["delayed"], 0)
        other = harness.Server(target)
        self.addCleanup(other.close)
        client = self.connect(other)
        for each in ids:
            self.assertEqual(dict_of(client.ask("GET", "t", each))["body"], BODY)


if __name__ == "__main__":
    harness.main()
