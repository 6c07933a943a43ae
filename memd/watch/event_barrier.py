"""Whether all that the system has told of changes has reached whoever works on them: what a search asks first."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from memd.watch.raw_events import FeedPosition
from memd.watch.watch_plan import Identity

Linked = tuple[Path, int]  # a file, and its inode: another file may take its place

_MOST_LINKED = 1000  # each costs a watch: a tree of hard links must not use up what a user may have


class EventBarrier:
    """How far the watcher is, for those who wait for it.

    Linux queues an event before the call that caused it returns. So whoever has written something and asks now is told
    when that event has been passed on, be there others behind it or not. Who writes does not matter. What is written to
    a mapping of a file (mmap), or on another machine, makes no event here, and nor does a hard link that is made outside of
    the roots: what is written under that name is told once the file is known to have several. That another directory is in
    the place of a root is told late, where somebody has a file in the old one open, or not at all, where one above was
    renamed: whoever asks compares `roots` with what is there, on a thread, since their disk may not answer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is watched yet.

        Args:
            clock: Seconds that never go back.
        """
        self._clock = clock
        self._tap: FeedPosition | None = None  # of the watches that are set
        self._returns = False  # no watch is set, but some will be at once
        self._round = 0  # how often watches were set
        self._done = 0  # of what this round's tap told
        self._unwatched: frozenset[Path] = frozenset()
        self._roots: Mapping[Path, Identity | None] = {}
        self._absent: frozenset[Path] = frozenset()
        self._unseen: frozenset[Path] = frozenset()
        self._missing: frozenset[Path] = frozenset()
        self._mounted: frozenset[Path] = frozenset()
        self._unmounted: frozenset[Path] = frozenset()
        self._linked: frozenset[Linked] = frozenset()
        self._followed: frozenset[Linked] = frozenset()
        self._moved = asyncio.Event()
        self._waited_since: float | None = None  # for the watcher to move

    # --- what the watcher says

    def pauses(self) -> None:
        """The watches are set anew; everything is announced after that."""
        self._tap, self._returns = None, True

    def ends(self, unseen: frozenset[Path] = frozenset()) -> None:
        """No change is told as it happens until it begins again.

        Args:
            unseen: Where changes are made all the same; empty where this system never tells how much it has told.
        """
        self._tap, self._returns = None, False
        self._roots, self._absent, self._unseen = {}, frozenset(), unseen
        self._move()

    def begins(
        self,
        tap: FeedPosition,
        *,
        roots: Mapping[Path, Identity | None] = MappingProxyType({}),
        absent: frozenset[Path] = frozenset(),
        unseen: frozenset[Path] = frozenset(),
    ) -> None:
        """Watches are set, and that anything may have changed before was announced.

        Args:
            tap: Of the watches.
            roots: Directories of roots that are watched, and what they were before that.
            absent: Directories of roots that are not there, or closed, and so not watched.
            unseen: Files and directories, with all below, that others may change without an event here.
        """
        self._tap, self._returns = tap, True
        self._round += 1
        self._done, self._unwatched = 0, frozenset()
        self._roots, self._absent, self._unseen, self._followed = roots, absent, unseen, frozenset()
        if self.to_follow:
            tap.hurry()  # until they are watched by themselves, each search looks at them
        self._move()

    def rests(self, unwatched: frozenset[Path]) -> None:
        """Everything that the feed has given was passed on.

        Args:
            unwatched: Directories that came, and are not watched yet.
        """
        if self._tap is not None:
            self._done, self._unwatched = self._tap.given, unwatched
            self._move()

    @property
    def to_follow(self) -> frozenset[Linked]:
        """Files with several names that are not watched by themselves yet."""
        return self._linked - self._followed

    def follows(self, files: frozenset[Linked]) -> None:
        """These are watched by themselves from now on, as far as they can be."""
        self._followed |= files

    def _move(self) -> None:
        self._waited_since = None
        self._moved.set()
        self._moved.clear()

    # --- what others say and ask

    def has_linked(self, files: frozenset[Linked]) -> None:
        """These are the files that have several names, as somebody saw who looked at all of them."""
        self._linked = frozenset(sorted(files)[:_MOST_LINKED])
        if self._tap is not None and self.to_follow:
            self._tap.hurry()

    def misses(self, directories: frozenset[Path]) -> None:
        """These directories of roots were not there when somebody looked, and what is indexed of them is kept.

        They come back without an event where one above them was renamed to and fro.
        """
        self._missing = directories

    @property
    def missing(self) -> frozenset[Path]:
        """Directories for whose sake files are kept: to be looked for."""
        return self._missing

    def has_mounts(self, mounted: frozenset[Path], unmounted: frozenset[Path]) -> None:
        """On these places a disk was mounted when somebody looked; for those, which are none now, files are kept."""
        self._mounted, self._unmounted = mounted, unmounted

    def otherwise(self, mounted: Callable[[Iterable[Path]], frozenset[Path]]) -> frozenset[Path]:
        """The mount points that are not as whoever looked last found them.

        Args:
            mounted: Those of some places on which something is mounted now.
        """
        now = mounted(self._mounted | self._unmounted)
        return (self._mounted - now) | (self._unmounted & now)

    @property
    def roots(self) -> Mapping[Path, Identity | None]:
        """Directories of roots that are watched, and what they were before that: others may be there now."""
        return self._roots

    @property
    def absent(self) -> frozenset[Path]:
        """Directories of roots that were not there when watches were set: to be looked for."""
        return self._absent

    @property
    def unseen(self) -> frozenset[Path]:
        """The places of which nothing is told: all there is in them is to be looked at."""
        return self._unseen

    async def drained(self, patience_s: float) -> frozenset[Path] | None:
        """Wait until all is passed on that was written, renamed or deleted before this call.

        Costs a few microseconds where nothing waits.

        Args:
            patience_s: How long to wait. Where somebody has waited for longer in vain, nobody waits once more.

        Returns:
            The directories, and the files with several names, that are not watched yet, and must be looked at to know what
            is in them; empty as a rule. That says nothing of `roots`, `absent` and `unseen`. None: this system does not
            tell how much it has told.

        Raises:
            TimeoutError: that took too long.
        """
        if self._tap is not None and self._done == self._tap.told():
            return self._to_look_at()
        if not self._returns:
            return self._untold()
        now = self._clock()
        if self._waited_since is None:
            self._waited_since = now
        elif now - self._waited_since > patience_s:
            raise TimeoutError
        async with asyncio.timeout(patience_s):
            return await self._reached()

    async def _reached(self) -> frozenset[Path] | None:
        goal: tuple[int, int] | None = None
        while self._returns:
            if self._tap is not None:
                # What comes meanwhile is not waited for. A later round is good enough: it began with looking at everything.
                goal = goal or (self._round, self._tap.told())
                if (self._round, self._done) >= goal:
                    return self._to_look_at()
                self._tap.hurry()
            await self._moved.wait()
        return self._untold()

    def _to_look_at(self) -> frozenset[Path]:
        to_follow = [file for file, _ in self.to_follow]
        return self._unwatched.union(to_follow) if to_follow else self._unwatched

    def _untold(self) -> frozenset[Path] | None:
        return frozenset() if self._unseen else None
