"""The bundled model's provider with a worker that hashes: the real process, in no time worth mentioning.

    python -m tests.fakes.hashing_worker DIRECTORY

The directory says whose worker it is, to whoever looks what runs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from memd.providers.local import bundled_model, worker
from memd.providers.local.provider import LocalProvider
from memd.providers.provider import Vector, Vectors
from tests.fakes import HashingProvider

_HASHING = HashingProvider(dimensions=bundled_model.DIMENSIONS)


def embed(texts: Sequence[str]) -> Vectors:
    """The vectors that the provider gives for passages, shape (n, 384)."""
    return _HASHING.embed(texts)


class Hashing:
    """A model."""

    def passage(self, text: str) -> Vector:
        """The vector of a text, shape (384,)."""
        row: Vector = _HASHING.embed([text])[0]
        return row


class Provider(LocalProvider):
    """Passages in the worker; questions here, by the same hashing."""

    async def embed_query(self, text: str) -> Vector:
        row: Vector = _HASHING.embed([text])[0]
        return row


P = TypeVar("P", bound=Provider)


def provider(directory: Path, kind: type[P]) -> P:
    """A provider whose worker is that of a directory."""
    command = (sys.executable, "-m", "tests.fakes.hashing_worker", str(directory))
    return kind(bundled_model.find(), Random(), command=command, first_wait_s=0.02)


def running(directory: Path) -> list[int]:
    """The workers of a directory that run."""
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _is_worker(entry, directory)]


def _is_worker(entry: Path, directory: Path) -> bool:
    try:
        command = entry.joinpath("cmdline").read_bytes()  # of a process that is over, it is empty
    except OSError:
        return False
    return command.endswith(f"\0{directory}\0".encode()) and b"tests.fakes.hashing_worker" in command


if __name__ == "__main__":
    worker.serve(bundled_model.find().version, Hashing)
