"""Schedules while things break: each occurrence is one job, whose id says which (NAME@TIME). README.md says what is judged."""
import datetime
import time
from contextlib import closing

from harness import Client, Refused, wait_for
from history import now_ms
from layout import OCCURRENCE
from workers import LEASE_MS, TICKS, Consumer

SETTING = 60.0


def period_of(name):
    """In seconds, of a schedule: each divides a minute, so its occurrences are that far apart always."""
    return 1 + int(name[1:]) % 5


def id_of(name, second):
    return f"{name}@{datetime.datetime.fromtimestamp(second, datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def split(job):
    """The schedule and the second of an occurrence, or None for any other id."""
    found = OCCURRENCE.fullmatch(job)
    if found is None or found[2]:
        return None
    when = datetime.datetime.strptime(job[len(found[1]) + 1:], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
    return found[1], int(when.timestamp())


class Ticks:
    """The schedules of a run, and which of their occurrences are still to come to an end."""

    def __init__(self, chaos, count):
        self.chaos, self.history = chaos, chaos.history
        self.names = [f"s{i}" for i in range(count)]
        self.offsets = {}  # by the master's port: how much its replicas must have
        self.next = {}  # by name: the first occurrence that is not known to be over, in seconds

    def start(self):
        """Returns when all of them are set, and wherever Redis keeps them."""
        if not self.names:
            return
        with closing(Client(self.chaos.servers[0].port)) as client:
            client.socket.settimeout(SETTING)
            for reply in client.ask_all([("SCHEDULE", "SET", name, "CRON", f"*/{period_of(name)} * * * * *", "MISSED", "all",
                                          "TOPIC", TICKS, "BODY", name) for name in self.names]):
                if isinstance(reply, Refused):
                    raise AssertionError(f"a schedule was refused: {reply}")
        if self.chaos.topology is not None:
            wait_for(self.is_replicated, "the replicas have the schedules", SETTING)
        begin = int(time.time()) + 1
        for name in self.names:
            self.next[name] = begin + -begin % period_of(name)

    def is_replicated(self):
        """Every replica has got what its master had before. Over a single Redis there is none."""
        for master in self.chaos.topology.masters():
            said = master.info("replication")
            offsets = [int(value.split("offset=")[1].split(",")[0]) for key, value in said.items()
                       if key.startswith("slave") and "offset=" in value]
            if any(offset < self.offsets.setdefault(master.port, int(said["master_repl_offset"])) for offset in offsets):
                return False
        return True

    def missing(self, until):
        """Occurrences up to that second that did not come to their end yet: (name, second). The first of each schedule."""
        found = []
        with self.history.lock:
            for name in self.names:
                while self.next[name] <= until:
                    job = self.history.jobs.get(id_of(name, self.next[name]))
                    if job is None or (job.over is None and not job.may_be_over):
                        found.append((name, self.next[name]))
                        break
                    self.next[name] += period_of(name)
        return found

    def stop(self):
        """No further occurrences; what was made must still come to its end."""
        left = list(self.names)

        def is_removed():
            try:
                with closing(Client(self.chaos.servers[0].port)) as client:
                    client.socket.settimeout(SETTING)
                    for name, reply in zip(list(left), client.ask_all([("SCHEDULE", "DEL", name) for name in left])):
                        if not isinstance(reply, Refused) or reply.code == "NOTFOUND":
                            left.remove(name)
            except (OSError, ConnectionError):
                pass
            return not left
        if left:
            wait_for(is_removed, "the schedules are removed", SETTING)

    def finish(self, until):
        """Nothing excuses what is missing: Redis loses an occurrence only together with the step of its schedule, which then
        makes it again."""
        for name, second in self.missing(until):
            job = self.history.jobs.get(id_of(name, second))
            self.history.violations.append(
                f"{id_of(name, second)} is missing: it was {'never handed over' if job is None else 'handed over and not acked'}")


class TickConsumer(Consumer):
    """Takes the jobs of schedules, and acks them together."""

    def work(self, port):
        with closing(Client(port)) as client:
            client.socket.settimeout(10)
            while not self.is_over():
                asked = now_ms()
                try:
                    jobs = client.ask("POP", TICKS, "COUNT", 200, "WAIT", "500ms", "LEASE", f"{LEASE_MS}ms") or []
                except Refused as refused:
                    if refused.code not in ("UNAVAILABLE", "OVERLOADED", "STOPPING"):
                        raise
                    self.chaos.rest(0.05)
                    continue
                self.chaos.last_received = time.monotonic()
                known = [(lease.decode(), name.decode()) for lease, _, name, body, attempt, due in jobs
                         if self.note(name.decode(), body.decode(), lease.decode(), asked, attempt, due)]
                self.ack_all(client, known)

    def note(self, name, body, lease, asked, attempt, due):
        parts = split(name)
        if parts is None or parts[0] not in self.chaos.ticks.next or parts[1] % period_of(parts[0]):
            self.history.violations.append(f"{name} is no occurrence of a schedule")
            return False
        if body != parts[0]:
            self.history.violations.append(f"{name} has another's body")
        if due != parts[1] * 1000 and attempt == 1:  # later ones wait for their retry
            self.history.violations.append(f"{name} is due at {due}")
        self.history.occurring(name, parts[1] * 1000)
        self.history.received(name, lease, asked, LEASE_MS, due, attempt)
        return True

    def ack_all(self, client, known):
        forgets = 0 if self.chaos.no_more_pushes.is_set() else 0.03
        known = [each for each in known if self.random.random() >= forgets]
        for lease, name in known:
            self.history.ending(name, lease)
        left, asked = list(known), now_ms()
        try:
            client.send(*[("ACK", lease) for lease, _ in known])
            while left:
                reply = client.read()
                lease, name = left[0]
                self.judge_ack(name, lease, asked, reply)
                left.pop(0)
        finally:
            for _, name in left:
                self.history.ack_unanswered(name)
            for _, name in known:
                self.history.ended(name)
