"""Glances for searches, on a thread of their own: those that ask at the same time share one, and a dead disk holds none up."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

from memd.model import FoundFile
from memd.sync.glance import Glance, Look
from memd.threads import Threads


class Peek:
    """A glance, one call at a time."""

    def __init__(self, glance: Glance, threads: Threads) -> None:
        """Nothing is looked at yet.

        Args:
            glance: What to look at, and what it looked like.
            threads: One thread, for this alone.
        """
        self._glance = glance
        self._threads = threads
        self._next: asyncio.Future[list[Path]] | None = None  # a look that has not begun

    def blocked_s(self) -> float:
        """How long the files have not answered."""
        return self._threads.busy_s()

    async def changed(self, patience_s: float) -> list[Path] | None:
        """The paths that look different at some moment after this call; None where the files do not answer in time.

        Args:
            patience_s: How long to wait. Where a look has waited for longer already, nobody waits once more.
        """
        if self._threads.busy_s() > patience_s:
            return None
        asked = self._next  # once: the thread may take it away at any moment
        if asked is None:
            asked = self._next = asyncio.ensure_future(self._threads.run(self._look_again))
        answered, _ = await asyncio.wait([asked], timeout=patience_s)
        return asked.result() if answered else None

    def _look_again(self) -> list[Path]:
        # Before the first look at the disk: whoever asks from here on may have written something that this one missed.
        self._next = None
        return self._glance.changed()

    async def look(self) -> dict[Path, Look | None]:
        """See Glance.look."""
        return await self._threads.run(self._glance.look)

    async def remember(
        self,
        found: Collection[FoundFile],
        before: Mapping[Path, Look | None],
        within: Collection[Path] | None,
    ) -> None:
        """See Glance.remember."""
        await self._threads.run(self._glance.remember, found, before, within)
