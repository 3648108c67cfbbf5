"""Kafka as it should not be: records that nobody would write, topics that are deleted, made anew and enlarged under a server, records of
the ladder that are gone, and a stop in the middle of each trouble."""
import signal
import subprocess
import time
import unittest

import confluent_kafka
import confluent_kafka.admin

import harness
import kafka_harness
import redis_topology
from delivery_harness import DeliveryTest

STOPS_WITHIN = 20.0


def setUpModule():
    global KAFKA  # pylint: disable=global-statement
    KAFKA = unittest.enterModuleContext(kafka_harness.Kafka(listeners={"SASL": "SASL_PLAINTEXT"}, settings={
        "sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl.plain.sasl.jaas.config":
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_delayq="right";'}))


class Hostile(DeliveryTest):
    def setUp(self):
        super().setUp()
        self.name = self.id().rsplit(".", 1)[1].removeprefix("test_").replace("_", "-")[:60]

    def start(self, *options, brokers=None, **intake):
        sets = [f"--set=kafka.intake.in.{key}={value}" for key, value in intake.items()]
        return self.serve("--set", f"kafka.brokers={brokers or KAFKA.addresses()}", *sets, *options)

    def jobs(self, client, topic):
        stats = client.stats(topic)
        return sum(int(stats[state]) for state in ("delayed", "ready", "reserved"))

    def letters(self, source):
        """What lies in its dead-letter topic."""
        topic = f"{source}.delayq-dead"
        return KAFKA.read(topic, KAFKA.count(topic))

    def committed(self, source):
        return sum(KAFKA.committed("delayq-in", source).values())

    def stops_well(self, server):
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(harness.DEADLINE)
        self.assertEqual(code, 0, server.read_said()[-2000:])
        self.assertLess(time.monotonic() - begun, STOPS_WITHIN)

    # ---- records

    def test_headers_that_nobody_would_write(self):
        source = f"{self.name}.in"
        KAFKA.create(source)
        KAFKA.create(f"{source}.delayq-dead")
        server = self.start(topics=source, topic="late")
        thousands = [(f"h{i}", b"x") for i in range(5_000)]
        huge = [("huge", b"x" * 900_000)]
        same = [("delayq-delay", b"1h")] * 2_000
        empty = [("", b"no name"), ("", None), ("", b"")]
        strange = [("delayq-id", b"\xff\xfe"), ("delayq-topic", b"\0"), ("delayq-delay", b"1h\0"), ("delayq-at", b"9" * 400), ("delayq-retries", b"-1")]
        producer = confluent_kafka.Producer(KAFKA.settings(message_max_bytes="2000000"))
        records = [thousands, huge, same, empty, *([each] for each in strange), [("delayq-delay", b"1h")]]
        for headers in records:
            producer.produce(source, b"body", headers=headers, partition=0)
        self.assertEqual(producer.flush(harness.DEADLINE), 0)
        # Names that are no text, which Python's client does not write.
        subprocess.run(["kcat", "-P", "-b", KAFKA.addresses(), "-t", source, "-H", b"\xff\xfe=\xff", "-H", "delayq-delay=1h"], input=b"body",
                       check=True, timeout=harness.DEADLINE)
        count = len(records) + 1
        self.wait_for(lambda: self.committed(source) == count, "everything is committed")
        client = self.connect(server)
        letters = self.letters(source)
        self.assertEqual(self.jobs(client, "late") + len(letters), count, "each is a job or a dead letter")
        self.assertEqual({each.headers["delayq-origin-offset"] for each in letters if len(each.headers) > 1_000}, {b"0"})
        refused = sorted(int(each.headers["delayq-origin-offset"]) for each in letters)
        self.assertEqual(refused, [0, 1, 4, 5, 6, 7], [(each.headers["delayq-origin-offset"], each.headers["delayq-error"]) for each in letters])
        self.stops_well(server)

    def test_times_before_1970_and_far_in_the_future(self):
        source = f"{self.name}.in"
        KAFKA.create(source)
        KAFKA.create(f"{source}.delayq-dead")
        server = self.start(topics=source, topic="late")
        ms = [-5_000, 1, 1_000, harness.now_ms() + (10 << 40), (1 << 62), (1 << 63) - 1]
        for each in ms:
            KAFKA.write(source, [b"stamp"], headers={"delayq-delay": b"1h"}, timestamp=each)
        for text in (b"1969-12-31T23:59:59Z", b"-1", b"0", b"9999-12-31T23:59:59Z", b"10000-01-01T00:00:00Z", b"1e18", b"9223372036854775807"):
            KAFKA.write(source, [b"at"], headers={"delayq-at": text})
        for text in (b"-1h", b"106751991167d", b"99999999999999999999h", b"0.0000001ms"):
            KAFKA.write(source, [b"delay"], headers={"delayq-delay": text})
        count = len(ms) + 7 + 4
        self.wait_for(lambda: self.committed(source) == count, "everything is committed")
        letters = self.letters(source)
        client = self.connect(server)
        self.assertEqual(self.jobs(client, "late") + len(letters), count, "each is a job or a dead letter")
        self.assertEqual(self.jobs(client, "late"), 5, [(each.headers["delayq-origin-offset"], each.headers["delayq-error"]) for each in letters])
        self.stops_well(server)

    # ---- topics

    def test_a_topic_that_is_deleted_and_made_anew_is_read_from_its_start(self):
        source = f"{self.name}.in"
        KAFKA.create(source)
        server = self.start(topics=source, topic="late")
        client = self.connect(server)
        KAFKA.write(source, [b"%d" % i for i in range(20)], headers=[{"delayq-id": b"old%d" % i, "delayq-delay": b"1h"} for i in range(20)])
        self.wait_for(lambda: self.committed(source) == 20, "the first ones are committed")
        KAFKA.delete(source)
        KAFKA.create(source)
        KAFKA.write(source, [b"%d" % i for i in range(5)], headers=[{"delayq-id": b"new%d" % i, "delayq-delay": b"1h"} for i in range(5)])
        self.wait_for(lambda: self.jobs(client, "late") == 25, "the new ones are jobs, too")
        KAFKA.write(source, [b"last"], headers={"delayq-id": b"last", "delayq-delay": b"1h"})
        self.wait_for(lambda: self.jobs(client, "late") == 26, "and what comes behind them")
        self.wait_for(lambda: KAFKA.committed("delayq-in", source).get(0) == 6, "the new offsets are committed")
        self.stops_well(server)

    def test_partitions_that_are_added_are_read(self):
        source = f"{self.name}.in"
        KAFKA.create(source)
        server = self.start(topics=source, topic="late")
        client = self.connect(server)
        KAFKA.write(source, [b"1"], headers={"delayq-delay": b"1h"})
        self.wait_for(lambda: self.jobs(client, "late") == 1, "the first partition is read")
        admin = KAFKA.admin()
        admin.create_partitions([confluent_kafka.admin.NewPartitions(source, 3)])[source].result(harness.DEADLINE)
        self.wait_for(lambda: KAFKA.partitions(source) == 3, "there are three")
        for partition in range(3):
            KAFKA.write(source, [b"2"], headers={"delayq-delay": b"1h"}, partition=partition)
        self.wait_for(lambda: self.jobs(client, "late") == 4, "all are read")
        self.wait_for(lambda: KAFKA.committed("delayq-in", source) == {0: 2, 1: 1, 2: 1}, "and committed")
        self.stops_well(server)

    def test_records_that_are_removed_before_they_are_read_hold_up_nothing(self):
        source = f"{self.name}.in"
        KAFKA.create(source)
        KAFKA.write(source, [b"%d" % i for i in range(7)], headers={"delayq-delay": b"1h"})
        self.remove_all_records(source)
        KAFKA.write(source, [b"%d" % i for i in range(3)], headers={"delayq-delay": b"1h"})
        server = self.start(topics=source, topic="late")
        client = self.connect(server)
        self.wait_for(lambda: self.jobs(client, "late") == 3, "the others are jobs")
        self.wait_for(lambda: self.committed(source) == 10, "everything is committed")
        self.stops_well(server)

    def remove_all_records(self, topic):
        """By retention."""
        for keep, condition in ((1, lambda: KAFKA.count(topic) == 0), (7 * 24 * 3_600_000, lambda: True)):
            resource = confluent_kafka.admin.ConfigResource("topic", topic, set_config={"retention.ms": str(keep)})
            admin = KAFKA.admin()
            admin.alter_configs([resource])[resource].result(harness.DEADLINE)
            self.wait_for(condition, f"the records of {topic} are gone")

    # ---- a stop in each trouble

    def test_a_stop_in_each_trouble(self):
        KAFKA.create("stop.in")
        KAFKA.create("stop.bad")
        KAFKA.write("stop.bad", [b"x"], headers={"delayq-delay": b"soon"})
        nobody = f"127.0.0.1:{kafka_harness.free_ports(1)[0]}"
        sasl = ("--set", "kafka.sasl=plain", "--set", "kafka.user=delayq", "--set")
        for what, brokers, source, told, options in (
                ("no broker", nobody, "stop.in", "until a broker can be reached", ()),
                ("a wrong password", KAFKA.addresses("SASL"), "stop.in", "uthentication", (*sasl, "kafka.password=wrong")),
                ("a password to a port that wants none", KAFKA.addresses(), "stop.in", "SASL", (*sasl, "kafka.password=right")),
                ("TLS to a port without it", KAFKA.addresses(), "stop.in", "SSL", ("--set", "kafka.tls=true")),
                ("no password where one is wanted", KAFKA.addresses("SASL"), "stop.in", "until a broker can be reached", ()),
                ("no such topic", KAFKA.addresses(), "stop.missing", "stop.missing", ()),
                ("no dead-letter topic", KAFKA.addresses(), "stop.bad", "until these can be written", ())):
            with self.subTest(what):
                server = harness.Server(self.directory / what.replace(" ", "-"), "--set", f"kafka.brokers={brokers}", "--set",
                                        f"kafka.intake.in.topics={source}", "--set", "topics.out.delivery=kafka_topic", "--set",
                                        "topics.out.kafka_topic=stop.missing", *options)
                self.addCleanup(server.close)
                client = self.connect(server)
                client.ask("PUSH", "out", "0", "waits")
                self.wait_for(lambda s=server, t=told: t in s.said_so_far(), f"{what} is told: {told}")
                self.stops_well(server)

    # ---- the kafka engine

    def ladder(self, topology, *options, brokers=None, data="data"):
        server = harness.Server(self.directory / data, "--engine", "kafka", "--redis", topology.url, "--set",
                                f"kafka.brokers={brokers or KAFKA.addresses()}", "--set", f"kafka.prefix={self.name}", *options)
        self.addCleanup(server.close)
        return server

    def redis(self):
        topology = redis_topology.One()
        self.addCleanup(topology.close)
        return topology

    def test_the_engine_says_at_its_start_why_kafka_cannot_be_used(self):
        topology = self.redis()
        nobody = f"127.0.0.1:{kafka_harness.free_ports(1)[0]}"
        for what, brokers, is_refused, told, options in (
                ("no broker", nobody, False, "Connection refused", ()),
                ("a wrong password", KAFKA.addresses("SASL"), True, "Invalid username or password",
                 ("--set", "kafka.sasl=plain", "--set", "kafka.user=delayq", "--set", "kafka.password=wrong")),
                ("TLS to a port without it", KAFKA.addresses(), True, "SSL handshake failed", ("--set", "kafka.tls=true"))):
            with self.subTest(what):
                begun = time.monotonic()
                done = subprocess.run([harness.PROGRAM, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--engine", "kafka", "--redis",
                                       topology.url, "--set", f"kafka.brokers={brokers}", *options], check=False, timeout=harness.DEADLINE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(told, done.stdout.decode())
                if is_refused:
                    self.assertLess(time.monotonic() - begun, STOPS_WITHIN, "it does not wait for what will not change")

    def test_records_of_the_ladder_that_are_removed_are_named_and_hold_up_nothing(self):
        topology = self.redis()
        # The step is long enough for the broker to remove the records before they return.
        options = ("--set", "kafka.ladder=12s", "--set", "kafka.horizon=1s", "--set", "kafka.partitions=1")
        server = self.ladder(topology, *options)
        client = self.connect(server)
        topic = f"{self.name}.delay.12s"
        body = b"b" * 500
        for i in range(5):
            client.ask("PUSH", "t", "26s", body, "ID", f"gone{i}")
        self.wait_for(lambda: KAFKA.count(topic) == 5, "their bodies are in Kafka")
        self.stops_well(server)  # it may have read them already
        self.remove_all_records(topic)
        server = self.ladder(topology, *options)
        client = self.connect(server)
        for i in range(5):
            client.ask("PUSH", "t", "14s", body, "ID", f"there{i}")
        found = set()

        def all_came():
            for job in client.ask("POP", "t", "COUNT", 100, "WAIT", "1s") or []:
                self.assertEqual(job[3], body)
                found.add(job[2].decode())
                client.ask("ACK", job[0])
            return len(found) >= 5
        self.wait_for(all_came, "jobs whose bodies are there come")
        self.wait_for(lambda: "gone" in server.said_so_far(), "the others are named")
        self.assertEqual(found, {f"there{i}" for i in range(5)})
        self.assertEqual(client.ask("CANCEL", "t", "gone0"), "cancelled")
        self.stops_well(server)

    def test_a_stop_while_the_broker_hangs_or_is_dead(self):
        topology = self.redis()
        source, target = f"{self.name}.in", f"{self.name}.out"
        KAFKA.create(source, partitions=2)
        KAFKA.create(target)
        broker = KAFKA.brokers[0]
        self.addCleanup(broker.start)
        self.addCleanup(broker.resume)
        for what, fault, mend in (("hangs", broker.pause, broker.resume), ("is dead", broker.kill, broker.start)):
            with self.subTest(what):
                plain = harness.Server(self.directory / f"plain {what}", "--set", f"kafka.brokers={KAFKA.addresses()}", "--set",
                                       f"kafka.intake.in.topics={source}", "--set", "topics.out.delivery=kafka_topic", "--set",
                                       f"topics.out.kafka_topic={target}")
                self.addCleanup(plain.close)
                engine = self.ladder(topology, "--set", "kafka.ladder=1s,2s", "--set", "kafka.horizon=1s", data=f"engine {what}")
                producer, far = self.connect(plain), self.connect(engine)
                self.wait_for(lambda s=plain: self.metric(s, 'delayq_kafka_intake_partitions{intake="in"}') == 2, "it reads both partitions")
                fault()
                for i in range(100):
                    producer.ask("PUSH", "out", "0", "under way", "ID", f"{what} {i}")
                    far.ask("PUSH", "t", "1h", b"b" * 500, "ID", f"{what} {i}")
                self.stops_well(plain)
                self.stops_well(engine)
                mend()
        # What was pushed is there, and goes on.
        server = self.ladder(topology, "--set", "kafka.ladder=1s,2s", "--set", "kafka.horizon=1s", data="engine again")
        self.assertEqual(self.jobs(self.connect(server), "t"), 200)
        server = harness.Server(self.directory / "plain is dead", "--set", f"kafka.brokers={KAFKA.addresses()}", "--set",
                                "topics.out.delivery=kafka_topic", "--set", f"topics.out.kafka_topic={target}")
        self.addCleanup(server.close)
        self.wait_for(lambda: {f"is dead {i}".encode() for i in range(100)} <= {each.key for each in KAFKA.read(target, KAFKA.count(target))},
                      "what could not be written is written now")

    def test_a_ladder_that_is_changed_loses_nothing(self):
        topology = self.redis()
        settings = ("--set", "kafka.horizon=1s", "--set", "kafka.partitions=1", "--set")
        server = self.ladder(topology, *settings, "kafka.ladder=10s")
        client = self.connect(server)
        body = b"b" * 500
        for i in range(5):
            client.ask("PUSH", "t", "20s", body, "ID", f"{i}")
        due = harness.now_ms() + 20_000
        self.wait_for(lambda: KAFKA.count(f"{self.name}.delay.10s") == 5, "their bodies are in Kafka")
        self.stops_well(server)
        # The topic of 10s is in it no more, and the first step is another one.
        client = self.connect(self.ladder(topology, *settings, "kafka.ladder=1s,2s"))
        found = []

        def all_came():
            for job in client.ask("POP", "t", "COUNT", 100, "WAIT", "1s") or []:
                self.assertEqual(job[3], body)
                found.append(job[2])
                client.ask("ACK", job[0])
            return len(found) >= 5
        self.wait_for(all_came, "all jobs come with their bodies")
        self.assertGreaterEqual(harness.now_ms(), due - 500)
        self.assertEqual(len(set(found)), 5)

    def test_two_servers_with_different_ladders_lose_nothing(self):
        topology = self.redis()
        one = self.ladder(topology, "--set", "kafka.ladder=1s,3s", "--set", "kafka.horizon=1s", "--set", "kafka.partitions=1", data="one")
        two = self.ladder(topology, "--set", "kafka.ladder=2s", "--set", "kafka.horizon=1s", "--set", "kafka.partitions=1", data="two")
        at_one, at_two = self.connect(one), self.connect(two)
        body = b"b" * 500
        pushed = harness.now_ms()
        for i in range(40):
            (at_one if i % 2 else at_two).ask("PUSH", "t", f"{4_000 + 100 * i}ms", body, "ID", f"{i}")
        found = {}

        def all_came():
            for client in (at_one, at_two):
                for job in client.ask("POP", "t", "COUNT", 100) or []:
                    self.assertEqual(job[3], body)
                    self.assertNotIn(job[2], found)
                    found[job[2]] = harness.now_ms()
                    client.ask("ACK", job[0])
            return len(found) == 40
        self.wait_for(all_came, "all come, each once")
        for name, at in found.items():
            self.assertGreaterEqual(at - pushed, 4_000 + 100 * int(name), "none is early")
        self.stops_well(one)
        self.stops_well(two)


if __name__ == "__main__":
    harness.main()
