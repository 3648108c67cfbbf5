"""Servers that read from Kafka and write to Kafka, killed at random together with the three brokers: jobs come in as records
and as pushes, some are cancelled or moved, and every job must come out as a record. chaos.py runs it; records.py judges it.

`kafka` is two servers of the kafka engine over one Redis, with a ladder of seconds; `kafka-journal` is two servers that have
a journal each and share an intake."""
import datetime
import pathlib
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from contextlib import closing

import confluent_kafka

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import redis_topology
from harness import Client, Refused, Server, wait_for
from history import now_ms
from kafka_harness import Kafka
from records import Records, value_of
from workers import Worker

SERVERS = 2
TOPIC = "work"
INTAKE = "chaos.in"
GROUP = "delayq-in"
LADDER = "chaos.delay."
STEPS = ("1s", "2s", "5s")
PARTITIONS = 4
SETTLING = 120.0
DRAINING = 180.0  # jobs whose server died are written again when their leases of 15 s are over, and that may repeat
DELAYS = (0, 0, 50, 500, 1_500, 2_500, 4_000, 7_000, 12_000)
CANARIES = {"loss": "is lost", "double": "no kill explains it", "early": "early", "cancelled": "after it was cancelled"}


def target(server):
    """Each server has a topic of its own, so that a record says who wrote it."""
    return f"chaos.out.{server}"


class Pusher(Worker):
    """Pushes to one server until it dies, then to any."""
    BATCH = 5

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.made = 0

    def is_over(self):
        return self.chaos.no_more_pushes.is_set()

    def work(self, port):
        writer = self.chaos.number_of(port)
        with closing(Client(port)) as client:
            client.socket.settimeout(10)
            while not self.is_over():
                jobs = []
                for _ in range(self.BATCH):
                    self.made += 1
                    jobs.append((f"p{self.number}.{self.made}", self.random.choice(DELAYS)))
                    self.history.asking(jobs[-1][0], now_ms() + jobs[-1][1], writer)
                client.send(*[("PUSH", TOPIC, f"{delay}ms", value_of(name), "ID", name) for name, delay in jobs])
                for name, _ in jobs:
                    reply = client.read()
                    if isinstance(reply, Refused) and reply.code not in ("UNAVAILABLE", "OVERLOADED", "STOPPING"):
                        self.history.violations.append(f"push of {name}: {reply}")
                    # An engine that does not answer in time may have it all the same.
                    self.history.answered(name, None if isinstance(reply, Refused) else True)
                self.chaos.rest(self.BATCH / self.chaos.options.rate)


class Feeder(threading.Thread):
    """Writes records for the intake, with delays and moments in their headers. It needs no server, but brokers."""

    def __init__(self, chaos, chance):
        super().__init__(daemon=True, name="Feeder")
        self.chaos, self.history, self.random = chaos, chaos.history, chance
        self.failure = None
        self.made = 0

    def run(self):
        try:
            producer = self.open()
            while not self.chaos.no_more_pushes.is_set():
                try:
                    for _ in range(5):
                        self.write(producer)
                except confluent_kafka.KafkaException as problem:
                    # Brokers that die can bring librdkafka's idempotent producer to an error that it does not recover from.
                    if not problem.args[0].fatal() and problem.args[0].code() != confluent_kafka.KafkaError._FATAL:  # pylint: disable=protected-access
                        raise
                    self.chaos.say(f"the feeder's producer starts anew: {problem}")
                    producer.flush(1)
                    producer = self.open()
                producer.poll(0)
                self.chaos.rest(5 / self.chaos.options.rate)
            producer.flush(SETTLING)
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure

    def open(self):
        return confluent_kafka.Producer(self.chaos.kafka.settings(enable_idempotence=True, delivery_timeout_ms=100_000, linger_ms=5))

    def write(self, producer):
        self.made += 1
        name, delay, stamp = f"i{self.made}", self.random.choice(DELAYS), now_ms()
        due = stamp + delay
        time_header = ("delayq-delay", f"{delay}ms") if self.random.random() < 0.5 else ("delayq-at", f"{due // 1000}.{due % 1000:03}")
        self.history.asking(name, due)

        def confirmed(error, message):
            if error is None:
                self.history.answered(name, True, (message.partition(), message.offset()))
        producer.produce(INTAKE, value_of(name), name, timestamp=stamp, on_delivery=confirmed,
                         headers=[("delayq-id", name.encode()), (time_header[0], time_header[1].encode())])


