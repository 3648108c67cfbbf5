"""The producer's side: a client whose calls block."""
from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from . import _commands
from ._calls import MOST_BYTES, MOST_COMMANDS, PART_COMMANDS, Options, Rounds, make_options, slices
from ._commands import Command, Rule, ScheduledJob
from ._pipe import Pipe
from ._times import Duration, Moment
from .errors import Error
from .jobs import CancelResult, JobInfo, Missed, NewJob, Occurrence, OnConflict, Overlap, Payload, Schedule, ScheduleRun

T = TypeVar("T")


class Client:
    """Stores, cancels and looks up jobs. Calls block; threads may share a client, and calls at the same time join into one batch.

    `address` is HOST or HOST:PORT. `tls` is True, or a context of `ssl` with your certificates. `timeout` is how many seconds an
    answer may take, `connect_timeout` how many a connection. If the connection is lost, or the server says that a later try may
    succeed, a call is tried again for `retry_for` seconds, unless a second time could do something else than the first.

    Connects when it is first used. It may be used before and after a fork; each process has a connection of its own.
    """

    def __init__(self, address: str = "127.0.0.1:9278", *, token: str | None = None, token_name: str | None = None,
                 tls: ssl.SSLContext | bool = False, timeout: float = 30.0, connect_timeout: float = 5.0, retry_for: float = 15.0) -> None:
        self.options: Options = make_options(address, token, token_name, tls, timeout, connect_timeout, retry_for)
        self._pipe = Pipe(self.options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Calls that are under way end first; calls after it fail."""
        self._pipe.close()

    def enqueue(self, topic: str, id: str | None, payload: Payload, *, process_in: Duration | None = None,
                process_at: Moment | None = None, priority: int | None = None, retry: int | None = None, backoff: str | None = None,
                timeout: Duration | None = None, group: str | None = None, callback: str | None = None,
                headers: Mapping[str, str] | None = None, on_conflict: OnConflict = "replace") -> str:
        """Stores a job that falls due after `process_in`, or at `process_at`; without both at once. Returns its id.

        The id is the caller's, or with None a UUID that is made here. The same id again replaces the job; `on_conflict` "keep"
        leaves the old one, and "reject" is an Error with the code `conflict`.

        `priority`: 0 first, 1024 by default. `retry`: how many attempts. `backoff`: how long to wait between them, as "10s,1m".
        `timeout`: how long one attempt may take until its worker says that it is still at it. `group`: for `cancel_group`.
        `callback`: a URL that is called instead of waiting for a worker. When the call returns, the job is on disk.
        """
        return self._ask(_commands.push(NewJob(
            topic, id, payload, process_in=process_in, process_at=process_at, priority=priority, retry=retry, backoff=backoff,
            timeout=timeout, group=group, callback=callback, headers=headers, on_conflict=on_conflict)))

    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[str | Error]:
        """Stores many jobs. Returns for each its id, or the Error that prevented it; the other jobs are stored all the same."""
        results: list[str | Error] = []
        all_jobs = list(jobs)
        for at in range(0, len(all_jobs), MOST_COMMANDS):
            results += self._push(all_jobs[at:at + MOST_COMMANDS])
        return results

    def dequeue(self, topic: str, id: str) -> CancelResult:
        """Cancels a job. Returns what it was: "cancelled" if it waited, "reserved" if it runs now (it will not be tried again)."""
        return self._ask(_commands.cancel(topic, id))

    def cancel_group(self, group: str) -> int:
        """Cancels the waiting jobs of a group in all topics; running ones are not tried again. Returns how many of both."""
        return self._ask(_commands.cancel_group(group))

    def reschedule(self, topic: str, id: str, *, process_in: Duration | None = None, process_at: Moment | None = None) -> None:
        """Moves a delayed, ready or dead job to another time. An Error with the code `not_found` if there is none."""
        self._ask(_commands.reschedule(topic, id, process_in, process_at))

    def get(self, topic: str, id: str) -> JobInfo | None:
        """Looks a job up."""
        return self._ask(_commands.get(topic, id))

    def every(self, name: str, interval: Duration, topic: str, payload: Payload, *, start: Moment | None = None,
              end: Moment | None = None, runs: int | None = None, jitter: Duration | None = None, overlap: Overlap | None = None,
              missed: Missed | None = None, priority: int | None = None, retry: int | None = None, backoff: str | None = None,
              timeout: Duration | None = None, group: str | None = None, callback: str | None = None,
              headers: Mapping[str, str] | None = None) -> Schedule:
        """Makes a job again and again, once in each interval. The same name again changes the schedule.

        `overlap` says what happens if the job before is not finished, and `missed` what happens to occurrences while no server ran.
        """
        job = ScheduledJob(topic, payload, jitter, overlap, missed, priority, retry, backoff, timeout, group, callback, headers)
        return self._ask(_commands.set_schedule(name, Rule(every=interval, start=start, end=end, runs=runs), job))

    def cron(self, name: str, rule: str, topic: str, payload: Payload, *, zone: str | None = None, start: Moment | None = None,
             end: Moment | None = None, runs: int | None = None, jitter: Duration | None = None, overlap: Overlap | None = None,
             missed: Missed | None = None, priority: int | None = None, retry: int | None = None, backoff: str | None = None,
             timeout: Duration | None = None, group: str | None = None, callback: str | None = None,
             headers: Mapping[str, str] | None = None) -> Schedule:
        """Makes a job by a cron rule such as "0 2 * * *", in a time zone such as "Asia/Shanghai" (UTC by default)."""
        job = ScheduledJob(topic, payload, jitter, overlap, missed, priority, retry, backoff, timeout, group, callback, headers)
        return self._ask(_commands.set_schedule(name, Rule(rule, zone, None, start, end, runs), job))

    def get_schedule(self, name: str) -> Schedule | None:
        """Looks a schedule up."""
        return self._ask(_commands.get_schedule(name))

    def remove_schedule(self, name: str) -> None:
        """Removes a schedule. The jobs that it has made stay."""
        self._ask(_commands.remove_schedule(name))

    def pause_schedule(self, name: str) -> Schedule:
        """Stops a schedule until it is resumed."""
        return self._ask(_commands.pause_schedule(name))

    def resume_schedule(self, name: str) -> Schedule:
        """Ends the pause of a schedule."""
        return self._ask(_commands.resume_schedule(name))

    def run_schedule(self, name: str) -> ScheduleRun:
        """Makes a job of a schedule now, in addition to its occurrences."""
        return self._ask(_commands.run_schedule(name))

    def next(self, name: str | None = None, *, rule: str | None = None, zone: str | None = None, interval: Duration | None = None,
             from_: Moment | None = None, count: int | None = None) -> list[Occurrence]:
        """The next occurrences of a schedule, or of a rule that is not stored: `rule` (and `zone`), or `interval`. Five by default."""
        return self._ask(_commands.next_occurrences(name, Rule(rule, zone, interval), from_, count))

    def _push(self, jobs: Sequence[NewJob]) -> list[Any]:
        """The commands of a part are made while the server stores the part before."""
        commands: list[Command[str] | Error] = []

        def parts() -> Iterator[Sequence[Command[str]]]:
            for at in range(0, len(jobs), PART_COMMANDS):
                made = _commands.pushes(jobs[at:at + PART_COMMANDS])
                commands.extend(made)
                yield [command for command in made if not isinstance(command, Error)]
        began = time.monotonic()
        replies = self._pipe_here().exchange_parts(parts(), len(jobs))
        return self._finish(Rounds(commands, self.options.retry_for, began), replies)

    def _ask(self, command: Command[T]) -> T:
        result: T | Error = self._ask_all([command])[0]
        if isinstance(result, Error):
            raise result
        return result

    def _ask_all(self, commands: Sequence[Command[Any] | Error]) -> list[Any]:
        return self._finish(Rounds(commands, self.options.retry_for, time.monotonic()), None)

    def _finish(self, rounds: Rounds, replies: Sequence[Any] | None) -> list[Any]:
        """All rounds; `replies` are those of the first, if it was carried out."""
        while due := rounds.due():
            if replies is None:
                replies = []
                for part in slices(due, MOST_COMMANDS, MOST_BYTES):
                    replies += self._pipe_here().exchange(part)
            pause = rounds.absorb(replies, time.monotonic())
            replies = None
            if pause is None:
                break
            time.sleep(pause)
        return rounds.results

    def _pipe_here(self) -> Pipe:
        """The pipe of this process: a child that was forked must not write into its parent's connection."""
        if not self._pipe.belongs_to(os.getpid()):
            inherited, self._pipe = self._pipe, Pipe(self.options)
            inherited.abandon()
        return self._pipe
