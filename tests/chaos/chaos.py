"""Servers and the Redis under them are killed, paused and cut off at random while producers and consumers work; a history
of what was asked and answered says afterwards whether anything was lost, early, or handed to two at once.

  tests/chaos/chaos.py [--topology sentinel|cluster|one|journal] [--seconds 600] [--seed n] [--servers 3] [--schedules 1000]
                       [--canary NAME [--among-faults]]
  tests/chaos/chaos.py --topology kafka|kafka-journal [--seconds 600] [--seed n] [--brokers 3] [--rate 100] [--canary NAME]

A canary does by stealth what must not happen (loss, double, early; twice and missing of schedules; cancelled with Kafka), and
the run must fail by it."""
import argparse
import contextlib
import datetime
import pathlib
import random
import sys
import tempfile
import threading
import time
import shutil
import signal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import kafka_chaos
import redis_topology
from harness import Client, Refused, Server, wait_for
from history import History, now_ms
from keeping import Keeper
from ticks import TickConsumer, Ticks
from workers import Consumer, LEASE_MS, Producer, TICKS, TOPICS, WebProducer, topic_of

SETTLING = 60.0
DRAINING = 90.0
KAFKA = ("kafka", "kafka-journal")
CANARIES = {"loss": "is lost", "double": "two live leases", "early": "early", "twice": "made twice", "missing": "is missing"}
CANARY_PATIENCE = 180.0  # far more than it takes, unless the whole machine stands still


