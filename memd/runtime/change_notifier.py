"""A counter of changes that tasks can wait on."""

import asyncio


class ChangeNotifier:
    """Wakes all tasks that wait for a change, once per change; no change is missed between two waits."""

    def __init__(self) -> None:
        self.version = 0  # grows by one with each change
        self._next = asyncio.Event()  # of the next change; each change has an event of its own

    def notify(self) -> None:
        """Count one change, and wake all that wait for it."""
        self.version += 1
        self._next.set()
        self._next = asyncio.Event()

    async def since(self, version: int) -> int:
        """Wait until the version differs from this one; returns the current version."""
        while self.version == version:
            await self._next.wait()
        return self.version

    async def next(self) -> int:
        """Wait for the next change after this call; returns the version after it."""
        return await self.since(self.version)
