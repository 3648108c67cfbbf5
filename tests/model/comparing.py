"""Calls to the servers, and the comparison of one job with the rules."""
import random
import time

from doors import Failure, HttpDoor, RespDoor, as_json
from harness import now_ms
from rules import Difference, Rules, Span

GUARD = 3_000  # no call is begun while time is about to bring something within so many milliseconds


class TooSlow(Exception):
    """Something fell due while a call was under way, so nobody can say what the answer should be."""


class Comparing:
    """Asks the servers of a place, and knows what the rules say."""

    def __init__(self, place, seed, say):
        self.place = place
        self.random = random.Random(seed)
        self.say = say
        self.rules = Rules(place)
        self.calls = 0
        self.kills = 0
        self.old_leases = {}  # all that were given
        self.doors = []
        self.span = Span(0, 0)
        self.open_doors()

    # ---- calls

    def open_doors(self):
        self.close()
        for server in self.place.servers:
            self.doors += [RespDoor(server), RespDoor(server, 3), HttpDoor(server)]

    def close(self):
        for door in self.doors:
            door.close()
        self.doors = []

    def door(self, *kinds):
        return self.random.choice([door for door in self.doors if not kinds or isinstance(door, kinds)])

    def let_time_pass(self):
        """Until nothing is about to happen by itself."""
        slack = self.place.slack
        self.rules.pass_time(now_ms() - slack)
        while (change := self.rules.next_change()) and change.low - slack < now_ms() + GUARD:
            time.sleep(max(0, change.high + slack + 2 - now_ms()) / 1000)
            self.rules.pass_time(now_ms() - slack)

    def ask(self, door, *calls):
        """One call, or several in one go. Answers a list."""
        self.let_time_pass()
        change = self.rules.next_change()
        before = now_ms()
        for words, _ in calls:
            self.say(f"{before % 1_000_000:06d} {door.name} {words}")
        answers = door.ask_all(calls)
        self.span = Span(before, now_ms())
        for answer in answers:
            self.say(f"{self.span.high % 1_000_000:06d}   -> {answer}")
        self.calls += len(calls)
        if change and change.low - self.place.slack <= self.span.high:
            raise TooSlow
        return answers

    def expect(self, seen, *allowed):
        if seen not in allowed:
            raise Difference(f"answered {seen!r}, and should be {' or '.join(repr(each) for each in allowed)}")

    def within(self, what, moment, span):
        if not span.holds(moment, self.place.slack):
            raise Difference(f"{what} is {moment}, and should be between {span.low} and {span.high}")

    # ---- looking at one job

    def compare(self, job, seen):
        """A job as the server shows it."""
        for name, wanted in (("topic", job.topic), ("id", job.id), ("state", job.state), ("attempts", job.attempts),
                             ("priority", job.priority), ("group", job.group), ("cancel_requested", job.is_cancelled)):
            if seen[name] != wanted:
                raise Difference(f"{name} of {job.topic}/{job.id} is {seen[name]!r}, and should be {wanted!r}")
        if job.outcome is not None and seen["outcome"] != job.outcome:
            raise Difference(f"outcome of {job.topic}/{job.id} is {seen['outcome']!r}, and should be {job.outcome!r}")
        self.compare_body(job, seen)
        self.within("due", seen["due"], job.due)
        self.within("pushed", seen["pushed"], job.pushed)
        job.due, job.pushed = Span(seen["due"], seen["due"]), Span(seen["pushed"], seen["pushed"])
        if (seen["until"] is None) != (job.until is None):
            raise Difference(f"deadline of {job.topic}/{job.id} is {seen['until']}, and should be {job.until}")
        if job.until is not None:
            self.within("deadline", seen["until"], job.until)
            job.until = Span(seen["until"], seen["until"])

    @staticmethod
    def compare_body(job, seen):
        if "body" in seen and seen["body"] != job.body:
            raise Difference(f"body of {job.topic}/{job.id} is {seen['body']!r}, and should be {job.body!r}")
        if seen.get("headers", job.headers) != job.headers:
            raise Difference(f"headers of {job.topic}/{job.id} are {seen['headers']!r}, and should be {job.headers!r}")
        if seen.get("shown"):
            name, value = as_json(job.body)
            if seen["shown"].get(name, seen) != value:
                raise Difference(f"body of {job.topic}/{job.id} is {seen['shown']}, and should be {value!r} as {name}")

    def look_up(self, topic, name, door=None):
        door = door or self.door()
        found = self.ask(door, door.get(topic, name))[0]
        return None if found == Failure("not_found") else found

    def check_job(self, topic, name):
        seen, job = self.look_up(topic, name), self.rules.find(topic, name)
        if job is None:
            return self.expect(seen, None)
        if seen is None and job.may_be_gone:
            return self.rules.remove(job)
        if seen is None or isinstance(seen, Failure):
            raise Difference(f"{topic}/{name} is {seen}, and should be {job.state}")
        return self.compare(job, seen)

    def settle_doubts(self):
        """What may be gone is there or not, from now on."""
        for job in [job for job in self.rules.jobs() if job.may_be_gone]:
            self.check_job(job.topic, job.id)
