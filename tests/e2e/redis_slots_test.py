"""A Cluster that is rebalanced under load: slots with jobs move from master to master, key by key, as redis-cli moves them."""
import threading
import time
from contextlib import closing

import harness
import redis_topology
from harness import DEADLINE, Refused
from redis_harness import RedisTest, ids

SLOW = 1.2  # seconds that a move takes: more than a request waits by itself


class Producer(threading.Thread):
    """Pushes one job after the other, all over the shards, and knows since when it waits for an answer."""

    def __init__(self, server, name, over):
        super().__init__(daemon=True)
        self.server, self.label, self.over = server, name, over
        self.pushed, self.refused, self.asked = [], [], None

    def run(self):
        with closing(self.server.client()) as client:
            while not self.over.is_set():
                job = f"{self.label}-{len(self.pushed) + len(self.refused)}"
                self.asked = time.monotonic()
                try:
                    client.ask("PUSH", "order", "0", "x", "ID", job)
                    self.pushed.append(job)
                except Refused as refused:
                    self.refused.append((job, str(refused)))
                self.asked = None

    def has_waited(self, seconds):
        asked = self.asked
        return asked is not None and time.monotonic() - asked > seconds


class Moving(RedisTest):
    def setUp(self):
        super().setUp()
        self.start(redis_topology.Cluster)

    def slots(self):
        """Of the shards, by their tags."""
        masters = self.topology.masters()
        for master in masters:
            try:
                tags = master.ask("HGET", "delayq:meta", "tags").decode().split(" ")
            except Refused:
                continue
            return [masters[0].ask("CLUSTER", "KEYSLOT", f"delayq:{{{tag}}}:next") for tag in tags]
        raise AssertionError("nobody has delayq:meta")

    def owner(self, slot):
        masters = self.topology.masters()
        for first, last, *nodes in masters[0].ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(master for master in masters if master.port == nodes[0][1])
        raise AssertionError(f"nobody has slot {slot}")

    def move(self, slot, is_seen):
        """Moves a slot; in the midst of it, waits for `is_seen`."""
        masters, source = self.topology.masters(), self.owner(slot)
        target = masters[(masters.index(source) + 1) % len(masters)]
        name = {master.port: master.ask("CLUSTER", "MYID").decode() for master in masters}
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", name[source.port])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", name[target.port])
        self.wait_for(is_seen, f"somebody has met the move of slot {slot}")
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *keys)
        for master in (target, source, *masters):
            master.ask("CLUSTER", "SETSLOT", slot, "NODE", name[target.port])
        self.wait_for(lambda: len({self.epoch(master) for master in masters}) == 1, "all know of the move")

    def epoch(self, master):
        lines = master.ask("CLUSTER", "INFO").decode().splitlines()
        return next(line for line in lines if line.startswith("cluster_current_epoch"))

    def under_load(self, server):
        over = threading.Event()
        producers = [Producer(server, name, over) for name in ("a", "b", "c")]

        def finish():
            over.set()
            for producer in producers:
                producer.join(DEADLINE)
        self.addCleanup(finish)
        for producer in producers:
            producer.start()
        self.wait_for(lambda: all(producer.pushed for producer in producers), "there is load")
        return producers, finish

    def consume(self, client):
        seen = []
        while jobs := self.pops(client, "order", "COUNT", 100, "LEASE", "10m"):
            self.assertEqual(client.ask("ACK", *[job[0] for job in jobs]), len(jobs))
            seen += ids(jobs)
        return seen

    def test_requests_wait_as_long_as_the_operator_says(self):
        server = self.over("--set", "redis.wait=30s")
        producers, finish = self.under_load(server)
        client = self.connect(server)
        seen = []
        for slot in self.slots()[::4]:
            self.move(slot, lambda: any(producer.has_waited(SLOW) for producer in producers))
            seen += self.consume(client)
        finish()
        seen += self.consume(client)
        self.assertEqual([producer.refused for producer in producers], [[], [], []])
        self.assertEqual(sorted(seen), sorted(job for producer in producers for job in producer.pushed), "each once")

    def test_without_that_they_are_told_soon_and_nothing_is_lost(self):
        server = self.over()
        producers, finish = self.under_load(server)
        self.move(self.slots()[0], lambda: any(producer.refused for producer in producers))
        finish()
        client = self.connect(server)
        seen = self.consume(client)
        for producer in producers:
            for job, why in producer.refused:
                self.assertRegex(why, "UNAVAILABLE.*TRYAGAIN")
                self.assertNotIn(job, seen, "what was refused was not done")
        self.assertEqual(sorted(seen), sorted(job for producer in producers for job in producer.pushed), "each once")


if __name__ == "__main__":
    harness.main()
