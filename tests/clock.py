"""Clocks that a test sets, and an event loop on which waits take no time."""

import asyncio
import contextlib
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Clock:
    """A monotonic clock in seconds that only the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def run(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds


class Ticking(Clock):
    """A clock that advances one second with each reading."""

    def __call__(self) -> float:
        self.now += 1
        return self.now


class _Hasty(selectors.SelectSelector):
    """Waits for nothing that has only to become late."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready:
            self.passed_s += timeout or 0.0
        return ready


class _HastyLoop(asyncio.SelectorEventLoop):
    """Hours pass at once where all that runs on it waits for a time: waits are as long as they are shipped."""

    def __init__(self) -> None:
        self._hasty = _Hasty()
        super().__init__(self._hasty)

    def time(self) -> float:
        return self._hasty.passed_s


def now_s() -> float:
    """Return the time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()


def hastily(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop where waits take no time, and return its result; nothing in it may wait for threads or processes."""
    with asyncio.Runner(loop_factory=_HastyLoop) as runner:
        return runner.run(main)


def run_hastily(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Have a test run on such a loop; see hastily."""

    @functools.wraps(test)
    def run(*given: P.args, **named: P.kwargs) -> None:
        hastily(test(*given, **named))

    return run


async def for_s(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Run an endless coroutine for some seconds, and cancel it."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)
