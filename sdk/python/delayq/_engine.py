"""What a worker does, without its handlers: takes jobs, extends their leases, and reports what became of them."""
from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from ._calls import Lost, Options, backoff
from ._commands import Command, TRACE_HEADERS, header_texts
from ._connection import AsyncPipe, Connection
from ._resp import Reply
from .errors import Error
from .jobs import Dead, RetryIn

log: Final = logging.getLogger("delayq")

StopReason = Literal["cancelled", "lease_lost", "stopping"]

LONGEST_REASON: Final = 1000  # bytes
# Jobs are taken ahead as far as the handlers need so long for, so that none waits for the next pop.
_AHEAD: Final = 0.02
_USUAL: Final = 1.0  # seconds that a handler takes, as long as nothing is known
_LONGEST_AHEAD: Final = 0.2  # a job that has not begun by then is given back
# Without a `lease` of its own the worker asks how long a lease is, this long after it began. No lease is shorter than 100 ms.
_ASK_AFTER: Final = 0.025
_USUAL_LEASE: Final = 60.0
_AFTER_GRACE: Final = 1.0
_FATAL: Final = frozenset({"unauthorized", "forbidden", "invalid"})
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_KEYWORDS: Final = frozenset({"COUNT", "WAIT", "LEASE", "AUTOACK", "HEADERS"})


@dataclass(frozen=True, slots=True)
class Settings:
    topics: tuple[str, ...]
    concurrency: int
    lease: float | None
    wait: float
    grace: float


class Held:
    """A job that this worker has under a lease. Times are those of the loop."""
    __slots__ = ("lease", "topic", "id", "payload", "attempt", "due_ms", "headers", "taken", "began", "length", "deadline",
                 "until_ms", "extend_at", "extending", "reason", "lost", "dropped", "told", "run")

    def __init__(self, reply: Sequence[Any], now: float, lease: float | None) -> None:
        self.lease: bytes = reply[0]
        self.topic: str = reply[1].decode()
        self.id: str = reply[2].decode()
        self.payload: bytes = reply[3]
        self.attempt: int = reply[4]
        self.due_ms: int = reply[5]
        self.headers: dict[str, str] = header_texts(reply[6])
        if not (isinstance(self.lease, bytes) and isinstance(self.payload, bytes) and isinstance(self.attempt, int) and isinstance(self.due_ms, int)):
            raise TypeError("a job has a value of the wrong type")
        self.taken = now
        self.began = 0.0
        self.length = lease  # None: not known yet
        self.deadline = None if lease is None else now + lease
        self.until_ms = None if lease is None else int((time.time() + lease) * 1000)
        self.extend_at = now + (_ASK_AFTER if lease is None else lease / 3)
        self.extending = False
        self.reason: StopReason | None = None  # why the handler was told to stop
        self.lost = False  # the server said that the lease is over
        self.dropped = False  # given back; what the handler returns does not matter
        self.told: Callable[[], None] | None = None  # called once there is a reason
        self.run: object = None  # whatever the handlers' side keeps

    def tell(self, reason: StopReason) -> None:
        if self.reason is None:
            self.reason = reason
            if self.told is not None:
                self.told()

    def trace(self) -> dict[str, str]:
        if "traceparent" not in self.headers:
            return {}
        return {name: self.headers[name] for name in TRACE_HEADERS if name in self.headers}


class Handlers(Protocol):
    """The side of the handlers: it calls Engine.finished in the loop's thread when one has ended."""

    def start(self, held: Held) -> None: ...

    def give_up(self, held: Held) -> None:
        """The job was given back while its handler runs."""


class _Report:
    """What became of a job, until the server has answered."""
    __slots__ = ("kind", "held", "words", "until", "again")

    def __init__(self, kind: Literal["ack", "nack", "release"], held: Held, words: tuple[bytes, ...], until: float) -> None:
        self.kind = kind
        self.held = held
        self.words = words
        self.until = until
        self.again = False  # it may have reached the server before


def _same(reply: Reply) -> Reply:
    return reply


def _command(*words: bytes) -> Command[Any]:
    return Command(words, _same)


def milliseconds(seconds: float) -> bytes:
    return b"%dms" % max(1, round(seconds * 1000))


