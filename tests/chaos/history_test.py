"""That the checker of the chaos test finds what it is for."""
import unittest

from history import History, now_ms


class HistoryTest(unittest.TestCase):
    def setUp(self):
        self.history = History()
        self.history.pushing("a", now_ms() - 10)

    def push(self, confirm=True):
        self.history.pushed("a")
        if confirm:
            self.history.confirm(self.history.snapshot())

    def receive(self, lease="l1", lease_ms=60_000, asked=None):
        """Asked for after all that was before, if nothing else is said."""
        self.history.received("a", lease, asked or self.later(), lease_ms, now_ms() - 10)

    def later(self):
        before = now_ms()
        while now_ms() == before:
            pass
        return now_ms()

    def test_a_job_that_was_done_is_not_lost(self):
        self.push()
        self.receive()
        self.history.ending("a", "l1")
        self.history.acked("a")
        self.history.finish()
        self.assertEqual(self.history.violations, [])

    def test_a_job_that_never_came_is_lost(self):
        self.push()
        self.assertEqual(self.history.unfinished(), 1)
        self.history.finish()
        self.assertIn("a is lost", self.history.violations[0])

    def test_what_redis_had_not_kept_is_counted_apart(self):
        self.push(confirm=False)
        self.history.finish()
        self.assertEqual((self.history.violations, self.history.by_redis["pushes"]), ([], 1))

    def test_an_ack_that_was_refused_is_no_end_and_one_without_an_answer_may_be(self):
        self.push()
        self.receive()
        self.history.ending("a", "l1")
        self.assertEqual(self.history.unfinished(), 1)
        self.history.ack_unanswered("a")
        self.assertEqual(self.history.unfinished(), 0)
        self.history.finish()
        self.assertEqual(self.history.violations, [])

    def test_a_refused_push_may_be_missing(self):
        self.history.refused("a")
        self.history.finish()
        self.assertEqual(self.history.violations, [])

    def test_two_live_leases(self):
        self.push()
        self.receive("l1")
        self.receive("l2")
        self.assertEqual((self.history.violations, self.history.by_redis["leases"]), ([], 1), "the first was not kept")
        self.history.confirm(self.history.snapshot())
        self.receive("l3")
        self.assertEqual(len(self.history.violations), 2)
        self.assertIn("two live leases", self.history.violations[0])

    def test_a_lease_that_is_over_may_be_followed(self):
        self.push()
        self.receive("l1", lease_ms=0)
        self.receive("l2")
        self.history.confirm(self.history.snapshot())
        self.history.ending("a", "l2")
        self.receive("l3")
        self.assertEqual(self.history.violations, [])

    def test_leases_that_were_only_in_memory(self):
        self.push()
        self.receive("l1")
        self.history.confirm(self.history.snapshot())
        self.history.leases_forgotten()
        self.receive("l2")
        self.assertEqual(self.history.violations, [])

    def test_early(self):
        self.history.pushing("b", now_ms() + 60_000)
        self.history.received("b", "l", now_ms(), 1_000, now_ms() - 10)
        self.assertIn("early", self.history.violations[0])

    def test_back_from_the_dead(self):
        self.push()
        self.receive()
        self.history.ending("a", "l1")
        self.history.acked("a")
        self.history.confirm(self.history.snapshot())
        self.receive("l2")
        self.assertIn("came back", self.history.violations[0])

    def test_what_was_taken_before_may_come_late(self):
        self.push()
        asked = self.later()
        self.receive("l2")
        self.history.confirm(self.history.snapshot())
        self.receive("l1", asked=asked)
        self.history.ending("a", "l2")
        self.history.acked("a")
        self.history.confirm(self.history.snapshot())
        self.receive("l0", asked=asked)
        self.assertEqual(self.history.violations, [])

    def test_a_stranger(self):
        self.history.received("x", "l", now_ms(), 1_000, 0)
        self.assertIn("never pushed", self.history.violations[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
