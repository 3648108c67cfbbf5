"""The producer's side for asyncio."""
from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from . import _commands
from ._calls import MOST_BYTES, MOST_COMMANDS, PART_COMMANDS, Options, Rounds, decoded, make_options, slices
from ._commands import Command, Rule, ScheduledJob
from ._connection import AsyncPipe
from ._times import Duration, Moment
from .errors import Error
from .jobs import CancelResult, JobInfo, Missed, NewJob, Occurrence, OnConflict, Overlap, Payload, Schedule, ScheduleRun

T = TypeVar("T")


class AsyncClient:
    """`Client` for asyncio: the same calls, as coroutines. Tasks may share it, and calls at the same time join into one batch.

    It belongs to the event loop in which it is first used.
    """

    def __init__(self, address: str = "127.0.0.1:9278", *, token: str | None = None, token_name: str | None = None,
                 tls: ssl.SSLContext | bool = False, timeout: float = 30.0, connect_timeout: float = 5.0, retry_for: float = 15.0) -> None:
        self.options: Options = make_options(address, token, token_name, tls, timeout, connect_timeout, retry_for)
        self._pipe: AsyncPipe | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection. Calls that are under way fail."""
        if self._pipe is not None:
            await self._pipe.close()

    async def enqueue(self, topic: str, id: str | None, payload: Payload, *, process_in: Duration | None = None,
                process_at: Moment | None = None, priority: int | None = None, retry: int | None = None, backoff: str | None = None,
                timeout: Duration | None = None, group: str | None = None, callback: str | None = None,
                headers: Mapping[str, str] | None = None, on_conflict: OnConflict = "replace") -> str:
        """As `Client.enqueue`."""
        return await self._ask(_commands.push(NewJob(
            topic, id, payload, process_in=process_in, process_at=process_at, priority=priority, retry=retry, backoff=backoff,
            timeout=timeout, group=group, callback=callback, headers=headers, on_conflict=on_conflict)))

    async def enqueue_many(self, jobs: Iterable[NewJob]) -> list[str | Error]:
        """As `Client.enqueue_many`."""
        results: list[str | Error] = []
        all_jobs = list(jobs)
        for at in range(0, len(all_jobs), MOST_COMMANDS):
            results += await self._push(all_jobs[at:at + MOST_COMMANDS])
        return results

    async def dequeue(self, topic: str, id: str) -> CancelResult:
        """As `Client.dequeue`."""
        return await self._ask(_commands.cancel(topic, id))

    async def cancel_group(self, group: str) -> int:
        """As `Client.cancel_group`."""
        return await self._ask(_commands.cancel_group(group))

    async def reschedule(self, topic: str, id: str, *, process_in: Duration | None = None, process_at: Moment | None = None) -> None:
        """As `Client.reschedule`."""
        await self._ask(_commands.reschedule(topic, id, process_in, process_at))

    async def get(self, topic: str, id: str) -> JobInfo | None:
        """As `Client.get`."""
        return await self._ask(_commands.get(topic, id))

    async def every(self, name: str, interval: Duration, topic: str, payload: Payload, *, start: Moment | None = None,
              end: Moment | None = None, runs: int | None = None, jitter: Duration | None = None, overlap: Overlap | None = None,
              missed: Missed | None = None, priority: int | None = None, retry: int | None = None, backoff: str | None = None,
              timeout: Duration | None = None, group: str | None = None, callback: str | None = None,
              headers: Mapping[str, str] | None = None) -> Schedule:
        """As `Client.every`."""
        job = ScheduledJob(topic, payload, jitter, overlap, missed, priority, retry, backoff, timeout, group, callback, headers)
        return await self._ask(_commands.set_schedule(name, Rule(every=interval, start=start, end=end, runs=runs), job))

    async def cron(self, name: str, rule: str, topic: str, payload: Payload, *, zone: str | None = None, start: Moment | None = None,
             end: Moment | None = None, runs: int | None = None, jitter: Duration | None = None, overlap: Overlap | None = None,
             missed: Missed | None = None, priority: int | None = None, retry: int | None = None, backoff: str | None = None,
             timeout: Duration | None = None, group: str | None = None, callback: str | None = None,
             headers: Mapping[str, str] | None = None) -> Schedule:
        """As `Client.cron`."""
        job = ScheduledJob(topic, payload, jitter, overlap, missed, priority, retry, backoff, timeout, group, callback, headers)
        return await self._ask(_commands.set_schedule(name, Rule(rule, zone, None, start, end, runs), job))

    async def get_schedule(self, name: str) -> Schedule | None:
        """As `Client.get_schedule`."""
        return await self._ask(_commands.get_schedule(name))

    async def remove_schedule(self, name: str) -> None:
        """As `Client.remove_schedule`."""
        await self._ask(_commands.remove_schedule(name))

    async def pause_schedule(self, name: str) -> Schedule:
        """As `Client.pause_schedule`."""
        return await self._ask(_commands.pause_schedule(name))

    async def resume_schedule(self, name: str) -> Schedule:
        """As `Client.resume_schedule`."""
        return await self._ask(_commands.resume_schedule(name))

    async def run_schedule(self, name: str) -> ScheduleRun:
        """As `Client.run_schedule`."""
        return await self._ask(_commands.run_schedule(name))

    async def next(self, name: str | None = None, *, rule: str | None = None, zone: str | None = None, interval: Duration | None = None,
             from_: Moment | None = None, count: int | None = None) -> list[Occurrence]:
        """As `Client.next`."""
        return await self._ask(_commands.next_occurrences(name, Rule(rule, zone, interval), from_, count))

    async def _push(self, jobs: Sequence[NewJob]) -> list[Any]:
        """The commands of a part are made while the server stores the part before."""
        if self._pipe is None:
            self._pipe = AsyncPipe(self.options)
        commands: list[Command[str] | Error] = []
        under_way: list[asyncio.Task[list[Any]]] = []
        began = time.monotonic()
        for at in range(0, len(jobs), PART_COMMANDS):
            made = _commands.pushes(jobs[at:at + PART_COMMANDS])
            commands += made
            sent = [command for command in made if not isinstance(command, Error)]
            for part in slices(sent, MOST_COMMANDS, MOST_BYTES):
                under_way.append(asyncio.create_task(self._pipe.exchange(part)))
            await asyncio.sleep(0)  # the task begins
            await asyncio.sleep(0)  # and what it sends goes out
        replies = [reply for part_replies in await asyncio.gather(*under_way) for reply in part_replies]
        return await self._rounds(Rounds(commands, self.options.retry_for, began), replies)

    async def _ask(self, command: Command[T]) -> T:
        if self._pipe is None:
            self._pipe = AsyncPipe(self.options)
        began = time.monotonic()
        reply = (await self._pipe.exchange((command,)))[0]
        if isinstance(reply, Error):
            result: T | Error = (await self._rounds(Rounds((command,), self.options.retry_for, began), (reply,)))[0]
        else:
            result = decoded(command, reply)
        if isinstance(result, Error):
            raise result
        return result

    async def _ask_all(self, commands: Sequence[Command[Any] | Error]) -> list[Any]:
        return await self._rounds(Rounds(commands, self.options.retry_for, time.monotonic()), None)

    async def _rounds(self, rounds: Rounds, replies: Sequence[Any] | None) -> list[Any]:
        """All rounds; `replies` are those of the first, if it was carried out."""
        if self._pipe is None:
            self._pipe = AsyncPipe(self.options)
        while due := rounds.due():
            if replies is None:
                replies = []
                for part in slices(due, MOST_COMMANDS, MOST_BYTES):
                    replies += await self._pipe.exchange(part)
            pause = rounds.absorb(replies, time.monotonic())
            replies = None
            if pause is None:
                break
            await asyncio.sleep(pause)
        return rounds.results
