"""What was asked and answered while things broke, and whether all of it can be true together.

Redis answers before its replicas have a write, so a master that dies may take the last answered writes with it. What counts
as kept is therefore what was confirmed: answered, and then a later write to every master reached all of its replicas (WAIT),
which it cannot before the writes in front of it. All of them: which one becomes the master, others decide. What was answered
and not confirmed may be lost, and is counted apart."""
import threading
import time


def now_ms():
    return time.time_ns() // 1_000_000


class Handed:
    """One hand-over of a job."""

    def __init__(self, lease, asked, came, until):
        self.lease = lease
        self.asked = asked  # when the consumer asked: the lease did not begin before
        self.came = came
        self.until = until  # it is not over before
        self.is_confirmed = False
        self.is_over = False  # acked, nacked, or asked to be


class Job:
    def __init__(self, due):
        self.due = due  # not before
        self.is_pushed = False
        self.is_confirmed = False
        self.may_be_over = False  # somebody asked for an ack or a cancel
        self.is_over = False  # and was told that it is
        self.over_at = 0
        self.over_confirmed = False
        self.handed = []


class History:
    def __init__(self):
        self.lock = threading.Lock()
        self.jobs = {}
        self.violations = []
        self.by_redis = {"pushes": 0, "leases": 0, "acks": 0}  # answered, not confirmed, and gone
        self.counts = {"pushed": 0, "refused": 0, "handed over": 0, "acked": 0, "cancelled": 0, "stale": 0}

    # ---- producers
    def pushing(self, name, due):
        with self.lock:
            self.jobs[name] = Job(due)

    def pushed(self, name):
        with self.lock:
            self.jobs[name].is_pushed = True
            self.counts["pushed"] += 1

    def refused(self, name):
        """It may or may not be there."""
        with self.lock:
            del name
            self.counts["refused"] += 1

    def cancelling(self, name):
        with self.lock:
            self.jobs[name].may_be_over = True

    def cancelled(self, name):
        with self.lock:
            self.jobs[name].is_over, self.jobs[name].over_at = True, now_ms()
            self.counts["cancelled"] += 1

    # ---- consumers
    def received(self, name, lease, asked, lease_ms, due):
        """What was asked for before something happened may have been taken before it, and come late: from a server that
        was paused. It is then stale, which is for the server to say."""
        came = now_ms()
        with self.lock:
            self.counts["handed over"] += 1
            job = self.jobs.get(name)
            if job is None:
                self.violations.append(f"{name} was handed over and never pushed")
                return
            if came < due or came < job.due:
                self.violations.append(f"{name} came {max(due, job.due) - came} ms early")
            was_over = job.is_over and asked > job.over_at
            if was_over and job.over_confirmed:
                self.violations.append(f"{name} came back after it was over")
            elif was_over:
                self.by_redis["acks"] += 1
                job.is_over = False
            for other in job.handed:
                if other.is_over or came >= other.until or asked <= other.came:
                    continue
                if other.is_confirmed:
                    self.violations.append(
                        f"{name} has two live leases: {other.lease} until {other.until}, and at {came} {lease}, asked at {asked}")
                else:
                    self.by_redis["leases"] += 1
            job.handed.append(Handed(lease, asked, came, asked + lease_ms))

    def ending(self, name, lease):
        """The lease is about to be acked or nacked: from now on another may be given."""
        with self.lock:
            for handed in self.jobs[name].handed:
                if handed.lease == lease:
                    handed.is_over = True

    def leases_forgotten(self):
        """The journal keeps a lease only in memory: a job whose server died may be handed over again at once."""
        with self.lock:
            for job in self.jobs.values():
                for handed in job.handed:
                    handed.is_over = True

    def ack_unanswered(self, name):
        """It may be done, or not."""
        with self.lock:
            self.jobs[name].may_be_over = True

    def acked(self, name):
        with self.lock:
            self.jobs[name].is_over, self.jobs[name].over_at = True, now_ms()
            self.counts["acked"] += 1

    def stale(self):
        with self.lock:
            self.counts["stale"] += 1

    # ---- what Redis has kept
    def snapshot(self):
        """What confirm() may be told when writes after this moment have reached the replicas."""
        with self.lock:
            pushed = [job for job in self.jobs.values() if job.is_pushed and not job.is_confirmed]
            over = [job for job in self.jobs.values() if job.is_over and not job.over_confirmed]
            handed = [each for job in self.jobs.values() if not job.over_confirmed for each in job.handed
                      if not each.is_confirmed]
        return pushed, over, handed

    def confirm(self, snapshot):
        pushed, over, handed = snapshot
        with self.lock:
            for job in pushed:
                job.is_confirmed = True
            for job in over:
                job.over_confirmed = job.is_over
            for each in handed:
                each.is_confirmed = True

    # ---- the end
    def unfinished(self):
        """How many that are known to be there have not come to an end."""
        with self.lock:
            return sum(1 for job in self.jobs.values() if job.is_confirmed and not job.may_be_over and not job.is_over)

    def finish(self):
        """Everything has had its time: what is not over now is lost."""
        with self.lock:
            for name, job in self.jobs.items():
                if not job.is_pushed or job.is_over or job.may_be_over:
                    continue
                if job.is_confirmed:
                    self.violations.append(f"{name} is lost: it was pushed and kept, and {len(job.handed)} times handed over")
                else:
                    self.by_redis["pushes"] += 1
