"""Every snippet of the README and every example runs, and prints what it is said to print."""
from __future__ import annotations

import os
import pathlib
import re
import selectors
import signal
import subprocess
import sys
import time

import pytest
from support import DEADLINE, LIBRARY, Server

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
SNIPPETS = BLOCK.findall((LIBRARY / "README.md").read_text())
EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "close_order.py": (["0.5"], ["order 2 is paid; its closing was cancelled", "order 1 was not paid and is closed", "order 3 was not paid and is closed"]),
    "reminders.py": (["0.05"], ["space-b was renewed: 4 jobs cancelled", "space-a will be deleted in 7 days", "space-a will be deleted in 2 days",
                                "space-a will be deleted in 1 days", "space-a is deleted"]),
    "fetch_pages.py": ([], ["page of 0.1 s is fetched", "reserved", "gave up page of 600 s: cancelled"]),
}


def run(command: list[str], expected: list[str], is_endless: bool = True) -> None:
    """Runs a program until it has printed these lines. One that goes on then has to end well with SIGTERM."""
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert program.stdout is not None and program.stderr is not None
    said, deadline = b"", time.monotonic() + DEADLINE
    try:
        with selectors.DefaultSelector() as waiting:
            waiting.register(program.stdout, selectors.EVENT_READ)
            # Threads may print at the same time, so that two lines are one.
            while not all(line in said.decode() for line in expected):
                assert waiting.select(deadline - time.monotonic()), f"it said {said.decode()!r}"
                part = os.read(program.stdout.fileno(), 4096)
                if not part:
                    break
                said += part
        try:
            program.wait(0.5 if is_endless else DEADLINE)
        except subprocess.TimeoutExpired:
            program.send_signal(signal.SIGTERM)
        rest, errors = program.communicate(timeout=DEADLINE)
    finally:
        program.kill()
        program.wait()
    assert all(line in (said + rest).decode() for line in expected), errors.decode()
    assert program.returncode == 0, errors.decode()


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 7
    assert {path.name for path in (LIBRARY / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet(number: int, tmp_path: pathlib.Path) -> None:
    code, output = SNIPPETS[number]
    server = Server()
    try:
        path = tmp_path / "snippet.py"
        path.write_text(code.replace("127.0.0.1:9278", server.address))
        run([sys.executable, str(path)], output.splitlines(), is_endless="worker.run()" in code)
    finally:
        server.close()


def test_the_first_snippet_is_short() -> None:
    assert len([line for line in SNIPPETS[0][0].splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, server: Server) -> None:
    options, expected = EXAMPLES[name]
    run([sys.executable, str(LIBRARY / "examples" / name), server.address, *options], expected)
