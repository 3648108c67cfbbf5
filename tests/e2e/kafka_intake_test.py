"""Records of Kafka topics that become jobs, with a real broker: in -> journal -> out, kills, two servers, a broker that restarts."""
import json
import signal
import time
import unittest
import urllib.request

import harness
import kafka_harness
import redis_topology


def setUpModule():
    global KAFKA  # pylint: disable=global-statement
    KAFKA = kafka_harness.Kafka()


def tearDownModule():
    KAFKA.close()


class KafkaIntake(harness.ServerTest):
    def setUp(self):
        super().setUp()
        self.name = self.id().rsplit(".", 1)[1].removeprefix("test_").replace("_", "-")[:60]

    def topic(self, suffix, partitions=1, **config):
        name = f"{self.name}.{suffix}"
        KAFKA.create(name, partitions=partitions, **config)
        return name

    def start(self, source, *options, data="data", **settings):
        """A server that reads `source`."""
        said = {"topics": source, "session_timeout": "3s", **settings}
        sets = [f"--set=kafka.intake.in.{key}={value}" for key, value in said.items()]
        server = harness.Server(self.directory / data, "--set", f"kafka.brokers={KAFKA.addresses()}", *sets, *options)
        self.addCleanup(server.close)
        return server

    def delivering(self, topic, target):
        return ["--set", f"topics.{topic}.delivery=kafka_topic", "--set", f"topics.{topic}.kafka_topic={target}"]

    def committed(self, source, group="delayq-in"):
        return sum(KAFKA.committed(group, source).values())

    def jobs(self, client, topic):
        stats = client.stats(topic)
        return sum(int(stats[state]) for state in ("delayed", "ready", "reserved"))

    def metrics(self, server):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/metrics", timeout=harness.DEADLINE) as answer:
            lines = answer.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def test_a_message_is_delayed_and_leaves_as_it_came(self):
        source, target, other = self.topic("in"), self.topic("out"), self.topic("other")
        self.start(source, *self.delivering("late", target), topic="late")
        sent = harness.now_ms()
        KAFKA.write(source, [b"one", b"two", b"three"], keys=[b"k1", None, b"k3"], headers=[
            {"delayq-delay": b"1.5s", "trace": b"abc", "none": None}, {"delayq-delay": b"500ms"},
            {"delayq-delay": b"0s", "delayq-target": other.encode()}])
        first, second = sorted(KAFKA.read(target, 2), key=lambda record: record.value)
        self.assertEqual((first.value, first.key, first.headers["trace"]), (b"one", b"k1", b"abc"))
        self.assertIsNone(first.headers["none"])
        self.assertNotIn("delayq-delay", first.headers)
        self.assertEqual(first.headers["delayq-job-id"], f"{source}-0-0".encode())
        self.assertEqual((second.value, second.key), (b"two", None))
        self.assertGreaterEqual(first.timestamp, sent + 1500)
        self.assertGreaterEqual(second.timestamp, sent + 500)
        self.assertEqual([(record.value, record.key) for record in KAFKA.read(other, 1)], [(b"three", b"k3")])

    def test_headers_of_a_record_are_those_of_its_job(self):
        source = self.topic("in")
        server = self.start(source, topic="popped")
        KAFKA.write(source, [b"one"], headers=[{"traceparent": b"00-1", "binary": b"\xff", "none": None, "host": b"x"}])
        client = self.connect(server)
        job = client.ask("POP", "popped", "WAIT", "10s", "HEADERS")[0]
        headers = job[6] if isinstance(job[6], dict) else dict(zip(job[6][::2], job[6][1::2]))
        self.assertEqual({bytes(name): bytes(value) for name, value in headers.items()}, {b"traceparent": b"00-1", b"host": b"x"})

    def test_cancel_and_reschedule_of_what_is_delayed(self):
        source, target = self.topic("in"), self.topic("out")
        server = self.start(source, *self.delivering("late", target), topic="late")
        KAFKA.write(source, [b"cancelled", b"moved", b"replaced"], headers=[
            {"delayq-delay": b"1h"}, {"delayq-delay": b"1h", "delayq-id": b"order-7"}, {"delayq-delay": b"1h", "delayq-group": b"g"}])
        client = self.connect(server)
        self.wait_for(lambda: self.jobs(client, "late") == 3, "three jobs wait")
        self.assertEqual(client.ask("CANCEL", "late", f"{source}-0-0"), "cancelled")
        self.assertEqual(client.ask("RESCHEDULE", "late", "order-7", "0"), "OK")
        self.assertEqual([record.value for record in KAFKA.read(target, 1)], [b"moved"])
        self.assertEqual(client.ask("CANCELGROUP", "g"), 1)
        self.assertEqual(self.jobs(client, "late"), 0)

    def test_what_cannot_be_a_job_goes_to_the_dead_letter_topic(self):
        source = self.topic("in")
        server = self.start(source)
        client = self.connect(server)
        KAFKA.write(source, [b"good", b"bad", b"good"], keys=[b"a", b"b", b"c"], headers=[{}, {"delayq-delay": b"soon", "x": b"y"}, {}])
        waits = "cannot be written"
        self.wait_for(lambda: "until these can be written" in server.said_so_far(), "the missing dead-letter topic is told")
        self.assertEqual(self.metrics(server)['delayq_kafka_intake_paused{intake="in"}'], "1", waits)
        KAFKA.create(f"{source}.delayq-dead")
        letter = KAFKA.read(f"{source}.delayq-dead", 1)[0]
        self.assertEqual((letter.key, letter.value, letter.headers["x"]), (b"b", b"bad", b"y"))
        self.assertIn(b"delayq-delay", letter.headers["delayq-error"])
        self.assertEqual(letter.headers["delayq-origin-offset"], b"1")
        self.wait_for(lambda: self.committed(source) == 3, "everything is committed")
        self.assertEqual(self.jobs(client, source), 2)
        self.assertEqual(server.said_so_far().count("until these can be written"), 1)

    def test_a_record_of_the_largest_size_that_cannot_be_a_job_does_not_stop_its_partition(self):
        source, dead = self.topic("in", max_message_bytes=20_000), self.topic("in.delayq-dead", max_message_bytes=20_000)
        server = self.start(source)
        KAFKA.write(source, [b"x" * 19_850, b"good"], keys=[b"a", None], headers=[{"delayq-delay": b"soon"}, {}])
        letter = KAFKA.read(dead, 1)[0]
        self.assertEqual((letter.key, letter.value, letter.headers["delayq-origin-offset"]), (b"a", b"", b"0"))
        self.assertIn(b"too large", letter.headers["delayq-shortened"])
        self.wait_for(lambda: self.committed(source) == 2, "everything is committed")
        self.assertEqual(self.jobs(self.connect(server), source), 1)

    def test_retries_with_backoff_for_an_ordinary_consumer(self):
        work, retry = self.topic("work"), self.topic("retry")
        dead = self.topic("dead")
        self.start(retry, *self.delivering("retry", work), topic="retry", retries="2", backoff="300ms,600ms", dead_letter_topic=dead)
        KAFKA.write(work, [b"job"])
        for attempt, least in ((1, 300), (2, 600)):
            failed = KAFKA.read(work, attempt)[-1]  # the consumer fails, and sends it back as it is
            sent = harness.now_ms()
            KAFKA.write(retry, [failed.value], keys=[failed.key], headers=failed.headers)
            again = KAFKA.read(work, attempt + 1)[-1]
            self.assertEqual(again.headers["delayq-retries"], str(attempt).encode())
            self.assertGreaterEqual(again.timestamp, sent + least)
        KAFKA.write(retry, [again.value], keys=[again.key], headers=again.headers)
        letter = KAFKA.read(dead, 1)[0]
        self.assertIn(b"come back 2 times", letter.headers["delayq-error"])

    def test_kill_9_under_load_loses_nothing_and_nothing_is_early(self):
        source, target = self.topic("in", partitions=3), self.topic("out", partitions=2)
        server = self.start(source, *self.delivering("late", target), topic="late")
        count, rounds, sent = 2000, 4, {}
        for part in range(rounds):
            values = [f"{part}-{i}".encode() for i in range(count)]
            due = harness.now_ms() + 1500
            sent.update((value, due) for value in values)
            KAFKA.write(source, values, keys=values, headers={"delayq-at": f"{due / 1000:.3f}".encode()})
            server.kill()
            server.start()
        self.wait_for(lambda: self.committed(source) == rounds * count, "everything is committed")
        records = []

        def all_came():
            # Not their number: some come twice, because of the kills.
            records[:] = KAFKA.read(target, KAFKA.count(target))
            return len({record.value for record in records}) == rounds * count
        self.wait_for(all_came, "none is lost", 120)
        ids = {}
        for record in records:
            self.assertGreaterEqual(record.timestamp, sent[record.value], "none is early")
            self.assertEqual(record.key, record.value)
            ids.setdefault(record.value, set()).add(record.headers["delayq-job-id"])
        self.assertEqual(set(ids), set(sent), "none is lost")
        self.assertEqual({len(each) for each in ids.values()}, {1}, "each record is one job")

    def test_two_servers_over_one_redis_share_the_partitions(self):
        topology = redis_topology.One()
        self.addCleanup(topology.close)
        source = self.topic("in", partitions=4)
        options = ["--engine", "redis", "--set", f"redis.url={topology.redis.url()}"]
        servers = [self.start(source, *options, data="a"), self.start(source, *options, data="b")]
        owned = 'delayq_kafka_intake_partitions{intake="in"}'
        self.wait_for(lambda: [self.metrics(each)[owned] for each in servers] == ["2", "2"], "each has two partitions")
        values = [str(i).encode() for i in range(4000)]
        headers = {"delayq-delay": b"1h"}
        KAFKA.write(source, values[:2000], keys=values[:2000], headers=headers)
        servers[0].kill()
        KAFKA.write(source, values[2000:], keys=values[2000:], headers=headers)
        client = self.connect(servers[1])
        self.wait_for(lambda: self.jobs(client, source) >= 4000, "all records are jobs")
        self.wait_for(lambda: self.committed(source) == 4000, "everything is committed")
        self.assertEqual(self.jobs(client, source), 4000)

    def test_a_broker_that_restarts_is_read_on(self):
        source = self.topic("in")
        server = self.start(source)
        client = self.connect(server)
        KAFKA.write(source, [b"1", b"2"], headers={"delayq-delay": b"1h"})
        self.wait_for(lambda: self.jobs(client, source) == 2, "both are jobs")
        KAFKA.brokers[0].kill()
        self.wait_for(lambda: "cannot read" in server.said_so_far(), "it is told")
        KAFKA.brokers[0].start()
        KAFKA.write(source, [b"3"], headers={"delayq-delay": b"1h"})
        self.wait_for(lambda: self.jobs(client, source) == 3, "reading goes on")
        self.wait_for(lambda: self.committed(source) == 3, "everything is committed")

    def test_a_stop_commits_and_leaves_the_group(self):
        source = self.topic("in")
        server = self.start(source, commit_interval="1m")
        client = self.connect(server)
        KAFKA.write(source, [b"1", b"2"], headers={"delayq-delay": b"1h"})
        self.wait_for(lambda: self.jobs(client, source) == 2, "both are jobs")
        begun = time.monotonic()
        code, _ = server.stop()
        self.assertEqual(code, 0)
        self.assertLess(time.monotonic() - begun, 8.0)
        self.assertEqual(self.committed(source), 2)

    def test_a_reload_changes_how_records_become_jobs(self):
        source, second = self.topic("in"), self.topic("second")
        file = self.directory / "delayq.toml"

        def configure(*intakes):
            file.write_text(f'[kafka]\nbrokers = "{KAFKA.addresses()}"\n' + "".join(
                f'[kafka.intake.{name}]\ntopics = ["{topic}"]\ntopic = "{into}"\nsession_timeout = "3s"\n' for name, topic, into in intakes))
        configure(("one", source, "first"))
        server = self.serve("-c", str(file))
        client = self.connect(server)
        KAFKA.write(source, [b"1"])
        self.wait_for(lambda: self.jobs(client, "first") == 1, "a job of the first topic")
        configure(("one", source, "other"), ("two", second, "second"))
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: 'delayq_kafka_intake_held{intake="two"}' in self.metrics(server), "the second one is there")
        KAFKA.write(source, [b"2"])
        KAFKA.write(second, [b"3"])
        self.wait_for(lambda: self.jobs(client, "other") == 1 and self.jobs(client, "second") == 1, "both are jobs")
        configure(("two", second, "second"))
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: 'delayq_kafka_intake_held{intake="one"}' not in self.metrics(server), "the first one is gone")
        self.wait_for(lambda: KAFKA.committed("delayq-one", source) == {0: 2}, "and has committed")

    def test_what_serve_refuses_is_refused_by_config_check(self):
        file = self.directory / "delayq.toml"
        for text, error in ((f'[kafka.intake.x]\ntopics = ["a"]\n', "needs kafka.brokers"),
                            ('[kafka]\nbrokers = "127.0.0.1:1"\n[kafka.intake.x]\n', "topics is missing"),
                            ('[kafka]\nbrokers = "127.0.0.1:1"\n[kafka.intake.x]\ntopics = ["a b"]\n', "not a name in Kafka"),
                            ('[kafka]\nbrokers = "127.0.0.1:1"\n[kafka.intake.x]\ntopics = ["a"]\nretries = 3\n', "needs backoff")):
            file.write_text(text)
            for command in (["config", "check", "-c", str(file)], ["serve", "-c", str(file)]):
                done = harness.subprocess.run([harness.PROGRAM, *command], check=False, stdout=-1, stderr=-2, timeout=harness.DEADLINE)
                self.assertNotEqual(done.returncode, 0, text)
                self.assertIn(error, done.stdout.decode())


if __name__ == "__main__":
    harness.main()
