"""Waiting for a condition: the only code of the tests that sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_STEP_S, _LONGEST_STEP_S = 0.005, 0.05
# Waits may last so many times as long as on an idle machine: what is waited for ends the wait, so that patience costs nothing.
_BUSY = 4


def until(condition: Callable[[], T], timeout_s: float = 5.0) -> T:
    """The first true value of the condition.

    Args:
        condition: Asked after a few milliseconds, and less often the longer it takes: whoever is asked all the time is
            slower at what is waited for. And once more at the end of the time.
        timeout_s: How long it may take on an idle machine, in seconds; a busy one has more.

    Raises:
        AssertionError: it did not come true in time.
    """
    deadline = time.monotonic() + _BUSY * timeout_s
    while True:
        late = time.monotonic() >= deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(_complaint(condition, timeout_s))
        time.sleep(_step_s(deadline, timeout_s))


async def until_async(condition: Callable[[], T], timeout_s: float = 5.0) -> T:
    """Like until, leaving the event loop to others meanwhile."""
    deadline = time.monotonic() + _BUSY * timeout_s
    while True:
        late = time.monotonic() >= deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(_complaint(condition, timeout_s))
        await asyncio.sleep(_step_s(deadline, timeout_s))


async def until_told(ask: Callable[[], Awaitable[T]], timeout_s: float = 5.0) -> T:
    """The first true answer of something that has to be awaited itself, such as a daemon's; as until."""
    deadline = time.monotonic() + _BUSY * timeout_s
    while True:
        late = time.monotonic() >= deadline
        if answer := await ask():
            return answer
        if late:
            raise AssertionError(_complaint(ask, timeout_s))
        await asyncio.sleep(_step_s(deadline, timeout_s))


def _step_s(deadline: float, timeout_s: float) -> float:
    """From one look to the next: a twentieth of the time that it has taken so far."""
    waited_s = time.monotonic() - (deadline - _BUSY * timeout_s)
    return min(max(_STEP_S, waited_s / 20), _LONGEST_STEP_S)


def _complaint(condition: Callable[[], object], timeout_s: float) -> str:
    return f"not true within {_BUSY * timeout_s} s: {getattr(condition, '__qualname__', condition)}"
