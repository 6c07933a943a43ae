"""Lets a search wait until all file system events that the kernel queued before it have become marks."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from memd.runtime.timing import Clock
from memd.watch.events import EventBatch, Feed, FeedPosition
from memd.watch.watch_plan import Identity

Linked = tuple[Path, int]  # a file, and its inode: another file may take its place

_MOST_LINKED = 1000  # each costs a watch: a tree of hard links must not use up what a user may have


class EventBarrier:
    """The position of the watcher, for tasks that wait for it.

    Linux queues an event before the call that caused it returns. So a search that follows a write can wait until the event of that
    write was passed on, whichever program wrote, and without a wait for later events. Some writes make no event here: to a mapping
    of a file (mmap), on another machine, and through a hard link outside of the roots, until the file is known to have several
    names. If another directory takes the place of a root, the event comes late while a program has a file of the old one open, and
    not at all if a directory above cannot be watched, or was closed: the caller compares `roots` with the disk, on a thread, since
    the disk may not answer.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """Begin without watches.

        Args:
            clock: Seconds, monotonic.
        """
        self._clock = clock
        self._position: FeedPosition | None = None  # of the watches that are set
        self._returns = False  # no watch is set, but some will be at once
        self._round = 0  # how often watches were set
        self._done = 0  # of what the position of this round had queued
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
        """The watcher sets its watches again; a rescan is announced afterwards."""
        self._position, self._returns = None, True

    def ends(self, unseen: frozenset[Path] = frozenset()) -> None:
        """The watcher reports no changes until `begins` is called.

        Args:
            unseen: Places to scan meanwhile; empty if this system never says how many events it has queued.
        """
        self._position, self._returns = None, False
        self._roots, self._absent, self._unseen = {}, frozenset(), unseen
        self._move()

    def begins(
        self,
        position: FeedPosition,
        *,
        roots: Mapping[Path, Identity | None] = MappingProxyType({}),
        absent: frozenset[Path] = frozenset(),
        unseen: frozenset[Path] = frozenset(),
    ) -> None:
        """Watches are set, and a rescan was announced.

        Args:
            position: The position of the feed.
            roots: Directories of roots that are watched, with their identities before that.
            absent: Directories of roots that do not exist or cannot be listed, and so are not watched.
            unseen: Files and directories, with all below, that may change without an event here.
        """
        self._position, self._returns = position, True
        self._round += 1
        self._done, self._unwatched = 0, frozenset()
        self._roots, self._absent, self._unseen, self._followed = roots, absent, unseen, frozenset()
        if self.to_follow:
            position.hurry()  # until they are watched by themselves, each search looks at them
        self._move()

    def rests(self, unwatched: frozenset[Path]) -> None:
        """All events that the feed has given were passed on.

        Args:
            unwatched: New directories that are not watched yet.
        """
        if self._position is not None:
            self._done, self._unwatched = self._position.given, unwatched
            self._move()

    @property
    def to_follow(self) -> frozenset[Linked]:
        """Files with several names that have no watch of their own yet."""
        return self._linked - self._followed

    def follows(self, files: frozenset[Linked]) -> None:
        """These files have a watch of their own from now on, as far as possible."""
        self._followed |= files

    def _move(self) -> None:
        self._waited_since = None
        self._moved.set()
        self._moved.clear()

    # --- what others say and ask

    def has_linked(self, files: frozenset[Linked]) -> None:
        """A full scan found that these files have several names."""
        self._linked = frozenset(sorted(files)[:_MOST_LINKED])
        if self._position is not None and self.to_follow:
            self._position.hurry()

    def misses(self, directories: frozenset[Path]) -> None:
        """A scan did not find these directories of roots, and their files stay indexed.

        They return without an event if a directory above them was renamed to and fro.
        """
        is_news = bool(directories - self._missing)
        self._missing = directories
        if is_news and self._position is not None:
            self._position.hurry()  # the watcher looks at the roots more often from now on

    @property
    def missing(self) -> frozenset[Path]:
        """Missing directories whose files stay indexed: each search checks whether they exist."""
        return self._missing

    def has_mounts(self, mounted: frozenset[Path], unmounted: frozenset[Path]) -> None:
        """A scan found disks mounted at `mounted`, and none any more at `unmounted`, whose files stay indexed."""
        self._mounted, self._unmounted = mounted, unmounted

    def otherwise(self, mounted: Callable[[Iterable[Path]], frozenset[Path]]) -> frozenset[Path]:
        """The mount points that differ from those of the last scan.

        Args:
            mounted: Returns those of some places where something is mounted now.
        """
        now = mounted(self._mounted | self._unmounted)
        return (self._mounted - now) | (self._unmounted & now)

    @property
    def roots(self) -> Mapping[Path, Identity | None]:
        """Directories of roots that are watched, with their identities before that: other directories may be there now."""
        return self._roots

    @property
    def absent(self) -> frozenset[Path]:
        """Directories of roots that did not exist when watches were set: each search checks whether they exist."""
        return self._absent

    @property
    def unseen(self) -> frozenset[Path]:
        """The places without events: each search scans them."""
        return self._unseen

    async def drained(self, timeout_s: float) -> frozenset[Path] | None:
        """Wait until the events of all writes, renames and deletions before this call were passed on.

        Costs a few microseconds if no event waits.

        Args:
            timeout_s: How long to wait. If another task has waited for longer in vain, this one does not wait.

        Returns:
            The directories, and the files with several names, that are not watched yet: the caller must scan them. Usually
            empty. It does not contain `roots`, `absent` and `unseen`. None: this system does not say how many events it has
            queued.

        Raises:
            TimeoutError: the wait took too long.
        """
        if self._position is not None and self._done == self._position.queued():
            return self._to_look_at()
        if not self._returns:
            return self._unreported()
        now = self._clock()
        if self._waited_since is None:
            self._waited_since = now
        elif now - self._waited_since > timeout_s:
            raise TimeoutError
        async with asyncio.timeout(timeout_s):
            return await self._reached()

    async def _reached(self) -> frozenset[Path] | None:
        goal: tuple[int, int] | None = None
        while self._returns:
            if self._position is not None:
                # What comes meanwhile is not waited for. A later round is good enough: it began with looking at everything.
                goal = goal or (self._round, self._position.queued())
                if (self._round, self._done) >= goal:
                    return self._to_look_at()
                self._position.hurry()
            await self._moved.wait()
        return self._unreported()

    def _to_look_at(self) -> frozenset[Path]:
        to_follow = [file for file, _ in self.to_follow]
        return self._unwatched.union(to_follow) if to_follow else self._unwatched

    def _unreported(self) -> frozenset[Path] | None:
        return frozenset() if self._unseen else None


