"""What the documents say a server does, as a program: docs/reference/job-life.md, resp.md and http.md, and nothing of the
code. The model knows no clock: every call has a span of time within which the server did its work."""
import collections
from dataclasses import dataclass, field
from typing import Optional

LIVE = ("delayed", "ready", "reserved")
STATES = (*LIVE, "done", "dead")
DEFAULTS = {"attempts": 16, "backoff": None, "lease": 60_000, "concurrency": 0, "priority": 1024, "paused": False,
            "keep_done.time": 3_600_000, "keep_done.count": 1_000, "keep_dead.time": 30 * 86_400_000, "keep_dead.count": 100_000}


class Difference(Exception):
    """The server and the documents differ."""


@dataclass(frozen=True)
class Span:
    """Unix milliseconds: something happened, or will, at one of these moments."""
    low: int
    high: int

    def __add__(self, more):
        return Span(self.low + more, self.high + more)

    def holds(self, moment, slack):
        return self.low - slack <= moment <= self.high + slack

    @property
    def is_exact(self):
        return self.low == self.high


@dataclass
class Job:
    topic: str
    id: str
    body: bytes
    due: Span
    pushed: Span
    number: int  # in the order of pushes
    priority: int
    group: str = ""
    headers: dict = field(default_factory=dict)
    max_attempts: Optional[int] = None
    backoff: Optional[list] = None
    own_lease: Optional[int] = None
    state: str = "delayed"
    attempts: int = 0
    lease: str = ""
    until: Optional[Span] = None  # the lease's deadline, or the end of retention
    outcome: Optional[str] = ""   # None: not known
    is_cancelled: bool = False    # while it is reserved
    is_durable: bool = True       # whether the hand-over is on disk for certain
    is_pushed_only: bool = True   # never moved, so equal jobs leave in the order of their pushes
    ended: int = 0                # in the order of ends, while it is done or dead
    ended_in: Optional[Span] = None  # it ended by itself, at one of these moments
    may_be_gone: bool = False     # beyond a count: one that was lowered, or one of those that ended at the same time


@dataclass
class Topic:
    settings: dict = field(default_factory=dict)
    jobs: dict = field(default_factory=dict)


