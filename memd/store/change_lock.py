"""The lock of an index: changes of its file and of memory run one at a time, and each to its end."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

T = TypeVar("T")


class ChangeLock(asyncio.Lock):
    """The lock that is held during each change of an index, on disk and in memory."""

    def __init__(self) -> None:
        """Create the lock; no change was made yet."""
        super().__init__()
        self._changes = 0
        self._under_way: set[asyncio.Task[Any]] = set()

    async def acquire(self) -> Literal[True]:
        """Wait for running changes to end, and begin one."""
        await super().acquire()
        self._changes += 1
        return True

    @property
    def state(self) -> int | None:
        """A number that differs after each change; None: a change is running."""
        return None if self.locked() else self._changes

    async def carry_through(self, change: Callable[[], Awaitable[T]]) -> T:
        """Run a change of the file and of memory when no other one is running, and return its result.

        If the caller is cancelled, as when its agent is removed, the change still runs to its end: a transaction may be committed, and
        memory must follow it, or searches would see a different state than the file's.
        """

        async def alone() -> T:
            async with self:
                return await change()

        changing = asyncio.create_task(alone())
        self._under_way.add(changing)
        changing.add_done_callback(self._have_changed)
        await asyncio.wait([changing])
        return changing.result()

    def _have_changed(self, changing: asyncio.Task[Any]) -> None:
        self._under_way.discard(changing)
        if not changing.cancelled():
            changing.exception()  # marks the exception as retrieved if no caller waits for it

    async def wait_for_all(self) -> None:
        """Wait for the changes that are carried through."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def at_rest(self, most_s: float) -> bool:
        """Wait at most `most_s` seconds for a running change to end; return whether none is running."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s), self:
                return True
        return False
