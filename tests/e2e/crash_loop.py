"""The server is killed with SIGKILL again and again under load. What it had answered must be true afterwards: every
push it answered is there or was handed over, nothing acked or cancelled comes back, nothing is early."""
import itertools
import os
import threading
from contextlib import closing, suppress

import harness
from harness import Refused, now_ms

KILLS = int(os.environ.get("DELAYQ_KILLS", "8"))
TOPIC = "order"
PIPELINE = 40


class Book:
    """What was asked and what was answered, over all lives of the server."""

    def __init__(self):
        self.lock = threading.Lock()
        self.due = {}  # id -> earliest moment, of every push that was sent
        self.pushed = set()  # answered
        self.over_asked = set()  # acks and cancels that were sent: they may have happened
        self.over = set()  # answered: these must never be seen again
        self.delivered = 0
        self.wrong = []

    def complain(self, text):
        with self.lock:
            self.wrong.append(text)


class Producer(threading.Thread):
    def __init__(self, port, book, name, random):
        super().__init__(daemon=True)
        self.port, self.book, self.label, self.random = port, book, name, random

    def run(self):
        with suppress(OSError), closing(harness.Client(self.port)) as client:  # until it is killed
            for batch in itertools.count():
                ids = [f"{self.label}-{batch * PIPELINE + i}" for i in range(PIPELINE)]
                self.push(client, ids)
                if self.random.random() < 0.5:
                    self.cancel(client, self.random.sample(ids, PIPELINE // 2))

    def push(self, client, ids):
        commands = []
        for name in ids:
            delay = self.random.choice([0, 0, 1, 20, 200, 1500])
            self.book.due[name] = now_ms() + delay
            commands.append(("PUSH", TOPIC, f"{delay}ms", f"body of {name}", "ID", name))
        client.send(*commands)
        for name in ids:
            reply = client.read()
            if isinstance(reply, Refused):
                self.book.complain(f"push of {name}: {reply}")
            else:
                self.book.pushed.add(name)

    def cancel(self, client, ids):
        self.book.over_asked.update(ids)
        client.send(*[("CANCEL", TOPIC, name) for name in ids])
        for name in ids:
            reply = client.read()
            if reply == "cancelled":
                self.book.over.add(name)
            elif reply not in ("reserved", "done", "unknown", "dead"):
                self.book.complain(f"cancel of {name}: {reply}")


class Consumer(threading.Thread):
    """Acks most of what it gets; the rest runs out and comes again."""

    def __init__(self, port, book, random, until=None):
        super().__init__(daemon=True)
        self.port, self.book, self.random, self.until = port, book, random, until

    def run(self):
        with suppress(OSError), closing(harness.Client(self.port)) as client:
            while self.until is None or not self.until():
                jobs = client.ask("POP", TOPIC, "COUNT", 50, "WAIT", "100ms", "LEASE", "500ms")
                leases = [job[0] for job in jobs if self.receive(job)]
                if leases:
                    self.ack(client, leases, [job[2].decode() for job in jobs if job[0] in set(leases)])

    def receive(self, job):
        _, _, name, body, _, due = job
        name = name.decode()
        self.book.delivered += 1
        if now_ms() < due or now_ms() < self.book.due.get(name, due):
            self.book.complain(f"{name} came early")
        if name in self.book.over:
            self.book.complain(f"{name} came back after it was over")
        if body != f"body of {name}".encode():
            self.book.complain(f"{name} has another's body: {body}")
        return self.until is not None or self.random.random() < 0.8

    def ack(self, client, leases, names):
        first = set(names) - self.book.over_asked
        self.book.over_asked.update(names)
        client.send(*[("ACK", lease) for lease in leases])
        for name in names:
            reply = client.read()
            if reply == 1:
                self.book.over.add(name)
            elif reply == 0 and name in first:  # its lease ran out meanwhile: it must come again
                self.book.over_asked.discard(name)
            elif reply != 0:
                self.book.complain(f"ack of {name}: {reply}")


class CrashLoop(harness.ServerTest):
    def test_what_was_answered_is_true_after_every_kill(self):
        random = harness.new_random()
        book = Book()
        server = self.serve("--set", "journal.segment=1MiB", "--set", f"topics.{TOPIC}.attempts=0",
                            "--set", f"topics.{TOPIC}.backoff=50ms")
        for life in range(KILLS):
            threads = [Producer(server.port, book, f"{life}.{i}", random) for i in range(3)]
            threads += [Consumer(server.port, book, random) for _ in range(2)]
            for thread in threads:
                thread.start()
            # The moment of the kill: after so many more answers, or when a clock says so.
            threads[0].join(random.uniform(0.02, 0.6))
            server.kill()
            for thread in threads:
                thread.join(harness.DEADLINE)
                self.assertFalse(thread.is_alive(), "a client hangs on a dead server")
            self.assertEqual(book.wrong, [])
            server.start()
        self.drain(server, book, random)

    def drain(self, server, book, random):
        client = self.connect(server)

        def is_empty():
            counts = client.stats(TOPIC)
            return counts["delayed"] + counts["ready"] + counts["reserved"] == 0

        consumer = Consumer(server.port, book, random, until=is_empty)
        consumer.start()
        consumer.join(harness.DEADLINE)
        self.assertFalse(consumer.is_alive(), "it never became empty")
        self.assertEqual(book.wrong, [])
        lost = book.pushed - book.over - book.over_asked
        self.assertEqual(lost, set(), "answered, and gone")
        print(f"{KILLS} kills, {len(book.pushed)} answered pushes, {book.delivered} hand-overs, none lost, "
              "none early, none came back")
        self.assertGreater(len(book.pushed), KILLS * PIPELINE)


if __name__ == "__main__":
    harness.main()
