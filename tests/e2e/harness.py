"""A real server on a real disk, and a plain RESP client, for tests that cross processes. Everything waits for
an event, with a deadline."""
import os
import pathlib
import random
import re
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEADLINE = 60.0
SANITIZED = os.environ.get("DELAYQ_SANITIZED", "") != ""  # its memory says nothing then
PROGRAM = os.environ.get("DELAYQ", str(ROOT / "build" / "release" / "delayq"))


def wait_for(condition, what, seconds=DEADLINE):
    """For what only time or another process brings. There is nothing to listen to, so it is asked a hundred times a second:
    more often would take from the one that is waited for."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)


class Server:
    """A `delayq serve` process. Killed when the test is over, whatever happened."""

    def __init__(self, data, *options, log=None):
        self.data = data
        self.options = options
        self.log = log  # the file for what it says; else it has one for each start, and stop() answers it
        self.said = None
        self.resp = "127.0.0.1:0"
        self.cwd = None
        self.process = None
        self.port = None
        self.http_port = None
        self.start()

    def command(self):
        return [PROGRAM, "serve", "--resp", self.resp, "--http", "127.0.0.1:0", "--data", str(self.data), "--log-level", "warn"]

    def start(self):
        if self.process is not None:
            self.close()
        # A pipe that nobody reads would be full one day, and the server would wait for ever.
        self.said = tempfile.TemporaryFile("w+b") if self.log is None else open(self.log, "a+b")
        self.process = subprocess.Popen(
            self.command() + list(self.options), stdout=subprocess.PIPE, stderr=self.said, cwd=self.cwd)
        said = b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while waiting.select(DEADLINE):
                part = os.read(self.process.stdout.fileno(), 4096)
                said += part
                if found := re.search(rb"redis-cli (?:--tls )?-p (\d+) .*\n.*https?://127.0.0.1:(\d+)/", said):
                    self.port, self.http_port = int(found[1]), int(found[2])
                    return
                if not part:
                    break
        self.process.kill()
        self.process.wait(DEADLINE)
        raise AssertionError(f"the server did not start: {self.read_said()[-4096:]}")

    def read_said(self):
        self.said.seek(0)
        return self.said.read().decode()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)
        self.close()

    def said_so_far(self):
        return os.pread(self.said.fileno(), 1 << 20, 0).decode(errors="replace")

    def stop(self, number=signal.SIGTERM):
        """Stops it gracefully and answers its exit code and what it said."""
        self.process.send_signal(number)
        self.process.wait(DEADLINE)
        said = self.read_said()
        code = self.process.returncode
        self.close()
        return code, said

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def cpu_seconds(self):
        """What the server has used: less than a rate, this depends on what else the machine does."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE)
        self.process.stdout.close()
        self.said.close()

    def client(self):
        return Client(self.port)


class Refused(Exception):
    """An error reply."""

    def __init__(self, text):
        super().__init__(text)
        self.code = text.split(" ", 1)[0]


class Client:
    """One connection. `ask` is one command; `ask_all` sends many before it reads their replies."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb", buffering=1 << 16)

    def send(self, *commands):
        self.socket.sendall(b"".join(encode(command) for command in commands))

    def ask(self, *words):
        self.send(words)
        reply = self.read()
        if isinstance(reply, Refused):
            raise reply
        return reply

    def ask_all(self, commands):
        self.send(*commands)
        return [self.read() for _ in commands]

    def read(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        sign, text = line[:1], line[1:-2]
        if sign == b"+":
            return text.decode()
        if sign == b"-":
            return Refused(text.decode())
        if sign == b":":
            return int(text)
        if sign == b"$":
            if text == b"-1":
                return None
            body = self.stream.read(int(text) + 2)
            if len(body) != int(text) + 2:
                raise ConnectionError("the server closed the connection")
            return body[:-2]
        assert sign == b"*", line
        return [self.read() for _ in range(int(text))]

    def stats(self, *topic):
        flat = self.ask("STATS", *topic)
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}

    def close(self):
        self.stream.close()
        self.socket.close()


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def now_ms():
    return time.time_ns() // 1_000_000


def new_random(usual_seed=None):
    """Random choices that a failed test can repeat: DELAYQ_SEED=n. New ones each time, unless there is a usual seed."""
    if usual_seed is None:
        usual_seed = random.SystemRandom().randrange(1 << 32)
    seed = int(os.environ.get("DELAYQ_SEED", usual_seed))
    print(f"DELAYQ_SEED={seed}", file=sys.stderr)
    return random.Random(seed)


class ServerTest(unittest.TestCase):
    """A test with a directory of its own; servers and clients made here are gone afterwards."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="delayq-e2e-", dir=os.environ.get("DELAYQ_E2E_DIR")))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def open_terminal(self):
        """Both ends of a terminal, the one that shows it first. A chroot without /dev/pts has none."""
        try:
            return os.openpty()
        except OSError as problem:
            if pathlib.Path("/dev/pts/ptmx").exists():
                raise
            return self.skipTest(f"there are no terminals here, since /dev/pts is not mounted: {problem}")

    def serve(self, *options):
        server = Server(self.directory / "data", *options)
        self.addCleanup(server.close)
        return server

    def connect(self, server):
        client = server.client()
        self.addCleanup(client.close)
        return client

    wait_for = staticmethod(wait_for)


def main():
    unittest.main(module="__main__", verbosity=2)
