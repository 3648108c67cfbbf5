"""Durations and moments: what callers write, and what is on the wire."""
from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Final, TypeAlias

from .errors import Error

Duration: TypeAlias = timedelta | float | str
"""A timedelta, a number of seconds, or a text of the server's, such as "1h30m"."""
Moment: TypeAlias = datetime | float | str
"""A datetime with a time zone, Unix seconds, or a text in the form of RFC 3339."""

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def from_duration(field: str, value: Duration) -> str:
    """A duration as the server reads it, rounded up to whole milliseconds: nothing happens earlier than was asked for."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return f"{-(value // timedelta(milliseconds=-1))}ms"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error("invalid", f"{field}: {value!r} is not a duration: use a timedelta, seconds, or a text such as \"30s\"")
    if not math.isfinite(value):
        raise Error("invalid", f"{field}: {value!r} is not a duration: it must be finite")
    return f"{math.ceil(round(value * 1000, 6))}ms"


def from_moment(field: str, value: Moment) -> str:
    """A moment as the server reads it: Unix seconds with three decimals."""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise Error("invalid", f"{field}: {value} has no time zone: use datetime.now().astimezone() or datetime.now(timezone.utc)")
        return f"{value.timestamp():.3f}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Error("invalid", f"{field}: {value!r} is not a moment: use a datetime with a time zone, Unix seconds, or a text in the form of RFC 3339")
    if not math.isfinite(value):
        raise Error("invalid", f"{field}: {value!r} is not a moment: it must be finite")
    return f"{value:.3f}"


def to_timedelta(text: str) -> timedelta:
    """The duration that the server wrote. ValueError if it is none."""
    at, seconds = 0, 0.0
    while at < len(text):
        found = _PART.match(text, at)
        if not found:
            raise ValueError(f"{text!r} is not a duration")
        seconds += float(found[1]) * _SECONDS[found[2]]
        at = found.end()
    if not text:
        raise ValueError("an empty text is not a duration")
    return timedelta(milliseconds=round(seconds * 1000))


def to_datetime(milliseconds: int) -> datetime:
    """The moment of Unix milliseconds, in UTC."""
    return datetime.fromtimestamp(milliseconds // 1000, timezone.utc) + timedelta(milliseconds=milliseconds % 1000)
