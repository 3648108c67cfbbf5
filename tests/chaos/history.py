"""What was asked and answered while things broke, and whether all of it can be true together: README.md says what is
judged, and why."""
import threading
import time

from layout import RESERVED

PUSH, LEASE, OVER = "pushes", "leases", "acks"
GRACE_MS = 1_000  # for an ack that was sent in time, and came late


def now_ms():
    return time.time_ns() // 1_000_000


class Fact:
    """Something that was answered: a push, a hand-over, an end. Redis has kept it when a mark that was written after it is
    there (keeping.py); until that is known it is in doubt."""
    __slots__ = ("kind", "job", "asked", "lease", "kept", "is_gone", "is_suspected")

    def __init__(self, kind, job, asked, lease=None):
        self.kind, self.job, self.asked, self.lease = kind, job, asked, lease
        self.kept = None  # the number of that mark
        self.is_gone = False  # Redis has lost it
        self.is_suspected = False  # something came that cannot be if it was kept


class Handed:
    """One hand-over of a job."""

    def __init__(self, job, lease, asked, came, lease_ms, attempt=None):
        self.lease = lease
        self.attempt = attempt  # None where it does not matter
        self.asked = asked  # when the consumer asked: the lease did not begin before
        self.came = came
        self.until = asked + lease_ms  # it is not over before
        self.ends = came + lease_ms  # and not there after
        self.is_over = False  # acked, nacked, or asked to be
        self.fact = Fact(LEASE, job, asked, lease)


class Job:
    def __init__(self, name, due):
        self.name = name
        self.asked = now_ms()
        self.due = due  # not before
        self.pushed = None  # these two are facts
        self.over = None
        self.over_at = 0
        self.may_be_over = False  # somebody asked for an ack or a cancel, and was not told
        self.acks_under_way = 0
        self.handed = []


