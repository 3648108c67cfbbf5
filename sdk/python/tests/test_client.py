"""Clients: batches, lost connections, timeouts, TLS, processes that fork."""
from __future__ import annotations

import asyncio
import os
import pathlib
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fake import Command, FakeServer
from support import DEADLINE, Proxy, Server, wait_for

import delayq
from delayq import _connection, _pipe


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def pushed(words: Command) -> bytes:
    return bulk(words[words.index(b"ID") + 1])


class Caller:
    """Calls either half of the library."""

    def __init__(self, half: str) -> None:
        self.is_async = half == "asyncio"

    def call(self, address: str, verb: str, *arguments: Any, options: dict[str, Any] | None = None, **keywords: Any) -> Any:
        if not self.is_async:
            with delayq.Client(address, **(options or {})) as client:
                return getattr(client, verb)(*arguments, **keywords)

        async def ask() -> Any:
            async with delayq.AsyncClient(address, **(options or {})) as client:
                return await getattr(client, verb)(*arguments, **keywords)
        return asyncio.run(ask())


@pytest.fixture(params=["blocking", "asyncio"])
def caller(request: pytest.FixtureRequest) -> Caller:
    return Caller(request.param)


def test_threads_at_the_same_time_join_into_one_batch() -> None:
    held = threading.Event()

    def answer(_: int, words: Command) -> bytes:
        held.wait(DEADLINE)
        return pushed(words)

    with FakeServer(answer) as fake, delayq.Client(fake.address) as client:
        results: dict[int, str] = {}
        threads = [threading.Thread(target=lambda n=n: results.update({n: client.enqueue("t", f"{n}", "x")})) for n in range(50)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(client._pipe._waiting) == 49, "all but one wait")
        held.set()
        for thread in threads:
            thread.join(DEADLINE)
        assert results == {n: f"{n}" for n in range(50)}
        assert fake.connections == 1


