"""A scratch daemon for each test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.namespaced import Namespaced
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


@pytest.fixture
def own(home: Path) -> Iterator[Namespaced]:
    """The same in namespaces of its own, with mounts and limits that end with it."""
    one = Namespaced(home)
    try:
        yield one
    finally:
        one.__exit__(None, None, None)
