"""A redis-server of one's own, for tests that need one: on a free loopback port, in a temporary directory, killed by its number."""
import signal
import socket
import subprocess
import time

import redis

from harness import DEADLINE


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class RedisServer:
    """Its jobs survive kill(): every command is in the append-only file before it is answered."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(exist_ok=True)
        self.port = free_port()
        self.process = None
        self.start()

    def url(self, database=0):
        return f"redis://127.0.0.1:{self.port}/{database}"

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory), "--save", "",
             "--appendonly", "yes", "--appendfsync", "always"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.exceptions.RedisError:
                assert time.monotonic() < deadline and self.process.poll() is None, "redis-server did not start"

    def client(self, database=0):
        return redis.Redis(port=self.port, db=database, socket_timeout=DEADLINE)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)

    def close(self):
        if self.process.poll() is None:
            self.kill()
