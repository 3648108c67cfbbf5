"""What was asked of servers that write to Kafka, which records came of it, and whether all of it can be true together:
README.md says what is judged, and why."""
import bisect
import collections
import threading
import typing

from history import now_ms

FOR_EVER = 1 << 62
CONFIRMED_MS = 2_000  # from the moment at which readers see a record until its job is done, if no broker is away
CLOCK_MS = 100  # between what two processes saw first


def value_of(name):
    """Larger than what stays in Redis of a job whose body is in Kafka."""
    return name.encode() + b" " * 300


class Record(typing.NamedTuple):
    when: int  # its timestamp: when the server began to write it
    server: int
    seen: int  # by a reader: all replicas in sync had it before
    attempt: int
    is_right: bool  # its value


class Job:
    def __init__(self, name, due, writer=None):
        self.name = name
        self.asked = now_ms()
        self.writer = writer  # the server that it was pushed to
        self.dues = [[due, FOR_EVER]]  # it may come from the first on, and until the second
        self.is_there = None  # None: nobody has said
        self.may_be_over = False  # somebody asked for a cancel, and was not told
        self.is_cancelled = False
        self.place = None  # of an intake: partition and offset
        self.records = []

    def allows(self, when):
        return any(due <= when <= until for due, until in self.dues)


