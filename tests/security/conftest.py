"""A scratch directory for each test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """A scratch directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        yield Path(scratch)
