"""Jobs that the server writes to topics in Kafka, read from a real broker. All tests share one, on which they have topics of their own."""
import json
import signal
import subprocess
import threading
import unittest

import harness
from delivery_harness import DeliveryTest
from kafka_harness import Kafka

PASSWORD = "hush-hush"
JAAS = "org.apache.kafka.common.security"


class Shared:
    kafka = None
    certificate = None
    key = None


def setUpModule():
    directory = unittest.enterModuleContext(harness.tempfile.TemporaryDirectory(prefix="delayq-kafka-tls-"))
    key, certificate, both = (f"{directory}/{name}.pem" for name in ("key", "certificate", "both"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, stderr=subprocess.DEVNULL)
    with open(both, "w", encoding="ascii") as file:
        for part in (key, certificate):
            with open(part, encoding="ascii") as source:
                file.write(source.read())
    Shared.certificate = certificate
    Shared.key = key
    Shared.kafka = unittest.enterModuleContext(Kafka(
        listeners={"SASL": "SASL_PLAINTEXT", "TLS": "SSL", "BOTH": "SASL_SSL", "MUTUAL": "SSL"},
        settings={"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                  **{f"listener.name.{listener}.{mechanism}.sasl.jaas.config": f"{JAAS}.{module}"
                     for listener in ("sasl", "both")
                     for mechanism, module in (("plain", f'plain.PlainLoginModule required user_delayq="{PASSWORD}";'),
                                               ("scram-sha-256", "scram.ScramLoginModule required;"),
                                               ("scram-sha-512", "scram.ScramLoginModule required;"))},
                  **{f"listener.name.{listener}.ssl.keystore.{key}": value
                     for listener in ("tls", "both", "mutual") for key, value in (("type", "PEM"), ("location", both))},
                  "listener.name.mutual.ssl.client.auth": "required", "listener.name.mutual.ssl.truststore.type": "PEM",
                  "listener.name.mutual.ssl.truststore.location": certificate}))


class KafkaTest(DeliveryTest):
    def setUp(self):
        super().setUp()
        self.kafka = Shared.kafka
        self.topic = self.id().rpartition(".")[2].replace("test_", "").replace("_", "-")

    def start(self, *options, listener="PLAINTEXT"):
        return self.serve("--set", "log.level=info", "--set", f"kafka.brokers={self.kafka.addresses(listener)}", *options)

    def topic_for(self, server, partitions=1, **settings):
        """The test's own topic, in Kafka and in delayq."""
        self.kafka.create(self.topic, partitions)
        self.set(server, self.topic, delivery="kafka_topic", **settings)
        return self.topic

    def until_settled(self, client, topic):
        def is_settled():
            stats = client.stats(topic)
            return stats["ready"] + stats["reserved"] + stats["delayed"] == 0
        self.wait_for(is_settled, f"all jobs of {topic} have left", 90)


