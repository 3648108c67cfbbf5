"""What tests of the redis engine have in common: servers over a Redis, and what is asked of them."""
import http.client
from contextlib import closing

import harness
import redis_topology
from harness import DEADLINE, Refused


def ids(jobs):
    return [job[2].decode() for job in jobs]


def dict_of(flat):
    return {} if flat is None else {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}


class RedisTest(harness.ServerTest):
    topology = None

    def setUp(self):
        super().setUp()
        self.prefix = "delayq"

    def start(self, kind=redis_topology.One, *options):
        """A Redis of the test's own, to do things to."""
        self.topology = kind(*options)
        self.addCleanup(self.topology.close)
        return self.topology

    def over(self, *options, topology=None):
        """A server over the Redis."""
        return self.serve("--engine", "redis", "--redis", (topology or self.topology).url, "--set", f"redis.prefix={self.prefix}",
                          *options)

    def get(self, server, path):
        with closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=DEADLINE)) as web:
            web.request("GET", path)
            response = web.getresponse()
            return response.status, response.read().decode()

    def pops(self, client, *words):
        return client.ask("POP", *words) or []

    def until_available(self, client, *words):
        """Asks again while Redis is away, and answers what came then."""
        answers = []

        def is_answered():
            try:
                answers.append(client.ask(*words))
                return True
            except Refused as refused:
                self.assertIn(refused.code, ("UNAVAILABLE", "OVERLOADED"), refused)
                return False
        self.wait_for(is_answered, f"{' '.join(str(word) for word in words[:2])} is answered")
        return answers[0]

    def push_until_taken(self, client, name, delay="0"):
        self.until_available(client, "PUSH", "order", delay, "x", "ID", name, "KEEP")
