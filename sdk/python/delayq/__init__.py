"""Client library of delayq, a delay queue: jobs that are due later, workers that run them, and schedules."""
from ._times import Duration, Moment
from .client import Client
from .errors import Error
from .jobs import Dead, JobInfo, NewJob, Occurrence, RetryIn, Schedule, ScheduleRun

__version__ = "0.1.0"
__all__ = ["Client", "Dead", "Duration", "Error", "JobInfo", "Moment", "NewJob", "Occurrence", "RetryIn", "Schedule", "ScheduleRun"]
