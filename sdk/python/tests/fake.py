"""A server that answers as a test says: with what a real one does only in trouble."""
from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from support import DEADLINE

Command = list[bytes]
HELLO = b"%1\r\n$6\r\nserver\r\n$6\r\ndelayq\r\n"


class FakeServer:
    """Calls `answer(connection number, words)` for each command but HELLO. The answer is bytes, or None: then the connection is closed."""

    def __init__(self, answer: Callable[[int, Command], bytes | None], hello: bytes = HELLO) -> None:
        self._answer = answer
        self._hello = hello
        self.commands: list[Command] = []
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            one.close()

    def of(self, verb: bytes) -> list[Command]:
        """The commands of this verb that have come."""
        return [words for words in self.commands if words[0] == verb]

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            one.settimeout(DEADLINE)
            self.connections += 1
            self._sockets.append(one)
            threading.Thread(target=self._serve, args=(one, self.connections), daemon=True).start()

    def _serve(self, one: socket.socket, number: int) -> None:
        try:
            with one, one.makefile("rb") as stream:
                while line := stream.readline():
                    words = []
                    for _ in range(int(line[1:])):
                        words.append(stream.read(int(stream.readline()[1:]) + 2)[:-2])
                    if words[0] == b"HELLO":
                        one.sendall(self._hello)
                        continue
                    self.commands.append(words)
                    answer = self._answer(number, words)
                    if answer is None:
                        one.shutdown(socket.SHUT_RDWR)
                        return
                    one.sendall(answer)
        except (OSError, ValueError):
            pass
