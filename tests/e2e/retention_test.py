"""Lower bounds for kept jobs apply to those that are kept already, also when the server is killed amid that, and when several
servers do it at once."""
import http.client
import json
from contextlib import closing

import harness
from redis_harness import RedisTest

KEPT = 3_000 if harness.SANITIZED else 20_000
LIVE = 50


def fill(client, kept=KEPT):
    """Done jobs, and live ones that must stay. Answers the ids of the done ones in the order in which they ended."""
    ended = []
    client.ask_all([("PUSH", "t", "1h", "x", "ID", f"live {i}") for i in range(LIVE)])
    for first in range(0, kept, 1_000):
        ended += [f"done {i}" for i in range(first, min(first + 1_000, kept))]
        client.ask_all([("PUSH", "t", "0", "x", "ID", name) for name in ended[first:]])
        taken = 0
        while taken < len(ended) - first:
            taken += len(client.ask("POP", "t", "COUNT", "1000", "AUTOACK", "WAIT", "5s"))
    return ended


class Retention:
    """What both engines must do."""

    # For all topics, so that what is set for one of them holds after a restart, too.
    KEEPS_ALL = ("--set", "topics.*.keep_done.count=1000000", "--set", "topics.*.keep_done.time=1d")

    def keep(self, server, **bounds):
        with closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=harness.DEADLINE)) as web:
            web.request("PATCH", "/v1/topics/t", json.dumps({"keep_done": bounds}), {"Content-Type": "application/json"})
            answer = web.getresponse()
            self.assertEqual(answer.status, 200, answer.read())

    def done(self, client):
        return client.stats("t")["done"]

    def wait_until_begun(self, client):
        """Answers how many are left when it is seen that some are gone."""
        left = []

        def is_begun():
            left.append(self.done(client))
            return left[-1] < KEPT
        self.wait_for(is_begun, "some are removed")
        return left[-1]

    def assert_only_kept(self, client, names):
        """In the end these are kept, and the live ones are as they were."""
        self.wait_for(lambda: self.done(client) <= len(names), "the others are removed")
        self.assertEqual(client.stats("t")["delayed"], LIVE)
        listed, cursor = set(), ""
        while True:
            words = ["LIST", "t", "done", "COUNT", "1000"] + (["CURSOR", cursor] if cursor else [])
            cursor, jobs = client.ask(*words)
            listed |= {job[job.index(b"id") + 1].decode() for job in jobs}
            if not cursor:
                break
        self.assertEqual(listed, set(names))


class Journal(Retention, harness.ServerTest):
    def test_a_server_that_is_killed_amid_a_lower_count_goes_on_with_it(self):
        server = self.serve(*self.KEEPS_ALL)
        ended = fill(self.connect(server))
        self.keep(server, count=10)
        amid = 0
        for _ in range(20):
            left = self.wait_until_begun(self.connect(server))
            amid += left > 10
            server.kill()
            server.start()
            if left == 10:
                break
        self.assertGreater(amid, 0, "it was never killed amid")
        self.assert_only_kept(self.connect(server), ended[-10:])

    def test_a_server_that_is_killed_amid_a_lower_time_goes_on_with_it(self):
        server = self.serve(*self.KEEPS_ALL)
        fill(self.connect(server))
        self.keep(server, time="1ms")
        left = self.wait_until_begun(self.connect(server))
        server.kill()
        server.start()
        self.assertGreater(left, 0)
        self.assert_only_kept(self.connect(server), [])
        # What is removed stays removed, and new ones are kept as the setting says.
        server.kill()
        server.start()
        self.assert_only_kept(self.connect(server), [])


class Redis(Retention, RedisTest):
    def test_a_lower_count_at_one_server_while_it_is_killed(self):
        self.start()
        a, b = self.over(*self.KEEPS_ALL), self.over(*self.KEEPS_ALL)
        ended = fill(self.connect(a))
        self.keep(a, count=10)
        self.wait_until_begun(self.connect(b))
        a.kill()
        self.assert_only_kept(self.connect(b), ended[-10:])
        self.assertNotIn("error", b.said_so_far().lower())

    def test_a_lower_time_at_one_server_while_it_is_killed(self):
        self.start()
        a, b = self.over(*self.KEEPS_ALL), self.over(*self.KEEPS_ALL)
        fill(self.connect(a))
        self.keep(a, time="1ms")
        self.wait_until_begun(self.connect(b))
        a.kill()
        self.assert_only_kept(self.connect(b), [])

    def test_all_servers_are_killed_amid_it(self):
        self.start()
        a = self.over(*self.KEEPS_ALL)
        ended = fill(self.connect(a))
        self.keep(a, count=10)
        left = self.wait_until_begun(self.connect(a))
        a.kill()
        self.assertGreater(left, 10)
        b = self.over(*self.KEEPS_ALL)
        self.assert_only_kept(self.connect(b), ended[-10:])

    def test_two_servers_with_other_bounds_at_once(self):
        """The last of the settings holds, and whoever is later removes no more than that says."""
        self.start()
        a, b = self.over(*self.KEEPS_ALL), self.over(*self.KEEPS_ALL)
        ended = fill(self.connect(a))
        for server, count in ((a, KEPT - 100), (b, KEPT - 200), (a, KEPT - 300), (b, 500)):
            self.keep(server, count=count)
        self.assert_only_kept(self.connect(a), ended[-500:])
        self.assert_only_kept(self.connect(b), ended[-500:])


if __name__ == "__main__":
    harness.main()
