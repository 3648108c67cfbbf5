"""Where jobs are kept: the engines, each with its servers, and what of a job may be lost with them."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from harness import DEADLINE, Client, Server, now_ms, wait_for


class Place:
    count = 1                # of servers
    keeps_jobs = True        # over a restart
    may_lose_leases = False  # with kill -9: a hand-over need not be on disk
    slack = 2                # by which clocks and rounding may differ, in milliseconds
    lateness = 300           # so long after its time the server may notice it

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="delayq-model-", dir=os.environ.get("DELAYQ_E2E_DIR")))
        self.servers = []

    def options(self):
        return ()

    def open(self):
        for number in range(self.count):
            self.servers.append(Server(self.directory / "data", *self.options(), "--set", "server.grace=0s",
                                       log=self.directory / f"server-{number}.log"))
        return self

    def stop(self, server):
        code, _ = server.stop()
        assert code == 0, f"the server ended with {code}"
        server.start()

    def kill(self, server):
        server.kill()
        server.start()

    def close(self, keep_logs=False):
        for server in self.servers:
            server.close()
        if not keep_logs:
            shutil.rmtree(self.directory, ignore_errors=True)


class Memory(Place):
    keeps_jobs = False

    def options(self):
        return ("--engine", "memory")


class Journal(Place):
    may_lose_leases = True

    def options(self):
        return ("--engine", "journal", "--set", "journal.segment=1MiB")


class Redis(Place):
    slack = 50
    taking_over = 3_000  # another server, or the next life of this one, goes on for one that was killed within two seconds

    def __init__(self):
        super().__init__()
        self.port = self.process = None
        self.killed_at = 0

    def open(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with open(self.directory / "redis.log", "ab") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory), "--save", "",
                 "--appendonly", "yes"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self.answers, "Redis answers")
        return super().open()

    def answers(self):
        try:
            client = Client(self.port)
        except OSError:
            return False
        try:
            return client.ask("PING") == "PONG"
        finally:
            client.close()

    @property
    def lateness(self):
        return self.taking_over if now_ms() < self.killed_at + 2 * self.taking_over else 500

    def kill(self, server):
        super().kill(server)
        self.killed_at = now_ms()

    def options(self):
        return ("--engine", "redis", "--redis", f"redis://127.0.0.1:{self.port}")

    def close(self, keep_logs=False):
        for server in self.servers:
            server.close()
        if self.process:
            self.process.kill()
            self.process.wait(DEADLINE)
        super().close(keep_logs)


class TwoOnRedis(Redis):
    count = 2


PLACES = {"memory": Memory, "journal": Journal, "redis": Redis, "redis2": TwoOnRedis}
