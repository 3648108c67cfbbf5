"""What all tests have: the library of this folder, and a server."""
from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import Server  # noqa: E402


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