class Delivery(KafkaTest):
    def test_a_record_has_body_key_and_headers(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server)
        body = b"\x00\xff any bytes"
        client.ask("PUSH", topic, "50ms", body, "ID", "a-1", "GROUP", "customer")
        record = self.kafka.read(topic, 1)[0]
        self.assertEqual((record.key, record.value), (b"a-1", body))
        self.assertEqual(set(record.headers), {"delayq-job-id", "delayq-job-topic", "delayq-job-due", "delayq-job-attempt"})
        self.assertEqual((record.headers["delayq-job-id"], record.headers["delayq-job-topic"], record.headers["delayq-job-attempt"]),
                         (b"a-1", topic.encode(), b"1"))
        self.until_settled(client, topic)
        job = self.job(client, topic, "a-1")
        self.assertRegex(record.headers["delayq-job-due"], rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(job["outcome"], f"{topic}[0]@0".encode())
        self.assertEqual(job["state"], b"done")
        with self.assertRaisesRegex(harness.Refused, "written to Kafka"):
            client.ask("POP", topic)

    def test_contents_and_keys(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, partitions=4, kafka_content="job", kafka_key="group")
        for name, group in (("a", "g"), ("b", "g"), ("c", "")):
            client.ask("PUSH", topic, "0", '{"n":1}', "ID", name, *(["GROUP", group] if group else []))
        records = self.kafka.read(topic, 3)
        jobs = {json.loads(record.value)["id"]: (json.loads(record.value), record) for record in records}
        self.assertEqual(jobs["a"][0]["body"], {"n": 1})
        self.assertEqual([jobs[name][1].key for name in "abc"], [b"g", b"g", None])
        self.assertEqual(jobs["a"][1].partition, jobs["b"][1].partition, "one group, one partition")
        self.set(server, topic, kafka_content="id", kafka_key="none")
        client.ask("PUSH", topic, "0", "x", "ID", "only-me")
        values = [record.value for record in self.kafka.read(topic, 4)]
        self.assertIn(b"only-me", values)

    def test_headers_can_be_left_out(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, kafka_headers="id", kafka_key="none")
        client.ask("PUSH", topic, "0", b"\x00 bytes", "ID", "first")
        self.assertEqual(self.kafka.read(topic, 1)[0].headers, {"delayq-job-id": b"first"})
        self.set(server, topic, kafka_headers="none")
        client.ask("PUSH", topic, "0", b"", "ID", "second")
        record = self.kafka.read(topic, 2)[1]
        self.assertEqual((record.key, record.value, record.headers), (None, b"", {}))
        self.set(server, topic, kafka_key="id")
        client.ask("PUSH", topic, "0", b"\xff", "ID", "third")
        record = self.kafka.read(topic, 3)[2]
        self.assertEqual((record.key, record.value, record.headers), (b"third", b"\xff", {}))
        self.until_settled(client, topic)
        self.assertEqual(self.job(client, topic, "third")["outcome"], f"{topic}[0]@2".encode())

    def test_keys_are_spread_as_the_java_clients_do(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, partitions=3)
        self.push(client, topic, ["order-1", "order-2", "order-3", "21"])
        placed = {record.key: record.partition for record in self.kafka.read(topic, 4)}
        # (murmur2(key) & 0x7fffffff) % 3, of Kafka's Utils.murmur2; "21" is 0xc53192b7 in its own tests.
        self.assertEqual(placed[b"21"], (0xc53192b7 & 0x7fffffff) % 3)

    def test_jobs_of_a_topic_are_in_order(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, kafka_content="id", kafka_key="none")
        self.push(client, topic, ["later"], delay="400ms")
        ids = [f"id{i}" for i in range(5_000)]
        for begin in range(0, len(ids), 500):
            self.push(client, topic, ids[begin:begin + 500])
        seen = [record.value.decode() for record in self.kafka.read(topic, 5_001)]
        self.assertEqual([each for each in seen if each != "later"], ids)
        self.assertEqual(seen.count("later"), 1)
        self.until_settled(client, topic)
        self.assertEqual(self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="delivered"}'), 5_001)
        self.assertEqual(self.metric(server, "delayq_kafka_delivery_in_flight"), 0)

    def test_a_small_buffer_only_makes_it_slower(self):
        server = self.start("--set", "kafka.in_flight=10")
        client = self.connect(server)
        topic = self.topic_for(server, kafka_content="id", kafka_key="none")
        ids = [f"id{i}" for i in range(1_000)]
        self.push(client, topic, ids)
        self.assertEqual([record.value.decode() for record in self.kafka.read(topic, 1_000)], ids)

    def test_a_missing_topic_fails_until_it_is_there(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic
        self.set(server, topic, delivery="kafka_topic", attempts=0, backoff="300ms")
        self.push(client, topic, ["a"])
        self.wait_for(lambda: self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="failed"}') > 0, "it has failed")
        self.assertIn(b"Unknown topic", self.job(client, topic, "a")["outcome"])
        self.kafka.create(topic)
        self.assertEqual(self.kafka.read(topic, 1)[0].key, b"a")
        self.until_settled(client, topic)
        self.assertEqual(self.job(client, topic, "a")["state"], b"done")

    def test_what_the_topic_refuses_dies_alone(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic
        self.kafka.create(topic, max_message_bytes=2_000)
        self.set(server, topic, delivery="kafka_topic", attempts=2, backoff="50ms")
        client.ask("PUSH", topic, "0", "x" * 5_000, "ID", "large")
        client.ask("PUSH", topic, "0", "x", "ID", "small")
        self.wait_for(lambda: client.stats(topic)["dead"] == 1, "the large one is dead")
        self.assertIn(b"too large", self.job(client, topic, "large")["outcome"])
        self.until_settled(client, topic)
        self.assertEqual(self.job(client, topic, "small")["state"], b"done")


    def test_a_topic_that_accepts_less_at_run_time(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, attempts=2, backoff="50ms")
        client.ask("PUSH", topic, "0", "x" * 5_000, "ID", "before")
        self.until_settled(client, topic)
        self.kafka.tool("kafka.admin.ConfigCommand", "--bootstrap-server", self.kafka.addresses(), "--alter", "--entity-type", "topics",
                        "--entity-name", topic, "--add-config", "max.message.bytes=2000")
        for i in range(20):
            client.ask("PUSH", topic, "0", "x" * (5_000 if i % 10 == 0 else 10), "ID", f"id{i}")
        self.until_settled(client, topic)
        self.assertEqual(client.stats(topic)["dead"], 2)
        for name in ("id0", "id10"):
            self.assertIn(b"too large", self.job(client, topic, name)["outcome"])
        self.assertEqual({record.key for record in self.kafka.read(topic, 19)} | {b"id0", b"id10"},
                         {b"before"} | {f"id{i}".encode() for i in range(20)})


class Trouble(KafkaTest):
    def push_all(self, server, topic, ids):
        def run():
            pusher = server.client()
            for begin in range(0, len(ids), 500):
                pusher.ask_all([("PUSH", topic, "0", "x", "ID", each) for each in ids[begin:begin + 500]])
            pusher.close()
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def test_a_broker_that_is_killed_and_comes_back_loses_nothing(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, kafka_content="id", kafka_key="none", attempts=1)
        ids = [f"id{i}" for i in range(20_000)]
        pushing = self.push_all(server, topic, ids)
        self.wait_for(lambda: self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="delivered"}') > 500, "some are written")
        self.kafka.brokers[0].kill()
        pushing.join()
        self.wait_for(lambda: "jobs wait until a broker can be reached" in server.said_so_far(), "it is told")
        self.assertEqual(self.metric(server, "delayq_kafka_delivery_connected"), 0)
        self.kafka.brokers[0].start()
        self.until_settled(client, topic)
        stats = client.stats(topic)
        self.assertEqual(stats["dead"], 0, "no attempt was counted")
        seen = [record.value.decode() for record in self.kafka.read(topic, len(ids))]
        self.assertEqual(set(seen), set(ids))
        given_back = self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="given_back"}')
        self.assertLessEqual(len(seen) - len(ids), given_back, "only what kafka.timeout gave up is written twice")
        said = server.said_so_far()
        self.assertEqual(said.count("jobs wait until a broker"), 1, said)
        self.assertEqual(said.count("a broker can be reached again"), 1, said)

    def test_a_topic_that_is_deleted_under_load_loses_nothing(self):
        server = self.start()
        client = self.connect(server)
        topic = self.topic_for(server, kafka_content="id", kafka_key="none", attempts=0, backoff="200ms")
        ids = [f"id{i}" for i in range(5_000)]
        pushing = self.push_all(server, topic, ids)
        self.wait_for(lambda: self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="delivered"}') > 500, "some are written")
        self.kafka.delete(topic)
        pushing.join()
        self.push(client, topic, ["after"])
        self.wait_for(lambda: self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="failed"}') > 0, "it is noticed", 60)
        settled = self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="delivered"}')
        self.kafka.create(topic)
        self.until_settled(client, topic)
        seen = {record.value.decode() for record in self.kafka.read(topic, len(ids) + 1 - int(settled))}
        self.assertIn("after", seen)
        self.assertGreaterEqual(len(seen), len(ids) + 1 - int(settled), "what the deleted topic had not confirmed is in the new one")
        self.assertEqual(client.stats(topic)["dead"], 0)

    def test_jobs_come_back_uncounted_after_the_timeout(self):
        server = self.start("--set", "kafka.timeout=1s")
        client = self.connect(server)
        topic = self.topic_for(server, kafka_content="id", attempts=1)
        self.push(client, topic, ["first"])
        self.until_settled(client, topic)
        broker = self.kafka.brokers[0]
        broker.pause()  # connections stay open: only the timeout tells
        try:
            self.push(client, topic, [f"id{i}" for i in range(100)])
            self.wait_for(lambda: self.metric(server, 'delayq_kafka_delivery_jobs_total{outcome="given_back"}') >= 100, "they are given back")
        finally:
            broker.resume()
        self.until_settled(client, topic)
        self.assertEqual(client.stats(topic)["dead"], 0)
        seen = {record.value.decode() for record in self.kafka.read(topic, 101)}
        self.assertEqual(len(seen), 101)

    def test_a_stop_under_load_loses_nothing_and_repeats_nothing(self):
        server = self.start()
        topic = self.topic_for(server, kafka_content="id", kafka_key="none")
        ids = [f"id{i}" for i in range(20_000)]
        self.push_all(server, topic, ids).join()
        code, said = server.stop()
        self.assertEqual(code, 0, said)
        server.start()
        client = self.connect(server)
        self.until_settled(client, topic)
        seen = [record.value.decode() for record in self.kafka.read(topic, len(ids))]
        self.assertEqual((len(seen), len(set(seen))), (len(ids), len(ids)))

    def test_a_server_that_is_killed_repeats_only_what_was_under_way(self):
        server = self.start()
        topic = self.topic_for(server, kafka_content="id", kafka_key="none")
        ids = [f"id{i}" for i in range(10_000)]
        self.push_all(server, topic, ids).join()
        server.kill()
        server.start()
        client = self.connect(server)
        self.until_settled(client, topic)
        seen = [record.value.decode() for record in self.kafka.read(topic, len(ids))]
        self.assertEqual(set(seen), set(ids))
        self.assertLess(len(seen), 2 * len(ids))

    def test_without_brokers_the_jobs_wait_and_that_is_told(self):
        server = self.start()
        topic = self.topic_for(server)
        server.stop()
        server.options = ()
        server.start()
        self.assertIn("its jobs wait: delivery = kafka_topic needs Kafka: say kafka.brokers", server.said_so_far())
        client = self.connect(server)
        self.push(client, topic, ["a"])
        self.assertEqual(client.stats(topic)["ready"], 1)


class Security(KafkaTest):
    def deliver(self, *options, listener):
        server = self.start(*options, listener=listener)
        client = self.connect(server)
        topic = self.topic_for(server)
        self.push(client, topic, ["a"])
        self.assertEqual(self.kafka.read(topic, 1)[0].key, b"a")
        self.until_settled(client, topic)
        self.assertNotIn(PASSWORD, server.said_so_far())

    def sasl(self, mechanism, password=PASSWORD):
        return [word for key, value in (("sasl", mechanism), ("user", "delayq"), ("password", password))
                for word in ("--set", f"kafka.{key}={value}")]

    def test_plain(self):
        self.deliver(*self.sasl("plain"), listener="SASL")

    def set_password(self, mechanism, password=PASSWORD):
        self.kafka.tool("kafka.admin.ConfigCommand", "--bootstrap-server", self.kafka.addresses(), "--alter", "--entity-type", "users",
                        "--entity-name", "delayq", "--add-config", f"{mechanism}=[password={password}]")

    def test_scram(self):
        self.set_password("SCRAM-SHA-256")
        self.deliver(*self.sasl("scram-sha-256"), listener="SASL")

    def test_scram_over_tls_and_a_password_that_changes_at_run_time(self):
        self.set_password("SCRAM-SHA-512")
        server = self.start(*self.sasl("scram-sha-512"), *self.tls(), listener="BOTH")
        client = self.connect(server)
        topic = self.topic_for(server, attempts=1)
        self.push(client, topic, ["before"])
        self.until_settled(client, topic)
        self.set_password("SCRAM-SHA-512", "another")
        self.kafka.brokers[0].kill()  # connections that are open stay logged in
        self.kafka.brokers[0].start()
        self.wait_for(lambda: "jobs wait until a broker" in server.said_so_far(), "it is told", 60)
        self.push(client, topic, ["meanwhile"])
        self.wait_for(lambda: "uthentication" in server.said_so_far(), "the new reason is told, too", 60)
        self.assertEqual(client.stats(topic)["ready"] + client.stats(topic)["reserved"], 1)
        self.set_password("SCRAM-SHA-512")
        self.until_settled(client, topic)
        self.assertEqual([record.key for record in self.kafka.read(topic, 2)], [b"before", b"meanwhile"])
        self.assertEqual(client.stats(topic)["dead"], 0, "no attempt was counted")
        self.assertNotIn(PASSWORD, server.said_so_far())

    def test_a_wrong_password_is_told(self):
        server = self.start(*self.sasl("plain", "wrong-one"), listener="SASL")
        self.wait_for(lambda: "jobs wait until a broker" in server.said_so_far(), "it is told")
        said = server.said_so_far()
        self.assertIn("uthentication", said)
        self.assertNotIn("wrong-one", said)

    def tls(self):
        return ["--set", "kafka.tls=true", "--set", f"kafka.ca_file={Shared.certificate}"]

    def test_tls(self):
        self.deliver(*self.tls(), listener="TLS")

    def test_tls_with_a_certificate_of_the_client(self):
        self.deliver(*self.tls(), "--set", f"kafka.certificate={Shared.certificate}", "--set", f"kafka.key={Shared.key}", listener="MUTUAL")

    def test_a_broker_that_wants_a_certificate_and_gets_none_is_told(self):
        server = self.start(*self.tls(), listener="MUTUAL")
        self.wait_for(lambda: "jobs wait until a broker" in server.said_so_far(), "it is told")

    def test_the_file_of_go_delay_queue(self):
        file = self.directory / "delay-queue.conf"
        file.write_text(f"""; go-delay-queue
job.key = "delay_job:%s"
kafka.bootstrap_servers = "{self.kafka.addresses("BOTH")}"
kafka.security_protocol = "SASL_SSL"
kafka.sasl_mechanism = "PLAIN"
kafka.sasl_username = "delayq"
kafka.sasl_password = "{PASSWORD}"
""", encoding="utf-8")
        server = self.serve("-c", str(file), "-t", "journal", "--set", f"kafka.ca_file={Shared.certificate}")
        topic = self.topic_for(server)
        self.push(self.connect(server), topic, ["a"])
        self.assertEqual(self.kafka.read(topic, 1)[0].key, b"a")
        self.assertNotIn(PASSWORD, server.said_so_far())

    def test_a_certificate_that_is_not_trusted_is_told(self):
        server = self.start("--set", "kafka.tls=true", listener="TLS")
        self.wait_for(lambda: "jobs wait until a broker" in server.said_so_far(), "it is told")
        self.assertIn("certificate", server.said_so_far())


class Configuration(KafkaTest):
    def check(self, text, *wanted):
        """`config check` and `serve` refuse it, in the same words."""
        file = self.directory / "bad.toml"
        file.write_text(text, encoding="utf-8")
        for command in (["config", "check"], ["serve", "--data", str(self.directory / "data")]):
            done = subprocess.run([harness.PROGRAM, *command, "-c", str(file)], check=False, timeout=harness.DEADLINE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 2, done.stdout)
            for each in wanted:
                self.assertIn(each, done.stdout.decode())
            self.assertNotIn(PASSWORD, done.stdout.decode())

    def test_what_is_wrong_is_refused_by_its_name(self):
        start = '[kafka]\nbrokers = "127.0.0.1:1"\n'
        self.check(start + '[kafka.settings]\n"linger.sm" = 5\n', "bad.toml:4: kafka.settings.linger.sm: librdkafka has no such setting")
        self.check(start + "settings.linger.ms = -1\n", "bad.toml:3: kafka.settings.linger.ms: ")
        self.check(start + "settings.acks = 1\n", "bad.toml:3: kafka.settings.acks: this cannot be set here: delayq needs it to be all")
        self.check(start + f'user = "u"\npassword = "{PASSWORD}"\n', 'bad.toml:3: kafka.user: needs sasl = "plain"')
        self.check(start + 'tls = true\nca_file = "/nowhere"\n', 'bad.toml:4: kafka.ca_file: "/nowhere" cannot be read')
        self.check('[kafka]\nclient_id = "x"\n', "kafka.brokers: is missing")
        self.check('[topics.t]\ndelivery = "kafka_topic"\n', "delivery = kafka_topic needs Kafka: say kafka.brokers")

    def test_settings_are_passed_on_and_secrets_are_not_shown(self):
        file = self.directory / "good.toml"
        file.write_text(f'[kafka]\nbrokers = "{self.kafka.addresses()}"\npassword = ""\n[kafka.settings]\n"compression.codec" = "lz4"\n'
                        f'"ssl.key.password" = "{PASSWORD}"\n', encoding="utf-8")
        done = subprocess.run([harness.PROGRAM, "config", "check", "--print", "-c", str(file)], check=True, stdout=subprocess.PIPE)
        said = done.stdout.decode()
        self.assertIn('settings.compression.codec = "lz4"', said)
        self.assertNotIn(PASSWORD, said)
        server = self.serve("-c", str(file))
        topic = self.topic_for(server)
        self.push(self.connect(server), topic, ["a"])
        self.kafka.read(topic, 1)
        server.process.send_signal(signal.SIGHUP)
        self.push(self.connect(server), topic, ["b"])
        self.kafka.read(topic, 2)


if __name__ == "__main__":
    harness.main()
