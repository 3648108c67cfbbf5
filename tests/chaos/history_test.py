"""That the checker of the chaos test finds what it is for, and blames Redis for no more than it lost."""
import unittest

from history import History, now_ms
from layout import DONE, RESERVED, WAITING, Record, shard_of


class Seen:
    """A record in Redis."""

    def __init__(self, state, lease=0):
        self.state, self.lease = state, lease

    def is_live(self):
        return self.state in (WAITING, RESERVED)


class HistoryTest(unittest.TestCase):
    def setUp(self):
        self.history = History()
        self.history.pushing("a", now_ms() - 10)
        self.mark = 0

    def push(self, keep=True):
        self.history.pushed("a")
        if keep:
            self.keep()

    def keep(self):
        """A mark is written after all that was answered."""
        self.mark += 1
        self.history.keep(self.mark, self.history.in_doubt())

    def roll_back(self, number):
        self.history.roll_back(number, lambda job: True)

    def look(self, record):
        """What is in doubt is looked up, and a mark is written after it."""
        seen = [fact for fact in self.history.in_doubt() if self.history.look(fact, record)]
        self.mark += 1
        self.history.keep(self.mark, seen)

    def receive(self, lease="0.1", lease_ms=60_000, asked=None):
        """Asked for after all that was before, if nothing else is said."""
        self.history.received("a", lease, asked or self.later(), lease_ms, now_ms() - 10)

    def ack(self, lease, asked=None):
        self.history.ending("a", lease)
        self.history.acked("a", lease, asked or self.later())
        self.history.ended("a")

    def later(self):
        before = now_ms()
        while now_ms() == before:
            pass
        return now_ms()

    def judged(self):
        self.history.judge(now_ms() + 1)
        return self.history.violations

    def finished(self):
        self.history.finish()
        return self.history.violations

    def test_a_job_that_was_done_is_not_lost(self):
        self.push()
        self.receive()
        self.ack("0.1")
        self.keep()
        self.assertEqual(self.finished(), [])
        self.assertEqual(set(self.history.by_redis.values()), {0})

    def occur(self, lease, attempt):
        self.history.occurring("s1@2026-11-18T16:00:00Z", now_ms() - 10)
        self.history.received("s1@2026-11-18T16:00:00Z", lease, self.later(), 0, now_ms() - 10, attempt)

    def test_an_occurrence_may_come_again_as_its_next_attempt(self):
        self.occur("0.1", 1)
        self.keep()
        self.occur("0.2", 2)
        self.keep()
        self.assertEqual(self.judged(), [])

    def test_an_occurrence_that_begins_again_was_made_twice(self):
        self.occur("0.1", 1)
        self.keep()
        self.occur("0.2", 1)
        self.keep()
        self.assertIn("was made twice", self.judged()[0])

    def test_an_occurrence_that_redis_lost_may_be_made_again(self):
        self.occur("0.1", 1)
        self.keep()
        self.roll_back(0)
        self.look(None)
        self.occur("0.2", 1)
        self.keep()
        self.assertEqual(self.judged(), [])

    def test_an_occurrence_that_is_early_is_noticed(self):
        self.history.occurring("s1@2026-11-18T16:00:00Z", now_ms() + 5_000)
        self.history.received("s1@2026-11-18T16:00:00Z", "0.1", self.later(), 0, now_ms() + 5_000, 1)
        self.assertIn("early", self.judged()[0])

    def test_a_job_that_never_came_is_lost(self):
        self.push()
        self.assertEqual(self.history.unfinished(), 1)
        self.assertIn("a is lost", self.finished()[0])

    def test_a_job_that_never_came_is_lost_also_when_nobody_knows_whether_redis_kept_it(self):
        self.push(keep=False)
        self.assertIn("a is lost", self.finished()[0])

    def test_what_redis_lost_is_counted_apart(self):
        self.push()
        self.roll_back(self.mark - 1)
        self.look(None)
        self.assertEqual((self.finished(), self.history.by_redis["pushes"]), ([], 1))

    def test_what_redis_lost_after_a_mark_says_nothing_of_what_was_before(self):
        self.push()
        self.roll_back(self.mark)
        self.assertEqual(self.history.in_doubt(), [])
        self.assertIn("a is lost", self.finished()[0])

    def test_what_was_in_doubt_and_is_seen_must_come(self):
        self.push(keep=False)
        self.look(Seen(WAITING))
        self.assertIn("a is lost", self.finished()[0])

    def test_a_job_whose_ack_redis_lost_must_come_again(self):
        self.push()
        self.receive()
        self.ack("0.1")
        self.look(Seen(WAITING))
        self.assertEqual((self.history.by_redis["acks"], self.history.unfinished()), (1, 1))
        self.assertIn("a is lost", self.finished()[0])

    def test_while_an_ack_is_under_way_a_job_that_is_not_seen_may_be_done(self):
        self.push(keep=False)
        self.receive()
        self.history.ending("a", "0.1")
        self.look(None)
        self.assertEqual(self.history.by_redis["pushes"], 0)
        self.history.ended("a")
        self.look(None)
        self.assertEqual(self.history.by_redis["pushes"], 1)

    def test_an_ack_that_was_refused_is_no_end_and_one_without_an_answer_may_be(self):
        self.push()
        self.receive()
        self.history.ending("a", "0.1")
        self.assertEqual(self.history.unfinished(), 1)
        self.history.ack_unanswered("a")
        self.assertEqual(self.history.unfinished(), 0)
        self.assertEqual(self.finished(), [])

    def test_a_refused_push_may_be_missing(self):
        self.history.refused("a")
        self.assertEqual(self.finished(), [])

    def test_two_live_leases(self):
        self.push()
        self.receive("0.1")
        self.keep()
        self.receive("0.2")
        self.assertIn("two live leases", self.judged()[0])

    def test_two_live_leases_are_judged_when_it_is_known_what_redis_kept(self):
        self.push()
        self.receive("0.1")
        self.receive("0.2")
        self.assertEqual(self.judged(), [])
        self.keep()
        self.assertIn("two live leases", self.judged()[0])

    def test_two_live_leases_that_nothing_is_known_of_in_the_end(self):
        self.push()
        self.receive("0.1")
        self.receive("0.2")
        self.assertIn("two live leases", self.finished()[0])

    def test_the_second_lease_after_redis_lost_the_first(self):
        self.push()
        self.receive("0.1")
        self.keep()
        self.roll_back(self.mark - 1)
        self.receive("0.2")
        self.look(Seen(RESERVED, 2))
        self.assertEqual((self.judged(), self.history.by_redis["leases"]), ([], 1))
        self.receive("0.3")
        self.assertIn("two live leases: 0.2", self.judged()[0])

    def test_a_job_whose_ack_redis_lost_and_that_was_acked_again(self):
        self.push()
        self.receive("0.1")
        self.ack("0.1")
        self.receive("0.2")
        self.ack("0.2")
        self.look(None)
        self.assertEqual((self.finished(), self.history.by_redis["acks"]), ([], 1))

    def test_a_lease_that_is_over_may_be_followed(self):
        self.push()
        self.receive("0.1", lease_ms=0)
        self.receive("0.2")
        self.keep()
        self.history.ending("a", "0.2")
        self.receive("0.3")
        self.assertEqual(self.judged(), [])

    def test_leases_that_were_only_in_memory(self):
        self.push()
        self.receive("0.1")
        self.keep()
        self.history.leases_forgotten()
        self.receive("0.2")
        self.assertEqual(self.judged(), [])

    def test_a_lease_that_was_given_before(self):
        self.push()
        self.receive("0.1", lease_ms=0)
        self.receive("0.1")
        self.assertIn("an earlier one", self.history.violations[0])

    def test_an_ack_after_the_end(self):
        self.push()
        self.receive("0.1", lease_ms=0)
        self.ack("0.1", asked=now_ms() + 2_000)
        self.assertIn("ms after its end", self.history.violations[0])

    def test_an_ack_of_what_another_has_now(self):
        self.push()
        self.receive("0.1", lease_ms=1)
        self.later()
        self.receive("0.2")
        self.ack("0.1", asked=self.later())
        self.keep()
        self.assertIn("0.1 was acked though 0.2 had followed", self.judged()[0])

    def test_early(self):
        self.history.pushing("b", now_ms() + 60_000)
        self.history.received("b", "0.1", now_ms(), 1_000, now_ms() - 10)
        self.assertIn("early", self.history.violations[0])

    def test_back_from_the_dead(self):
        self.push()
        self.receive()
        self.ack("0.1")
        self.look(Seen(DONE))
        self.receive("0.2")
        self.assertIn("came back", self.judged()[0])

    def test_where_nothing_may_be_lost_there_is_no_doubt(self):
        self.history = History(is_lossless=True)
        self.history.pushing("a", now_ms() - 10)
        self.history.pushed("a")
        self.receive("0.1")
        self.receive("0.2")
        self.assertIn("two live leases", self.history.violations[0])
        self.assertIn("a is lost", self.finished()[1])

    def test_what_was_taken_before_may_come_late(self):
        self.push()
        asked = self.later()
        self.receive("0.2")
        self.keep()
        self.receive("0.1", asked=asked)
        self.ack("0.2")
        self.keep()
        self.receive("0.0", asked=asked)
        self.assertEqual(self.judged(), [])

    def test_a_stranger(self):
        self.history.received("x", "0.1", now_ms(), 1_000, 0)
        self.assertIn("never pushed", self.history.violations[0])

    def test_where_and_what_a_job_is_in_redis(self):
        self.assertEqual([shard_of(name, 16) for name in ("a", "job 7", "12345678", "")], [13, 12, 10, 3])
        for ending in ("@2026-11-16T09:00:00Z", "@2026-11-16T09:00:00.250Z"):
            self.assertEqual(shard_of("a" + ending, 16), 13)
            self.assertNotEqual(shard_of("a" + ending, 16, version=2), 13)
        self.assertEqual(shard_of("a@2026-11-16", 16), shard_of("a@2026-11-16", 16, version=2))
        record = Record(b"\x9c\x01\x02\xcd\x04\x00\xcf\x00\x00\x01\xa3\x18]:`\xcf\x00\x00\x01\xa3\x18\\P\x00\x05\x00\x01"
                        b"\xcf\x00\x06\x8caq@\x00\x02\x00\x00\xa0\x93\xa0\xa0\xa1y")
        self.assertEqual((record.state, record.lease, record.is_live()), (RESERVED, "1843200000000002", True))


if __name__ == "__main__":
    unittest.main(verbosity=2)