class History:
    def __init__(self, is_lossless=False):
        """Lossless: what is there must keep all that it answered, whatever happens."""
        self.is_lossless = is_lossless
        self.lock = threading.RLock()
        self.jobs = {}
        self.leases = set()
        self.doubted = []  # facts
        self.kept = []  # by the numbers of the marks: (number, facts)
        self.suspicions = []  # (when, fact, what it was if the fact was kept)
        self.violations = []
        self.by_redis = {PUSH: 0, LEASE: 0, OVER: 0}  # answered and lost
        self.counts = {"pushed": 0, "refused": 0, "handed over": 0, "acked": 0, "cancelled": 0, "stale": 0}

    def note(self, fact):
        if self.is_lossless:
            fact.kept = 0
        else:
            self.doubted.append(fact)
        return fact

    def suspect(self, fact, text):
        """It is a violation if Redis had kept the fact."""
        if fact.is_gone:
            return
        fact.is_suspected = True
        self.suspicions.append((now_ms(), fact, text))
        if self.is_lossless:
            self.judge(now_ms() + 1)

    # ---- producers
    def pushing(self, name, due):
        with self.lock:
            self.jobs[name] = Job(name, due)

    def pushed(self, name):
        with self.lock:
            job = self.jobs[name]
            job.pushed = self.note(Fact(PUSH, job, job.asked))
            self.counts["pushed"] += 1

    def refused(self, name):
        """It may or may not be there."""
        with self.lock:
            del name
            self.counts["refused"] += 1

    def cancelling(self, name):
        with self.lock:
            self.jobs[name].may_be_over = True

    def cancelled(self, name, asked):
        self.end(name, asked, "cancelled")

    def end(self, name, asked, how):
        with self.lock:
            job = self.jobs[name]
            job.over, job.over_at = self.note(Fact(OVER, job, asked)), now_ms()
            self.counts[how] += 1

    # ---- schedules
    def occurring(self, name, due):
        """A job that a schedule has made: nobody has asked for its push, so it is known from its first hand-over on."""
        with self.lock:
            if name not in self.jobs:
                self.jobs[name] = Job(name, due)
                self.counts["occurrences"] = self.counts.get("occurrences", 0) + 1

    # ---- consumers
    def received(self, name, lease, asked, lease_ms, due, attempt=None):
        """What was asked for before something happened may have been taken before it, and come late: from a server that
        was paused. It is then stale, which is for the server to say."""
        came = now_ms()
        with self.lock:
            self.counts["handed over"] += 1
            job = self.jobs.get(name)
            if job is None:
                self.violations.append(f"{name} was handed over and never pushed")
                return
            if lease in self.leases:
                self.violations.append(f"{name} came under {lease}, which was another's lease or an earlier one")
            self.leases.add(lease)
            if came < due or came < job.due:
                self.violations.append(f"{name} came {max(due, job.due) - came} ms early")
            if job.over is not None and asked > job.over_at:
                self.suspect(job.over, f"{name} came back after it was over")
            for other in job.handed:
                if not other.is_over and came < other.until and asked > other.came:
                    self.suspect(other.fact, f"{name} has two live leases: {other.lease} until {other.until}, and at {came} "
                                             f"{lease}, asked at {asked}")
            for other in job.handed:
                # A job counts its attempts. One that begins again was pushed again, unless Redis lost the attempt before.
                if attempt is not None and other.attempt is not None and attempt <= other.attempt and asked > other.came:
                    self.suspect(other.fact, f"{name} was made twice: it came as attempt {other.attempt} under {other.lease}, and as "
                                             f"attempt {attempt} under {lease}")
            handed = Handed(job, lease, asked, came, lease_ms, attempt)
            self.note(handed.fact)
            job.handed.append(handed)

    def ending(self, name, lease):
        """The lease is about to be acked or nacked: from now on another may be given."""
        with self.lock:
            self.jobs[name].acks_under_way += 1
            for handed in self.jobs[name].handed:
                if handed.lease == lease:
                    handed.is_over = True

    def ended(self, name):
        """What ending() began is answered, or never will be."""
        with self.lock:
            self.jobs[name].acks_under_way -= 1

    def leases_forgotten(self):
        """The journal keeps a lease only in memory: a job whose server died may be handed over again at once."""
        with self.lock:
            self.leases.clear()
            for job in self.jobs.values():
                for handed in job.handed:
                    handed.is_over, handed.attempt = True, None

    def ack_unanswered(self, name):
        """It may be done, or not."""
        with self.lock:
            self.jobs[name].may_be_over = True

    def acked(self, name, lease, asked):
        """`asked`: when the ack was sent."""
        with self.lock:
            job = self.jobs[name]
            mine = next((each for each in job.handed if each.lease == lease), None)
            if mine is not None and asked > mine.ends + GRACE_MS:
                self.violations.append(f"{name}: {lease} was acked {asked - mine.ends} ms after its end")
            for other in job.handed:
                if mine is not None and other.asked > mine.came and other.came < asked and not other.is_over:
                    self.suspect(other.fact, f"{name}: {lease} was acked though {other.lease} had followed it")
            self.end(name, asked, "acked")

    def stale(self):
        with self.lock:
            self.counts["stale"] += 1

    # ---- what Redis has kept: told by keeping.py
    def in_doubt(self):
        with self.lock:
            self.doubted = [fact for fact in self.doubted if fact.kept is None and not fact.is_gone]
            return list(self.doubted)

    def keep(self, number, facts):
        """The mark of that number is there, and was written after these."""
        with self.lock:
            for fact in facts:
                if not fact.is_gone:
                    fact.kept = number
            self.kept.append((number, list(facts)))

    def roll_back(self, number, is_there):
        """Redis has lost what came after that mark, where `is_there(job)`."""
        with self.lock:
            self.in_doubt()  # so that none is there twice
            for mark, facts in self.kept:
                if mark > number:
                    for fact in facts:
                        if fact.kept is not None and fact.kept > number and is_there(fact.job):
                            fact.kept = None
                            self.doubted.append(fact)

    def look(self, fact, record):
        """`record`: what Redis has of the job after its masters have found together again, or None. Answers whether the
        fact is seen there; else it is lost, or still in doubt. What was contradicted while the masters changed is lost: the
        master that was asked then did not have it, and what is seen now may be younger."""
        with self.lock:
            job = fact.job
            if fact.is_suspected:
                self.lose(fact, is_counted=fact.kind != LEASE)
                if job.over is fact:
                    job.over, job.may_be_over = None, False
                return False
            if fact.kind == PUSH:
                if record is not None or job.over or job.may_be_over:
                    return True
                if job.acks_under_way == 0:
                    self.lose(fact)
                return False
            if fact.kind == OVER:
                if record is None or not record.is_live():
                    return True
                self.lose(fact)
                if job.over is fact:
                    job.over, job.may_be_over = None, False
                return False
            if record is not None and record.state == RESERVED and fact.lease.endswith(f".{record.lease}"):
                return True
            self.lose(fact, is_counted=False)  # it may also have ended, or been followed by another
            return False

    def lose(self, fact, is_counted=True):
        fact.is_gone = True
        if is_counted:
            self.by_redis[fact.kind] += 1

    def judge(self, before):
        """All that Redis lost before that moment is known."""
        with self.lock:
            left = []
            for suspicion in self.suspicions:
                when, fact, text = suspicion
                if when >= before or (fact.kept is None and not fact.is_gone):
                    left.append(suspicion)
                elif fact.kept is not None:
                    self.violations.append(f"{text} (kept by mark {fact.kept}, judged after {when})")
                elif fact.kind == LEASE:
                    self.by_redis[LEASE] += 1
            self.suspicions = left

    # ---- the end
    def unfinished(self):
        """How many that are there, for all that is known, have not come to an end."""
        with self.lock:
            return sum(1 for job in self.jobs.values() if self.is_expected(job))

    def is_expected(self, job):
        return job.pushed is not None and not job.pushed.is_gone and not job.may_be_over and job.over is None

    def finish(self):
        """Everything has had its time: what is not over now is lost."""
        with self.lock:
            self.judge(now_ms() + 1)
            for when, fact, text in self.suspicions:
                self.violations.append(f"{text} (at {when}, and it was never settled whether Redis kept the {fact.kind})")
            for job in self.jobs.values():
                if not self.is_expected(job):
                    continue
                if job.pushed.kept is not None:
                    self.violations.append(f"{job.name} is lost: it was pushed and kept (mark {job.pushed.kept}), and "
                                           f"{len(job.handed)} times handed over")
                else:
                    self.violations.append(f"{job.name} is lost: it was pushed, and whether Redis kept it was never settled")