class Meddler(Worker):
    """Cancels jobs and moves them to another time."""

    def is_over(self):
        return self.chaos.no_more_pushes.is_set()

    def work(self, port):
        while not self.is_over():
            self.chaos.rest(1 / (0.4 * self.chaos.options.rate))
            job = self.choose()
            if job is None:
                continue
            if self.random.random() < 0.5:
                self.cancel(job)
            else:
                self.move(job)

    def choose(self):
        """A job that waits, as far as is known."""
        with self.history.lock:
            names = self.history.order[-1_000:]
            for _ in range(20):
                job = self.history.jobs[self.random.choice(names)] if names else None
                if job and job.is_there and not job.may_be_over and not job.is_cancelled and len(job.dues) == 1 \
                        and job.dues[0][0] > now_ms() + 300:
                    return job
        return None

    def ask(self, job, *command):
        """The reply of the first server that knows the job; None if one did not answer before that."""
        reply, is_answered = None, True
        for number in self.chaos.holders(job):
            try:
                with closing(Client(self.chaos.servers[number].port)) as client:
                    client.socket.settimeout(10)
                    client.send(command)
                    reply = client.read()
            except (OSError, ConnectionError):
                is_answered = False
                continue
            if reply in ("cancelled", "OK"):
                return reply
            is_answered = is_answered and not (isinstance(reply, Refused) and reply.code in ("UNAVAILABLE", "OVERLOADED", "STOPPING"))
        return reply if is_answered else None

    def cancel(self, job):
        self.history.cancelling(job.name)
        reply = self.ask(job, "CANCEL", TOPIC, job.name)
        # "reserved": it is being written, and is not written again if that fails.
        self.history.cancel_answered(job.name, None if reply in (None, "reserved") else reply == "cancelled")

    def move(self, job):
        delay = self.random.choice((200, 1_000, 3_000, 6_000))
        self.history.rescheduling(job.name, now_ms() + delay)
        reply = self.ask(job, "RESCHEDULE", TOPIC, job.name, f"{delay}ms")
        self.history.reschedule_answered(job.name, None if reply is None else reply == "OK")


class Reader(threading.Thread):
    """Reads every record of the target topics, and what the intake's group has committed."""

    def __init__(self, chaos):
        super().__init__(daemon=True, name="Reader")
        self.chaos, self.history = chaos, chaos.history
        self.failure = None
        self.last_commit_look = 0.0
        self.read = 0

    def run(self):
        settings = self.chaos.kafka.settings(group_id=GROUP, enable_auto_commit=False, auto_offset_reset="earliest")
        consumer = confluent_kafka.Consumer(settings)
        try:
            consumer.assign([confluent_kafka.TopicPartition(target(server), partition, 0)
                             for server in range(SERVERS) for partition in range(PARTITIONS)])
            while not self.chaos.no_more_reading.is_set():
                for message in consumer.consume(1000, timeout=0.05):
                    if message.error():
                        continue  # a broker is away
                    self.note(message)
                self.look_at_commits(consumer)
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure
        finally:
            consumer.close()

    def note(self, message):
        self.read += 1
        headers = dict(message.headers() or [])
        self.history.came(headers["delayq-job-id"].decode(), message.timestamp()[1], int(message.topic().rsplit(".", 1)[1]), message.value(),
                          int(headers["delayq-job-attempt"]))

    def look_at_commits(self, consumer):
        if time.monotonic() < self.last_commit_look + 0.2:
            return
        self.last_commit_look = time.monotonic()
        asked = [confluent_kafka.TopicPartition(INTAKE, partition) for partition in range(PARTITIONS)]
        try:
            for each in consumer.committed(asked, timeout=1):
                if each.error is None and each.offset >= 0:
                    self.history.committed(each.partition, each.offset)
        except confluent_kafka.KafkaException:
            pass  # a broker is away


