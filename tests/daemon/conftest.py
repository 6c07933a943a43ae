"""A scratch daemon for each test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.process import Daemon


@pytest.fixture
def home() -> Iterator[Path]:
    """A scratch directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        yield Path(scratch)


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    """A daemon that is not started yet, and is ended after the test."""
    one = Daemon(home)
    try:
        yield one
    finally:
        one.__exit__(None, None, None)
