"""What passes and rebuilds have done that the maintenance of the same index waits for."""

import asyncio
import contextlib

# Files whose change makes it worth while: the keyword index of 20,000 chunks is searched in a third less time
# afterwards, for the work of 0.15 s.
MANY = 100
# The words of what was deleted stay in the keyword index until its parts are merged, so that fewer changes count, too.
LATE_S = 3600.0


class MaintenanceTriggers:
    """Changes of one index since its keywords were put in order, its log was emptied, and the daemon began."""

    def __init__(self, *, late_s: float = LATE_S) -> None:
        """All of it may have changed in an earlier life of the daemon.

        Args:
            late_s: After the first change, in seconds, the keywords are put in order however few follow.
        """
        self.left_over = asyncio.Event()  # text that is in the index no more may still be in its log
        self.whole = asyncio.Event()  # a pass over everything has succeeded
        self._late_s = late_s
        self._changed = 0
        self._some = asyncio.Event()
        self._some.set()
        self._enough = asyncio.Event()

    def note(self, files: int = MANY) -> None:
        """So many files have changed; without a number, all of them."""
        self._changed += files
        self._some.set()
        if self._changed >= MANY:
            self._enough.set()

    @property
    def is_due(self) -> bool:
        """Whether anything has changed since the keywords were last put in order, or that was begun."""
        return self._some.is_set()

    async def enough(self) -> None:
        """Wait until the keywords are to be put in order; what is noted from then on counts for the next time."""
        await self._some.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._late_s):
                await self._enough.wait()
        self._some.clear()
        self._enough.clear()
        self._changed = 0
