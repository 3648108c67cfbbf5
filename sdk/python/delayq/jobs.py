"""What is sent and what comes back: jobs, schedules, and what a handler raises."""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from ._times import Duration, Moment, from_duration

Payload: TypeAlias = Any
"""bytes are sent as they are, and a str as UTF-8. Everything else is sent as JSON."""
OnConflict: TypeAlias = Literal["replace", "keep", "reject"]
"""What happens if the id is in use: the new job takes the place of the old one, the old one stays, or the push is an error."""
CancelResult: TypeAlias = Literal["cancelled", "reserved", "done", "dead", "unknown"]
"""`reserved`: the job runs now; it will not be tried again. `unknown`: there is no such job."""
Overlap: TypeAlias = Literal["allow", "skip", "replace"]
Missed: TypeAlias = Literal["one", "skip", "all"]


@dataclass(slots=True)
class NewJob:
    """A job for `enqueue_many`. The fields are the arguments of `Client.enqueue`."""
    topic: str
    id: str | None
    payload: Payload
    _: KW_ONLY
    process_in: Duration | None = None
    process_at: Moment | None = None
    priority: int | None = None
    retry: int | None = None
    backoff: str | None = None
    timeout: Duration | None = None
    group: str | None = None
    callback: str | None = None
    headers: Mapping[str, str] | None = None
    on_conflict: OnConflict = "replace"


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job as `get` found it.

    `state` is delayed, ready, reserved, done or dead. `until` is the end of the lease, or of the time for which a done or
    dead job is kept. `outcome` is the last error.
    """
    topic: str
    id: str
    state: str
    payload: bytes
    due_at: datetime
    pushed_at: datetime
    attempts: int
    priority: int
    group: str | None = None
    until: datetime | None = None
    callback: str | None = None
    outcome: str | None = None
    cancel_requested: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The payload as a text."""
        return self.payload.decode()

    def json(self) -> Any:
        """The payload, which is JSON, as a value."""
        return json.loads(self.payload)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule: its rule (`every`, or `cron` in a `zone`), its jobs, and how far it has come.

    `result` is created, updated or unchanged, after `every` and `cron` only. `payload` and `headers` are set by
    `get_schedule` only. `made`, `skipped` and `missed_count` count occurrences.
    """
    name: str
    state: str
    topic: str
    every: timedelta | None = None
    cron: str | None = None
    zone: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    runs: int | None = None
    jitter: timedelta | None = None
    overlap: str | None = None
    missed: str | None = None
    next_at: datetime | None = None
    next_local: str | None = None
    made: int = 0
    skipped: int = 0
    missed_count: int = 0
    result: str | None = None
    problem: str | None = None
    payload: bytes | None = None
    priority: int | None = None
    retry: int | None = None
    backoff: str | None = None
    timeout: timedelta | None = None
    group: str | None = None
    callback: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The payload of its jobs, which is JSON, as a value."""
        return json.loads(self.payload or b"")


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """The job that `run_schedule` has made."""
    topic: str
    id: str
    state: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One of the next occurrences of a rule: the moment, and the same moment by the clock of the rule's zone."""
    at: datetime
    local: str


class RetryIn(Exception):
    """Raised by a handler: the job is tried again after `delay`. It counts as a failed attempt, and the last attempt is the end."""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        super().__init__(delay, reason)
        self.delay = from_duration("delay", delay)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class Dead(Exception):
    """Raised by a handler: there is no use in trying again. The job is dead at once, and is kept with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
