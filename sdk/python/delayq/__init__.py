"""Client library of delayq, a delay queue: jobs that are due later, workers that run them, and schedules.

Client and Worker block, and are for threads; AsyncClient and AsyncWorker are for asyncio.
"""
from ._times import Duration, Moment
from .aio import AsyncClient
from .client import Client
from .errors import Error
from .jobs import Dead, JobInfo, NewJob, Occurrence, RetryIn, Schedule, ScheduleRun
from .worker import AsyncHandler, AsyncJob, AsyncWorker, Handler, Job, Worker

__version__ = "0.1.0"
__all__ = ["AsyncClient", "AsyncHandler", "AsyncJob", "AsyncWorker", "Client", "Dead", "Duration", "Error", "Handler", "Job", "JobInfo",
           "Moment", "NewJob", "Occurrence", "RetryIn", "Schedule", "ScheduleRun", "Worker"]
