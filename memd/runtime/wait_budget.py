"""Bounds how long a piece of work waits for something that may not answer, such as a server.

Only time in ``with waiting():`` counts, wherever the work gets to it. So what else takes long, such as a slow provider, is not
taken for a server that does not answer.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class WaitBudget:
    """Seconds that a piece of work may wait; `is_spent` is set once it has waited that long."""

    def __init__(self, seconds: float) -> None:
        self.is_spent = asyncio.Event()
        self._left_s = seconds
        self._is_passing = False

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Return a context in which waits count, also those of tasks that are created in it."""
        token = _applied.set(self)
        try:
            yield
        finally:
            _applied.reset(token)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Return a context in which the seconds pass; a wait within another one, or beside it, counts once."""
        if self._is_passing:
            yield
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        timer = loop.call_later(max(0.0, self._left_s), self.is_spent.set)
        self._is_passing = True
        try:
            yield
        finally:
            self._is_passing = False
            timer.cancel()
            self._left_s -= loop.time() - began


_applied: ContextVar[WaitBudget | None] = ContextVar("wait_budget", default=None)


@contextmanager
def waiting() -> Iterator[None]:
    """Return a context in which the budget of the running work passes, if it has one."""
    budget = _applied.get()
    if budget is None:
        yield
        return
    with budget.passing():
        yield
