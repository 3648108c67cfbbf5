"""One connection that many threads share: what they send at the same time goes out as one pipeline."""
from __future__ import annotations

import os
import socket
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from ._calls import MOST_BYTES, MOST_COMMANDS, Lost, Options, greeting, slices
from ._commands import Command
from ._resp import Parser, ProtocolError, Reply
from .errors import Error

# What is sent before replies are read. A server reads no further commands while a client has 1 MiB of unread replies, so the
# replies to one part must be smaller. Two parts are on their way at once.
_PART_COMMANDS: Final = 1024
_PART_BYTES: Final = 256 * 1024


class _Connection:
    """A socket after HELLO. OSError, ProtocolError or Error from any call mean that it has to be closed."""

    def __init__(self, options: Options) -> None:
        self._parser = Parser()
        self._replies: deque[Reply] = deque()
        plain = socket.create_connection((options.host, options.port), options.connect_timeout)
        self._socket: socket.socket = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if options.tls is not None:
                self._socket = options.tls.wrap_socket(plain, server_hostname=options.host)
            self.send(greeting(options))
            reply = self.read()
            if isinstance(reply, Error):
                raise reply
            self._timeout = options.timeout
            self._socket.settimeout(options.timeout)
        except BaseException:
            self._socket.close()
            raise

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self) -> Reply:
        while not self._replies:
            data = self._socket.recv(256 * 1024)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._replies.extend(self._parser.feed(data))
        return self._replies.popleft()

    def is_alive(self) -> bool:
        """Whether the connection, which has been idle, was not closed by the other side meanwhile."""
        self._socket.setblocking(False)
        try:
            data = self._socket.recv(4096)
            if not data or self._parser.feed(data):
                return False
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except (OSError, ProtocolError):
            return False
        self._socket.settimeout(self._timeout)
        return True

    def close(self) -> None:
        try:
            self._socket.close()
        except OSError:
            pass


class _Group:
    """The commands of one thread. `replies` is None until they are there."""
    __slots__ = ("commands", "replies", "woken", "leads")

    def __init__(self, commands: Sequence[Command[Any]]) -> None:
        self.commands = commands
        self.replies: list[Reply] | None = None
        self.woken: threading.Event | None = None
        self.leads = False


class Pipe:
    """Connects when it is needed, and again after a loss. Thread-safe.

    The first thread that comes leads: it sends what has been collected, for all, reads the replies, and hands the lead to
    one of those that came meanwhile. So no thread of our own is needed, and the longer a round takes, the larger the next one is.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._waiting: deque[_Group] = deque()
        self._has_leader = False
        self._connection: _Connection | None = None  # the leader's
        self._closed = False
        self._process = os.getpid()

    def exchange(self, commands: Sequence[Command[Any]]) -> list[Reply]:
        """Sends the commands and returns their replies. Those without a reply have a Lost, or the error of HELLO."""
        group = _Group(commands)
        with self._lock:
            if self._closed:
                raise Error("invalid", "the client is closed")
            self._waiting.append(group)
            if self._has_leader:
                group.woken = threading.Event()
            else:
                self._has_leader = group.leads = True
        try:
            if group.woken is not None:
                self._follow(group, group.woken)
            if group.leads:
                self._lead(group)
        except BaseException:  # such as KeyboardInterrupt
            self._leave(group)
            raise
        assert group.replies is not None
        return group.replies

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._has_leader:
                return  # it closes the connection
            self._drop()

    def belongs_to(self, process: int) -> bool:
        return self._process == process

    def abandon(self) -> None:
        """In a child process: closes our copy of the connection, which the parent goes on using."""
        if self._connection is not None:
            self._connection.close()

    def _follow(self, group: _Group, woken: threading.Event) -> None:
        """Waits for the replies, or for the lead."""
        options = self._options
        if woken.wait(options.connect_timeout + 3 * options.timeout):
            return
        with self._lock:
            if group.leads or group.replies is not None:
                return
            sent = group not in self._waiting
            if not sent:
                self._waiting.remove(group)
            group.replies = [Lost("no answer in time", sent=sent)] * len(group.commands)

    def _lead(self, own: _Group) -> None:
        groups: list[_Group] = []
        try:
            groups = self._take()
            replies = self._talk([command for group in groups for command in group.commands])
            at = 0
            with self._lock:
                for group in groups:
                    end = at + len(group.commands)
                    group.replies, at = replies[at:end], end
        finally:
            with self._lock:
                for group in groups:
                    if group.replies is None:  # an exception in this thread
                        self._drop()
                        group.replies = [Lost("interrupted", sent=True)] * len(group.commands)
                    if group.woken is not None:
                        group.woken.set()
            self._leave(own)

    def _leave(self, own: _Group) -> None:
        """The thread of this group goes. If it leads, another one does from now on."""
        with self._lock:
            if own in self._waiting:
                self._waiting.remove(own)
            if not own.leads:
                return
            own.leads = False
            if self._waiting:
                successor = self._waiting[0]
                successor.leads = True
                if successor.woken is not None:
                    successor.woken.set()
                return
            self._has_leader = False
            if self._closed:
                self._drop()

    def _take(self) -> list[_Group]:
        """The groups of the next round: the leader's own, which is the first, and others while there is room."""
        groups: list[_Group] = []
        commands, size = 0, 0
        with self._lock:
            while self._waiting:
                group = self._waiting[0]
                commands += len(group.commands)
                size += sum([len(command.data) for command in group.commands])
                if groups and (commands > MOST_COMMANDS or size > MOST_BYTES):
                    break
                groups.append(self._waiting.popleft())
        return groups

    def _talk(self, commands: Sequence[Command[Any]]) -> list[Reply]:
        replies: list[Reply] = []
        begun = 0  # how many may have reached the server
        try:
            connection = self._ready()
            read_before: list[int] = [0, 0]  # how many replies have to be read before the next part is sent
            for part in slices(commands, _PART_COMMANDS, _PART_BYTES):
                while len(replies) < read_before[0]:
                    replies.append(connection.read())
                data = part[0].data if len(part) == 1 else b"".join([command.data for command in part])
                begun += len(part)
                connection.send(data)
                read_before = [begun, begun] if part[-1].large else [read_before[1], begun]
            while len(replies) < len(commands):
                replies.append(connection.read())
        except (OSError, ProtocolError) as problem:
            self._drop()
            what = f"{self._options.where}: {problem or type(problem).__name__}"
            replies += [Lost(what, sent=at < begun) for at in range(len(replies), len(commands))]
        except Error as problem:  # the server did not accept HELLO
            self._drop()
            replies += [problem] * (len(commands) - len(replies))
        return replies

    def _ready(self) -> _Connection:
        if self._connection is not None and not self._connection.is_alive():
            self._drop()
        if self._connection is None:
            self._connection = _Connection(self._options)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
