"""Carries out the scenarios of sdk/spec. Fails on everything that it does not know."""
from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import delayq

DEADLINE = 60.0
NEAR = 20_000
EXPECTATIONS = {"result", "error", "message", "retryable", "save", "client", "do"}
DURATIONS = {"process_in", "timeout", "interval", "jitter"}
MOMENTS = {"process_at", "start", "end", "from"}
JOB_OPTIONS = {"process_in", "process_at", "priority", "retry", "backoff", "timeout", "group", "callback", "headers", "on_conflict"}
SCHEDULE_OPTIONS = {"start", "end", "runs", "jitter", "overlap", "missed", "priority", "retry", "backoff", "timeout", "group", "callback", "headers"}
# verb: what comes first, in this order; and what may follow
VERBS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "enqueue": (("topic", "id", "payload"), JOB_OPTIONS),
    "dequeue": (("topic", "id"), set()),
    "cancel_group": (("group",), set()),
    "reschedule": (("topic", "id"), {"process_in", "process_at"}),
    "get": (("topic", "id"), set()),
    "every": (("name", "interval", "topic", "payload"), SCHEDULE_OPTIONS),
    "cron": (("name", "rule", "topic", "payload"), SCHEDULE_OPTIONS | {"zone"}),
    "get_schedule": (("name",), set()),
    "remove_schedule": (("name",), set()),
    "pause_schedule": (("name",), set()),
    "resume_schedule": (("name",), set()),
    "run_schedule": (("name",), set()),
    "next": ((), {"name", "rule", "zone", "interval", "from", "from_at", "count"}),
}


SPECIAL = ({"base64"}, {"repeat", "times"}, {"json"})


class Failed(AssertionError):
    """A scenario did not go as it says."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise Failed(what)


def value_of(value: Any, saved: Mapping[str, Any]) -> Any:
    """A value of a step that is given to the library."""
    if isinstance(value, str) and value.startswith("$"):
        return saved[value[1:]]
    if isinstance(value, dict):
        if set(value) == {"base64"}:
            return base64.b64decode(value["base64"])
        if set(value) == {"repeat", "times"}:
            return value["repeat"] * value["times"]
        if set(value) == {"json"}:
            return value["json"]
        return {key: value_of(item, saved) for key, item in value.items()}
    return value


def arguments_of(step: Mapping[str, Any], first: tuple[str, ...], options: set[str], saved: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    unknown = set(step) - EXPECTATIONS - set(first) - options
    require(not unknown, f"unknown keys: {unknown}")
    given: dict[str, Any] = {}
    for key in step:
        if key in EXPECTATIONS:
            continue
        value = value_of(step[key], saved)
        require(not (key == "payload" and isinstance(step[key], dict) and set(step[key]) not in SPECIAL), f"unknown value: {step[key]}")
        if key in DURATIONS:
            value = timedelta(milliseconds=value)
        elif key in MOMENTS:
            value = datetime.now(timezone.utc) + timedelta(milliseconds=value)
        given[{"from": "from_", "from_at": "from_"}.get(key, key)] = value
    return [given.pop(name, None) for name in first], given


def plain(value: Any) -> Any:
    """What the library returned, in the terms of the scenarios: dicts, lists, milliseconds."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        require(value.tzinfo is not None, "a moment without a zone")
        return round(value.timestamp() * 1000)
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    if isinstance(value, delayq.Error):
        return {"error": value.code}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def text_of(actual: Any) -> str:
    if isinstance(actual, bytes):
        return actual.decode()
    require(isinstance(actual, str), f"{actual!r} is no text")
    return str(actual)


def check_special(expected: Mapping[str, Any], actual: Any, saved: Mapping[str, Any], where: str) -> bool:
    """Returns False if `expected` is an ordinary object."""
    keys = set(expected)
    if keys == {"near"}:
        require(isinstance(actual, int) and abs(actual - time.time() * 1000 - expected["near"]) <= NEAR, f"{where}: {actual} is not near {expected}")
    elif keys == {"uuid"}:
        require(UUID(actual).version == expected["uuid"] and actual == str(UUID(actual)), f"{where}: {actual!r}")
    elif keys == {"contains"}:
        part = value_of(expected["contains"], saved)
        require(actual is not None and part in text_of(actual), f"{where}: {actual!r} does not contain {part!r}")
    elif keys == {"bytes_at_most"}:
        require(len(text_of(actual).encode()) <= expected["bytes_at_most"], f"{where}: too long")
    elif keys == {"json"}:
        require(json.loads(actual) == expected["json"], f"{where}: {actual!r}")
    elif keys == {"base64"} or keys == {"repeat", "times"}:
        wanted = value_of(expected, saved)
        require(as_bytes(actual) == as_bytes(wanted), f"{where}: {str(actual)[:200]!r} is not {str(wanted)[:200]!r}")
    else:
        return False
    return True


