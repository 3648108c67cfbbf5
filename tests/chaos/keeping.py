"""Finds out what Redis has kept of what it answered, from Redis itself: README.md says how, and why so."""
import threading

from harness import Client, Refused
from history import now_ms
from layout import PREFIX, Record, pool_key, shard_of, tags_of
from workers import topic_of

PERIOD = 0.1
MOST_LOOKS = 2_000  # in one round


class Shards:
    """Commands about shards, to whichever master has each."""

    def __init__(self, topology, count):
        self.topology, self.count = topology, count
        self.first = None
        self.ports = {}  # by shard, where that is another

    def find(self):
        """Begins anew: masters change."""
        masters = self.topology.masters()
        if not masters:
            raise ConnectionError("there is no master")
        self.first, self.ports = masters[0].port, {}

    def ask_all(self, commands):
        """`commands`: (shard, words). Answers their replies, in order; raises when one has none."""
        replies, left = [None] * len(commands), list(range(len(commands)))
        for _ in range(3):
            moved = []
            for port in {self.port(commands[i][0]) for i in left}:
                mine = [i for i in left if self.port(commands[i][0]) == port]
                for i, reply in zip(mine, self.ask_at(port, [commands[i][1] for i in mine])):
                    replies[i] = reply
                    if isinstance(reply, Refused) and reply.code == "MOVED":
                        moved.append((i, int(str(reply).rsplit(":", 1)[1])))
            if not moved:
                break
            for i, port in moved:
                self.ports[commands[i][0]] = port
            left = [i for i, _ in moved]
        for reply in replies:
            if isinstance(reply, Refused):
                raise reply
        return replies

    def port(self, shard):
        return self.ports.get(shard, self.first)

    @staticmethod
    def ask_at(port, commands):
        client = Client(port)
        try:
            client.socket.settimeout(2)
            return client.ask_all(commands)
        finally:
            client.close()


class Keeper(threading.Thread):
    """Writes a number into every shard, again and again, and sees which number is there: one that is less than the last has
    been written says that Redis has lost all that came after it."""

    def __init__(self, chaos, shards):
        super().__init__(daemon=True, name="Keeper")
        self.chaos, self.history = chaos, chaos.history
        self.shards = Shards(chaos.topology, shards)
        self.tags = None  # by shard; known when the deployment is made
        self.number = 0
        self.written = [0] * shards  # the last number that was answered
        self.lives = [None] * shards  # the master's port and its life, by the name that Redis gives to its history
        self.since = [0] * shards  # when that was first seen; what was asked after it, it has answered
        self.seen = []  # facts that were looked up since the last mark
        self.failure = None

    def run(self):
        while not self.chaos.is_over.is_set():
            try:
                self.round()
            except (OSError, ConnectionError, Refused):
                pass
            except Exception as failure:  # pylint: disable=broad-except
                self.failure = failure
                raise
            self.chaos.rest(PERIOD)

    def round(self):
        began, faults, before = now_ms(), self.chaos.redis_faults, self.chaos.topology.lives()
        facts, seen, self.seen = self.history.in_doubt(), self.seen, []
        self.shards.find()
        if self.tags is None:
            self.find_tags()
        self.mark()
        # A fault that is under way is an odd number. Between faults there is one master only, the same before and after.
        if before is None or faults % 2 or before != self.chaos.topology.lives() or faults != self.chaos.redis_faults:
            return
        if any(self.shards.port(shard) not in before for shard in range(self.shards.count)):
            return
        changed = False
        for shard in range(self.shards.count):
            life = (self.shards.port(shard), before[self.shards.port(shard)])
            if life != self.lives[shard]:
                changed = True
                self.chaos.say(f"shard {shard} is at {life[0]}, in the history {life[1]}, from mark {self.number} on")
                self.lives[shard], self.since[shard] = life, began
        looked = {id(fact) for fact in seen if not changed}
        sure = [fact for fact in facts if fact.asked > self.since[self.shard(fact.job)] or id(fact) in looked]
        self.history.keep(self.number, sure)
        self.history.judge(began)
        self.look([fact for fact in facts if fact.kept is None])

    def shard(self, job):
        return shard_of(job.name, self.shards.count)

    def find_tags(self):
        shards, tags = self.shards.ask_all([("meta", ("HMGET", f"{PREFIX}:meta", "shards", "tags"))])[0]
        if shards is None:
            raise ConnectionError("no server has made the deployment yet")
        self.tags = tags_of(int(shards), tags)

    def mark(self):
        self.number += 1
        shards = range(self.shards.count)
        replies = self.shards.ask_all([(shard, ("SET", f"chaos:{{{self.tags[shard]}}}", self.number, "GET")) for shard in shards])
        for shard, reply in zip(shards, replies):
            found = int(reply or 0)
            if found < self.written[shard]:
                self.chaos.say(f"Redis has lost the marks {found + 1} to {self.written[shard]} of shard {shard}")
                self.chaos.rollbacks += 1
                self.history.roll_back(found, lambda job, shard=shard: self.shard(job) == shard)
            self.written[shard] = self.number

    def look(self, facts):
        """At what nothing is known of but by looking: it was asked before this master was one."""
        facts = facts[:MOST_LOOKS]
        replies = self.shards.ask_all([
            (self.shard(fact.job), ("HGET", pool_key(self.tags[self.shard(fact.job)], topic_of(fact.job.name)), fact.job.name))
            for fact in facts])
        for fact, reply in zip(facts, replies):
            if self.history.look(fact, None if reply is None else Record(reply)):
                self.seen.append(fact)