class Rules:
    def __init__(self, place):
        self.topics = {}
        self.defaults = {}
        self.numbers = 0
        self.tallies = collections.Counter()  # what happened since the server started
        self.place = place

    @property
    def lateness(self):
        """So long after its time a server may notice that a job is due, or a lease over."""
        return self.place.lateness

    # ---- looking

    def topic(self, name):
        return self.topics.setdefault(name, Topic())

    def find(self, topic, name):
        return self.topics[topic].jobs.get(name) if topic in self.topics else None

    def jobs(self, topic=None, *states):
        chosen = [self.topics[topic]] if topic in self.topics else [] if topic else self.topics.values()
        return [job for each in chosen for job in each.jobs.values() if not states or job.state in states]

    def setting(self, topic, name):
        own = self.topics[topic].settings if topic in self.topics else {}
        return own.get(name, self.defaults.get(name, DEFAULTS[name]))

    def named_topics(self):
        return sorted(name for name, topic in self.topics.items() if topic.jobs or topic.settings)

    def next_change(self):
        """The span of the next thing that time brings."""
        spans = [Span(span.low, span.high + self.lateness) for span in map(self.change_of, self.jobs()) if span]
        return min(spans, key=lambda span: span.low) if spans else None

    @staticmethod
    def change_of(job):
        return job.due if job.state == "delayed" else job.until if job.state != "ready" else None

    # ---- time

    def pass_time(self, now):
        """Does what has happened by now for certain."""
        while changing := [job for job in self.jobs() if (span := self.change_of(job)) and span.high + self.lateness < now]:
            for job in changing:
                if job.state == "delayed":
                    job.state = "ready"
                elif job.state == "reserved":
                    # The attempt failed when the server noticed.
                    self.tallies["expired"] += 1
                    self.fail(job, Span(job.until.low, job.until.high + self.lateness), None, None, by_itself=True)
                else:
                    self.remove(job)

    # ---- changes

    def remove(self, job):
        del self.topics[job.topic].jobs[job.id]

    def next_number(self):
        self.numbers += 1
        return self.numbers

    def push(self, topic, name, body, due, when, **more):
        """`due` as the request says it: a span. Replaces what was there."""
        priority = more.pop("priority", None)
        job = Job(topic, name, body, due, when, self.next_number(),
                  self.setting(topic, "priority") if priority is None else priority, **more)
        job.state = "ready" if due.high <= when.low else "delayed"
        self.topic(topic).jobs[name] = job
        self.tallies["pushed"] += 1
        return job

    def conflict(self, topic, name, unique):
        """The job that a push of this name would meet, and whether it is in another topic."""
        others = [job for job in self.jobs(None, *LIVE) if job.id == name and job.topic != topic]
        if unique and others:
            return others[0], True
        found = self.find(topic, name)
        return (found, False) if found and found.state in LIVE else (None, False)

    def room(self, topic, count):
        if self.setting(topic, "paused"):
            return 0
        limit = self.setting(topic, "concurrency")
        return min(count, max(0, limit - len(self.jobs(topic, "reserved")))) if limit else count

    @staticmethod
    def goes_before(first, second):
        """Whether that is certain."""
        if first.priority != second.priority:
            return first.priority < second.priority
        if first.due.high < second.due.low:
            return True
        same = first.due.is_exact and first.due == second.due and first.is_pushed_only and second.is_pushed_only
        return same and first.number < second.number

    def take(self, job, when, lease, auto):
        """`lease` is what the pop said, or None."""
        job.attempts += 1
        self.tallies["popped"] += 1
        if auto:
            return self.end(job, "done", when)
        length = lease or job.own_lease or self.setting(job.topic, "lease")
        job.state, job.until, job.is_durable = "reserved", when + length, False
        return job

    def end(self, job, state, when, by_itself=False):
        job.state, job.lease, job.is_cancelled, job.ended, job.ended_in = state, "", False, self.next_number(), when if by_itself else None
        job.until = when + self.setting(job.topic, f"keep_{state}.time")
        if self.setting(job.topic, f"keep_{state}.count") == 0 or self.setting(job.topic, f"keep_{state}.time") == 0:
            self.remove(job)
        else:
            self.keep_newest(job.topic, state)
        return job

    def keep_newest(self, topic, state):
        count = self.setting(topic, f"keep_{state}.count")
        kept = self.jobs(topic, state)
        for job in kept:
            if sum(self.may_be_newer(other, job) and not self.may_be_newer(job, other) for other in kept) >= count:
                self.remove(job)
            elif sum(self.may_be_newer(other, job) for other in kept) >= count:
                job.may_be_gone = True

    @staticmethod
    def may_be_newer(other, job):
        """Whether it may have ended later. Of two leases that ran out at about the same time, either may have."""
        if other is job:
            return False
        ends = (other.ended_in, job.ended_in)
        return other.ended > job.ended or (None not in ends and other.ended_in.high >= job.ended_in.low)

    def fail(self, job, when, delay, reason, dead=False, by_itself=False):
        """Answers what became of it: retried, dead or cancelled."""
        if reason is None:
            job.outcome = None
        elif reason:
            job.outcome = reason
        if job.is_cancelled:
            self.remove(job)
            return "cancelled"
        limit = self.setting(job.topic, "attempts") if job.max_attempts is None else job.max_attempts
        if dead or (limit and job.attempts >= limit):
            self.end(job, "dead", when, by_itself)
            return "dead"
        if delay is None:
            steps = job.backoff or self.setting(job.topic, "backoff")
            delay = steps[min(job.attempts, len(steps)) - 1]
        self.wait(job, when + delay, when)
        return "retried"

    def wait(self, job, due, when):
        job.state = "ready" if due.high <= when.low or due == when else "delayed"
        job.due, job.until, job.lease, job.is_pushed_only = due, None, "", False

    def revive(self, job, due, when):
        """Of a dead one: all its attempts are before it."""
        if job.state == "dead":
            job.attempts = 0
        self.wait(job, due, when)

    def change_settings(self, topic, changes):
        if topic == "*":
            self.defaults.update(changes)
        else:
            self.topic(topic).settings.update(changes)
        for each in self.jobs(None if topic == "*" else topic, "done", "dead"):
            each.may_be_gone = each.may_be_gone or self.is_beyond(each)

    def is_beyond(self, job):
        newer = [each for each in self.jobs(job.topic, job.state) if self.may_be_newer(each, job)]
        return len(newer) >= self.setting(job.topic, f"keep_{job.state}.count")
