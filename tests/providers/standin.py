"""A worker that does what a text tells it to, and speaks the real protocol in the real process."""

import ctypes
import os
import signal
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from memd.providers.local import bundled_model, worker
from memd.providers.local.provider import LocalProvider
from memd.providers.provider import Vector

COMMAND = (sys.executable, __file__)


def provider(**settings: Any) -> LocalProvider:
    """A local provider with this worker, started again after no time worth mentioning, unless settings differ."""
    return LocalProvider(
        bundled_model.find(), Random(7), **{"command": COMMAND, "first_wait_s": 0.02, **settings}
    )


def vector_of(text: str) -> Vector:
    """The vector that this worker gives a text: of length 1, and of no other text."""
    row = (
        np.random.default_rng(zlib.crc32(text.encode()))
        .standard_normal(bundled_model.DIMENSIONS)
        .astype(np.float32)
    )
    unit: Vector = row / np.linalg.norm(row)
    return unit


def rows_of(texts: Sequence[str]) -> Vector:
    """The vectors that this worker gives some texts, shape (n, 384)."""
    return np.array([vector_of(text) for text in texts], np.float32)


class Scripted:
    """Obeys the first word of a text."""

    def passage(self, text: str) -> Vector:
        word, _, rest = text.partition(" ")
        _ACTS.get(word, _nothing)(rest)
        match word:
            case "nan":
                return np.full(bundled_model.DIMENSIONS, np.nan, np.float32)
            case "short":
                return np.ones(3, np.float32)
            case _:
                return vector_of(text)


def _nothing(_: str) -> None:
    pass


def _deaf(sign: str) -> None:
    # In C, as in the engine: Python's own handlers only run between two of its instructions.
    ctypes.CDLL(None).signal(signal.SIGTERM, ctypes.c_void_p(1))
    Path(sign).touch()
    time.sleep(60)


def _meet(signs: str) -> None:
    own, other = signs.split()
    Path(own).touch()
    while not Path(other).exists():  # of the tests' packages none can be imported here
        time.sleep(0.01)


def _exit_once(sign: str) -> None:
    if not Path(sign).exists():
        Path(sign).touch()
        os._exit(3)


_ACTS: dict[str, Callable[[str], object]] = {
    "exit": lambda _: os._exit(3),
    "exit-once": _exit_once,
    "crash": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda _: time.sleep(60),
    "pause": lambda _: time.sleep(0.2),
    "deaf": _deaf,
    "meet": _meet,
    "print": lambda _: os.write(1, b"a stray line"),
}


if __name__ == "__main__":
    worker.engine_threads = lambda: 2  # as on a machine with two cores
    version = sys.argv[1] if len(sys.argv) > 1 else bundled_model.find().version
    worker.serve(version, Scripted)