def clean_reason(reason: str) -> bytes:
    """As the server accepts it: no control characters but tab and newline, UTF-8, and not too long."""
    cleaned = _CONTROLS.sub(" ", _SURROGATES.sub("\ufffd", reason[:LONGEST_REASON]))
    return cleaned.encode()[:LONGEST_REASON].decode("utf-8", "ignore").encode()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


class Engine:
    """One run of a worker, in one event loop. Everything but `stop` is called in the loop's thread."""

    def __init__(self, options: Options, settings: Settings, handlers: Handlers) -> None:
        self._options = options
        self._settings = settings
        self._handlers = handlers
        self._loop = asyncio.get_running_loop()
        self._control = AsyncPipe(options)  # for everything but pops
        self._popping: Connection | None = None
        self._pops = 0
        self._held: dict[bytes, Held] = {}  # by lease: those that run, and those in _ahead
        self._ahead: deque[Held] = deque()
        self._running = 0
        self._typical = _USUAL  # seconds that a handler takes
        self._can_release: bool | None = None
        self._reports: list[_Report] = []
        self._reporting = False
        self._changed = asyncio.Event()  # there may be room for more jobs
        self._reported = asyncio.Event()  # there is something to report
        self._idle = asyncio.Event()  # nothing runs
        self._idle.set()
        self._stop = asyncio.Event()
        self.begins_more = True  # False from the moment at which a stop is asked for; any thread may set it
        self._hurry = asyncio.Event()  # the grace is over
        self._past_grace = False
        self._offset: float | None = None  # the server's Unix seconds minus the loop's time
        self._sweeper: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Asks the run to end. A second time ends the grace."""
        self.begins_more = False
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> None:
        """Returns after a stop, when all results have reached the server. Raises Error if the server refuses this worker."""
        fetching = asyncio.create_task(self._fetch())
        reporting = asyncio.create_task(self._report())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((fetching, reporting, stopping), return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            await self._end_fetching(fetching)
            await self._finish()
        finally:
            self.begins_more = False
            for held in list(self._held.values()):  # only if this run was cancelled
                held.dropped = True
                self._handlers.give_up(held)
            for task in (fetching, reporting, stopping, *self._tasks):
                task.cancel()
            if self._sweeper is not None:
                self._sweeper.cancel()
            if self._popping is not None:
                self._popping.abort("the worker stops")
            await self._control.close()
            await asyncio.gather(fetching, reporting, stopping, *self._tasks, return_exceptions=True)
        for task in (fetching, reporting):
            problem = None if task.cancelled() else task.exception()
            if problem is not None:
                raise problem

    # ---- taking jobs

    async def _fetch(self) -> None:
        failures = 0
        while not self._stop.is_set():
            count = self._wanted()
            if count == 0:
                self._changed.clear()
                if self._wanted() == 0:
                    await self._changed.wait()
                continue
            reply = await self._pop(count)
            jobs = reply if isinstance(reply, Error) else self._read(reply)
            if isinstance(jobs, Error):
                reply = jobs
                if self._stop.is_set():
                    return
                if reply.code in _FATAL:
                    raise reply
                pause = max(backoff(failures), reply.retry_after.total_seconds() if reply.retry_after else 0.0)
                log.warning("cannot take jobs, next try in %.2f s: %s", pause, reply)
                failures += 1
                await _wait(self._stop, pause)
                continue
            if failures:
                log.info("jobs can be taken again")
            failures = 0
            self._take(jobs)

    def _read(self, reply: Reply) -> list[Held] | Error:
        """The jobs that a pop has brought. An Error if the reply is none of a pop: then nothing more is read from this connection."""
        now = self._loop.time()
        try:
            return [Held(item, now, self._settings.lease) for item in reply or ()]
        except (TypeError, ValueError, AttributeError, LookupError) as problem:
            assert self._popping is not None
            self._popping.abort("the answer to POP makes no sense")
            return Error("unavailable", f"the answer to POP makes no sense: {problem}")

    def _wanted(self) -> int:
        """How many jobs to ask for."""
        if len(self._reports) > 1000 + 2 * self._settings.concurrency:
            return 0
        concurrency = self._settings.concurrency
        ahead = min(2 * concurrency, int(concurrency * _AHEAD / self._typical)) if self._can_release else 0
        wanted = concurrency + ahead - len(self._held)
        # A pop of a few, when there is still something to do, would be one round trip for a few jobs.
        return max(wanted, 0) if self._running < concurrency or wanted * 2 > ahead else 0

    def _next_topics(self) -> tuple[str, ...]:
        """The server prefers the first topic, so the order changes: none has to wait until the others are empty."""
        topics = self._settings.topics
        start = self._pops % len(topics)
        self._pops += 1
        return in_order(topics[start:] + topics[:start])

    async def _pop(self, count: int) -> Reply:
        try:
            if self._popping is None or self._popping.lost:
                self._popping = await Connection.open(self._options)
                known = await self._popping.ask((b"COMMAND", b"INFO", b"RELEASE"))
                self._can_release = isinstance(known, list) and len(known) == 1 and known[0] is not None
        except Error as problem:
            return problem
        settings = self._settings
        words = [b"POP", *[topic.encode() for topic in self._next_topics()], b"COUNT", b"%d" % count, b"WAIT", milliseconds(settings.wait)]
        if settings.lease is not None:
            words += [b"LEASE", milliseconds(settings.lease)]
        return await self._popping.ask([*words, b"HEADERS"], settings.wait)

    def _take(self, jobs: list[Held]) -> None:
        now = self._loop.time()
        earliest = now + 3600
        for held in jobs:
            self._held[held.lease] = held
            earliest = min(earliest, held.extend_at)
            if self._stop.is_set():
                self._give_back(held)
            elif self._running < self._settings.concurrency:
                self._start(held)
            else:
                self._ahead.append(held)
                earliest = min(earliest, now + _LONGEST_AHEAD)
        self._sweep_at(earliest)

    def _start(self, held: Held) -> None:
        self._running += 1
        self._idle.clear()
        held.began = self._loop.time()
        self._handlers.start(held)

    async def _end_fetching(self, fetching: asyncio.Task[None]) -> None:
        """No more pops. What a pop that is under way has taken is given back."""
        self._changed.set()
        self._give_ahead_back(self._loop.time())
        if self._popping is not None and self._popping.end_output():
            await asyncio.wait((fetching,), timeout=_AFTER_GRACE)
        fetching.cancel()

    def _give_ahead_back(self, taken_before: float) -> bool:
        """Gives back what was taken ahead before this moment. Returns whether there was any."""
        old = False
        while (held := self._take_ahead()) is not None:
            if held.taken > taken_before:
                self._ahead.appendleft(held)
                return old
            self._give_back(held)
            old = True
        return old

    def _take_ahead(self) -> Held | None:
        try:
            return self._ahead.popleft()
        except IndexError:
            return None

    def next_ahead(self) -> Held | None:
        """A job that was taken ahead, for a handler that has just ended; then finished is called with it, too. For any thread."""
        held = self._take_ahead() if self.begins_more else None
        if held is not None:
            held.began = self._loop.time()
        return held

    # ---- what became of jobs

    def finished(self, held: Held, problem: BaseException | None, ended: float | None = None, following: Held | None = None) -> None:
        """The handler has ended, and that of `following` has begun in its place."""
        if held.dropped:
            return
        now = self._loop.time()
        self._held.pop(held.lease, None)
        self._typical += 0.1 * ((ended or now) - held.began - self._typical)
        if following is None:
            self._running -= 1
            if self.begins_more and self._running < self._settings.concurrency and (ahead := self._take_ahead()) is not None:
                self._start(ahead)
        if self._running == 0:
            self._idle.set()
        self._changed.set()
        if held.lost:
            log.warning("job %s %s ended after its lease was lost; its result does not count", held.topic, held.id)
        elif problem is None:
            self._add_report(_Report("ack", held, (held.lease,), self._until(held, now)))
        elif self._past_grace and held.reason == "stopping" and not isinstance(problem, (Dead, RetryIn)):
            self._add_report(_Report("release", held, (held.lease,), self._until(held, now)))
        else:
            self._add_report(_Report("nack", held, self._nack(held, problem), self._until(held, now)))

    def _until(self, held: Held, now: float) -> float:
        return held.deadline if held.deadline is not None else now + _USUAL_LEASE

    def _nack(self, held: Held, problem: BaseException) -> tuple[bytes, ...]:
        if isinstance(problem, Dead):
            log.warning("job %s %s is dead: %s", held.topic, held.id, problem.reason)
            return (b"NACK", held.lease, b"REASON", clean_reason(problem.reason), b"DEAD")
        if isinstance(problem, RetryIn):
            log.info("job %s %s is tried again in %s: %s", held.topic, held.id, problem.delay, problem.reason)
            reason = (b"REASON", clean_reason(problem.reason)) if problem.reason else ()
            return (b"NACK", held.lease, b"DELAY", problem.delay.encode(), *reason)
        name = type(problem).__name__
        log.warning("job %s %s failed, attempt %d", held.topic, held.id, held.attempt, exc_info=problem)
        return (b"NACK", held.lease, b"REASON", clean_reason(f"{name}: {problem}" if str(problem) else name))

    def _give_back(self, held: Held) -> None:
        self._held.pop(held.lease, None)
        if not held.lost:
            self._add_report(_Report("release", held, (held.lease,), self._until(held, self._loop.time())))

    def _add_report(self, report: _Report) -> None:
        self._reports.append(report)
        self._reported.set()

    async def _report(self) -> None:
        """Sends reports, one batch at a time: the longer one takes, the larger the next is. Sent again until the lease is over,
        which is safe: only the current lease can end a job."""
        failures = 0
        while True:
            await self._reported.wait()
            self._reported.clear()
            batch, self._reports = self._reports, []
            if not batch:
                continue
            self._reporting = True
            open_ones = await self._send_reports(batch)
            self._reporting = False
            self._changed.set()
            if not open_ones:
                failures = 0
                continue
            self._reports = open_ones + self._reports
            await asyncio.sleep(backoff(failures))
            failures += 1
            self._reported.set()

    async def _send_reports(self, batch: list[_Report]) -> list[_Report]:
        """Returns those that have to be sent again."""
        groups: list[list[_Report]] = []
        for kind in ("ack", "release"):
            leases = [report for report in batch if report.kind == kind]
            groups += [leases[at:at + 500] for at in range(0, len(leases), 500)]
        groups += [[report] for report in batch if report.kind == "nack"]
        replies = await self._control.exchange([self._report_command(group) for group in groups])
        now, open_ones = self._loop.time(), []
        for group, reply in zip(groups, replies):
            first = group[0]
            if isinstance(reply, Error):
                if first.kind == "release" and self._can_release is not False and reply.code == "invalid":
                    self._can_release = False  # the server is of an earlier version
                    open_ones += group
                elif reply.retryable:
                    open_ones += [report for report in group if report.until > now]
                    for report in group:
                        report.again = True
                    if first.until <= now:
                        log.warning("what became of job %s %s could not be reported: %s", first.held.topic, first.held.id, reply)
                elif reply.code == "stale_lease":
                    if not first.again:
                        log.warning("the lease of job %s %s was over before it was reported", first.held.topic, first.held.id)
                else:
                    log.error("what became of job %s %s was not accepted: %s", first.held.topic, first.held.id, reply)
            elif first.kind != "nack" and isinstance(reply, int) and reply < len(group) and not any(report.again for report in group):
                log.warning("%d of %d leases were over before their jobs were reported (%s)", len(group) - reply, len(group), first.kind)
        return open_ones

    def _report_command(self, group: list[_Report]) -> Command[Any]:
        first = group[0]
        if first.kind == "nack":
            return Command(first.words, _same)
        if first.kind == "release" and self._can_release is False:
            for other in group[1:]:
                self._add_report(_Report("nack", other.held, _stopped(other.held), other.until))
            del group[1:]
            return Command(_stopped(first.held), _same)
        verb = b"ACK" if first.kind == "ack" else b"RELEASE"
        return _command(verb, *[report.words[0] for report in group])

    # ---- leases

    def _sweep_at(self, moment: float) -> None:
        if self._sweeper is not None:
            if self._sweeper.when() <= moment:
                return
            self._sweeper.cancel()
        self._sweeper = self._loop.call_at(moment, self._sweep)

    def _sweep(self) -> None:
        """Extends the leases that are due, and looks when the next ones are."""
        self._sweeper = None
        now = self._loop.time()
        if self._give_ahead_back(now - _LONGEST_AHEAD):
            self._typical = _USUAL  # handlers have become slow: no more is taken ahead for a while
        due: list[Held] = []
        following = now + _LONGEST_AHEAD if self._ahead else now + 3600
        for held in self._held.values():
            if held.deadline is not None and held.deadline <= now:
                held.tell("lease_lost")
            if held.extending or held.lost:
                continue
            if held.extend_at <= now:
                held.extending = True
                due.append(held)
            else:
                following = min(following, held.extend_at)
        if due:
            task = asyncio.create_task(self._extend(due))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._held:
            self._sweep_at(max(following, now + 0.005))

    async def _extend(self, jobs: list[Held]) -> None:
        """Extends leases. Looks also whether the jobs were cancelled, unless this is the first time."""
        commands: list[Command[Any]] = []
        looks = [held.length is not None and held.reason is None for held in jobs]
        for held, look in zip(jobs, looks):
            commands.append(_command(b"EXTEND", held.lease, *(() if held.length is None else (milliseconds(held.length),))))
            if look:
                commands.append(_command(b"GET", held.topic.encode(), held.id.encode()))
        sent = self._loop.time()
        replies = iter(await self._control.exchange(commands))
        for held, look in zip(jobs, looks):
            self._extended(held, next(replies), sent)
            found = next(replies) if look else None
            if isinstance(found, dict) and found.get(b"cancel_requested") and not held.lost:
                held.tell("cancelled")
            held.extending = False
        if self._held:
            self._sweep_at(min((held.extend_at for held in self._held.values() if not held.extending and not held.lost),
                               default=sent + 3600))

    def _extended(self, held: Held, reply: Reply, sent: float) -> None:
        if isinstance(reply, Error):
            if reply.code == "stale_lease":
                self._lose(held)
                return
            if not isinstance(reply, Lost):
                log.warning("the lease of job %s %s could not be extended: %s", held.topic, held.id, reply)
            # Before the lease is over there is time for some more tries.
            held.extend_at = self._loop.time() + min(1.0, (held.length or 1.0) / 10)
            return
        held.until_ms = int(reply)
        if held.length is not None:
            self._offset = held.until_ms / 1000 - held.length - sent
            held.deadline = sent + held.length
            held.extend_at = sent + held.length / 3
        elif self._offset is not None:
            held.deadline = held.until_ms / 1000 - self._offset
            held.length = max(held.deadline - held.taken, 0.1)
            held.extend_at = max(sent, held.taken) + (held.deadline - sent) / 3
        else:
            # The clocks may differ: a lease of a length that is known tells by how much.
            held.length = min(max(held.until_ms / 1000 - time.time() + sent - held.taken, 1.0), 86400.0)
            held.extend_at = sent

    def _lose(self, held: Held) -> None:
        held.lost = True
        try:
            self._ahead.remove(held)
            self._held.pop(held.lease, None)
        except ValueError:
            pass  # it runs
        held.tell("lease_lost")

    async def lease_end(self, held: Held) -> int:
        """When the lease ends, in Unix milliseconds of the server. Asks the server if that is not known yet."""
        if held.until_ms is None:
            await self._extend([held])
        return held.until_ms or 0

    # ---- the end

    async def _finish(self) -> None:
        hurry = asyncio.ensure_future(self._hurry.wait())
        idle = asyncio.ensure_future(self._idle.wait())
        try:
            await asyncio.wait((hurry, idle), timeout=self._settings.grace, return_when=asyncio.FIRST_COMPLETED)
            self._past_grace = True
            for held in list(self._held.values()):
                held.tell("stopping")
            await asyncio.wait((idle,), timeout=_AFTER_GRACE)
        finally:
            hurry.cancel()
            idle.cancel()
        for held in list(self._held.values()):
            log.warning("job %s %s still runs after the grace period and is given back", held.topic, held.id)
            held.dropped = True
            self._give_back(held)
            self._handlers.give_up(held)
        deadline = self._loop.time() + self._options.timeout
        while (self._reports or self._reporting) and self._loop.time() < deadline:
            self._changed.clear()
            await _wait(self._changed, 0.1)
        if self._reports:
            log.warning("what became of %d jobs could not be reported; they will run again when their leases are over", len(self._reports))


def _stopped(held: Held) -> tuple[bytes, ...]:
    return (b"NACK", held.lease, b"DELAY", b"0", b"REASON", b"worker stopped")


def in_order(topics: Sequence[str]) -> tuple[str, ...]:
    """A topic that looks like an option of POP is only recognised as the first one."""
    odd = [topic for topic in topics if topic.upper() in _KEYWORDS]
    if len(odd) > 1:
        raise Error("invalid", f"topic: {' and '.join(odd)} cannot be handled by one worker: they look like options of POP")
    return (*odd, *[topic for topic in topics if topic not in odd])
