"""Lets a search wait until all file system events that the kernel queued before it have become marks."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from memd.runtime.timers import Clock
from memd.watch.events import EventBatch, Feed, FeedPosition
from memd.watch.watch_plan import Identity

Linked = tuple[Path, int]  # a file, and its inode: another file may take its place

_MOST_LINKED = (
    1000  # each needs a watch: a tree of hard links must not use up the watches that a user may set
)


class EventBarrier:
    """The position of the watcher in the queue of events, for searches that wait for it.

    Linux queues an event before the call that caused it returns. So a search that follows a write can wait until the event of that
    write was passed on, whichever program wrote, and without a wait for later events. Some writes make no event here: to a mapping
    of a file (mmap), on another machine, and through a hard link outside of the roots, until the file is known to have several
    names. If another directory takes the place of a root, the event comes late while a program has a file of the old one open, and
    not at all if a directory above cannot be watched, or was closed: the caller compares `roots` with the disk, on a thread, since
    the disk may not answer.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """Create a barrier without watches.

        Args:
            clock: Seconds, monotonic.
        """
        self._clock = clock
        self._position: FeedPosition | None = None  # of the watches that are set
        self._is_active = False  # watches are set, or will be at once
        self._round = 0  # how often watches were set
        self._done = 0  # of what the position of this round had queued
        self._unwatched: frozenset[Path] = frozenset()
        self._roots: Mapping[Path, Identity | None] = {}
        self._absent: frozenset[Path] = frozenset()
        self._unseen: frozenset[Path] = frozenset()
        self._missing: frozenset[Path] = frozenset()
        self._mounted: frozenset[Path] = frozenset()
        self._unmounted: frozenset[Path] = frozenset()
        self._links: frozenset[Linked] = frozenset()
        self._watched_links: frozenset[Linked] = frozenset()
        self._moved = asyncio.Event()
        self._waited_since: float | None = None  # for the watcher to move

    # --- for the watcher

    def suspend(self) -> None:
        """Record that no watches are set; they will be set again, and a rescan is announced then."""
        self._position, self._is_active = None, True

    def end(self, unseen: frozenset[Path] = frozenset()) -> None:
        """Record that no changes are reported until `begin` is called.

        Args:
            unseen: Places to scan meanwhile; empty if this system never says how many events it has queued.
        """
        self._position, self._is_active = None, False
        self._roots, self._absent, self._unseen = {}, frozenset(), unseen
        self._move()

    def begin(
        self,
        position: FeedPosition,
        *,
        roots: Mapping[Path, Identity | None] = MappingProxyType({}),
        absent: frozenset[Path] = frozenset(),
        unseen: frozenset[Path] = frozenset(),
    ) -> None:
        """Record that watches are set and a rescan was announced.

        Args:
            position: The position of the feed.
            roots: Directories of roots that are watched, with their identities before that.
            absent: Directories of roots that do not exist or cannot be listed, and so are not watched.
            unseen: Files and directories, with all below, that may change without an event here.
        """
        self._position, self._is_active = position, True
        self._round += 1
        self._done, self._unwatched = 0, frozenset()
        self._roots, self._absent, self._unseen, self._watched_links = roots, absent, unseen, frozenset()
        if self.to_watch:
            position.hurry()  # until they are watched by themselves, each search looks at them
        self._move()

    def advance(self, unwatched: frozenset[Path]) -> None:
        """Record that all events that the feed has given were passed on.

        Args:
            unwatched: New directories that are not watched yet.
        """
        if self._position is not None:
            self._done, self._unwatched = self._position.given, unwatched
            self._move()

    @property
    def to_watch(self) -> frozenset[Linked]:
        """Files with several names that have no watch of their own yet."""
        return self._links - self._watched_links

    def note_watched(self, files: frozenset[Linked]) -> None:
        """Record that these files have watches of their own, as far as possible."""
        self._watched_links |= files

    def _move(self) -> None:
        self._waited_since = None
        self._moved.set()
        self._moved.clear()

    # --- for scans and searches

    def set_linked(self, files: frozenset[Linked]) -> None:
        """Set the files with several names, which a full scan has found."""
        self._links = frozenset(sorted(files)[:_MOST_LINKED])
        if self._position is not None and self.to_watch:
            self._position.hurry()

    def set_missing(self, directories: frozenset[Path]) -> None:
        """Set the directories of roots that a scan did not find, and whose files stay indexed.

        They return without an event if a directory above them was renamed to and fro.
        """
        is_news = bool(directories - self._missing)
        self._missing = directories
        if is_news and self._position is not None:
            self._position.hurry()  # the watcher checks the roots more often from now on

    @property
    def missing(self) -> frozenset[Path]:
        """Missing directories whose files stay indexed: each search checks whether they exist."""
        return self._missing

    def set_mounts(self, mounted: frozenset[Path], unmounted: frozenset[Path]) -> None:
        """Set the mount points of roots, as a scan found them: with a disk, and without one, whose files stay indexed."""
        self._mounted, self._unmounted = mounted, unmounted

    def changed_mounts(self, mounted: Callable[[Iterable[Path]], frozenset[Path]]) -> frozenset[Path]:
        """Return the mount points whose state differs from the last scan's.

        Args:
            mounted: Returns the given places on which something is mounted now.
        """
        now = mounted(self._mounted | self._unmounted)
        return (self._mounted - now) | (self._unmounted & now)

    @property
    def roots(self) -> Mapping[Path, Identity | None]:
        """The watched directories of roots, with their identities when the watches were set."""
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
        if not self._is_active:
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
        while self._is_active:
            if self._position is not None:
                # Later events are not waited for. A later round is enough: it began with a rescan.
                goal = goal or (self._round, self._position.queued())
                if (self._round, self._done) >= goal:
                    return self._to_look_at()
                self._position.hurry()
            await self._moved.wait()
        return self._unreported()

    def _to_look_at(self) -> frozenset[Path]:
        to_watch = [file for file, _ in self.to_watch]
        return self._unwatched.union(to_watch) if to_watch else self._unwatched

    def _unreported(self) -> frozenset[Path] | None:
        return frozenset() if self._unseen else None


_MOST_BEGUN = 256


class UnwatchedNames:
    """Sets watches on files themselves, for writes under a name that no watch covers; it survives a change of watches."""

    def __init__(self, barrier: EventBarrier) -> None:
        """Create the object without files.

        Args:
            barrier: Knows which files have several names.
        """
        self._barrier = barrier
        # The latest new files: a program may create a draft, link it to its final name, remove the first name and write on.
        self._begun: dict[Path, None] = {}

    async def watch_again(self, feed: Feed) -> frozenset[Path]:
        """Watch the files of the previous feed again; return them, since they may have changed meanwhile."""
        return await feed.watch_files(self._begun) if self._begun else frozenset()

    async def watch_new(self, feed: Feed, batch: EventBatch, noted: Collection[Path]) -> frozenset[Path]:
        """Watch new files, and files that a scan found to have several names.

        Args:
            feed: The feed of the batch.
            batch: May contain new files.
            noted: The files of the batch that concern memory, which were not read since then.

        Returns:
            Other files that may have changed until now.
        """
        came = [path for path in map(Path, batch.begun) if path in noted]
        if came:
            self._begun |= dict.fromkeys(came)
            for file in list(self._begun)[:-_MOST_BEGUN]:
                del self._begun[file]
            await feed.watch_files(came)
        to_watch = self._barrier.to_watch
        if not to_watch:
            return frozenset()
        watched = await feed.watch_files(file for file, _ in to_watch)
        self._barrier.note_watched(to_watch)
        return watched
