"""That the judge of the runs with Kafka finds what it is for, and lets a kill explain no more than it can."""
import unittest

from history import now_ms
from records import CONFIRMED_MS, FOR_EVER, Records, value_of


class RecordsTest(unittest.TestCase):
    def setUp(self):
        self.history = Records()
        self.begin = now_ms()
        self.due = self.begin + 1_000
        self.history.asking("a", self.due, writer=0)
        self.history.answered("a", True)

    def came(self, after_due=0, server=0, value=None):
        self.history.came("a", self.due + after_due, server, value or value_of("a"), seen=self.due + after_due + 5)

    def kill(self, after_due, server=0):
        self.history.kills.append((self.due + after_due, server, "was killed"))

    def judged(self):
        self.history.finish()
        return self.history.violations

    def assert_found(self, text):
        found = self.judged()
        self.assertEqual(len(found), 1, found)
        self.assertIn(text, found[0])

    def read_from_kafka(self, committed=FOR_EVER):
        """The job came by the intake, and its offset was committed so long after it was due."""
        self.history.jobs["a"].writer = None
        self.history.answered("a", True, (2, 7))
        if committed != FOR_EVER:
            self.history.commits[2] = [(self.begin - 5, 3), (self.due + committed, 8)]

    def test_a_job_that_comes_once_is_fine(self):
        self.came()
        self.assertEqual(self.judged(), [])

    def test_a_job_that_does_not_come_is_lost(self):
        self.assertEqual(self.history.unfinished(), 1)
        self.assert_found("is lost")

    def test_a_job_that_may_not_be_there_may_come_or_not(self):
        self.history.answered("a", None)
        self.assertEqual(self.judged(), [])
        self.came()
        self.assertEqual(self.judged(), [])

    def test_early(self):
        self.came(-1)
        self.assert_found("1 ms early")

    def test_anothers_body(self):
        self.came(value=b"x")
        self.assert_found("another's body")

    def test_nobody_asked_for_it(self):
        self.history.came("b", self.due, 0, b"")
        self.came()
        self.assert_found("nobody asked")

    def test_after_it_was_cancelled(self):
        self.history.cancelling("a")
        self.history.cancel_answered("a", True)
        self.came(self.begin + 100 - self.due)
        self.assert_found("after it was cancelled")

    def test_a_cancel_without_an_answer_excuses_that_it_does_not_come(self):
        self.history.cancelling("a")
        self.history.cancel_answered("a", None)
        self.assertEqual(self.judged(), [])

    def test_a_cancel_that_came_too_late_excuses_nothing(self):
        self.history.cancelling("a")
        self.history.cancel_answered("a", False)
        self.assert_found("is lost")

    def test_at_the_time_that_it_was_moved_from(self):
        self.history.rescheduling("a", self.due + 500)
        self.history.reschedule_answered("a", True)
        self.came(100)
        self.assert_found("moved from")

    def test_at_the_time_that_it_was_moved_to(self):
        self.history.rescheduling("a", self.due - 500)
        self.history.reschedule_answered("a", True)
        self.came(-500)
        self.assertEqual(self.judged(), [])

    def test_a_move_without_an_answer_allows_both_times_and_one_that_was_refused_does_not(self):
        for answer, violations in ((None, 0), (False, 1)):
            self.setUp()
            self.history.rescheduling("a", self.due - 500)
            self.history.reschedule_answered("a", answer)
            self.came(-100)
            self.assertEqual(len(self.judged()), violations)

    def test_twice(self):
        self.came()
        self.came(5)
        self.assert_found("no kill explains it")

    def test_twice_because_its_writer_died_before_the_confirmation(self):
        self.came()
        self.kill(10)
        self.came(15_000, server=1)
        self.assertEqual(self.judged(), [])
        self.assertEqual(dict(self.history.explained), {"kill 1: server 0 was killed before it knew that a record was written": 1})

    def test_the_death_of_another_server_explains_nothing(self):
        self.came()
        self.kill(10, server=1)
        self.came(15_000)
        self.assert_found("no kill explains it")

    def test_a_death_long_after_the_record_explains_nothing_unless_a_broker_was_away(self):
        for outage, violations in (([], 1), ([self.due - 100, self.due + 9_000], 0), ([self.due + 8_500, self.due + 9_000], 1)):
            self.setUp()
            if outage:
                self.history.outages.append([*outage, 1])
            self.came()
            self.kill(CONFIRMED_MS + 6_000)
            self.came(20_000)
            self.assertEqual(len(self.judged()), violations)

    def test_a_death_after_the_second_record_explains_nothing(self):
        self.came()
        self.came(5)
        self.kill(10)
        self.assert_found("no kill explains it")

    def test_a_record_that_was_read_again_makes_its_job_again(self):
        self.read_from_kafka(committed=200)
        self.came()
        self.kill(100, server=1)
        self.came(7_000)
        self.assertEqual(self.judged(), [])
        self.assertEqual(dict(self.history.explained), {"kill 1: server 1 was killed before it committed that a record was read": 1})

    def test_a_record_is_read_again_when_a_broker_died_before_the_commit(self):
        for outage, violations in (((self.due + 50, self.due + 90), 0), ((self.due + 300, self.due + 900), 1)):
            self.setUp()
            self.read_from_kafka(committed=200)
            self.history.outages.append([*outage, 1])
            self.came()
            self.came(7_000)
            self.assertEqual(len(self.judged()), violations)

    def test_a_record_is_read_again_when_its_partition_was_lost_before_the_commit(self):
        for lost, partition, violations in ((50, 2, 0), (50, 1, 1), (300, 2, 1)):
            self.setUp()
            self.read_from_kafka(committed=200)
            self.history.partition_lost(self.due + lost, 1, partition)
            self.came()
            self.came(7_000)
            self.assertEqual(len(self.judged()), violations)

    def test_a_record_whose_offset_was_committed_before_is_not_read_again(self):
        self.read_from_kafka(committed=50)
        self.came()
        self.kill(100, server=1)
        self.came(7_000)
        self.assert_found("no kill explains it")

    def test_a_cancelled_job_may_come_back_only_if_its_record_was_read_again(self):
        for kill, violations in (((), 1), ((-500,), 0)):
            self.setUp()
            self.read_from_kafka(committed=0)
            self.history.cancel_answered("a", True)
            for each in kill:
                self.kill(each)
            self.came(10)
            self.assertEqual(len(self.judged()), violations)


if __name__ == "__main__":
    unittest.main()
