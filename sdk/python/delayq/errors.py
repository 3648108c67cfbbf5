"""What can go wrong."""
from __future__ import annotations

from datetime import timedelta
from typing import Final

RETRYABLE: Final = frozenset({"overloaded", "disk_full", "unavailable", "stopping"})


class Error(Exception):
    """A request was refused, or no answer came.

    `code` is one of invalid, too_large, conflict, not_found, stale_lease, overloaded, disk_full, unavailable, stopping,
    unauthorized, forbidden, corrupt and internal. A lost connection is `unavailable`: the request may or may not have been
    carried out. `retryable` says whether the same request may succeed later, and `retry_after` when, if the server says so.
    """

    def __init__(self, code: str, message: str, retry_after: timedelta | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        return self.code in RETRYABLE

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code
