"""One connection of asyncio that many tasks share."""
from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from ._calls import Lost, Options, greeting
from ._commands import Command
from ._resp import Parser, ProtocolError, Reply, encode
from .errors import Error

# How much may be on its way. Who comes when there is more waits.
MOST_COMMANDS: Final = 8192
MOST_BYTES: Final = 8 * 1024 * 1024


class _Group:
    """The commands of one task, and their replies."""
    __slots__ = ("count", "size", "replies", "done", "patience")

    def __init__(self, count: int, size: int, done: asyncio.Future[list[Reply]], patience: float) -> None:
        self.count = count
        self.size = size
        self.replies: list[Reply] = []
        self.done = done
        self.patience = patience  # seconds without anything from the server after which the connection counts as broken


class Connection(asyncio.Protocol):
    """A connection after HELLO. Replies come in the order of the commands. When it is lost, all that wait get a Lost."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._parser = Parser()
        self._groups: deque[_Group] = deque()
        self._out: list[bytes] = []
        self._commands = 0  # on their way, and their bytes
        self._bytes = 0
        self._room: deque[asyncio.Future[None]] = deque()
        self._transport: asyncio.Transport | None = None
        self._heard = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._why = "the server closed the connection"
        self.lost = False
        self.ended = self._loop.create_future()

    @staticmethod
    async def open(options: Options) -> Connection:
        """Connects and greets. Raises Error."""
        connection = Connection(options)
        try:
            async with asyncio.timeout(options.connect_timeout):
                await connection._loop.create_connection(
                    lambda: connection, options.host, options.port, ssl=options.tls,
                    server_hostname=options.host if options.tls is not None else None)
                reply = (await connection._send(greeting(options), 1, options.timeout))[0]
        except (OSError, TimeoutError) as problem:
            connection.abort("")
            raise Lost(f"{options.where}: {problem or type(problem).__name__}", sent=False) from None
        except BaseException:
            connection.abort("")
            raise
        if isinstance(reply, Error):
            connection.abort("")
            raise Lost(reply.message, sent=False) if isinstance(reply, Lost) else reply
        return connection

    async def exchange(self, commands: Sequence[Command[Any]]) -> list[Reply]:
        """Sends the commands, and returns their replies. Waits until there is room for them."""
        while not self.lost and self._groups and (self._commands >= MOST_COMMANDS or self._bytes >= MOST_BYTES):
            room = self._loop.create_future()
            self._room.append(room)
            await room
        if self.lost:
            return [Lost(self._why, sent=False)] * len(commands)
        data = commands[0].data if len(commands) == 1 else b"".join([command.data for command in commands])
        return await self._send(data, len(commands), self._options.timeout)

    async def ask(self, words: Sequence[bytes], patience: float = 0.0) -> Reply:
        """One command, whose reply may take `patience` seconds longer than usual. An Error is returned, not raised."""
        if self.lost:
            return Lost(self._why, sent=False)
        return (await self._send(encode(words), 1, self._options.timeout + patience))[0]

    def _send(self, data: bytes, count: int, patience: float) -> asyncio.Future[list[Reply]]:
        done: asyncio.Future[list[Reply]] = self._loop.create_future()
        if not self._groups:
            self._heard = self._loop.time()
        self._groups.append(_Group(count, len(data), done, patience))
        self._commands += count
        self._bytes += len(data)
        if not self._out:
            # What other tasks send in this turn of the loop goes out together.
            self._loop.call_soon(self._flush)
        self._out.append(data)
        if self._watch is None:
            self._watch = self._loop.call_later(patience, self._look)
        return done

    def _flush(self) -> None:
        if self._transport is not None and self._out and not self.lost:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _look(self) -> None:
        """Ends the connection when the server has been silent for too long."""
        self._watch = None
        if not self._groups or self.lost:
            return
        rest = self._heard + self._groups[0].patience - self._loop.time()
        if rest <= 0:
            self.abort("the server does not answer")
        else:
            self._watch = self._loop.call_later(rest, self._look)

    def end_output(self) -> bool:
        """Tells the server that no further command comes, so that a pop that waits is over. False where that cannot be told."""
        if self._transport is None or self.lost or not self._transport.can_write_eof():
            return False
        self._flush()
        self._transport.write_eof()
        return True

    def abort(self, why: str) -> None:
        """Closes at once."""
        self._fail(why or self._why)
        if self._transport is not None:
            self._transport.abort()

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.lost:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=MOST_BYTES)
        plain = transport.get_extra_info("socket")
        if plain is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        try:
            replies = self._parser.feed(data)
        except ProtocolError as problem:
            self.abort(str(problem))
            return
        groups = self._groups
        for reply in replies:
            if not groups:
                self.abort("a reply came that nobody asked for")
                return
            group = groups[0]
            group.replies.append(reply)
            if len(group.replies) == group.count:
                groups.popleft()
                self._commands -= group.count
                self._bytes -= group.size
                if not group.done.done():
                    group.done.set_result(group.replies)
        if self._room and self._bytes < MOST_BYTES:
            self._wake(MOST_COMMANDS - self._commands)

    def connection_lost(self, problem: Exception | None) -> None:
        self._fail(str(problem) if problem else self._why)
        if not self.ended.done():
            self.ended.set_result(None)

    def _wake(self, most: int) -> None:
        """Lets so many of those go on that wait for room."""
        while self._room and most > 0:
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)
                most -= 1

    def _fail(self, why: str) -> None:
        if self.lost:
            return
        self.lost = True
        self._why = f"{self._options.where}: {why}"
        if self._watch is not None:
            self._watch.cancel()
        groups, self._groups = self._groups, deque()
        for group in groups:
            missing = group.count - len(group.replies)
            if not group.done.done():
                group.done.set_result(group.replies + [Lost(self._why, sent=True)] * missing)
        self._wake(len(self._room))


class AsyncPipe:
    """A connection that is made when it is needed, and again after a loss."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._closed = False

    async def exchange(self, commands: Sequence[Command[Any]]) -> list[Reply]:
        """Sends the commands and returns their replies. Those without a reply have a Lost, or the error of HELLO."""
        if self._closed:
            raise Error("invalid", "the client is closed")
        connection = self._connection
        if connection is None or connection.lost:
            try:
                connection = await self._open()
            except Error as problem:
                return [problem] * len(commands)
        return await connection.exchange(commands)

    async def _open(self) -> Connection:
        """All that need a connection at the same time wait for the same one."""
        if self._opening is None:
            self._opening = asyncio.create_task(Connection.open(self._options))
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def _opened(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if opening.cancelled() or opening.exception() is not None:
            return
        self._connection = opening.result()
        if self._closed:
            self._connection.abort("closed")

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.abort("the client was closed")
            await self._connection.ended
