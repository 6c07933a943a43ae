"""What led to a difference, kept in a file from which it can be repeated."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.faults.verdict import Diverged


class History(msgspec.Struct, frozen=True):
    """Rounds, as the way has them that they belong to."""

    way: str
    rounds: msgspec.Raw


def read(file: Path) -> History:
    """The history in a file."""
    return msgspec.json.decode(file.read_bytes(), type=History)


def keep(way: str, rounds: Sequence[Any], directory: Path, told: str) -> Diverged:
    """Write a history down; the error that tells of it.

    Args:
        way: Of the rounds.
        rounds: The last one made the difference.
        directory: Where everything is.
        told: What the difference is.
    """
    kept = directory / "history.json"
    kept.write_bytes(msgspec.json.encode(History(way, msgspec.Raw(msgspec.json.encode(rounds)))))
    return Diverged(
        f"round {len(rounds)} of {way}:\n{told}\n"
        f"Everything is in {directory}. To see it again:\n    python -m tests.faults --replay {kept}"
    )


def scratch() -> Path:
    """A new directory, short enough for a socket."""
    # It is processes that die here, not the machine: what is kept in memory alone outlives them, and is fast.
    memory = "/dev/shm"
    return Path(tempfile.mkdtemp(prefix="memd-", dir=memory if os.access(memory, os.W_OK) else None))
