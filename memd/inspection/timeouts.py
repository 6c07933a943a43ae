"""Work that may never end, on threads that nobody has to wait for."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class StillRunning(msgspec.Struct, frozen=True):
    """The work did not end in its time."""

    patience_s: float


class WorkFailed(msgspec.Struct, frozen=True):
    """The work ended with an error."""

    error: BaseException


class BackgroundWork(Generic[T]):
    """Something that runs beside, from now on.

    A thread in a system call, as for a file on a dead network mount, cannot be ended. It is left behind, and goes with
    the process.
    """

    def __init__(self, do: Callable[[], T], patience_s: float) -> None:
        """Start it.

        Args:
            do: What is done; its errors become a Broken.
            patience_s: How long it may take from now, in seconds.
        """
        self._patience_s = patience_s
        self._deadline = time.monotonic() + patience_s
        self._outcome: T | WorkFailed | StillRunning = StillRunning(patience_s)
        self._thread = threading.Thread(target=self._run, args=(do,), daemon=True)
        self._thread.start()

    def _run(self, do: Callable[[], T]) -> None:
        try:
            self._outcome = do()
        except BaseException as error:  # noqa: BLE001 - a thread has nobody above it who could be told otherwise
            self._outcome = WorkFailed(error)

    def outcome(self) -> T | WorkFailed | StillRunning:
        """What it came to, as soon as it has ended or its time is over."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        return self._outcome