class KafkaChaos:
    """One run. What breaks is started and ended by the thread that calls run(): brokers end with the thread that started them."""

    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.history = Records()
        self.is_shared = options.topology == "kafka"
        self.no_more_pushes, self.no_more_reading, self.is_over = threading.Event(), threading.Event(), threading.Event()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="delayq-chaos-"))
        self.kafka = self.redis = self.reader = None
        self.servers = []
        self.faults = {}
        self.deeds = 0  # of the canary
        self.pending = []  # (when, what to do), what is to be mended
        self.starting = 0  # servers
        self.admin = None
        self.next_look = 0.0
        self.away = None  # the broker that is away, or has not caught up

    def say(self, text):
        with open(self.directory / "timeline.log", "a", encoding="utf-8") as file:
            file.write(f"{now_ms()} {text}\n")

    def rest(self, seconds):
        self.is_over.wait(seconds)

    def start(self):
        self.kafka = Kafka(brokers=self.options.brokers)
        self.admin = self.kafka.admin()
        for topic in (INTAKE, f"{INTAKE}.delayq-dead", *(target(server) for server in range(SERVERS))):
            self.kafka.create(topic, PARTITIONS)
        if self.is_shared:
            self.redis = redis_topology.One("--appendfsync", "always", directory=self.directory)
        for number in range(SERVERS):
            engine = ("--engine", "kafka", "--redis", self.redis.url, "--set", "redis.start_wait=30s", "--set", "kafka.prefix=chaos", "--set", f"kafka.ladder={','.join(STEPS)}",
                      "--set", "kafka.horizon=1s", "--set", f"kafka.partitions={PARTITIONS}", "--set",
                      f"kafka.replication={self.kafka.replication}") if self.is_shared else ()
            # What is set for "*" is a server's own; what is set for a topic is stored, and all servers share it.
            settings = ("log.level=info", f"kafka.brokers={self.kafka.addresses()}", f"kafka.intake.in.topics={INTAKE}", f"kafka.intake.in.topic={TOPIC}",
                        "kafka.intake.in.session_timeout=6s", f"topics.{TOPIC}.delivery=kafka_topic", f"topics.{TOPIC}.attempts=0",
                        f"topics.*.kafka_topic={target(number)}")
            self.servers.append(Server(self.directory / f"data{number}", *engine, *(f"--set={each}" for each in settings),
                                       log=self.directory / f"server{number}.log"))

    def close(self):
        self.is_over.set()
        for server in self.servers:
            server.close()
        if self.redis is not None:
            self.redis.close()
        if self.kafka is not None:
            self.kafka.close()
        if not (self.history.violations or self.options.keep) or self.options.canary is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def number_of(self, port):
        return next((i for i, server in enumerate(self.servers) if server.port == port), 0)

    def holders(self, job):
        """The servers that may have the job, in the order in which to ask them."""
        if not self.is_shared and job.writer is not None:
            return [job.writer]
        numbers = list(range(SERVERS))
        return random.sample(numbers, 1 if self.is_shared else SERVERS)

    # ---- faults
    def kill_server(self):
        number = self.random.randrange(SERVERS)
        server = self.servers[number]
        server.process.kill()
        server.process.wait()
        self.history.killed(number)
        self.say(f"server {number} is killed")
        self.starting += 1
        self.pending.append((time.monotonic() + self.random.uniform(0, 3),
                             threading.Thread(target=self.start_server, args=(number,), daemon=True).start))

    def start_server(self, number):
        """It gives up when it does not find the brokers, and is started again, as a service manager does."""
        end = time.monotonic() + SETTLING
        while True:
            try:
                self.servers[number].start()
                break
            except AssertionError as failed:
                self.say(f"server {number}: {failed}")
                self.history.counts["starts that failed"] += 1
                if time.monotonic() > end:
                    self.history.violations.append(f"server {number} did not start: {failed}")
                    return  # so that no other fault follows
        self.starting -= 1

    def kill_broker(self):
        broker = self.random.choice(self.kafka.brokers)
        self.history.broker_away(broker.number)
        self.away = broker
        broker.kill()
        self.say(f"broker {broker.number} is killed")
        self.pending.append((time.monotonic() + self.random.uniform(0.2, 6), broker.launch))

    def look_at_brokers(self):
        """The next broker may die when this one is back and has all that the others have."""
        if self.away is None or not self.away.is_running() or time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + 0.5
        if not self.is_in_sync():
            return
        self.say(f"broker {self.away.number} is in sync again")
        self.away = None
        self.history.brokers_back()

    def is_in_sync(self):
        try:
            found = self.admin.list_topics(timeout=2)
        except confluent_kafka.KafkaException:
            return False
        partitions = [each for topic in found.topics.values() for each in topic.partitions.values()]
        return len(found.brokers) == len(self.kafka.brokers) and all(
            each.leader > 0 and len(each.isrs) == len(each.replicas) for each in partitions)

    def mend(self, everything=False):
        for each in list(self.pending):
            if everything or each[0] <= time.monotonic():
                self.pending.remove(each)
                each[1]()
        self.look_at_brokers()

    def break_things(self):
        begin = time.monotonic()
        next_server, next_broker = begin + 2, begin + 3
        while time.monotonic() < begin + self.options.seconds or (self.options.canary and self.deeds == 0):
            self.rest(0.1)
            self.mend()
            now = time.monotonic()
            if self.options.canary is not None:
                if now > begin + self.options.seconds / 2 and self.deeds == 0:
                    self.deeds += self.act_by_stealth()
                continue
            if now >= next_server and self.starting == 0:
                next_server = now + self.random.uniform(1, 8)
                self.note_fault(self.kill_server)
            if now >= next_broker and self.away is None and self.options.brokers > 1:
                next_broker = now + self.random.uniform(4, 15)
                self.note_fault(self.kill_broker)

    def note_fault(self, fault):
        self.faults[fault.__name__] = self.faults.get(fault.__name__, 0) + 1
        fault()

    def act_by_stealth(self):
        """What nobody is told of, and the judge must find out. Answers whether it was done."""
        with self.history.lock:
            jobs = list(self.history.jobs.values())
        waiting = [job for job in jobs if job.is_there and job.writer is not None and not job.may_be_over and not job.is_cancelled
                   and len(job.dues) == 1 and job.dues[0][0] > now_ms() + 1_500]
        gone = {"double": [job for job in jobs if len(job.records) == 1 and job.writer is not None and job.records[0][0] < now_ms() - 3_000],
                "cancelled": [job for job in jobs if job.is_cancelled and job.writer is not None]}
        for job in gone.get(self.options.canary, waiting)[-5:]:
            command = {"loss": ("CANCEL", TOPIC, job.name), "early": ("RESCHEDULE", TOPIC, job.name, "0")}.get(
                self.options.canary, ("PUSH", TOPIC, "0", value_of(job.name), "ID", job.name))
            if self.options.canary in ("loss", "early"):
                job.dues.append(job.dues[0])  # so that nobody else moves or cancels it
            with closing(Client(self.servers[job.writer].port)) as client:
                if client.ask(*command) in ("cancelled", "OK", job.name.encode()):
                    return 1
        return 0

    # ---- the run
    def run(self):
        make = random.Random(self.options.seed + 1)
        workers = [Pusher(self, number, random.Random(make.random())) for number in range(2)]
        workers += [Feeder(self, random.Random(make.random())), Meddler(self, 0, random.Random(make.random()))]
        self.reader = Reader(self)
        for thread in [*workers, self.reader]:
            thread.start()
        self.break_things()
        self.no_more_pushes.set()
        self.mend(everything=True)
        try:
            wait_for(self.is_in_sync, "the brokers are in sync", SETTLING)
            self.look_at_brokers()
            wait_for(lambda: self.starting == 0, "the servers have started", SETTLING)
        except AssertionError as never:
            self.history.violations.append(str(never))
        for worker in workers:
            worker.join(SETTLING)
        self.drain()
        self.no_more_reading.set()
        self.reader.join(SETTLING)
        for thread in [*workers, self.reader]:
            if thread.failure is not None or thread.is_alive():
                self.history.violations.append(f"{thread.name}: {thread.failure or 'did not end'}")
        self.read_losses()
        self.history.finish()
        for name, first, second, reason in self.history.doubles:
            self.say(f"{name} came twice: {first} and {second}, explained by {reason}")
        self.check_the_end()

    def read_losses(self):
        """What the servers' logs tell of partitions that they lost."""
        for number in range(SERVERS):
            for line in (self.directory / f"server{number}.log").read_text(encoding="utf-8", errors="replace").splitlines():
                if found := re.fullmatch(r"(\S+)Z warning kafka intake in: lost (.*): other servers read them .*", line):
                    when = datetime.datetime.fromisoformat(found[1] + "+00:00").timestamp() * 1_000
                    for name in found[2].split():
                        self.history.partition_lost(int(when), number, int(name.removeprefix(f"{INTAKE}-")))

    def drain(self):
        """Until all that is known to be there has come, and no server has a live job any more."""
        end = time.monotonic() + (DRAINING if self.options.canary != "loss" else 40)
        while time.monotonic() < end and (self.history.unfinished() or self.live_jobs()):
            self.rest(0.2)
        written = sum(self.kafka.count(target(server)) for server in range(SERVERS))
        while time.monotonic() < end and self.reader.read < written:
            self.rest(0.1)
        self.history.counts["written"] = written

    def live_jobs(self):
        live = 0
        for server in self.servers:
            try:
                with closing(Client(server.port)) as client:
                    stats = client.stats()
                live += sum(int(stats[state]) for state in ("delayed", "ready", "reserved"))
            except (OSError, ConnectionError, Refused):
                live += 1  # nobody knows
        return live

    def check_the_end(self):
        history = self.history
        if history.counts["written"] != history.counts["records"]:
            history.violations.append(f"{history.counts['written']} records are in the topics, and {history.counts['records']} were read")
        if left := self.live_jobs():
            history.violations.append(f"{left} jobs are still there at the end")
        if dead := self.kafka.count(f"{INTAKE}.delayq-dead"):
            history.violations.append(f"{dead} records went to the dead-letter topic")
        if self.is_shared:
            history.counts["in the ladder"] = sum(self.kafka.count(LADDER + step) for step in STEPS)
            if history.counts["in the ladder"] == 0 and self.options.canary is None:
                history.violations.append("no body has ever been in the ladder")
        for number, server in enumerate(self.servers):
            if server.process.poll() is not None:
                history.violations.append(f"server {number} ended by itself with {server.process.returncode}")

    def report(self):
        history = self.history
        print(f"faults: {', '.join(f'{name} {count}' for name, count in sorted(self.faults.items())) or 'none'}")
        print(f"jobs: {len(history.jobs)}, {', '.join(f'{name} {count}' for name, count in sorted(history.counts.items()))}")
        for reason, count in sorted(history.explained.items()):
            print(f"explained: {count} records by {reason}")
        if history.violations and self.options.canary is None:
            print(f"the logs of all servers: {self.directory}")
        for violation in history.violations[:20]:
            print(f"VIOLATION: {violation}")
        if len(history.violations) > 20:
            print(f"and {len(history.violations) - 20} more")