class Records:
    """The history of a run. Moments are milliseconds of this machine's clock, which is also that of all servers."""

    def __init__(self):
        self.lock = threading.RLock()
        self.jobs = {}
        self.order = []  # names, as they were asked for
        self.kills = []  # (when, server, what happened to it)
        self.outages = []  # of brokers: [begin, end, broker]
        self.commits = collections.defaultdict(list)  # by partition: (when it was seen, offset), both ascending
        self.losses = []  # of partitions of the intake's topic: (when, server, partition)
        self.violations = []
        self.explained = collections.Counter()  # duplicates, by what explains them
        self.doubles = []  # (name, first record, second, reason)
        self.counts = collections.Counter()

    # ---- what was asked and answered
    def asking(self, name, due, writer=None):
        with self.lock:
            self.jobs[name] = Job(name, due, writer)
            self.order.append(name)

    def answered(self, name, is_there, place=None):
        with self.lock:
            job = self.jobs[name]
            job.is_there, job.place = is_there, place
            self.counts["confirmed" if is_there else "refused"] += 1

    def cancelling(self, name):
        with self.lock:
            self.jobs[name].may_be_over = True

    def cancel_answered(self, name, is_cancelled):
        """Of a server that was asked. None is no answer: it may be cancelled."""
        with self.lock:
            job = self.jobs[name]
            if is_cancelled is None:
                return
            job.may_be_over = False
            if is_cancelled:
                job.is_cancelled = True
                self.end_dues(job.dues)
                self.counts["cancelled"] += 1

    def rescheduling(self, name, due):
        with self.lock:
            self.jobs[name].dues.append([due, FOR_EVER])

    def reschedule_answered(self, name, is_moved):
        """None is no answer: it may be due at either time."""
        with self.lock:
            dues = self.jobs[name].dues
            if is_moved is False:
                dues.pop()
            elif is_moved:
                self.end_dues(dues[:-1])
                self.counts["rescheduled"] += 1

    @staticmethod
    def end_dues(dues):
        for each in dues:
            each[1] = min(each[1], now_ms())

    # ---- what broke
    def killed(self, server, what="was killed"):
        with self.lock:
            self.kills.append((now_ms(), server, what))

    def broker_away(self, number):
        with self.lock:
            self.outages.append([now_ms(), FOR_EVER, number])

    def brokers_back(self):
        with self.lock:
            for outage in self.outages:
                outage[1] = min(outage[1], now_ms())

    def partition_lost(self, when, server, partition):
        """The group went on without the server, as after a rebalance that was cut off by the death of its coordinator: what it
        had not committed is read again."""
        with self.lock:
            self.losses.append((when, server, partition))

    # ---- what came
    def came(self, name, when, server, value, attempt=1, seen=None):
        with self.lock:
            self.counts["records"] += 1
            job = self.jobs.get(name)
            if job is None:
                self.violations.append(f"{name} came, and nobody asked for it")
                return
            job.records.append(Record(when, server, seen or now_ms(), attempt, value == value_of(name)))

    def committed(self, partition, offset):
        """The group has committed that all before this offset is done."""
        with self.lock:
            seen = self.commits[partition]
            if not seen or seen[-1][1] < offset:
                seen.append((now_ms(), offset))

    # ---- the verdict
    def is_expected(self, job):
        return bool(job.is_there) and not job.is_cancelled and not job.may_be_over

    def unfinished(self):
        with self.lock:
            return sum(1 for job in self.jobs.values() if self.is_expected(job) and not job.records)

    def finish(self):
        """Everything has had its time."""
        with self.lock:
            for job in self.jobs.values():
                job.records.sort()
                if self.is_expected(job) and not job.records:
                    self.violations.append(f"{job.name} is lost: it was there, and no record came")
                for record in job.records:
                    if not record.is_right:
                        self.violations.append(f"{job.name} came from server {record.server} with another's body")
                    if not job.allows(record.when):
                        self.judge_time(job, record.when, record.server)
                for first, second in zip(job.records, job.records[1:]):
                    self.judge_double(job, first, second)

    def judge_time(self, job, when, server):
        reason = self.read_twice(job, when)
        if reason is not None:
            self.explained[reason] += 1
            return
        due = min(each for each, _ in job.dues)
        if job.is_cancelled and when > job.dues[-1][1]:
            what = f"{when - job.dues[-1][1]} ms after it was cancelled"
        elif when < due:
            what = f"{due - when} ms early"
        else:
            what = f"at a time that it had been moved from; it was due at {job.dues}"
        self.violations.append(f"{job.name} came from server {server} {what}")

    def judge_double(self, job, first, second):
        # A job that is handed over again counts its attempts; one whose record was read again begins anew.
        begins_anew = second.attempt <= first.attempt and self.read_twice(job, second.when)
        reason = (begins_anew or self.unconfirmed(first, second, first.seen + CONFIRMED_MS) or self.read_twice(job, second.when)
                  or self.unconfirmed(first, second, self.confirmed_by(first)))
        if reason is None:
            self.violations.append(f"{job.name} came twice, from server {first.server} at {first.when} (attempt {first.attempt}, seen "
                                   f"at {first.seen}) and from server {second.server} at {second.when} (attempt {second.attempt}), and no "
                                   "kill explains it")
        else:
            self.explained[reason] += 1
            self.counts["duplicates"] += 1
            self.doubles.append((job.name, first, second, reason))

    def unconfirmed(self, first, second, end):
        """The server that wrote the first record died before it knew that the record was written."""
        return self.kill_between(first.when - CLOCK_MS, min(end, second.when), "before it knew that a record was written", first.server)

    def confirmed_by(self, record):
        """The answer of a broker that dies is lost; the record is sent to the next one, and not written twice."""
        end = record.seen + CONFIRMED_MS
        for begin, back, _ in self.outages:
            if begin <= end and back >= record.when:
                end = max(end, back + CONFIRMED_MS)
        return end

    def read_twice(self, job, when):
        """A server died after it had read the job's record and before it committed that, or a broker died and the server lost
        its partitions: the record is read again, and the job made again if it has ended meanwhile, or in another journal."""
        if job.writer is not None:
            return None
        until = FOR_EVER
        if job.place is not None:  # otherwise nobody was told where the record is
            partition, offset = job.place
            seen = self.commits[partition]
            at = bisect.bisect_right(seen, offset, key=lambda each: each[1])
            until = seen[at][0] if at < len(seen) else FOR_EVER
        end = min(until, when)
        for begin, back, number in self.outages:
            if begin <= end and back >= job.asked:
                return f"broker {number} was away when it should have stored that a record was read"
        for lost, server, partition in self.losses:
            if job.asked <= lost <= end and job.place is not None and job.place[0] == partition:
                return f"server {server} had lost the partition when it should have stored that a record was read"
        return self.kill_between(job.asked, end, "before it committed that a record was read")

    def kill_between(self, begin, end, what, server=None):
        """Names the first one."""
        for i, (when, killed, how) in enumerate(self.kills):
            if begin <= when <= end and server in (None, killed):
                return f"kill {i + 1}: server {killed} {how} {what}"
        return None
