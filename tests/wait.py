"""Waits for conditions; the only code of the tests that sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_S, _LONGEST_STEP_S = 0.005, 0.05
# Waits may take this many times as long as on an idle machine. A long limit costs nothing, since a wait ends with its condition.
_BUSY = 4


def until(condition: Callable[[], T], timeout_s: float = 5.0) -> T:
    """Return the first true value of the condition.

    Args:
        condition: Checked every few milliseconds at first, and less often later, since frequent checks slow down what is
            waited for; and once more at the end.
        timeout_s: The time limit on an idle machine, in seconds; a busy machine gets more.

    Raises:
        AssertionError: the condition was not true in time.
    """
    deadline = time.monotonic() + _BUSY * timeout_s
    while True:
        late = time.monotonic() >= deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(_complaint(condition, timeout_s))
        time.sleep(_step_s(deadline - time.monotonic(), timeout_s))


async def until_async(
    condition: Callable[[], T], timeout_s: float = 5.0, *, clock: Callable[[], float] = time.monotonic
) -> T:
    """Like until, but without blocking the event loop; the clock may be that of a loop on which waits take no time."""
    deadline = clock() + _BUSY * timeout_s
    while True:
        late = clock() >= deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(_complaint(condition, timeout_s))
        await asyncio.sleep(_step_s(deadline - clock(), timeout_s))


async def until_awaited(ask: Callable[[], Awaitable[T]], timeout_s: float = 5.0) -> T:
    """Await the result of a function again and again, such as a reply of a daemon, and return the first true one; see until."""
    deadline = time.monotonic() + _BUSY * timeout_s
    while True:
        late = time.monotonic() >= deadline
        if answer := await ask():
            return answer
        if late:
            raise AssertionError(_complaint(ask, timeout_s))
        await asyncio.sleep(_step_s(deadline - time.monotonic(), timeout_s))


def _step_s(left_s: float, timeout_s: float) -> float:
    """Return the pause until the next check: a twentieth of the time waited so far."""
    waited_s = _BUSY * timeout_s - left_s
    return min(max(_STEP_S, waited_s / 20), _LONGEST_STEP_S)


def _complaint(condition: Callable[[], object], timeout_s: float) -> str:
    return f"not true within {_BUSY * timeout_s} s: {getattr(condition, '__qualname__', condition)}"