_MOST_BEGUN = 256


class UnwatchedNames:
    """The files that may be written under a name without a watch; kept when the watches are set again."""

    def __init__(self, backlog: EventBarrier) -> None:
        """Begin without files.

        Args:
            backlog: Knows the files with several names.
        """
        self._backlog = backlog
        # A program may write a draft, link it to its name, take the first name away and write on: the last ones that came.
        self._begun: dict[Path, None] = {}

    async def follow_again(self, feed: Feed) -> frozenset[Path]:
        """Watch the files of the last feed again; returns them, since they may have changed meanwhile."""
        return await feed.watch_files(self._begun) if self._begun else frozenset()

    async def follow(self, feed: Feed, batch: EventBatch, noted: Collection[Path]) -> frozenset[Path]:
        """Watch new files, and files that a scan found to have several names.

        Args:
            feed: The feed of the batch.
            batch: May contain new files.
            noted: The files of the batch that concern memory. They have not been read since.

        Returns:
            Other files that may have changed until now.
        """
        came = [path for path in map(Path, batch.begun) if path in noted]
        if came:
            self._begun |= dict.fromkeys(came)
            for file in list(self._begun)[:-_MOST_BEGUN]:
                del self._begun[file]
            await feed.watch_files(came)
        to_follow = self._backlog.to_follow
        if not to_follow:
            return frozenset()
        watched = await feed.watch_files(file for file, _ in to_follow)
        self._backlog.follows(to_follow)
        return watched