class Chaos:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.history = History(is_lossless=options.topology in ("one", "journal"))
        self.redis_faults = 0  # begun and ended: odd while one is under way
        self.rollbacks = 0
        self.rate = options.rate
        self.no_more_pushes, self.no_more_pops, self.is_over = threading.Event(), threading.Event(), threading.Event()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="delayq-chaos-"))
        self.topology = None
        self.servers = []
        self.last_received = time.monotonic()
        self.faults = {}
        self.deeds = 0  # of the canary
        self.ticks = Ticks(self, options.schedules)

    def say(self, text):
        """For who reads the logs afterwards."""
        with open(self.directory / "timeline.log", "a", encoding="utf-8") as file:
            file.write(f"{datetime.datetime.now(datetime.timezone.utc):%H:%M:%S.%f} {text}\n")

    def rest(self, seconds):
        """Sooner over when everything is."""
        self.is_over.wait(seconds)

    def start(self):
        settings = [part for topic in (*TOPICS, TICKS) for part in ("--set", f"topics.{topic}.attempts=0", "--set",
                                                          f"topics.{topic}.backoff=50ms")]
        if self.options.topology == "journal":
            self.servers = [Server(self.directory / "data", *settings, log=self.directory / "server0.log")]
            return
        kinds = {"one": redis_topology.One, "sentinel": redis_topology.Sentinels, "cluster": redis_topology.Cluster}
        always = ("--appendfsync", "always") if self.options.topology == "one" else ()
        self.topology = kinds[self.options.topology](*always, directory=self.directory)
        for number in range(self.options.servers):
            self.servers.append(Server(self.directory / f"data{number}", "--engine", "redis", "--redis", self.topology.url,
                                       "--set", "redis.timeout=2s", "--set", "redis.start_wait=1m", *settings,
                                       log=self.directory / f"server{number}.log"))

    def close(self):
        self.is_over.set()
        for server in self.servers:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
            server.close()
        if self.topology is not None:
            self.topology.close()
        if not self.history.violations or self.options.canary is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---- faults
    def kill_server(self):
        server = self.random.choice(self.servers)
        server.process.kill()
        server.process.wait()
        if self.topology is None:
            self.history.leases_forgotten()
        self.rest(self.random.uniform(0, 1.5))
        server.start()

    def pause_server(self):
        server = self.random.choice(self.servers)
        server.process.send_signal(signal.SIGSTOP)
        self.rest(self.random.uniform(0.2, 5))
        server.process.send_signal(signal.SIGCONT)

    def cut_connections(self):
        for member in self.topology.masters():
            try:
                member.cut_connections()
            except (OSError, ConnectionError, Refused):
                pass

    def kill_redis(self):
        masters = self.topology.masters()
        if not masters:
            return
        master = self.random.choice(masters)
        self.say(f"the master at {master.port} is killed")
        with self.redis_fault():
            master.kill()
            self.rest(self.random.uniform(0.5, 5))
            master.start()
            self.say(f"the one at {master.port} is started again")
            self.settle()

    def pause_redis(self):
        masters = self.topology.masters()
        if not masters:
            return
        master = self.random.choice(masters)
        self.say(f"the master at {master.port} is paused")
        with self.redis_fault():
            master.pause()
            self.rest(self.random.uniform(0.2, 5))
            master.resume()
            self.say(f"the one at {master.port} goes on")
            self.settle()

    @contextlib.contextmanager
    def redis_fault(self):
        """Until the Redises have found together again there may be two masters, and what one of them answers may be lost."""
        self.redis_faults += 1
        yield
        self.say("they have found together again")
        self.redis_faults += 1

    def settle(self):
        """Two masters of one group at once are more than any of them survives."""
        if self.topology is not None:
            wait_for(self.topology.is_settled, "the Redises have found together again", SETTLING)

    def break_things(self):
        faults = [self.kill_server]
        if self.topology is not None:
            faults += [self.kill_server, self.pause_server, self.cut_connections, self.kill_redis, self.kill_redis, self.pause_redis]
        begin = time.monotonic()
        while not self.is_enough(time.monotonic() - begin):
            self.rest(self.random.uniform(0.5, 3))
            if self.options.canary is not None:
                self.deeds += self.act_by_stealth()
                if not self.options.among_faults:
                    continue
            fault = self.random.choice(faults)
            self.faults[fault.__name__] = self.faults.get(fault.__name__, 0) + 1
            self.say(fault.__name__)
            fault()

    def is_enough(self, passed):
        """A canary must have done something, and what comes early or twice is seen while it does; a loss is seen at the end."""
        is_seen = self.deeds > 0 if self.options.canary in ("loss", "missing") else bool(self.history.violations)
        if self.options.canary is not None and not is_seen:
            return passed > max(self.options.seconds, CANARY_PATIENCE)
        return passed > self.options.seconds or bool(self.history.violations)

    def act_by_stealth(self):
        """What nobody is told of, and the history must find out. Answers how often that was done. There may be nothing to do it
        to, or nobody to do it: then it is tried again at once, for as long as a fault would take."""
        deeds, end = 0, time.monotonic() + 5
        while deeds == 0 and time.monotonic() < end:
            with contextlib.suppress(OSError, ConnectionError):
                client = Client(self.random.choice(self.servers).port)
                try:
                    for command in self.stealthy_commands()[:20]:
                        client.send(command)
                        deeds += client.read() in ("OK", "cancelled", command[-1].encode())
                finally:
                    client.close()
            self.rest(0.05)
        return deeds

    def stealthy_commands(self):
        if self.options.canary == "missing":
            return [("SCHEDULE", "DEL", name) for name in self.ticks.names[:1]]
        with self.history.lock:
            jobs = list(self.history.jobs.items())
        if self.options.canary == "twice":
            done = [name for name, job in jobs if topic_of(name) == TICKS and job.over is not None and job.over.kept is not None]
            return [("PUSH", TICKS, "0", name.split("@")[0], "ID", name) for name in done[-3:]]
        if self.options.canary == "double":
            return [("NACK", each.lease, "DELAY", "0") for _, job in jobs for each in job.handed
                    if each.fact.kept is not None and not each.is_over and each.until > now_ms() + LEASE_MS / 2]
        # A loss of what Redis may not have kept would be laid to Redis. What comes early is early, kept or not; the longer it
        # should have waited, the surer it is handed over before that.
        waiting = sorted((-job.due, name) for name, job in jobs if job.pushed and not job.handed and not job.may_be_over
                         and not job.over and job.due > now_ms() + 1_000
                         and (job.pushed.kept is not None or self.options.canary == "early"))
        if self.options.canary == "loss":
            return [("CANCEL", topic_of(name), name) for _, name in waiting]
        return [("RESCHEDULE", topic_of(name), name, "0") for _, name in waiting]

    # ---- the run
    def run(self):
        self.ticks.start()
        make = random.Random(self.options.seed + 1)
        workers = [Producer(self, number, random.Random(make.random())) for number in range(3)]
        workers.append(WebProducer(self, 3, random.Random(make.random())))
        consumers = [Consumer(self, number, random.Random(make.random())) for number in range(4)]
        if self.ticks.names:
            consumers += [TickConsumer(self, number, random.Random(make.random())) for number in range(4, 6)]
        keepers = [] if self.history.is_lossless else [Keeper(self, redis_topology.SHARDS[self.options.topology])]
        for thread in [*workers, *consumers, *keepers]:
            thread.start()
        try:
            self.break_things()
        except AssertionError as never:
            self.history.violations.append(str(never))
        self.no_more_pushes.set()
        for worker in workers:
            worker.join(SETTLING)
        try:
            self.settle()
        except AssertionError as never:
            self.history.violations.append(str(never))
        end = time.monotonic() + (DRAINING if self.options.canary is None else DRAINING / 6)
        last_tick = int(time.time())
        while time.monotonic() < end and self.ticks.missing(last_tick):
            self.rest(0.1)
        try:
            self.ticks.stop()
        except AssertionError as never:
            self.history.violations.append(str(never))
        # All that is known to be there has come, and nothing has for longer than a lease and the longest delay last.
        while time.monotonic() < end and (self.history.unfinished() or time.monotonic() - self.last_handed() < 1):
            self.rest(0.1)
        quiet = time.monotonic() + (LEASE_MS / 1000 + 6 if self.history.unfinished() == 0 else 0)
        while time.monotonic() < quiet and self.live_jobs():
            self.rest(0.1)
        left = self.live_jobs()
        while time.monotonic() < end and (self.history.in_doubt() or self.history.suspicions) and keepers:
            self.rest(0.1)
        self.no_more_pops.set()
        for consumer in consumers:
            consumer.join(SETTLING)
        self.history.finish()
        self.ticks.finish(last_tick)
        if left:
            self.history.violations.append(f"{left} jobs are still there at the end")
        for thread in [*workers, *consumers, *keepers]:
            if thread.failure is not None or (thread.is_alive() and thread not in keepers):
                self.history.violations.append(f"{thread.name}: {thread.failure or 'did not end'}")
        for server in self.servers:
            if server.process.poll() is not None:
                self.history.violations.append(f"a server ended by itself with {server.process.returncode}")

    def last_handed(self):
        return self.last_received if self.history.unfinished() else 0

    def live_jobs(self):
        for server in self.servers:
            try:
                client = Client(server.port)
                try:
                    flat = client.ask("STATS")
                finally:
                    client.close()
                stats = {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
                return int(stats["delayed"]) + int(stats["ready"]) + int(stats["reserved"])
            except (OSError, ConnectionError, Refused):
                continue
        return -1

    def report(self):
        history = self.history
        print(f"faults: {', '.join(f'{name} {count}' for name, count in sorted(self.faults.items())) or 'none'}")
        print(f"jobs: {', '.join(f'{name} {count}' for name, count in history.counts.items())}")
        if not history.is_lossless:
            print(f"answered by Redis and lost by it: {', '.join(f'{name} {count}' for name, count in history.by_redis.items())}"
                  f"; marks went back {self.rollbacks} times")
        if history.violations and self.options.canary is None:
            print(f"the logs of all processes, and what the Redises have on their disks: {self.directory}")
        for violation in history.violations[:20]:
            print(f"VIOLATION: {violation}")
        if len(history.violations) > 20:
            print(f"and {len(history.violations) - 20} more")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topology", choices=("sentinel", "cluster", "one", "journal", *KAFKA), default="sentinel")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100, help="pushes a second of each of four producers")
    parser.add_argument("--schedules", type=int, default=0, help="of 1 to 5 seconds each")
    parser.add_argument("--brokers", type=int, default=3, help="of Kafka")
    parser.add_argument("--keep", action="store_true", help="the directory of the run, whatever it found (with Kafka)")
    parser.add_argument("--canary", choices=sorted({*CANARIES, *kafka_chaos.CANARIES}))
    parser.add_argument("--among-faults", action="store_true", help="the canary acts while things break, too")
    options = parser.parse_args(arguments)
    print(f"chaos: --topology {options.topology} --seconds {options.seconds:g} --seed {options.seed} --schedules {options.schedules} "
          f"--rate {options.rate:g}", flush=True)
    canaries = kafka_chaos.CANARIES if options.topology in KAFKA else CANARIES
    if options.canary not in (None, *canaries):
        parser.error(f"over {options.topology} the canaries are {', '.join(canaries)}")
    chaos = kafka_chaos.KafkaChaos(options) if options.topology in KAFKA else Chaos(options)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process is left
    try:
        chaos.start()
        chaos.run()
    finally:
        chaos.close()
    chaos.report()
    if options.canary is not None:
        is_found = any(canaries[options.canary] in violation for violation in chaos.history.violations)
        print(f"the canary did it {chaos.deeds} times and was {'found' if is_found else 'NOT FOUND'}")
        return 0 if is_found else 1
    print("FAILED" if chaos.history.violations else "nothing lost, nothing early, nothing handed to two")
    return 1 if chaos.history.violations else 0


if __name__ == "__main__":
    sys.exit(main())