def as_bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def check(expected: Any, actual: Any, saved: Mapping[str, Any], where: str = "result") -> None:
    if isinstance(expected, dict):
        if check_special(expected, actual, saved, where):
            return
        require(isinstance(actual, Mapping), f"{where}: {actual!r} is no object")
        for key, item in expected.items():
            check(item, actual.get(key), saved, f"{where}.{key}")
    elif isinstance(expected, list):
        require(isinstance(actual, list) and len(actual) == len(expected), f"{where}: {actual!r} has not {len(expected)} items")
        for at, item in enumerate(expected):
            check(item, actual[at], saved, f"{where}[{at}]")
    elif expected is None or isinstance(expected, (bool, int, float)):
        require(actual == expected and isinstance(actual, bool) == isinstance(expected, bool), f"{where}: {actual!r} is not {expected!r}")
    else:
        wanted = value_of(expected, saved)
        require(as_bytes(actual) == as_bytes(wanted), f"{where}: {actual!r} is not {wanted!r}")


class Work:
    """One `work`: the worker, and what its handlers share."""

    def __init__(self, worker: Any, lists: Mapping[str, list[Any]]) -> None:
        self.worker = worker
        self.lists = lists
        self.lock = threading.Lock()
        self.begun = dict.fromkeys(lists, 0)
        self.left = sum(len(runs) for runs in lists.values())
        self.signals: dict[str, threading.Event] = {}
        self.failures: list[BaseException] = []

    def take(self, topic: str) -> list[Any]:
        with self.lock:
            at = self.begun[topic]
            self.begun[topic] += 1
            if at >= len(self.lists[topic]):
                problem = Failed(f"{topic}: one run more than there are lists")
                self.failures.append(problem)
                raise problem
            return list(self.lists[topic][at])

    def signal(self, name: str) -> threading.Event:
        with self.lock:
            return self.signals.setdefault(name, threading.Event())

    def ended(self) -> None:
        with self.lock:
            self.left -= 1
            over = self.left == 0
        if over:
            self.worker.stop()

    def failed(self, problem: BaseException) -> None:
        self.failures.append(problem)
        self.worker.stop()