def test_each_thread_gets_its_own_answers(server: Server) -> None:
    failures: list[str] = []

    def work(client: delayq.Client, name: str) -> None:
        for number in range(50):
            id = f"{name}-{number}"
            many = client.enqueue_many([delayq.NewJob("own", f"{id}-{at}", f"{id}-{at}", process_in=60) for at in range(number % 5)])
            client.enqueue("own", id, id, process_in=60)
            found = client.get("own", id)
            if many != [f"{id}-{at}" for at in range(number % 5)] or found is None or found.text() != id or client.dequeue("own", id) != "cancelled":
                failures.append(id)

    with delayq.Client(server.address) as client:
        threads = [threading.Thread(target=work, args=(client, f"thread-{n}")) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
            assert not thread.is_alive()
    assert failures == []


def test_tasks_at_the_same_time_join_into_one_write(server: Server) -> None:
    async def main() -> None:
        async with delayq.AsyncClient(server.address) as client:
            await client.enqueue("tasks", "0", "x", process_in=60)
            connection = client._pipe._connection  # type: ignore[union-attr]
            assert connection is not None and connection._transport is not None
            writes: list[int] = []
            write = connection._transport.write
            connection._transport.write = lambda data: (writes.append(len(data)), write(data))[1]  # type: ignore[assignment, func-returns-value]
            ids = await asyncio.gather(*[client.enqueue("tasks", f"{n}", "x", process_in=60) for n in range(500)])
            assert ids == [f"{n}" for n in range(500)]
            assert len(writes) == 1
    asyncio.run(main())


def test_what_is_on_its_way_is_bounded(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setattr(_connection, "MOST_COMMANDS", 50)
    seen: list[int] = []
    flush = _connection.Connection._flush

    def watched(connection: _connection.Connection) -> None:
        seen.append(connection._commands)
        flush(connection)
    monkeypatch.setattr(_connection.Connection, "_flush", watched)

    async def main() -> None:
        async with delayq.AsyncClient(server.address) as client:
            await asyncio.gather(*[client.enqueue("bound", f"{number}", "x", process_in=60) for number in range(1000)])
    asyncio.run(main())
    assert 10 < max(seen) <= 50


def test_a_batch_larger_than_what_the_server_keeps_unread(caller: Caller, server: Server) -> None:
    jobs = [delayq.NewJob("large", f"{n}", bytes(1000), process_in=60) for n in range(20_000)]
    assert caller.call(server.address, "enqueue_many", jobs) == [f"{n}" for n in range(20_000)]


def test_large_answers_to_many_threads(server: Server) -> None:
    body = os.urandom(800_000)
    with delayq.Client(server.address) as client:
        client.enqueue("bodies", "1", body, process_in=60)
        found: list[bool] = []
        def look() -> None:
            job = client.get("bodies", "1")
            client.enqueue("bodies", "2", body, process_in=60)
            found.append(job is not None and job.payload == body)
        threads = [threading.Thread(target=look) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
    assert found == [True] * 12


def test_an_enqueue_is_sent_again_when_its_answer_was_lost(caller: Caller) -> None:
    with FakeServer(lambda number, words: None if number == 1 else pushed(words)) as fake:
        assert caller.call(fake.address, "enqueue", "t", "1", "x") == "1"
        assert [words[-1] for words in fake.of(b"PUSH")] == [b"REPLACE", b"REPLACE"]
        assert caller.call(fake.address, "enqueue", "t", None, "x")


def test_a_cancel_is_not_sent_again(caller: Caller) -> None:
    with FakeServer(lambda number, words: None) as fake:
        with pytest.raises(delayq.Error) as caught:
            caller.call(fake.address, "dequeue", "t", "1")
        assert caught.value.code == "unavailable" and caught.value.retryable
        assert len(fake.of(b"CANCEL")) == 1


def test_only_the_jobs_without_an_answer_are_sent_again(caller: Caller) -> None:
    def answer(number: int, words: Command) -> bytes | None:
        if words[words.index(b"ID") + 1] == b"3" and number == 1:
            return None
        return b"-INVALID body\r\n" if words[3] == b"bad" else pushed(words)

    with FakeServer(answer) as fake:
        jobs = [delayq.NewJob("t", f"{n}", "bad" if n == 2 else "x") for n in range(5)]
        results = caller.call(fake.address, "enqueue_many", jobs)
        assert [result if isinstance(result, str) else result.code for result in results] == ["0", "1", "invalid", "3", "4"]
        ids = [words[words.index(b"ID") + 1] for words in fake.of(b"PUSH")]
        assert ids[-2:] == [b"3", b"4"] and ids.count(b"0") == ids.count(b"1") == ids.count(b"2") == 1


def test_a_server_that_asks_for_patience(caller: Caller) -> None:
    answers = iter([b"-OVERLOADED full (try again in 200ms)\r\n", b"-STOPPING bye\r\n"])
    with FakeServer(lambda number, words: next(answers, pushed(words))) as fake:
        began = time.monotonic()
        assert caller.call(fake.address, "enqueue", "t", "1", "x") == "1"
        assert time.monotonic() - began > 0.2


def test_a_server_that_is_not_there(caller: Caller) -> None:
    with pytest.raises(delayq.Error) as caught:
        caller.call("127.0.0.1:1", "enqueue", "t", "1", "x", options={"retry_for": 0.3})
    assert caught.value.code == "unavailable" and "127.0.0.1:1" in caught.value.message


def test_a_server_that_does_not_answer(caller: Caller) -> None:
    silent = threading.Event()

    def answer(number: int, words: Command) -> bytes:
        silent.wait(DEADLINE)
        return b""

    with FakeServer(answer) as fake:
        began = time.monotonic()
        with pytest.raises(delayq.Error) as caught:
            caller.call(fake.address, "enqueue", "t", "1", "x", options={"retry_for": 0, "timeout": 0.3})
        assert caught.value.code == "unavailable" and time.monotonic() - began < 10
        silent.set()


def test_a_server_that_speaks_something_else(caller: Caller) -> None:
    with FakeServer(lambda number, words: b"HTTP/1.1 400 Bad Request\r\n\r\n") as fake:
        with pytest.raises(delayq.Error) as caught:
            caller.call(fake.address, "enqueue", "t", "1", "x", options={"retry_for": 0})
        assert caught.value.code == "unavailable"


def test_a_token_that_is_refused(caller: Caller) -> None:
    with FakeServer(lambda number, words: b"+OK\r\n", hello=b"-NOAUTH wrong\r\n") as fake:
        with pytest.raises(delayq.Error) as caught:
            caller.call(fake.address, "get", "t", "1", options={"token": "x"})
        assert caught.value.code == "unauthorized" and fake.connections == 1


def test_more_answers_than_questions() -> None:
    with FakeServer(lambda number, words: pushed(words) * 2) as fake, delayq.Client(fake.address) as client:
        assert [client.enqueue("t", f"{n}", "x") for n in range(3)] == ["0", "1", "2"]
        assert fake.connections > 1  # one that is out of step is not used again


def test_a_connection_that_was_closed_meanwhile_is_noticed_before_it_is_used(server: Server) -> None:
    proxy = Proxy(server.address, 0.0, 1)
    with delayq.Client(proxy.address, retry_for=0) as client:
        client.enqueue("idle", "1", "x", process_in=60)
        next(iter(proxy._other)).shutdown(2)  # the other end follows
        wait_for(lambda: not proxy._other, "the connections are gone")
        assert client.dequeue("idle", "1") == "cancelled"
    proxy.close()


def test_a_closed_client(server: Server, caller: Caller) -> None:
    with delayq.Client(server.address) as client:
        client.get("t", "1")
    with pytest.raises(delayq.Error, match="closed"):
        client.get("t", "1")


def test_a_thread_that_is_interrupted_holds_up_nobody(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with delayq.Client(server.address) as client:
        client.enqueue("t", "1", "x")
        real = _pipe.Pipe._talk

        def interrupted(*_: Any) -> Any:
            monkeypatch.setattr(_pipe.Pipe, "_talk", real)
            raise KeyboardInterrupt
        monkeypatch.setattr(_pipe.Pipe, "_talk", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.enqueue("t", "2", "x")
        assert client.enqueue("t", "3", "x") == "3"


def test_a_process_that_forks(server: Server) -> None:
    with delayq.Client(server.address) as client:
        client.enqueue("fork", "before", "x", process_in=60)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if client.enqueue("fork", "child", "x", process_in=60) == "child" and client.dequeue("fork", "before") == "cancelled" else 2
            finally:
                os._exit(code)
        assert [client.enqueue("fork", f"{n}", "x", process_in=60) for n in range(100)] == [f"{n}" for n in range(100)]
        assert os.waitpid(child, 0)[1] == 0
        assert client.dequeue("fork", "child") == "cancelled"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
                   check=True, capture_output=True, timeout=DEADLINE)
    return folder


@pytest.fixture(scope="module")
def secured(certificate: pathlib.Path) -> Iterator[Server]:
    running = Server(f'[tls]\ncertificate = "{certificate}/cert.pem"\nkey = "{certificate}/key.pem"\n')
    yield running
    running.close()


def test_tls(caller: Caller, secured: Server, certificate: pathlib.Path) -> None:
    trusted = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    jobs = [delayq.NewJob("tls", f"{n}", bytes(2000)) for n in range(3000)]
    assert caller.call(secured.address, "enqueue_many", jobs, options={"tls": trusted}) == [f"{n}" for n in range(3000)]
    with pytest.raises(delayq.Error, match="certificate"):
        caller.call(secured.address, "get", "tls", "1", options={"tls": True, "retry_for": 0})


def test_tls_when_idle(secured: Server, certificate: pathlib.Path) -> None:
    trusted = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    with delayq.Client(secured.address, tls=trusted) as client:
        client.enqueue("tls", "idle", "x")
        connection = client._pipe._connection
        assert [client.get("tls", "idle") is not None for _ in range(20)] == [True] * 20
        assert client._pipe._connection is connection


def test_a_worker_over_tls(secured: Server, certificate: pathlib.Path) -> None:
    trusted = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    with delayq.Client(secured.address, tls=trusted) as client:
        worker = delayq.Worker(client)
        ran: list[str] = []

        @worker.handle("tls.work")
        def handle(job: delayq.Job) -> None:
            ran.append(job.id)
            worker.stop()
        client.enqueue("tls.work", "1", "x")
        worker.run()
        assert ran == ["1"] and client.dequeue("tls.work", "1") == "done"
