"""Glances for searches, on a thread of their own: those that ask at the same time share one, and a dead disk holds none up."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from memd.errors import MemdError
from memd.indexing.changes import recent_files as glance
from memd.indexing.changes.poll import Look, PollComparison
from memd.indexing.changes.recent_files import RecentFiles
from memd.model import FoundFile
from memd.runtime.threads import Threads
from memd.watch.watch_plan import Identity, listable, replaced

LOOK_S = 0.1  # what a look may take that a search waits for, however little it is to wait
_SHARE = 20.0  # one that takes longer is made once in so many times its time


class RecentFileCheck:
    """A glance, one call at a time."""

    def __init__(self, glance: RecentFiles, threads: Threads, look: Look) -> None:
        """Nothing is looked at yet.

        Args:
            glance: What to look at, and what it looked like.
            threads: One thread, for this alone.
            look: What all notes in some places look like.
        """
        self._glance = glance
        self._threads = threads
        self._comparison = PollComparison(look)
        self._next: dict[
            object, asyncio.Future[Collection[Path]]
        ] = {}  # question -> a look that has not begun

    def blocked_s(self) -> float:
        """How long the files have not answered."""
        return self._threads.busy_s()

    async def changed(self, patience_s: float) -> Collection[Path] | None:
        """Of the few paths of a glance, those that look different at some moment after this call.

        Args:
            patience_s: How long to wait. Where a look has waited for longer already, nobody waits once more.

        Returns:
            None where the files do not answer in time.
        """
        return await self._ask(None, self._glance.changed, patience_s)

    async def changed_in(
        self,
        absent: frozenset[Path],
        unseen: frozenset[Path],
        patience_s: float,
    ) -> Collection[Path] | None:
        """Of all notes in some places, what changed since the look before; likewise.

        Args:
            absent: Directories that were not there, or closed.
            unseen: Files, and directories with all below.
            patience_s: How long to wait.

        Returns:
            None where that takes more than LOOK_S, or the files do not answer.
        """
        comparison = self._comparison
        if unseen and comparison.took_s > LOOK_S:
            if time.monotonic() - comparison.at < _SHARE * comparison.took_s:
                return None
            patience_s = min(patience_s, LOOK_S)

        def look() -> Collection[Path]:
            came = [*listable(absent), *self._glance.changed_in(absent)]
            if not unseen:
                return came
            changed = comparison.changed(unseen)
            return [*came, *(unseen if changed is None else changed)]

        return await self._ask((absent, unseen), look, patience_s)

    async def replaced(
        self, roots: Mapping[Path, Identity | None], patience_s: float
    ) -> Collection[Path] | None:
        """Of some directories, those in whose place there is another than was; likewise.

        The thread costs a search 0.1 ms. On the event loop, one disk that does not answer would keep all agents waiting.

        Args:
            roots: Each with what was there.
            patience_s: How long to wait.
        """
        return await self._ask(("replaced", *roots.items()), lambda: replaced(roots), patience_s)

    async def _ask(
        self, question: object, look: Callable[[], Collection[Path]], patience_s: float
    ) -> Collection[Path] | None:
        if self._threads.busy_s() > patience_s:
            return None

        def begin() -> Collection[Path]:
            # Before the first look at the disk: whoever asks from here on may have written something that this one missed.
            self._next.pop(question, None)
            return look()

        asked = self._next.get(question)  # once: the thread may take it away at any moment
        if asked is None:
            asked = self._next[question] = asyncio.ensure_future(self._threads.run(begin))
            asked.add_done_callback(partial(self._forget, question))
        answered, _ = await asyncio.wait([asked], timeout=patience_s)
        if not answered:
            return None
        try:
            return asked.result()
        except (MemdError, OSError):
            return None  # the process has no descriptors, for one

    def _forget(self, question: object, asked: asyncio.Future[Collection[Path]]) -> None:
        """Also where no thread ever began with it: its failure must not be the answer to whoever asks later."""
        if self._next.get(question) is asked:
            del self._next[question]

    async def look(self) -> dict[Path, glance.FileSignature | None]:
        """See Glance.look."""
        return await self._threads.run(self._glance.look)

    async def remember(
        self,
        found: Collection[FoundFile],
        before: Mapping[Path, glance.FileSignature | None],
        within: Collection[Path] | None,
    ) -> None:
        """See Glance.remember."""
        await self._threads.run(self._glance.remember, found, before, within)
