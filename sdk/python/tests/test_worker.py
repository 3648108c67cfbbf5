"""Workers: what the scenarios do not say. Middleware, stops, leases, servers of earlier versions."""
from __future__ import annotations

import asyncio
import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from fake import Command, FakeServer
from support import DEADLINE, LIBRARY, Proxy, Server, wait_for

import delayq
from delayq import _engine


class Half:
    """Runs a worker of either half in a thread; `handle` gets the job and a function that sleeps."""

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async
        self.worker: Any = None
        self._thread: threading.Thread | None = None
        self.problem: BaseException | None = None

    def make(self, address: str, handlers: dict[str, Any], **options: Any) -> Any:
        """`handlers`: functions of a job; generators give the seconds to wait for."""
        self.worker = (delayq.AsyncWorker if self.is_async else delayq.Worker)(address, **options)
        for topic, function in handlers.items():
            self.worker.handle(topic)(self._wrap(function))
        return self.worker

    def _wrap(self, function: Any) -> Any:
        if self.is_async:
            async def handle(job: Any) -> None:
                for seconds in function(job) or ():
                    await asyncio.sleep(seconds)
            return handle

        def handle_blocking(job: Any) -> None:
            for seconds in function(job) or ():
                time.sleep(seconds)
        return handle_blocking

    def begin(self) -> None:
        def run() -> None:
            try:
                if self.is_async:
                    asyncio.run(self.worker.run())
                else:
                    self.worker.run()
            except BaseException as problem:
                self.problem = problem
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()
        if self.problem is not None:
            raise self.problem

    def stop(self) -> None:
        self.worker.stop()
        self.join()


@pytest.fixture(params=["blocking", "asyncio"])
def half(request: pytest.FixtureRequest) -> Half:
    return Half(request.param == "asyncio")


def state(server: Server, topic: str, id: str) -> str | None:
    with delayq.Client(server.address) as client:
        found = client.get(topic, id)
    return found.state if found else None


def test_middleware_is_outermost_first_and_may_answer_for_the_handler(server: Server, half: Half) -> None:
    topic, said = f"middle.{half.is_async}", []
    worker = half.make(server.address, {topic: lambda job: said.append(f"handler {job.id}")})

    def layer(name: str, skips: bool) -> None:
        if half.is_async:
            @worker.use
            async def around(job: Any, call: Any) -> None:
                said.append(f"{name} in")
                if not (skips and job.id == "skipped"):
                    await call(job)
                said.append(f"{name} out")
        else:
            @worker.use
            def around_blocking(job: Any, call: Any) -> None:
                said.append(f"{name} in")
                if not (skips and job.id == "skipped"):
                    call(job)
                said.append(f"{name} out")
    layer("outer", False)
    layer("inner", True)
    with delayq.Client(server.address) as client:
        for id in ("1", "skipped"):
            said.clear()
            client.enqueue(topic, id, "x")
            if not half._thread:
                half.begin()
            wait_for(lambda: state(server, topic, id) == "done", "it is done")
            inside = [] if id == "skipped" else ["handler 1"]
            assert said == ["outer in", "inner in", *inside, "inner out", "outer out"]
    half.stop()


def test_the_wrong_kind_of_handler_and_other_mistakes(server: Server) -> None:
    async def coroutine(job: Any) -> None:
        pass
    with pytest.raises(TypeError):
        delayq.Worker(server.address).handle("t")(coroutine)
    with pytest.raises(TypeError):
        delayq.AsyncWorker(server.address).handle("t")(lambda job: None)
    worker = delayq.Worker(server.address)
    with pytest.raises(delayq.Error, match="no handler"):
        worker.run()
    worker.handle("t")(print)
    with pytest.raises(delayq.Error, match="topic"):
        worker.handle("t")(print)
    for options in ({"concurrency": 0}, {"lease": 0}, {"wait": 0}, {"grace": -1}):
        with pytest.raises(delayq.Error):
            delayq.Worker(server.address, **options)
    worker = delayq.Worker(server.address)
    worker.handle("a b")(print)
    with pytest.raises(delayq.Error, match="topic"):
        worker.run()


def test_a_stop_before_the_run(server: Server, half: Half) -> None:
    half.make(server.address, {"early": lambda job: None})
    half.worker.stop()
    half.begin()
    half.join()


def test_a_worker_can_run_again(server: Server, half: Half) -> None:
    half.make(server.address, {"twice": lambda job: half.worker.stop()})
    with delayq.Client(server.address) as client:
        for _ in range(2):
            client.enqueue("twice", "1", "x")
            half.begin()
            half.join()
            assert client.dequeue("twice", "1") == "done"


