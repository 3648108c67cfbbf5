"""What Client and AsyncClient have in common: their options, and what is sent again when."""
from __future__ import annotations

import random
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import _resp
from ._commands import Command, text
from ._resp import Reply
from .errors import Error

PORT: Final = 9278
# How much of a call is on its way at once.
MOST_COMMANDS: Final = 4096
MOST_BYTES: Final = 4 * 1024 * 1024


class Lost(Error):
    """There was no answer. `sent`: the command may have been carried out."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__("unavailable", message)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Options:
    host: str
    port: int
    token: str | None
    token_name: str | None
    tls: ssl.SSLContext | None
    timeout: float
    connect_timeout: float
    retry_for: float

    @property
    def where(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def make_options(address: str, token: str | None, token_name: str | None, tls: ssl.SSLContext | bool, timeout: float,
                 connect_timeout: float, retry_for: float) -> Options:
    host, port = _split(address)
    context = ssl.create_default_context() if tls is True else tls or None
    if timeout <= 0 or connect_timeout <= 0 or retry_for < 0:
        raise Error("invalid", "timeout, connect_timeout: must be above 0 seconds, and retry_for must not be below 0")
    return Options(host, port, token, token_name, context, timeout, connect_timeout, retry_for)


def _split(address: str) -> tuple[str, int]:
    """HOST, HOST:PORT, [HOST] or [HOST]:PORT."""
    host, port = address, ""
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.removeprefix(":")
    elif address.count(":") == 1:
        host, _, port = address.partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise Error("invalid", f"address: {address!r} is not HOST or HOST:PORT")
    return host, int(port or PORT)


def greeting(options: Options) -> bytes:
    """The first command of a connection."""
    words = [b"HELLO", b"3"]
    if options.token is not None:
        words += [b"AUTH", text("token_name", options.token_name or "default"), text("token", options.token)]
    return _resp.encode([*words, b"SETNAME", b"delayq-python"])


def backoff(failures: int) -> float:
    """Seconds until the next try, after this many failures in a row: 50 ms, doubled each time, at most 2 s, less up to half of it."""
    return min(0.05 * 2.0 ** min(failures, 10), 2.0) * random.uniform(0.5, 1.0)


def slices(commands: Sequence[Command[Any]], most_commands: int, most_bytes: int) -> Iterator[Sequence[Command[Any]]]:
    """Parts of so many commands, in their order. A command with a large reply is the last of its part."""
    begin, size = 0, 0
    for at, command in enumerate(commands):
        size += len(command.data)
        if at + 1 - begin >= most_commands or size >= most_bytes or command.large:
            yield commands[begin:at + 1]
            begin, size = at + 1, 0
    if begin < len(commands):
        yield commands[begin:]


class Rounds:
    """The commands of one call: which have to be sent now, and what became of the others.

    `results` has for each command its result, or an Error. A command is sent again, for at most `retry_for` seconds, if it
    certainly was not carried out, or if a second time changes nothing.
    """

    def __init__(self, commands: Sequence[Command[Any] | Error], retry_for: float, now: float) -> None:
        self.results: list[Any] = list(commands)
        self._commands = commands
        self._open = [at for at, command in enumerate(commands) if not isinstance(command, Error)]
        self._until = now + retry_for
        self._failures = 0

    def due(self) -> list[Command[Any]]:
        return [command for command in map(self._commands.__getitem__, self._open) if not isinstance(command, Error)]

    def absorb(self, replies: Sequence[Reply], now: float) -> float | None:
        """Takes the replies to `due()`. Returns after how many seconds the next round begins; None if there is none."""
        again: list[int] = []
        pause = 0.0
        for at, reply in zip(self._open, replies):
            command = self._commands[at]
            assert not isinstance(command, Error)
            if not isinstance(reply, Error):
                self.results[at] = decoded(command, reply)
            else:
                self.results[at] = reply
                if _may_repeat(command, reply):
                    again.append(at)
                    if command.again is not None and (not isinstance(reply, Lost) or reply.sent):
                        command.data = command.again()
                        command.again = None
                    if reply.retry_after is not None:
                        pause = max(pause, reply.retry_after.total_seconds())
        self._open = again
        pause = max(pause, backoff(self._failures))
        self._failures += 1
        return pause if again and now + pause <= self._until else None


def _may_repeat(command: Command[Any], reply: Error) -> bool:
    if isinstance(reply, Lost):
        return command.repeats or not reply.sent
    # `unavailable` may come from behind the server, after it has done its part.
    return reply.retryable and (command.repeats or reply.code != "unavailable")


def decoded(command: Command[Any], reply: Reply) -> Any:
    """The result of a command, or the Error that its reply makes no sense."""
    try:
        return command.decode(reply)
    except (AttributeError, TypeError, ValueError) as problem:
        return Error("internal", f"a reply of the server could not be understood: {problem}")
