"""What `make chaos` does for ten minutes, in short: see tests/chaos/chaos.py. Usually only that a loss would be noticed; with
DELAYQ_DEEP=1 every planted violation, and a minute over Sentinel, Cluster and, each, Kafka with and without Redis."""
import os
import pathlib
import sys
import unittest

import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "chaos"))
# pylint: disable=wrong-import-position
import chaos
from history_test import HistoryTest  # noqa: F401  pylint: disable=unused-import
from records_test import RecordsTest  # noqa: F401  pylint: disable=unused-import

DEEP = unittest.skipUnless("DELAYQ_DEEP" in os.environ, "a stage of make test-deep")
SECONDS = os.environ.get("DELAYQ_CHAOS_SECONDS", "20" if harness.SANITIZED else "60")

# With fewer other jobs: two cores do no more.
SCHEDULES = ("--schedules", "200") if harness.SANITIZED else ("--schedules", "1000", "--rate", "50")


class Chaos(unittest.TestCase):
    def run_for(self, seconds, *arguments):
        seed = str(harness.new_random().randrange(1 << 32))
        self.assertEqual(chaos.main(["--seconds", str(seconds), "--seed", seed, *arguments]), 0)

    def test_a_loss_would_be_noticed(self):
        self.run_for(8, "--topology", "journal", "--canary", "loss")

    @DEEP
    def test_a_double_hand_over_would_be_noticed(self):
        self.run_for(8, "--topology", "journal", "--canary", "double")

    @DEEP
    def test_a_job_that_is_early_would_be_noticed(self):
        self.run_for(8, "--topology", "journal", "--canary", "early")

    @DEEP
    def test_an_occurrence_that_is_made_twice_would_be_noticed(self):
        self.run_for(8, "--topology", "journal", "--schedules", "20", "--canary", "twice")

    @DEEP
    def test_an_occurrence_that_is_missing_would_be_noticed(self):
        self.run_for(8, "--topology", "journal", "--schedules", "20", "--canary", "missing")

    @DEEP
    def test_sentinel(self):
        self.run_for(float(SECONDS) / 2, "--topology", "sentinel", *SCHEDULES)

    @DEEP
    def test_cluster(self):
        self.run_for(float(SECONDS) / 2, "--topology", "cluster", *SCHEDULES)

    @DEEP
    def test_with_kafka_each_violation_would_be_noticed(self):
        for canary in ("loss", "double", "early", "cancelled"):
            with self.subTest(canary):
                self.run_for(8, "--topology", "kafka-journal", "--brokers", "1", "--canary", canary)

    @DEEP
    def test_the_kafka_engine(self):
        self.run_for(SECONDS, "--topology", "kafka")

    @DEEP
    def test_kafka_in_and_kafka_out(self):
        self.run_for(SECONDS, "--topology", "kafka-journal")


if __name__ == "__main__":
    harness.main()