def test_what_a_waiting_pop_has_taken_at_the_stop_is_given_back(server: Server, half: Half) -> None:
    """Stops while jobs become due: none is lost and none has to wait for the end of its lease."""
    topic, ran = f"race.{half.is_async}", []
    with delayq.Client(server.address) as client:
        client.enqueue_many([delayq.NewJob(topic, f"{n}", "x", process_in=0.2 + n * 0.002) for n in range(200)])
        for _ in range(6):
            half.make(server.address, {topic: lambda job: ran.append((job.id, job.attempt))}, concurrency=2, lease=60)
            half.begin()
            enough = len(ran) + 10
            wait_for(lambda: len(ran) >= enough, "some have run")
            half.stop()
        states = [getattr(client.get(topic, f"{n}"), "state", "none") for n in range(200)]
        assert "reserved" not in states and "none" not in states
        client.enqueue_many([])
        half.make(server.address, {topic: lambda job: ran.append((job.id, job.attempt))})
        half.begin()
        wait_for(lambda: len({id for id, _ in ran}) == 200, "all have run")
        half.stop()


def test_a_handler_that_never_ends_is_given_back(server: Server, half: Half, caplog: pytest.LogCaptureFixture) -> None:
    topic, forever = f"stuck.{half.is_async}", threading.Event()

    def handle(job: Any) -> Any:
        while not forever.is_set():
            yield 0.01
    half.make(server.address, {topic: handle}, grace=0.1, lease=60)
    with delayq.Client(server.address) as client:
        client.enqueue(topic, "1", "x")
        half.begin()
        wait_for(lambda: state(server, topic, "1") == "reserved", "it runs")
        half.stop()
        info = client.get(topic, "1")
        assert info is not None and info.state in ("ready", "delayed")
        assert any("still runs after the grace period" in record.getMessage() for record in caplog.records)
        forever.set()
        half.make(server.address, {topic: lambda job: None})
        half.begin()
        wait_for(lambda: state(server, topic, "1") == "done", "it is done elsewhere")
        half.stop()


def test_a_second_stop_ends_the_grace(server: Server, half: Half) -> None:
    topic = f"hurry.{half.is_async}"

    def handle(job: Any) -> Any:
        while job.stop_reason is None:
            yield 0.01
        raise RuntimeError(job.stop_reason)
    half.make(server.address, {topic: handle}, grace=600)
    with delayq.Client(server.address) as client:
        client.enqueue(topic, "1", "x")
        half.begin()
        wait_for(lambda: state(server, topic, "1") == "reserved", "it runs")
        half.worker.stop()
        half.stop()
        info = client.get(topic, "1")
        assert info is not None and info.state in ("ready", "delayed")


@pytest.mark.parametrize("problem", [SystemExit("bye"), KeyboardInterrupt(), asyncio.CancelledError("odd"), RuntimeError()], ids=repr)
def test_whatever_a_handler_raises_is_its_failure(server: Server, problem: BaseException) -> None:
    topic = f"raise.{type(problem).__name__}"
    half = Half(False)

    def handle(job: Any) -> None:
        half.worker.stop()
        raise problem
    half.make(server.address, {topic: handle})
    with delayq.Client(server.address) as client:
        client.enqueue(topic, "1", "x", retry=1)
        half.begin()
        half.join()
        info = client.get(topic, "1")
        assert info is not None and info.state == "dead" and info.outcome is not None and info.outcome.startswith(type(problem).__name__)


def answer_as_a_server(jobs: list[bytes], other: dict[bytes, bytes]) -> Any:
    """Answers pops with these jobs, one each, and then late with none."""
    def answer(_: int, words: Command) -> bytes:
        if words[0] == b"POP":
            if jobs:
                return b"*1\r\n" + jobs.pop(0)
            time.sleep(0.1)
            return b"*0\r\n"
        return other.get(words[0], b":1\r\n")
    return answer


def job_reply(id: bytes) -> bytes:
    return b"*7\r\n$%d\r\nt/%b\r\n$1\r\nt\r\n$%d\r\n%b\r\n$1\r\nx\r\n:1\r\n:1795067577519\r\n%%0\r\n" % (2 + len(id), id, len(id), id)


def test_a_server_that_does_not_know_release(half: Half) -> None:
    other = {b"COMMAND": b"*1\r\n_\r\n", b"RELEASE": b"-INVALID unknown command \"RELEASE\"\r\n", b"EXTEND": b":1795067637519\r\n"}
    with FakeServer(answer_as_a_server([job_reply(b"1")], other)) as fake:
        def handle(job: Any) -> Any:
            half.worker.stop()
            while job.stop_reason is None:
                yield 0.01
            raise RuntimeError("gave up")
        half.make(fake.address, {"t": handle}, grace=0.05)
        half.begin()
        half.join()
        assert fake.of(b"RELEASE") == []
        assert fake.of(b"NACK") == [[b"NACK", b"t/1", b"DELAY", b"0", b"REASON", b"worker stopped"]]


