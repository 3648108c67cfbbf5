"""Apache Kafka as users run it, in KRaft mode, on free ports of 127.0.0.1: one broker, or three. Everything is in a temporary
directory, waited for with a deadline, and ended by its process's number. tools/maven has brought the jars; a test fails without them.

    with Kafka() as kafka:
        kafka.create("orders", partitions=3)
        kafka.write("orders", [b"one", b"two"])
        records = kafka.read("orders", 2)
"""
import ctypes
import dataclasses
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

import confluent_kafka
import confluent_kafka.admin

from harness import DEADLINE, ROOT, wait_for

START_DEADLINE = 120.0  # a Java that starts beside four builds
KILLED_WITH_PARENT = 1  # PR_SET_PDEATHSIG
LIBC = ctypes.CDLL(None)

def free_ports(count):
    """Not from the range of outgoing connections: one of these could use the port while a killed broker starts again."""
    found, held = [], []
    choice = random.SystemRandom()
    try:
        while len(found) < count:
            port = choice.randrange(12_000, 32_000)
            each = socket.socket()
            held.append(each)
            try:
                each.bind(("127.0.0.1", port))
                found.append(port)
            except OSError:
                continue
    finally:
        for each in held:
            each.close()
    return found


@dataclasses.dataclass
class Record:
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: dict  # of bytes; the last of several with one name
    timestamp: int  # milliseconds