class Runner:
    """Carries out scenarios with the blocking half of the library, or with the one for asyncio."""

    def __init__(self, address: str, is_async: bool) -> None:
        self._address = address
        self._is_async = is_async
        self._options: Mapping[str, Any] = {}
        self._clients: dict[str, Any] = {}
        self._saved: dict[str, Any] = {}

    def run(self, scenario: Mapping[str, Any]) -> None:
        unknown = set(scenario) - {"name", "steps", "clients"}
        require(not unknown, f"unknown keys: {unknown}")
        self._options, self._clients, self._saved = scenario.get("clients", {}), {}, {}
        for options in self._options.values():
            require(not set(options) - {"token", "token_name", "retry_for", "timeout", "connect_timeout", "tls"}, f"unknown options: {options}")
        asyncio.run(self._scenario(scenario["steps"]))

    async def _scenario(self, steps: list[Any]) -> None:
        try:
            for step in steps:
                await self._step(step, None, None)
        finally:
            for client in self._clients.values():
                if self._is_async:
                    await client.close()
                else:
                    client.close()

    def _client(self, name: str | None) -> Any:
        if name not in self._clients:
            kind: Any = delayq.AsyncClient if self._is_async else delayq.Client
            self._clients[name or ""] = client = kind(self._address, **(self._options[name] if name else {}))
            return client
        return self._clients[name]

    async def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        return await result if self._is_async else result

    async def _step(self, step: Mapping[str, Any], work: Work | None, job: Any) -> None:
        try:
            await self._expect(step, work, job)
        except Failed as problem:
            raise Failed(f"{json.dumps(step, ensure_ascii=False)[:300]}\n{problem}") from None

    async def _expect(self, step: Mapping[str, Any], work: Work | None, job: Any) -> None:
        try:
            result = plain(await self._do(step, work, job))
        except delayq.Error as problem:
            require("error" in step, f"failed: {problem}")
            require(problem.code == step["error"], f"failed with {problem}")
            require(step.get("message", "") in problem.message, f"the message is {problem.message!r}")
            require(step.get("retryable", problem.retryable) == problem.retryable, f"retryable is {problem.retryable}")
            return
        require("error" not in step, f"did not fail: {result!r}")
        if "result" in step:
            check(step["result"], result, self._saved)
        if "save" in step:
            self._saved[step["save"]] = result

    async def _do(self, step: Mapping[str, Any], work: Work | None, job: Any) -> Any:
        verb = step["do"]
        if verb in VERBS:
            arguments, options = arguments_of(step, *VERBS[verb], self._saved)
            return await self._call(getattr(self._client(step.get("client")), verb), *arguments, **options)
        if verb == "enqueue_many":
            jobs = []
            for one in step["jobs"]:
                arguments, options = arguments_of(one, *VERBS["enqueue"], self._saved)
                jobs.append(delayq.NewJob(*arguments, **options))
            return await self._call(self._client(step.get("client")).enqueue_many, jobs)
        if verb == "together":
            return await self._together(step["steps"])
        if verb == "work":
            return await self._work(step)
        require(work is not None, f"unknown verb {verb}")
        return await self._do_inside(step, work, job)

    async def _together(self, steps: list[Any]) -> None:
        if self._is_async:
            await asyncio.gather(*[self._step(step, None, None) for step in steps])
            return
        self._client(None)  # made by one thread
        await asyncio.gather(*[asyncio.to_thread(lambda step=step: asyncio.run(self._step(step, None, None))) for step in steps])

    # ---- inside a handler

    async def _do_inside(self, step: Mapping[str, Any], work: Any, job: Any) -> Any:
        verb = step["do"]
        extra = {"signal": {"name"}, "wait": {"name"}, "wait_cancelled": {"reason"}, "stop": set(), "fail": {"text"},
                 "retry_in": {"delay", "text"}, "dead": {"reason"}, "job": set()}.get(verb)
        require(extra is not None, f"unknown verb {verb}")
        require(not set(step) - extra - EXPECTATIONS, f"unknown keys: {step}")  # type: ignore[operator]
        if verb == "signal":
            work.signal(step["name"]).set()
        elif verb == "wait":
            waited = asyncio.to_thread(work.signal(step["name"]).wait, DEADLINE)
            require(await waited, f"no signal {step['name']}")
        elif verb == "wait_cancelled":
            if self._is_async:
                async with asyncio.timeout(DEADLINE):
                    reason = await job.wait_stop()
            else:
                reason = job.wait_stop(DEADLINE)
            require(reason == job.stop_reason == step["reason"], f"told {reason}")
        elif verb == "stop":
            work.worker.stop()
        elif verb == "fail":
            raise RuntimeError(value_of(step["text"], self._saved))
        elif verb == "retry_in":
            raise delayq.RetryIn(timedelta(milliseconds=step["delay"]), step.get("text", ""))
        elif verb == "dead":
            raise delayq.Dead(step["reason"])
        else:
            return {"topic": job.topic, "id": job.id, "payload": job.payload, "attempt": job.attempt, "due_at": plain(job.due_at),
                    "lease_until": plain(await self._call(job.lease_until)), "headers": job.headers}
        return None

    async def _handle(self, work: Work, job: Any) -> None:
        steps = work.take(job.topic)
        try:
            for step in steps:
                await self._step(step, work, job)
        except (delayq.Error, Failed) as problem:
            work.failed(problem)
            raise
        finally:
            work.ended()

    async def _work(self, step: Mapping[str, Any]) -> None:
        require(not set(step) - {"do", "client", "options", "handlers", "error"}, f"unknown keys: {step}")
        options = dict(step.get("options", {}))
        require(not set(options) - {"concurrency", "lease", "wait", "grace"}, f"unknown options: {options}")
        for name in ("lease", "wait", "grace"):
            if name in options:
                options[name] /= 1000
        kind: Any = delayq.AsyncWorker if self._is_async else delayq.Worker
        worker = kind(self._client(step.get("client")), **options)
        work = Work(worker, step["handlers"])
        for topic in step["handlers"]:
            if self._is_async:
                async def handle(job: Any) -> None:
                    await self._handle(work, job)
                worker.handle(topic)(handle)
            else:
                worker.handle(topic)(lambda job: asyncio.run(self._handle(work, job)))
        try:
            async with asyncio.timeout(DEADLINE):
                await (worker.run() if self._is_async else asyncio.to_thread(worker.run))
        except TimeoutError:
            worker.stop()
            raise Failed(f"the work did not end; begun: {work.begun}, failures: {work.failures}") from None
        if work.failures:
            raise Failed(f"inside a handler: {work.failures[0]}")
