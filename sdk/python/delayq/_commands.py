"""The verbs: each makes the bytes of a command, and knows what its reply means and whether it may be sent again."""
from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from ._resp import Reply, encode
from ._times import Duration, Moment, from_duration, from_moment, to_datetime, to_timedelta
from .errors import Error
from .jobs import CancelResult, JobInfo, NewJob, Occurrence, Payload, Schedule, ScheduleRun

T = TypeVar("T")

trace: ContextVar[Mapping[str, str]] = ContextVar("delayq_trace", default={})
"""The trace context of the job whose handler runs: `traceparent` and `tracestate`, or nothing."""

TRACE_HEADERS: Final = ("traceparent", "tracestate")
_ON_CONFLICT: Final = {"replace": b"REPLACE", "keep": b"KEEP", "reject": b""}
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Command(Generic[T]):
    """A command as bytes. `decode` makes its result of a reply that is no Error.

    `repeats`: it may be sent again when its answer was lost. `again`: the bytes to send then.
    `large`: its reply may be large, so no command is sent behind it before the reply was read.
    """
    __slots__ = ("data", "decode", "repeats", "again", "large")

    def __init__(self, words: Sequence[bytes] | bytes, decode: Callable[[Reply], T], *, repeats: bool = True,
                 again: Callable[[], bytes] | None = None, large: bool = False) -> None:
        self.data = words if isinstance(words, bytes) else encode(words)
        self.decode = decode
        self.repeats = repeats
        self.again = again
        self.large = large


_MARKS: Final = 7 << 76 | 2 << 62  # version 7, variant 2
_NO_MARKS: Final = ~(15 << 76 | 3 << 62)
# Not the one of the module `random`: a program that seeds that one would make the same ids twice.
_random: Final = random.Random(os.urandom(32))
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))