class Broker:
    """One broker process, which is a controller, too."""

    def __init__(self, directory, number, ports, settings):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.number = number
        self.ports = ports  # by listener
        self.settings = settings
        self.process = None

    @property
    def port(self):
        return self.ports["PLAINTEXT"]

    def launch(self):
        if self.is_running():
            return
        command = [ROOT / "tests" / "kafka" / "broker", self.directory, self.port, self.ports["CONTROLLER"],
                   *(f"{name}={value}" for name, value in self.settings.items())]
        with open(self.directory / "log", "ab") as log:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=lambda: LIBC.prctl(KILLED_WITH_PARENT, signal.SIGKILL))

    def start(self):
        """Starts it, with what it has on its disk, and waits until it serves clients."""
        self.launch()
        self.wait_until_ready()

    def wait_until_ready(self):
        wait_for(self.is_ready, f"the broker at {self.port} is ready", START_DEADLINE)

    def is_ready(self):
        if not self.is_running():
            raise AssertionError(f"the broker ended: {self.log()[-4000:]}")
        try:  # before a client asks: a refused connection would make it wait
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})
        try:
            return self.number in admin.list_topics(timeout=5).brokers
        except confluent_kafka.KafkaException:
            return False

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return (self.directory / "log").read_text(encoding="utf-8", errors="replace")

    def end(self, number):
        if not self.is_running():
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        self.process.wait(DEADLINE)

    def kill(self):
        """kill -9, and waits until it has ended."""
        self.end(signal.SIGKILL)

    def stop(self):
        """As an operator stops it."""
        self.end(signal.SIGTERM)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Kafka:
    """A cluster. `listeners` are further ones, by name: {"SASL": "SASL_PLAINTEXT"}; their settings are in `settings`."""

    def __init__(self, brokers=1, listeners=None, settings=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="delayq-kafka-"))
        listeners = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **(listeners or {})}
        ports = free_ports(brokers * len(listeners))
        rows = [dict(zip(listeners, ports[i * len(listeners):])) for i in range(brokers)]
        voters = ",".join(f"{i + 1}@127.0.0.1:{row['CONTROLLER']}" for i, row in enumerate(rows))
        copies = min(brokers, 3)
        self.replication = copies
        self.brokers = []
        try:
            for i, row in enumerate(rows):
                self.brokers.append(Broker(self.directory / str(i + 1), i + 1, row, {
                    "node.id": i + 1, "controller.quorum.voters": voters,
                    "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in row.items()),
                    "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in listeners.items()),
                    "default.replication.factor": copies, "offsets.topic.replication.factor": copies,
                    "transaction.state.log.replication.factor": copies, "transaction.state.log.min.isr": min(copies, 2),
                    "min.insync.replicas": min(copies, 2), "broker.session.timeout.ms": 1500 if brokers == 1 else 3000, **(settings or {})}))
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for broker in self.brokers:
            broker.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def addresses(self, listener="PLAINTEXT"):
        return ",".join(f"127.0.0.1:{broker.ports[listener]}" for broker in self.brokers)

    @property
    def port(self):
        return self.brokers[0].port

    # ---- topics and records, through Debian's python3-confluent-kafka

    def settings(self, **more):
        return {"bootstrap.servers": self.addresses(), "log_level": 0, **{name.replace("_", "."): value for name, value in more.items()}}

    def admin(self):
        return confluent_kafka.admin.AdminClient(self.settings())

    def create(self, topic, partitions=1, replication=None, **config):
        """`config`: retention_ms=... is retention.ms."""
        wanted = confluent_kafka.admin.NewTopic(topic, partitions, replication or self.replication,
                                                config={name.replace("_", "."): str(value) for name, value in config.items()})
        admin = self.admin()  # it must live until the answer is there
        try:
            admin.create_topics([wanted], operation_timeout=DEADLINE)[topic].result(DEADLINE)
        except confluent_kafka.KafkaException as problem:
            # The client asks again when the answer is late, and the topic is there by then.
            if problem.args[0].code() != confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        wait_for(lambda: self.partitions(topic) == partitions, f"topic {topic} is there")

    def delete(self, topic):
        admin = self.admin()
        admin.delete_topics([topic], operation_timeout=DEADLINE)[topic].result(DEADLINE)
        wait_for(lambda: topic not in self.topics(), f"topic {topic} is gone")

    def topics(self):
        return set(self.admin().list_topics(timeout=DEADLINE).topics)

    def partitions(self, topic):
        """How many have a leader."""
        found = self.admin().list_topics(timeout=DEADLINE).topics.get(topic)
        return 0 if found is None else sum(1 for each in found.partitions.values() if each.leader > 0)

    def write(self, topic, values, keys=None, headers=None, partition=-1, timestamp=0):
        """`headers`: of all records, or one dict for each. Returns when the broker has confirmed them."""
        producer = confluent_kafka.Producer(self.settings(enable_idempotence=True))
        failed = []
        for i, value in enumerate(values):
            own = headers[i] if isinstance(headers, list) else headers
            producer.produce(topic, value, keys[i] if keys else None, partition=partition, timestamp=timestamp,
                             headers=list((own or {}).items()), on_delivery=lambda error, _: error and failed.append(error))
            producer.poll(0)
        left = producer.flush(DEADLINE)
        if failed or left:
            raise AssertionError(f"{topic}: {left} records are not confirmed, and {failed[:1]}")

    def read(self, topic, count, seconds=DEADLINE, start=0, isolation="read_committed"):
        """At least `count` records, from `start` on in each partition, in the order of each partition. More if there are more."""
        consumer = confluent_kafka.Consumer(self.settings(group_id=f"reader-{uuid.uuid4()}", enable_auto_commit=False,
                                                          auto_offset_reset="earliest", isolation_level=isolation))
        found = []
        try:
            partitions = consumer.list_topics(topic, timeout=DEADLINE).topics[topic].partitions
            consumer.assign([confluent_kafka.TopicPartition(topic, each, start) for each in partitions])
            deadline = time.monotonic() + seconds
            while True:
                batch = consumer.consume(1000, timeout=0.05)
                for message in batch:
                    if message.error():
                        raise AssertionError(f"{topic}: {message.error()}")
                    found.append(Record(message.partition(), message.offset(), message.key(), message.value(),
                                        dict(message.headers() or []), message.timestamp()[1]))
                if len(found) >= count and not batch:
                    return sorted(found, key=lambda record: (record.partition, record.offset))
                if time.monotonic() > deadline:
                    raise AssertionError(f"never: {count} records in {topic}; {len(found)} are there")
        finally:
            consumer.close()

    def count(self, topic):
        """How many records there are, from the offsets alone."""
        consumer = confluent_kafka.Consumer(self.settings(group_id="counter"))
        try:
            partitions = consumer.list_topics(topic, timeout=DEADLINE).topics[topic].partitions
            ends = [consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, each), timeout=DEADLINE) for each in partitions]
            return sum(high - low for low, high in ends)
        finally:
            consumer.close()

    def committed(self, group, topic):
        """The offsets that a consumer group has committed, by partition."""
        consumer = confluent_kafka.Consumer(self.settings(group_id=group))
        try:
            partitions = consumer.list_topics(topic, timeout=DEADLINE).topics[topic].partitions
            asked = [confluent_kafka.TopicPartition(topic, each) for each in partitions]
            return {each.partition: each.offset for each in consumer.committed(asked, timeout=DEADLINE) if each.offset >= 0}
        finally:
            consumer.close()

    def tool(self, name, *arguments):
        """Runs one of Kafka's own programs: kafka.admin.ConfigCommand, and so on."""
        jars = subprocess.run([ROOT / "tools" / "maven", "tests/kafka", "--jars"], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
        done = subprocess.run(["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", jars + "/*", name, *arguments], check=False,
                              timeout=START_DEADLINE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise AssertionError(f"{name}: {done.stdout.decode()[-2000:]}")
        return done.stdout.decode()
