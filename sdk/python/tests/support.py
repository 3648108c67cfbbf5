"""A real server for tests, and a proxy that cuts connections. Everything waits for an event, with a deadline."""
from __future__ import annotations

import os
import pathlib
import random
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

LIBRARY = pathlib.Path(__file__).resolve().parent.parent
ROOT = LIBRARY.parent.parent
SPEC = ROOT / "sdk" / "spec"
PROGRAM = os.environ.get("DELAYQ", str(ROOT / "build" / "release" / "delayq"))
DEADLINE = 60.0
DEEP = os.environ.get("DELAYQ_SDK_DEEP", "") not in ("", "0")


def wait_for(condition: Callable[[], object], what: str, seconds: float = DEADLINE) -> None:
    """For what another process or thread brings, and nothing tells of."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)


class Server:
    """A `delayq serve` on free ports with a directory of its own. `start` after `kill` gives it the same port and data again."""

    def __init__(self, configuration: str = "", *options: str) -> None:
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="delayq-python-"))
        self._options = list(options)
        if configuration:
            (self.directory / "delayq.toml").write_text(configuration)
            self._options += ["-c", str(self.directory / "delayq.toml")]
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [PROGRAM, "serve", "--resp", f"127.0.0.1:{self.port}", "--http", "127.0.0.1:0", "--data", str(self.directory / "data"),
                   "--log-level", "warn", *self._options]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        said = b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while waiting.select(DEADLINE):
                part = os.read(self.process.stdout.fileno(), 4096)
                said += part
                if found := re.search(rb"redis-cli (?:--tls )?-p (\d+) .*\n", said):
                    self.port = int(found[1])
                    return
                if not part:
                    break
        self.kill()
        raise AssertionError(f"the server did not start: {(self.directory / 'log').read_text()[-4000:]}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends the process and waits for it."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(DEADLINE)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class Proxy:
    """Passes bytes between clients and a server. A share of what passes cuts its connection instead, in the middle of the bytes."""

    def __init__(self, target: str, cut_share: float, seed: int) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._random = random.Random(seed)
        self._share = cut_share
        self.cuts = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._other: dict[socket.socket, socket.socket] = {}
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def calm(self) -> None:
        """Cuts no more."""
        self._share = 0.0

    def cut_all(self) -> None:
        """Cuts all connections at the next thing that passes."""
        self._share = 1.0

    def close(self) -> None:
        self._over = True
        self._thread.join(DEADLINE)
        for one in [*self._other, self._listener]:
            one.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._over:
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._other:
                    self._pass(key.fileobj)  # type: ignore[arg-type]

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target, 5)
        except OSError:
            client.close()
            return
        self.connections += 1
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.settimeout(5)
            self._other[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass(self, one: socket.socket) -> None:
        other = self._other[one]
        try:
            data = one.recv(65536)
            if not data:
                return self._drop(one)
            if self._random.random() < self._share:
                self.cuts += 1
                other.sendall(data[:self._random.randrange(len(data) + 1)])
                return self._drop(one)
            other.sendall(data)
        except OSError:
            self._drop(one)

    def _drop(self, one: socket.socket) -> None:
        for end in (one, self._other.pop(one)):
            self._other.pop(end, None)
            self._selector.unregister(end)
            end.close()


def seed() -> int:
    """For random choices that a failed test can repeat: DELAYQ_SEED=n."""
    number = int(os.environ.get("DELAYQ_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"DELAYQ_SEED={number}", file=sys.stderr)
    return number
