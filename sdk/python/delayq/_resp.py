"""RESP3 without sockets: commands to bytes, and bytes to replies."""
from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from ._times import to_timedelta
from .errors import Error

Reply = Any
"""bytes, int, float, bool, None, a list, a dict with keys of bytes, or an Error."""

LONGEST_LINE: Final = 64 * 1024
LARGEST_REPLY: Final = 256 * 1024 * 1024
"""A server may allow bodies of 64 MiB, and a pop of several jobs ends at 8 MiB."""
MOST_ITEMS: Final = 2_000_000
DEEPEST: Final = 8


_CODES: Final = {
    "INVALID": "invalid",
    "TOOLARGE": "too_large",
    "CONFLICT": "conflict",
    "NOTFOUND": "not_found",
    "STALELEASE": "stale_lease",
    "OVERLOADED": "overloaded",
    "DISKFULL": "disk_full",
    "UNAVAILABLE": "unavailable",
    "STOPPING": "stopping",
    "NOAUTH": "unauthorized",
    "NOPERM": "forbidden",
    "CORRUPT": "corrupt",
    "INTERNAL": "internal",
}
_TRY_AGAIN: Final = re.compile(r"\(try again in ([^)]*)\)")


class ProtocolError(Exception):
    """What came is not RESP, or is larger than any reply may be."""


def encode(words: Iterable[bytes]) -> bytes:
    """A command."""
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%b" % (len(parts), b"".join(parts))


class Parser:
    """Makes replies of the bytes that arrive. Keeps what is not complete yet; what it keeps is bounded by LARGEST_REPLY.

    A ProtocolError is final: the connection has to be closed.
    """

    def __init__(self) -> None:
        self._data = b""
        self._parts: list[bytes] = []  # what came after _data, if that is known to be too little
        self._size = 0  # of _data and _parts
        self._needed = 0  # how much is needed to go on
        self._reply_size = 0  # of the reply that is being read, without what is in _data
        self._items = 0  # of the reply that is being read, so many were announced
        self._stack: list[tuple[bytes, int, list[Reply]]] = []  # open aggregates: kind, number of items, items

    def feed(self, data: bytes) -> list[Reply]:
        """Returns the replies that are complete now."""
        self._size += len(data)
        if self._size < self._needed:
            self._parts.append(data)
            return []
        if self._parts:
            self._data = b"".join((self._data, *self._parts, data))
            self._parts.clear()
        else:
            self._data = self._data + data if self._data else data
        replies: list[Reply] = []
        at = self._parse(replies)
        self._data = self._data[at:]
        self._size = len(self._data)
        if self._stack:
            self._reply_size += at
            if self._reply_size > LARGEST_REPLY:
                raise ProtocolError("a reply is too large")
        else:
            self._reply_size = 0
        return replies

    def _parse(self, replies: list[Reply]) -> int:
        """Reads as many replies as are complete. Returns where the first item begins that is not."""
        data, stack, at = self._data, self._stack, 0
        self._needed = 0
        while True:
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > LONGEST_LINE:
                    raise ProtocolError("a line is too long")
                return at
            kind = data[at:at + 1]
            value: Reply
            if kind == b"$" or kind == b"=" or kind == b"!":
                length = _length(data[at + 1:end])
                begin = end + 2
                if length < 0:
                    value, at = None, begin
                else:
                    if length > LARGEST_REPLY:
                        raise ProtocolError("a text is too long")
                    if len(data) < begin + length + 2:
                        # What is before `at` is cut off after this.
                        self._needed = begin + length + 2 - at
                        return at
                    value = data[begin:begin + length]
                    at = begin + length + 2
                    if kind != b"$":
                        value = from_reply(value) if kind == b"!" else value[4:]
            elif kind == b"*" or kind == b"%" or kind == b"~" or kind == b">":
                count = _length(data[at + 1:end])
                at = end + 2
                if count < 0:
                    value = None
                else:
                    count *= 2 if kind == b"%" else 1
                    self._items = self._items + count if stack else count
                    if self._items > MOST_ITEMS or len(stack) >= DEEPEST:
                        raise ProtocolError("a reply has too many items")
                    if count > 0:
                        stack.append((kind, count, []))
                        continue
                    value = {} if kind == b"%" else []
            else:
                value = _scalar(kind, data[at + 1:end])
                at = end + 2
            while stack:
                kind, count, items = stack[-1]
                items.append(value)
                if len(items) < count:
                    break
                stack.pop()
                value = _aggregate(kind, items)
            else:
                if kind != b">":  # a server of this version pushes nothing
                    replies.append(value)


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        raise ProtocolError(f"{text[:40]!r} is not a number") from None


def _length(text: bytes) -> int:
    """-1: null, as RESP2 writes it."""
    length = _number(text)
    if length < -1:
        raise ProtocolError(f"{length} is not a length")
    return length


def _aggregate(kind: bytes, items: list[Reply]) -> Reply:
    if kind != b"%":
        return items
    try:
        return dict(zip(items[::2], items[1::2]))
    except TypeError:
        raise ProtocolError("a key of a map is not a text") from None


def _scalar(kind: bytes, text: bytes) -> Reply:
    if kind == b"+":
        return text
    if kind == b":" or kind == b"(":
        return _number(text)
    if kind == b"-":
        return from_reply(text)
    if kind == b"_":
        return None
    if kind == b"#":
        return text == b"t"
    if kind == b",":
        try:
            return float(text)
        except ValueError:
            raise ProtocolError(f"{text[:40]!r} is not a number") from None
    raise ProtocolError(f"{(kind + text)[:40]!r} is not a reply")


def from_reply(line: bytes) -> Error:
    """The error of an error reply, given without its `-` and its end of line."""
    text = line.decode(errors="replace")
    word, _, message = text.partition(" ")
    code = _CODES.get(word)
    if code is None:
        return Error("internal", text)
    return Error(code, message, _retry_after(message))


def _retry_after(message: str) -> timedelta | None:
    found = _TRY_AGAIN.search(message)
    try:
        return to_timedelta(found[1]) if found else None
    except ValueError:
        return None
