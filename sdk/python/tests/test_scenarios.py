"""The scenarios of sdk/spec, with both halves of the library."""
from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from scenarios import Failed, Runner, check
from support import DEADLINE, SPEC, Server

from delayq._resp import Parser
from delayq.errors import Error

FILES = {path.stem: json.loads(path.read_text()) for path in sorted(SPEC.glob("*.json"))}
SCENARIOS = {name: file for name, file in FILES.items() if "scenarios" in file}
CASES = [(name, half, number) for name in SCENARIOS for half in ("blocking", "asyncio") for number in range(len(SCENARIOS[name]["scenarios"]))]


def test_there_are_scenarios() -> None:
    assert set(FILES) == set(SCENARIOS) | {"replies", "wire"}
    assert len(CASES) > 80
    for file in SCENARIOS.values():
        assert not set(file) - {"about", "server", "scenarios"}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[tuple[str, str], Server]]:
    """By file and half: one server each."""
    running: dict[tuple[str, str], Server] = {}
    yield running
    for server in running.values():
        server.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{SCENARIOS[case[0]]['scenarios'][case[2]]['name']}")
def test_scenario(servers: dict[tuple[str, str], Server], case: tuple[str, str, int]) -> None:
    name, half, number = case
    file = SCENARIOS[name]
    if (name, half) not in servers:
        for key in list(servers):
            servers.pop(key).close()
        servers[name, half] = Server(file.get("server", ""))
    Runner(servers[name, half].address, half == "asyncio").run(file["scenarios"][number])


@pytest.mark.parametrize("row", FILES["replies"]["replies"], ids=[row["line"][:30] for row in FILES["replies"]["replies"]])
def test_reply(row: dict[str, Any]) -> None:
    assert set(row) == {"line", "code", "message", "retryable", "retry_after"}
    (error,) = Parser().feed(row["line"].encode() + b"\r\n")
    assert isinstance(error, Error)
    after = error.retry_after
    assert (error.code, error.message, error.retryable) == (row["code"], row["message"], row["retryable"])
    assert (after and after.total_seconds() * 1000) == row["retry_after"]


@pytest.mark.parametrize("step", [
    {"do": "explode"}, {"do": "get", "topic": "t", "id": "1", "colour": "red"}, {"do": "job"},
    {"do": "get", "topic": "t", "id": "none", "result": {"state": "done"}}, {"do": "get", "topic": "t", "id": "none", "error": "not_found"},
    {"do": "enqueue", "topic": "", "id": "1", "payload": "x"}, {"do": "enqueue", "topic": "", "id": "1", "payload": "x", "error": "conflict"},
    {"do": "work", "handlers": {"t": []}, "options": {"colour": 1}},
])
@pytest.mark.parametrize("half", ["blocking", "asyncio"])
def test_the_runner_can_fail(server: Server, step: dict[str, Any], half: str) -> None:
    with pytest.raises(Failed):
        Runner(server.address, half == "asyncio").run({"name": "wrong", "steps": [step]})


@pytest.mark.parametrize("expected, actual", [
    ("a", "b"), ({"a": 1}, {"a": 2}), ({"a": None}, {"a": 2}), ([1], [1, 2]), ({"near": 0}, 5), ({"contains": "x"}, "y"), ({"contains": "x"}, None),
    ({"bytes_at_most": 2}, "abc"), ({"json": {"a": 1}}, b'{"a": 2}'), ({"base64": "AAE="}, b"x"), (1, True), (None, ""), (True, 1)])
def test_a_mismatch_is_found(expected: Any, actual: Any) -> None:
    with pytest.raises(Failed):
        check(expected, actual, {})


CALLS = FILES["wire"]["calls"]


@pytest.mark.parametrize("half", ["blocking", "asyncio"])
@pytest.mark.parametrize("call", CALLS, ids=[call["name"] for call in CALLS])
def test_call(call: dict[str, Any], half: str) -> None:
    assert set(FILES["wire"]) == {"about", "calls"}
    assert not set(call) - {"name", "client", "server", "step", "sent"}
    options = {name: value if name == "tls" else value / 1000 for name, value in call.get("client", {}).items()}
    with subprocess.Popen([sys.executable, "-B", str(SPEC / "wire.py"), call["name"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdout is not None
        address = f"127.0.0.1:{int(peer.stdout.readline())}"
        began = time.monotonic()
        try:
            Runner(address, half == "asyncio").run({"name": call["name"], "clients": {"it": options}, "steps": [{"client": "it", **call["step"]}]})
        finally:
            difference, _ = peer.communicate(timeout=DEADLINE)
    assert peer.returncode == 0, difference
    assert time.monotonic() - began < 30
