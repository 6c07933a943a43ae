"""Additions to asyncio: wait for the first of several awaitables, detect the task's own cancellation, await changes."""

import asyncio
from collections.abc import Awaitable


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait until the first awaitable is done, and cancel the others.

    Raises:
        Whatever the first one raised.
    """
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def is_cancelled() -> bool:
    """Return whether the current task itself was cancelled, and not only what it awaited, after a CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class ChangeNotifier:
    """Wakes all tasks that wait for a change, once per change; no change is missed between two waits."""

    def __init__(self) -> None:
        self.version = 0  # number of changes so far
        self._next = asyncio.Event()  # set by the next change; each change has an event of its own

    def notify(self) -> None:
        """Count one change, and wake all that wait for it."""
        self.version += 1
        self._next.set()
        self._next = asyncio.Event()

    async def since(self, version: int) -> int:
        """Wait until the version differs from this one; return the current version."""
        while self.version == version:
            await self._next.wait()
        return self.version

    async def next(self) -> int:
        """Wait for the next change after this call; return the version after it."""
        return await self.since(self.version)
