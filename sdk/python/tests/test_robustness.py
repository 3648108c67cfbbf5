"""Processes are killed and connections are cut: nothing is lost, nothing runs twice at once, and workers go on by themselves."""
from __future__ import annotations

import asyncio
import collections
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from support import DEADLINE, DEEP, Proxy, Server, seed, wait_for

import delayq

HERE = pathlib.Path(__file__).resolve().parent


class Ledger:
    """Who runs now, and who has run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self.ended: collections.Counter[str] = collections.Counter()
        self.at_once: list[str] = []

    def begin(self, id: str) -> None:
        with self._lock:
            if id in self._running:
                self.at_once.append(id)
            self._running.add(id)

    def end(self, id: str) -> None:
        with self._lock:
            self._running.discard(id)
            self.ended[id] += 1


class Workers:
    """One Worker and one AsyncWorker on the same topic, each in a thread."""

    def __init__(self, address: str, topic: str, ledger: Ledger, seconds: float) -> None:
        options = {"concurrency": 8, "lease": 5.0, "wait": 1.0, "grace": 10.0, "timeout": 5.0}
        self.blocking = delayq.Worker(address, **options)  # type: ignore[arg-type]
        self.asyncio = delayq.AsyncWorker(address, **options)  # type: ignore[arg-type]
        self.ended_by: collections.Counter[str] = collections.Counter()

        @self.blocking.handle(topic)
        def handle(job: delayq.Job) -> None:
            ledger.begin(job.id)
            time.sleep(seconds)
            self.ended_by["blocking"] += 1
            ledger.end(job.id)

        @self.asyncio.handle(topic)
        async def handle_too(job: delayq.AsyncJob) -> None:
            ledger.begin(job.id)
            await asyncio.sleep(seconds)
            self.ended_by["asyncio"] += 1
            ledger.end(job.id)

        self._threads = [threading.Thread(target=self.blocking.run), threading.Thread(target=lambda: asyncio.run(self.asyncio.run()))]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.blocking.stop()
        self.asyncio.stop()
        for thread in self._threads:
            thread.join(DEADLINE)
            assert not thread.is_alive()


@pytest.fixture
def own_server() -> Iterator[Server]:
    running = Server('[topics."*"]\nkeep_done = {count = 1000000, time = "1h"}\n')
    yield running
    running.close()


def check_all_done(address: str, topic: str, ids: list[str]) -> None:
    with delayq.Client(address) as client:
        states = collections.Counter(getattr(client.get(topic, id), "state", "none") for id in ids)
    assert states == {"done": len(ids)}


def test_a_worker_is_killed_in_the_middle_of_its_jobs(own_server: Server, tmp_path: pathlib.Path) -> None:
    ids = [f"job-{number}" for number in range(8)]
    with delayq.Client(own_server.address) as client:
        client.enqueue_many([delayq.NewJob("killed", id, "x", backoff="100ms") for id in ids])

    def begin(name: str, seconds: float) -> tuple[subprocess.Popen[bytes], pathlib.Path]:
        path = tmp_path / name
        return subprocess.Popen([sys.executable, str(HERE / "worker_process.py"), own_server.address, "killed", str(path), str(seconds)]), path

    victim, first = begin("first", 60)
    wait_for(lambda: first.exists() and first.read_text().count("begin") == 4, "four jobs run")
    other, second = begin("second", 0.05)
    wait_for(lambda: second.exists() and second.read_text().count("end") == 4, "the other worker does the other jobs")
    # They are the victim's as long as it lives, although its lease is only 1.5 s.
    victims = {line.split()[1] for line in first.read_text().splitlines()}
    assert not victims & {line.split()[1] for line in second.read_text().splitlines()}
    victim.send_signal(signal.SIGKILL)
    victim.wait(DEADLINE)
    wait_for(lambda: second.read_text().count("end") == 8, "the other worker does the victim's jobs")
    other.send_signal(signal.SIGTERM)
    assert other.wait(DEADLINE) == 0
    lines = second.read_text().splitlines()
    assert sorted(line.split()[1] for line in lines if line.startswith("end")) == sorted(ids)
    check_all_done(own_server.address, "killed", ids)


def test_the_server_is_killed_and_started_again_under_running_workers(own_server: Server) -> None:
    ledger = Ledger()
    workers = Workers(own_server.address, "restart", ledger, 0.02)
    ids: list[str] = []
    over = threading.Event()

    def produce() -> None:
        with delayq.Client(own_server.address, timeout=5) as client:
            while not over.is_set():
                ids.append(client.enqueue("restart", None, "x", backoff="100ms"))
                over.wait(0.003)

    producer = threading.Thread(target=produce)
    producer.start()
    for _ in range(3):
        before = sum(ledger.ended.values())
        wait_for(lambda: sum(ledger.ended.values()) > before + 50, "the workers work")
        own_server.kill()
        own_server.start()
    before = sum(ledger.ended.values())
    wait_for(lambda: sum(ledger.ended.values()) > before + 50, "the workers work again")
    over.set()
    producer.join(DEADLINE)
    assert not producer.is_alive()
    wait_for(lambda: len(ledger.ended) == len(ids), "all jobs have run")
    workers.stop()
    assert ledger.at_once == []
    assert min(workers.ended_by.values()) > 0
    check_all_done(own_server.address, "restart", ids)


def test_connections_are_cut_at_random(own_server: Server) -> None:
    chance = random.Random(seed())
    proxy = Proxy(own_server.address, 0.01, chance.randrange(1 << 32))
    ledger = Ledger()
    workers = Workers(proxy.address, "cut", ledger, 0.02)
    ids: list[str] = []
    end = time.monotonic() + (60 if DEEP else 10)

    def produce(name: str) -> None:
        with delayq.Client(proxy.address, timeout=5) as client:
            number = 0
            while time.monotonic() < end:
                number += 1
                if number % 10:
                    ids.append(client.enqueue("cut", None, "x", backoff="100ms"))
                else:
                    # With an id of the caller, an enqueue that is sent again replaces the job also if it runs already: these wait.
                    made = client.enqueue_many([delayq.NewJob("cut", f"{name}-{number}-{at}" if at % 2 else None, "x", process_in=3 * (at % 2),
                                                              backoff="100ms") for at in range(10)])
                    ids.extend([id for id in made if isinstance(id, str)])
                    assert len(made) == 10 and all(isinstance(id, str) for id in made)
                time.sleep(0.005)

    producers = [threading.Thread(target=produce, args=(name,)) for name in "ab"]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join(2 * DEADLINE)
        assert not producer.is_alive()
    proxy.calm()
    wait_for(lambda: set(ledger.ended) >= set(ids), f"all jobs have run; {len(set(ids) - set(ledger.ended))} of {len(ids)} have not")
    workers.stop()
    print(f"{len(ids)} jobs, {proxy.cuts} of {proxy.connections} connections cut, {sum(ledger.ended.values()) - len(ledger.ended)} ran again")
    assert proxy.cuts > (30 if DEEP else 5)
    assert ledger.at_once == []
    assert min(workers.ended_by.values()) > 0
    proxy.close()
    check_all_done(own_server.address, "cut", ids)