def new_id() -> str:
    """A UUID of version 7: ids that are made later sort later, to the millisecond."""
    number = (time.time_ns() // 1_000_000) << 80 | _random.getrandbits(80)
    digits = "%032x" % (number & _NO_MARKS | _MARKS)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def text(field: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise Error("invalid", f"{field}: {value!r} is not a text")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Error("invalid", f"{field}: {value!r} cannot be written as UTF-8") from None


def whole(field: str, value: int) -> bytes:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Error("invalid", f"{field}: {value!r} is not a whole number")
    return b"%d" % value


def payload_bytes(payload: Payload) -> bytes:
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return text("payload", payload)
    if isinstance(payload, (bytearray, memoryview)):
        return bytes(payload)
    try:
        return _JSON.encode(payload).encode()
    except (TypeError, ValueError) as problem:
        raise Error("invalid", f"payload: {problem}") from None


def _header_words(headers: Mapping[str, str]) -> list[bytes]:
    words = []
    for name, value in headers.items():
        words += [b"HEADER", text("headers", name), text(f"headers.{name}", value)]
    return words


def _job_words(priority: int | None, retry: int | None, backoff: str | None, timeout: Duration | None, group: str | None,
               callback: str | None) -> list[bytes]:
    """The options that jobs and the jobs of schedules have."""
    words = []
    if priority is not None:
        words += [b"PRI", whole("priority", priority)]
    if retry is not None:
        words += [b"ATTEMPTS", whole("retry", retry)]
    if backoff is not None:
        words += [b"BACKOFF", text("backoff", backoff)]
    if timeout is not None:
        words += [b"LEASE", text("timeout", from_duration("timeout", timeout))]
    if group is not None:
        words += [b"GROUP", text("group", group)]
    if callback is not None:
        words += [b"CALLBACK", text("callback", callback)]
    return words


def _due_words(process_in: Duration | None, process_at: Moment | None) -> list[bytes]:
    """`delay` or `0 AT moment`."""
    if process_at is None:
        return [b"0" if process_in is None else text("process_in", from_duration("process_in", process_in))]
    if process_in is not None:
        raise Error("invalid", "process_at: cannot be given together with process_in")
    return [b"0", b"AT", text("process_at", from_moment("process_at", process_at))]


def push(job: NewJob) -> Command[str]:
    made_here = not job.id
    name = job.id or new_id()
    conflict = _ON_CONFLICT.get(job.on_conflict)
    if conflict is None:
        raise Error("invalid", f"on_conflict: {job.on_conflict!r} is none of replace, keep and reject")
    due = _due_words(job.process_in, job.process_at)
    start = (text("topic", job.topic), due[0], payload_bytes(job.payload))
    name_bytes = text("id", name)
    options = due[1:]
    options += _job_words(job.priority, job.retry, job.backoff, job.timeout, job.group, job.callback)
    headers = job.headers or {}
    if headers:
        options += _header_words(headers)
    running = trace.get()
    if running and not any(given.lower() == "traceparent" for given in headers):
        given_names = {given.lower() for given in headers}
        options += _header_words({header: value for header, value in running.items() if header not in given_names})
    repeats = made_here or job.on_conflict != "reject"
    if not options and conflict:
        again = (lambda: _plain_push(*start, name_bytes, b"KEEP")) if made_here else None
        return Command(_plain_push(*start, name_bytes, conflict), lambda _: name, repeats=repeats, again=again)
    words = [b"PUSH", *start, b"ID", name_bytes, *options]
    # A job with an id that was made here can only be there because of the first time: it is kept, also if it runs already.
    # With an id of the caller, a job that is there may be an older one that has to be replaced.
    again = (lambda: encode([*words, b"KEEP"])) if made_here else None
    return Command([*words, conflict] if conflict else words, lambda _: name, repeats=repeats, again=again)


def _plain_push(topic: bytes, delay: bytes, body: bytes, name: bytes, conflict: bytes) -> bytes:
    """What `encode` makes of a push without options, in half the time."""
    return b"*7\r\n$4\r\nPUSH\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$2\r\nID\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (
        len(topic), topic, len(delay), delay, len(body), body, len(name), name, len(conflict), conflict)


def pushes(jobs: Sequence[NewJob]) -> list[Command[str] | Error]:
    """A command for each job, or the error because of which it cannot be sent."""
    commands: list[Command[str] | Error] = []
    for job in jobs:
        try:
            commands.append(push(job))
        except Error as problem:
            commands.append(problem)
    return commands


def cancel(topic: str, id: str) -> Command[CancelResult]:
    # A repetition would find nothing where the first time has cancelled a job.
    return Command([b"CANCEL", text("topic", topic), text("id", id)], lambda reply: cast(CancelResult, reply.decode()), repeats=False)


def cancel_group(group: str) -> Command[int]:
    return Command([b"CANCELGROUP", text("group", group)], int, repeats=False)


def reschedule(topic: str, id: str, process_in: Duration | None, process_at: Moment | None) -> Command[None]:
    if process_in is None and process_at is None:
        raise Error("invalid", "process_in: is missing, and so is process_at: give one of them")
    due = _due_words(process_in, process_at)
    return Command([b"RESCHEDULE", text("topic", topic), text("id", id), *(due[1:] or due)], lambda _: None, repeats=False)


def get(topic: str, id: str) -> Command[JobInfo | None]:
    return Command([b"GET", text("topic", topic), text("id", id)], lambda reply: None if reply is None else _job_info(reply), large=True)


class _Fields:
    """A map of a reply. What is missing is None."""

    def __init__(self, reply: Reply) -> None:
        if not isinstance(reply, dict):
            raise TypeError("not a map")
        self._of: dict[bytes, Any] = reply

    def text(self, name: bytes) -> str | None:
        value = self._of.get(name)
        return None if value is None else value.decode(errors="replace")

    def number(self, name: bytes) -> int | None:
        value = self._of.get(name)
        return None if value is None else int(value)

    def moment(self, name: bytes) -> datetime | None:
        value = self._of.get(name)
        return None if value is None else to_datetime(int(value))

    def duration(self, name: bytes) -> timedelta | None:
        value = self._of.get(name)
        return None if value is None else to_timedelta(value.decode())

    def raw(self, name: bytes) -> bytes | None:
        return self._of.get(name)

    def headers(self) -> dict[str, str]:
        return header_texts(self._of.get(b"headers") or {})


def header_texts(reply: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in reply.items()}


def _job_info(reply: Reply) -> JobInfo:
    of = _Fields(reply)
    return JobInfo(
        topic=of.text(b"topic") or "", id=of.text(b"id") or "", state=of.text(b"state") or "", payload=of.raw(b"body") or b"",
        due_at=to_datetime(of.number(b"due_ms") or 0), pushed_at=to_datetime(of.number(b"pushed_ms") or 0),
        attempts=of.number(b"attempts") or 0, priority=of.number(b"priority") or 0, group=of.text(b"group"),
        until=of.moment(b"until_ms"), callback=of.text(b"callback"), outcome=of.text(b"outcome"),
        cancel_requested=bool(of.number(b"cancel_requested")), headers=of.headers())


class Rule(NamedTuple):
    """When a schedule is due: `cron` in a `zone`, or `every`, and its bounds."""
    cron: str | None = None
    zone: str | None = None
    every: Duration | None = None
    start: Moment | None = None
    end: Moment | None = None
    runs: int | None = None

    def words(self) -> list[bytes]:
        words = []
        if self.cron is not None:
            words += [b"CRON", text("rule", self.cron)]
        if self.zone is not None:
            words += [b"ZONE", text("zone", self.zone)]
        if self.every is not None:
            words += [b"EVERY", text("interval", from_duration("interval", self.every))]
        if self.start is not None:
            words += [b"START", text("start", from_moment("start", self.start))]
        if self.end is not None:
            words += [b"END", text("end", from_moment("end", self.end))]
        if self.runs is not None:
            words += [b"RUNS", whole("runs", self.runs)]
        return words


class ScheduledJob(NamedTuple):
    """What a schedule makes, and how."""
    topic: str
    payload: Payload
    jitter: Duration | None
    overlap: str | None
    missed: str | None
    priority: int | None
    retry: int | None
    backoff: str | None
    timeout: Duration | None
    group: str | None
    callback: str | None
    headers: Mapping[str, str] | None


def set_schedule(name: str, rule: Rule, job: ScheduledJob) -> Command[Schedule]:
    words = [b"SCHEDULE", b"SET", text("name", name), *rule.words(), b"TOPIC", text("topic", job.topic), b"BODY", payload_bytes(job.payload)]
    if job.jitter is not None:
        words += [b"JITTER", text("jitter", from_duration("jitter", job.jitter))]
    if job.overlap is not None:
        words += [b"OVERLAP", text("overlap", job.overlap)]
    if job.missed is not None:
        words += [b"MISSED", text("missed", job.missed)]
    words += _job_words(job.priority, job.retry, job.backoff, job.timeout, job.group, job.callback)
    words += _header_words(job.headers or {})
    return Command(words, _schedule)


def get_schedule(name: str) -> Command[Schedule | None]:
    return Command([b"SCHEDULE", b"GET", text("name", name)], lambda reply: None if reply is None else _schedule(reply), large=True)


def pause_schedule(name: str) -> Command[Schedule]:
    return Command([b"SCHEDULE", b"PAUSE", text("name", name)], _schedule)


def resume_schedule(name: str) -> Command[Schedule]:
    return Command([b"SCHEDULE", b"RESUME", text("name", name)], _schedule)


def remove_schedule(name: str) -> Command[None]:
    return Command([b"SCHEDULE", b"DEL", text("name", name)], lambda _: None, repeats=False)


def run_schedule(name: str) -> Command[ScheduleRun]:
    return Command([b"SCHEDULE", b"RUN", text("name", name)], _schedule_run, repeats=False)


def next_occurrences(name: str | None, rule: Rule, from_: Moment | None, count: int | None) -> Command[list[Occurrence]]:
    words = [b"SCHEDULE", b"NEXT"]
    if (name is not None) + (rule.cron is not None) + (rule.every is not None) != 1:
        raise Error("invalid", "name: give exactly one of name, rule and interval")
    if name is not None:
        words += [b"NAME", text("name", name)]
    words += rule.words()
    if from_ is not None:
        words += [b"FROM", text("from_", from_moment("from_", from_))]
    if count is not None:
        words += [b"COUNT", whole("count", count)]
    return Command(words, lambda reply: [Occurrence(to_datetime(at), local.decode()) for at, local in reply], large=True)


def _schedule(reply: Reply) -> Schedule:
    of = _Fields(reply)
    return Schedule(
        name=of.text(b"name") or "", state=of.text(b"state") or "broken", topic=of.text(b"topic") or "", every=of.duration(b"every"),
        cron=of.text(b"cron"), zone=of.text(b"zone"), start=of.moment(b"start_ms"), end=of.moment(b"end_ms"), runs=of.number(b"runs"),
        jitter=of.duration(b"jitter"), overlap=of.text(b"overlap"), missed=of.text(b"missed"), next_at=of.moment(b"next_ms"),
        next_local=of.text(b"next_local"), made=of.number(b"occurrences_made") or 0, skipped=of.number(b"occurrences_skipped") or 0,
        missed_count=of.number(b"occurrences_missed") or 0, result=of.text(b"result"), problem=of.text(b"problem"),
        payload=of.raw(b"body"), priority=of.number(b"priority"), retry=of.number(b"attempts"), backoff=of.text(b"backoff"),
        timeout=of.duration(b"lease"), group=of.text(b"group"), callback=of.text(b"callback"), headers=of.headers())


def _schedule_run(reply: Reply) -> ScheduleRun:
    of = _Fields(reply)
    return ScheduleRun(of.text(b"topic") or "", of.text(b"id") or "", of.text(b"state") or "", to_datetime(of.number(b"due_ms") or 0))