def test_no_topic_waits_until_the_others_are_empty(half: Half) -> None:
    with FakeServer(lambda _number, words: b"*0\r\n" if words[0] == b"POP" else b"*1\r\n_\r\n") as fake:
        half.make(fake.address, {"a": lambda job: None, "b": lambda job: None, "wait": lambda job: None})
        half.begin()
        wait_for(lambda: len(fake.of(b"POP")) >= 3, "three pops")
        half.stop()
        assert [words[1:4] for words in fake.of(b"POP")[:3]] == [[b"wait", b"a", b"b"], [b"wait", b"a", b"b"], [b"wait", b"b", b"a"]]


def test_a_server_that_knows_release(half: Half) -> None:
    other = {b"COMMAND": b"*1\r\n*1\r\n+release\r\n"}
    with FakeServer(answer_as_a_server([job_reply(b"1")], other)) as fake:
        def handle(job: Any) -> Any:
            half.worker.stop()
            while job.stop_reason is None:
                yield 0.01
            raise RuntimeError("gave up")
        half.make(fake.address, {"t": handle}, grace=0.05, lease=60)
        half.begin()
        half.join()
        assert fake.of(b"RELEASE") == [[b"RELEASE", b"t/1"]] and fake.of(b"NACK") == []


@pytest.mark.parametrize("how", ["slow", "stop"])
def test_jobs_that_were_taken_ahead_and_do_not_begin_are_given_back(half: Half, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(_engine, "_LONGEST_AHEAD", 0.2 if how == "slow" else 3600.0)
    blocked = threading.Event()
    many = b"*4\r\n" + b"".join(job_reply(b"%d" % n) for n in range(10, 14))
    jobs = [b"*1\r\n" + job_reply(b"%d" % n) for n in range(10)]
    running: list[str] = []

    def answer(_: int, words: Command) -> bytes:
        if words[0] == b"COMMAND":
            return b"*1\r\n*1\r\n+release\r\n"
        if words[0] == b"POP":
            if jobs:
                return jobs.pop(0)
            time.sleep(0.1)
            # As many as there is room for: two handlers are free, and more are taken ahead since handlers are quick.
            return b"*0\r\n" if blocked.is_set() or int(words[words.index(b"COUNT") + 1]) < 4 else (blocked.set(), many)[1]
        return b":1\r\n"

    def handle(job: Any) -> Any:
        if int(job.id) >= 10:
            running.append(job.id)
            while job.stop_reason is None:
                yield 0.01

    with FakeServer(answer) as fake:
        half.make(fake.address, {"t": handle}, concurrency=2, lease=60, grace=0 if how == "slow" else 60)
        monkeypatch.setattr(_engine.Engine, "finished", quick(_engine.Engine.finished))
        half.begin()
        if how == "stop":
            wait_for(lambda: len(running) == 2, "two run")
            half.worker.stop()  # and the handlers go on
        wait_for(lambda: sum(len(words) - 1 for words in fake.of(b"RELEASE")) == 2, "two are given back")
        half.stop()
    assert running == ["10", "11"]


def quick(finished: Any) -> Any:
    """As if every handler had been quick, whatever the machine does."""
    def with_short_handlers(engine: Any, *what: Any) -> None:
        engine._typical = 0.0001
        finished(engine, *what)
        engine._typical = 0.0001
    return with_short_handlers


def test_reports_are_sent_again_until_they_arrive(server: Server, half: Half) -> None:
    topic, ran = f"again.{half.is_async}", []
    proxy = Proxy(server.address, 0.0, 1)
    half.make(proxy.address, {topic: lambda job: (proxy.cut_all(), ran.append(job.attempt))[:0]}, lease=60)
    with delayq.Client(server.address) as client:
        client.enqueue(topic, "1", "x")
        half.begin()
        wait_for(lambda: ran and proxy.cuts > 2, "connections are cut")
        proxy.calm()
        wait_for(lambda: state(server, topic, "1") == "done", "the ack arrives")
    half.stop()
    proxy.close()
    assert ran == [1]


def test_a_handler_is_told_when_nobody_can_extend_its_lease(half: Half) -> None:
    told: list[Any] = []
    other = {b"COMMAND": b"*1\r\n_\r\n", b"EXTEND": b"-UNAVAILABLE redis is away\r\n", b"GET": b"-UNAVAILABLE redis is away\r\n"}
    with FakeServer(answer_as_a_server([job_reply(b"1")], other)) as fake:
        def handle(job: Any) -> Any:
            while job.stop_reason is None:
                yield 0.01
            told.append(job.stop_reason)
            half.worker.stop()
        half.make(fake.address, {"t": handle}, lease=0.5)
        half.begin()
        half.join()
        assert told == ["lease_lost"] and len(fake.of(b"EXTEND")) > 2


def test_a_token_that_is_taken_away_ends_the_run(half: Half) -> None:
    answers = iter([b"*0\r\n", b"-UNAVAILABLE away\r\n", b"-NOAUTH the token is gone\r\n"])

    def answer(_: int, words: Command) -> bytes:
        return next(answers) if words[0] == b"POP" else b"*1\r\n_\r\n"
    with FakeServer(answer) as fake:
        half.make(fake.address, {"t": lambda job: None})
        half.begin()
        with pytest.raises(delayq.Error) as caught:
            half.join()
        assert caught.value.code == "unauthorized"


def test_the_pop_waits_longer_than_an_answer_may_take(server: Server, half: Half) -> None:
    topic = f"patience.{half.is_async}"
    ran: list[str] = []
    with delayq.Client(server.address) as client:
        half.make(server.address, {topic: lambda job: ran.append(job.id)}, wait=3, timeout=0.5)
        half.begin()
        client.enqueue(topic, "1", "x", process_in=1.5)
        wait_for(lambda: ran == ["1"], "it ran")
        half.stop()


def test_without_an_own_lease_the_end_of_the_lease_is_asked_for(server: Server, half: Half) -> None:
    """The lease of the job is shorter than the handler."""
    topic, seen = f"short.{half.is_async}", []

    def handle(job: Any) -> Any:
        yield 1.0
        seen.append(job.attempt)
    half.make(server.address, {topic: handle})
    with delayq.Client(server.address) as client:
        client.enqueue(topic, "1", "x", timeout=0.1)
        half.begin()
        wait_for(lambda: state(server, topic, "1") == "done", "it is done")
        half.stop()
    assert seen == [1]


def test_a_job_that_was_told_to_stop_before_it_began(server: Server) -> None:
    async def main() -> None:
        held = _engine.Held([b"t/1", b"t", b"1", b"x", 1, 0, {}], 0.0, 60.0)
        held.tell("cancelled")
        held.tell("stopping")
        engine: Any = None
        loop = asyncio.get_running_loop()
        assert delayq.Job(held, engine, loop).wait_stop(60) == "cancelled"
        assert await delayq.AsyncJob(held, engine).wait_stop() == "cancelled"
    asyncio.run(main())


def test_signals_stop_a_worker_well(server: Server, tmp_path: pathlib.Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with delayq.Client(server.address) as client:
            client.enqueue("signal", f"{number}", "x")
        path = tmp_path / f"{number}"
        program = subprocess.Popen([sys.executable, str(LIBRARY / "tests" / "worker_process.py"), server.address, "signal", str(path), "1"],
                                   env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        try:
            wait_for(lambda: path.exists() and b"begin" in path.read_bytes(), "it runs")
            program.send_signal(number)
            assert program.wait(DEADLINE) == 0
        finally:
            program.kill()
            program.wait()
        assert "end" in path.read_text() and state(server, "signal", f"{number}") == "done"


def test_an_asyncio_run_that_is_cancelled_cancels_its_handlers(server: Server) -> None:
    ended: list[str] = []

    async def main() -> None:
        worker = delayq.AsyncWorker(server.address)
        begun = asyncio.Event()

        @worker.handle("cancelled-run")
        async def handle(job: delayq.AsyncJob) -> None:
            begun.set()
            try:
                await asyncio.sleep(DEADLINE)
            finally:
                ended.append(job.id)
        async with delayq.AsyncClient(server.address) as client:
            await client.enqueue("cancelled-run", "1", "x")
        running = asyncio.create_task(worker.run())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(0)
        assert ended == ["1"]
    asyncio.run(main())


def test_no_more_threads_than_handlers_at_once(server: Server) -> None:
    names: set[str] = set()
    count = 300
    half = Half(False)

    def handle(job: Any) -> None:
        names.add(threading.current_thread().name)
    half.make(server.address, {"threads": handle}, concurrency=5)
    with delayq.Client(server.address) as client:
        client.enqueue_many([delayq.NewJob("threads", f"{n}", "x") for n in range(count)])
        half.begin()
        wait_for(lambda: all(getattr(client.get("threads", f"{n}"), "state", "") == "done" for n in range(count)), "all are done")
    half.stop()
    assert 0 < len(names) <= 5
    wait_for(lambda: not names & {thread.name for thread in threading.enumerate()}, "the threads end")


def test_logs_go_to_the_logger_of_the_library(server: Server, half: Half, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "delayq")
    topic = f"logged.{half.is_async}"

    def handle(job: Any) -> None:
        half.worker.stop()
        raise RuntimeError("no route")
    half.make(server.address, {topic: handle})
    with delayq.Client(server.address) as client:
        client.enqueue(topic, "1", "x")
    half.begin()
    half.join()
    records = [record for record in caplog.records if record.name == "delayq" and f"job {topic} 1 failed" in record.getMessage()]
    assert records and records[0].exc_info is not None
