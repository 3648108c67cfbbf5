"""The consumer's side: workers, which run a handler for each job that is due."""
from __future__ import annotations

import asyncio
import contextvars
import json
import queue
import signal
import ssl
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import datetime
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from . import _commands
from ._calls import Options, make_options
from ._engine import Engine, Held, Settings, StopReason, in_order, log
from ._times import to_datetime
from .aio import AsyncClient
from .client import Client
from .errors import Error

_LONGEST_QUESTION: Final = 60.0  # seconds
_making: Final = threading.Lock()  # of what a job makes only when it is asked for it


class BaseJob:
    """What a handler gets."""

    def __init__(self, held: Held, engine: Engine) -> None:
        self._held = held
        self._engine = engine
        self.topic = held.topic
        self.id = held.id
        self.payload = held.payload
        self.attempt = held.attempt
        """1 for the first time, 2 for the first retry."""
        self.headers = held.headers

    @property
    def due_at(self) -> datetime:
        """When the job was due."""
        return to_datetime(self._held.due_ms)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the handler should stop, or None: "cancelled" (somebody cancelled the job), "lease_lost" (somebody else may have it
        now), or "stopping" (the worker stops, and the time to finish is over)."""
        return self._held.reason

    def text(self) -> str:
        """The payload as a text."""
        return self.payload.decode()

    def json(self) -> Any:
        """The payload, which is JSON, as a value."""
        return json.loads(self.payload)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.topic!r}, {self.id!r}, attempt={self.attempt})"


class Job(BaseJob):
    """What a handler of a Worker gets. May be used by several threads."""

    def __init__(self, held: Held, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(held, engine)
        self._loop = loop
        self._stopped: threading.Event | None = None

    def wait_stop(self, timeout: float | None = None) -> StopReason | None:
        """Waits until there is a `stop_reason`, for at most so many seconds, and returns it."""
        with _making:
            if self._stopped is None:
                self._stopped = threading.Event()
                self._held.told = self._stopped.set
        if self._held.reason is None:  # it is set before `told` is looked at
            self._stopped.wait(timeout)
        return self._held.reason

    def lease_until(self) -> datetime:
        """When the lease ends. The worker extends it while the handler runs."""
        if self._held.until_ms is None:
            asyncio.run_coroutine_threadsafe(self._engine.lease_end(self._held), self._loop).result(_LONGEST_QUESTION)
        return to_datetime(self._held.until_ms or 0)


class AsyncJob(BaseJob):
    """What a handler of an AsyncWorker gets."""

    def __init__(self, held: Held, engine: Engine) -> None:
        super().__init__(held, engine)
        self._stopped: asyncio.Event | None = None

    async def wait_stop(self) -> StopReason | None:
        """Waits until there is a `stop_reason`, and returns it."""
        if self._held.reason is None:
            if self._stopped is None:
                self._stopped = asyncio.Event()
                self._held.told = self._stopped.set
            await self._stopped.wait()
        return self._held.reason

    async def lease_until(self) -> datetime:
        """When the lease ends. The worker extends it while the handler runs."""
        return to_datetime(await self._engine.lease_end(self._held))


Handler: TypeAlias = Callable[[Job], object]
Middleware: TypeAlias = Callable[[Job, Handler], object]
AsyncHandler: TypeAlias = Callable[[AsyncJob], Awaitable[object]]
AsyncMiddleware: TypeAlias = Callable[[AsyncJob, AsyncHandler], Awaitable[object]]
H = TypeVar("H", bound=Callable[..., object])
M = TypeVar("M", bound=Callable[..., object])
D = TypeVar("D", bound=Handler)
A = TypeVar("A", bound=AsyncHandler)


class _BaseWorker(Generic[H, M]):
    def __init__(self, client: Client | AsyncClient | str = "127.0.0.1:9278", *, concurrency: int = 10, lease: float | None = None,
                 wait: float = 30.0, grace: float = 10.0, token: str | None = None, token_name: str | None = None,
                 tls: ssl.SSLContext | bool = False, timeout: float = 30.0, connect_timeout: float = 5.0) -> None:
        if concurrency < 1 or wait <= 0 or grace < 0 or (lease is not None and lease <= 0):
            raise Error("invalid", "concurrency, lease, wait: must be above 0, and grace must not be below 0")
        self._options: Options = (make_options(client, token, token_name, tls, timeout, connect_timeout, 0.0)
                                  if isinstance(client, str) else client.options)
        self._concurrency = concurrency
        self._lease = lease
        self._wait = wait
        self._grace = grace
        self._handlers: dict[str, H] = {}
        self._middleware: list[M] = []
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_asked = False

    def stop(self) -> None:
        """Asks `run` to end: no more jobs are taken, and handlers go on for up to `grace` seconds. A second call ends the grace.

        May be called by handlers, by signal handlers and by any thread. Does not wait.
        """
        with self._lock:
            self._stop_asked = True
            if self._engine is not None and self._loop is not None:
                self._engine.begins_more = False
                self._loop.call_soon_threadsafe(self._engine.stop)

    def _add(self, topic: str, handler: H) -> None:
        if topic in self._handlers:
            raise Error("invalid", f"topic: {topic!r} has a handler already")
        self._handlers[topic] = handler

    def _settings(self) -> Settings:
        if not self._handlers:
            raise Error("invalid", "topic: the worker has no handler")
        return Settings(in_order(list(self._handlers)), self._concurrency, self._lease, self._wait, self._grace)

    def _wrapped(self, handler: H) -> Callable[..., Any]:
        """The handler inside the middleware; the first that was registered is the outermost."""
        call: Callable[..., Any] = handler
        for middleware in reversed(self._middleware):
            call = partial(_call_middleware, middleware, call)
        return call

    async def _run_engine(self, engine: Engine) -> None:
        with self._lock:
            if self._engine is not None:
                raise Error("invalid", "the worker runs already")
            self._engine, self._loop = engine, asyncio.get_running_loop()
            if self._stop_asked:
                engine.stop()
        try:
            await engine.run()
        finally:
            with self._lock:
                self._engine = self._loop = None
                self._stop_asked = False


def _call_middleware(middleware: Callable[..., Any], call: Callable[..., Any], job: Any) -> Any:
    return middleware(job, call)


class Worker(_BaseWorker[Handler, Middleware]):
    """Runs handlers in threads, up to `concurrency` at once.

    `client` is a Client, whose address and token are used, or an address with `token` and so on as for Client.
    `lease` is how many seconds the server waits for a sign of life before it gives a job to another worker; without it, what the job
    or its topic says. Leases are extended while handlers run. `wait` is how long one request for jobs waits at the server. `grace` is
    for how long handlers may go on after a stop; those that fail later, or do not end, are given back.

    A handler that returns has done its job. One that raises has failed, and the job is tried again as its topic says.
    RetryIn and Dead say what else should become of it.
    """

    def handle(self, topic: str) -> Callable[[D], D]:
        """Registers the function below as the handler of a topic: `@worker.handle("order")`."""
        def register(handler: D) -> D:
            if asyncio.iscoroutinefunction(handler):
                raise TypeError("this handler is a coroutine: use AsyncWorker")
            self._add(topic, handler)
            return handler
        return register

    def use(self, middleware: Middleware) -> Middleware:
        """Registers a middleware: it is called with a job and the next handler, and calls that one."""
        self._middleware.append(middleware)
        return middleware

    def run(self, *, signals: bool = True) -> None:
        """Takes jobs and runs the handlers, until `stop`; returns when all results have reached the server. Lost connections are
        made again. Raises Error if the server refuses this worker.

        With `signals`, in the main thread, SIGTERM and SIGINT call `stop`.
        """
        asyncio.run(self._run(signals and threading.current_thread() is threading.main_thread()))

    async def _run(self, signals: bool) -> None:
        loop = asyncio.get_running_loop()
        calls = {topic: self._wrapped(handler) for topic, handler in self._handlers.items()}
        threads = _Threads(self._concurrency, calls)
        engine = threads.engine = Engine(self._options, self._settings(), threads)
        caught = (signal.SIGTERM, signal.SIGINT) if signals else ()
        for number in caught:
            loop.add_signal_handler(number, self.stop)
        try:
            await self._run_engine(engine)
        finally:
            for number in caught:
                loop.remove_signal_handler(number)
            threads.close()


class _Threads:
    """Runs handlers. Threads are made when they are needed, and end with the worker; a handler that never ends holds up nothing."""

    def __init__(self, most: int, calls: dict[str, Callable[..., Any]]) -> None:
        self.engine: Engine
        self._most = most
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Held | None] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._ended: deque[tuple[Held, BaseException | None, float, Held | None]] = deque()
        self._notified = False

    def start(self, held: Held) -> None:
        self._busy += 1
        if self._busy > self._threads:
            # Never more than `concurrency`, except for those that were given up.
            self._threads += 1
            threading.Thread(target=self._work, name=f"delayq-{self._threads}", daemon=True).start()
        self._jobs.put(held)

    def give_up(self, held: Held) -> None:
        pass  # a thread cannot be ended

    def close(self) -> None:
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        following: Held | None = None
        while (held := following or self._jobs.get()) is not None:
            problem: BaseException | None = None
            token = _commands.trace.set(held.trace())
            try:
                self._calls[held.topic](Job(held, self.engine, self._loop))
            except BaseException as raised:  # SystemExit, too, is a failure of the handler
                problem = raised
            _commands.trace.reset(token)
            # A job that was taken ahead begins here and now: the loop only hears of it.
            following = None if held.dropped else self.engine.next_ahead()
            self._ended.append((held, problem, self._loop.time(), following))
            del held, problem
            if not self._notified:
                self._notified = True
                try:
                    self._loop.call_soon_threadsafe(self._collect)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    return

    def _collect(self) -> None:
        self._notified = False
        while self._ended:
            held, problem, ended, following = self._ended.popleft()
            if following is None:
                self._busy -= 1
            self.engine.finished(held, problem, ended, following)


class AsyncWorker(_BaseWorker[AsyncHandler, AsyncMiddleware]):
    """`Worker` for asyncio: handlers are coroutines in the event loop that runs `run`.

    What blocks the loop blocks the extension of leases, too; use Worker for such handlers.
    """

    def handle(self, topic: str) -> Callable[[A], A]:
        """Registers the coroutine function below as the handler of a topic: `@worker.handle("order")`."""
        def register(handler: A) -> A:
            if not asyncio.iscoroutinefunction(handler) and not asyncio.iscoroutinefunction(getattr(handler, "__call__", None)):
                raise TypeError("this handler is no coroutine: use Worker")
            self._add(topic, handler)
            return handler
        return register

    def use(self, middleware: AsyncMiddleware) -> AsyncMiddleware:
        """Registers a middleware: it is awaited with a job and the next handler, and awaits that one."""
        self._middleware.append(middleware)
        return middleware

    async def run(self) -> None:
        """As `Worker.run`, without signals."""
        calls = {topic: self._wrapped(handler) for topic, handler in self._handlers.items()}
        tasks = _Tasks(calls)
        tasks.engine = Engine(self._options, self._settings(), tasks)
        await self._run_engine(tasks.engine)


class _Tasks:
    """Runs handlers in tasks. A task goes on with jobs that were taken ahead, each in a context of its own."""

    def __init__(self, calls: dict[str, Callable[..., Any]]) -> None:
        self.engine: Engine
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()

    def start(self, held: Held) -> None:
        held.run = self._loop.create_task(self._work(held))

    def give_up(self, held: Held) -> None:
        task = held.run
        if isinstance(task, asyncio.Task):
            task.cancel()

    async def _work(self, first: Held) -> None:
        task = asyncio.current_task()
        assert task is not None
        following: Held | None = first
        while (held := following) is not None:
            problem: BaseException | None = None
            try:
                await _Handling(self._handle(held), self._context.copy())
            except BaseException as raised:  # SystemExit and CancelledError, too, are failures of the handler
                problem = raised
            held.run = None
            # A cancellation that has not arrived yet is none of another job.
            following = None if held.dropped or task.cancelling() else self.engine.next_ahead()
            if following is not None:
                following.run = task
            self.engine.finished(held, problem, None, following)

    async def _handle(self, held: Held) -> None:
        _commands.trace.set(held.trace())
        await self._calls[held.topic](AsyncJob(held, self.engine))


class _Handling:
    """A coroutine that is awaited in a context of its own, as in a task of its own."""
    __slots__ = ("_coroutine", "_context")

    def __init__(self, coroutine: Coroutine[Any, Any, None], context: contextvars.Context) -> None:
        self._coroutine = coroutine
        self._context = context

    def __await__(self) -> Generator[Any, Any, None]:
        step: Callable[..., Any] = self._coroutine.send
        value: Any = None
        while True:
            try:
                awaited = self._context.run(step, value)
            except StopIteration:
                return
            try:
                value = yield awaited
                step = self._coroutine.send
            except BaseException as problem:  # such as CancelledError
                value = problem
                step = self._coroutine.throw


__all__ = ["AsyncHandler", "AsyncJob", "AsyncMiddleware", "AsyncWorker", "BaseJob", "Handler", "Job", "Middleware", "Worker", "log"]
