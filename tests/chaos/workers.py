"""Those who use the servers while they are killed: producers and consumers, over RESP and over HTTP."""
import http.client
import json
import threading
import time
import zlib
from contextlib import closing

from harness import Client, Refused
from history import now_ms
from layout import OCCURRENCE

TOPICS = ("order", "mail", "report")
TICKS = "tick"  # of the jobs that schedules make (ticks.py)
LEASE_MS = 3_000


def topic_of(name):
    if OCCURRENCE.fullmatch(name):
        return TICKS
    return TOPICS[zlib.crc32(name.encode()) % len(TOPICS)]


class Worker(threading.Thread):
    """Goes on, at another server if need be, until it is told to stop."""

    def __init__(self, chaos, number, random):
        super().__init__(daemon=True, name=f"{type(self).__name__} {number}")
        self.chaos, self.history, self.number, self.random = chaos, chaos.history, number, random
        self.failure = None

    def run(self):
        while not self.is_over():
            try:
                self.work(self.random.choice(self.chaos.servers).port)
            except (OSError, ConnectionError, http.client.HTTPException):
                self.chaos.rest(0.02)
            except Exception as failure:  # pylint: disable=broad-except
                self.failure = failure
                raise

    def is_over(self):
        raise NotImplementedError

    def work(self, port):
        raise NotImplementedError


class Producer(Worker):
    BATCH = 10

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.made = 0

    def is_over(self):
        return self.chaos.no_more_pushes.is_set()

    def new_job(self):
        self.made += 1
        name = f"{self.number}.{self.made}"
        delay = self.random.choice((0, 0, 10, 100, 700, 2_000, 5_000))
        self.history.pushing(name, now_ms() + delay)
        return name, delay

    def work(self, port):
        with closing(Client(port)) as client:
            client.socket.settimeout(10)
            while not self.is_over():
                jobs = [self.new_job() for _ in range(self.BATCH)]
                client.send(*[("PUSH", topic_of(name), f"{delay}ms", name, "ID", name) for name, delay in jobs])
                for name, _ in jobs:
                    self.note(name, client.read())
                if self.random.random() < 0.2:
                    self.cancel(client, self.random.choice(jobs)[0])
                self.chaos.rest(self.BATCH / self.chaos.rate)

    def note(self, name, reply):
        if not isinstance(reply, Refused):
            self.history.pushed(name)
        elif reply.code in ("UNAVAILABLE", "OVERLOADED", "STOPPING"):
            self.history.refused(name)
        else:
            self.history.violations.append(f"push of {name}: {reply}")

    def cancel(self, client, name):
        asked = now_ms()
        self.history.cancelling(name)
        client.send(("CANCEL", topic_of(name), name))
        reply = client.read()
        if reply == "cancelled":
            self.history.cancelled(name, asked)


class WebProducer(Producer):
    def work(self, port):
        server = next((each for each in self.chaos.servers if each.port == port), self.chaos.servers[0])
        with closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=10)) as web:
            while not self.is_over():
                name, delay = self.new_job()
                web.request("POST", f"/v1/topics/{topic_of(name)}/jobs",
                            json.dumps({"id": name, "body": name, "delay": f"{delay}ms"}))
                response = web.getresponse()
                text = response.read()
                if response.status in (200, 201, 202):
                    self.history.pushed(name)
                elif response.status in (429, 503, 507):
                    self.history.refused(name)
                else:
                    self.history.violations.append(f"push of {name} over HTTP: {response.status} {text[:200]}")
                self.chaos.rest(1 / self.chaos.rate)


class Consumer(Worker):
    """Acks most of what it gets, gives some back, forgets some."""

    def is_over(self):
        return self.chaos.no_more_pops.is_set()

    def work(self, port):
        with closing(Client(port)) as client:
            client.socket.settimeout(10)
            while not self.is_over():
                asked = now_ms()
                try:
                    jobs = client.ask("POP", *TOPICS, "COUNT", 20, "WAIT", "500ms", "LEASE", f"{LEASE_MS}ms") or []
                except Refused as refused:
                    if refused.code not in ("UNAVAILABLE", "OVERLOADED", "STOPPING"):
                        raise
                    self.chaos.rest(0.05)
                    continue
                for lease, _, name, body, _, due in jobs:
                    if body.strip(b'"') != name:  # over HTTP it is JSON
                        self.history.violations.append(f"{name} has another's body")
                    self.history.received(name.decode(), lease.decode(), asked, LEASE_MS, due)
                self.chaos.last_received = time.monotonic()
                for lease, _, name, *_ in jobs:
                    self.deal_with(client, lease.decode(), name.decode())

    def deal_with(self, client, lease, name):
        luck = 1.0 if self.chaos.no_more_pushes.is_set() else self.random.random()
        if luck < 0.03:
            return  # forgotten: its lease runs out
        self.history.ending(name, lease)
        try:
            self.end(client, lease, name, luck < 0.06)
        finally:
            self.history.ended(name)

    def end(self, client, lease, name, is_failed):
        if is_failed:
            client.send(("NACK", lease, "DELAY", "200ms"))
            client.read()
            return
        asked = now_ms()
        try:
            client.send(("ACK", lease))
            reply = client.read()
        except (OSError, ConnectionError):
            self.history.ack_unanswered(name)
            raise
        self.judge_ack(name, lease, asked, reply)

    def judge_ack(self, name, lease, asked, reply):
        if reply == 1:
            self.history.acked(name, lease, asked)
        elif reply == 0:
            self.history.stale()
        elif isinstance(reply, Refused) and reply.code in ("UNAVAILABLE", "OVERLOADED", "STOPPING"):
            self.history.ack_unanswered(name)
        else:
            self.history.violations.append(f"ack of {name}: {reply}")
