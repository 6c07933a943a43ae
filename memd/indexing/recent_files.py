"""Checks the few files that an agent is likely to have just written, where the watcher may miss changes.

An agent that writes a note and searches at once may search before the file system event has arrived. If pending events cannot be
counted (see watch.event_barrier), a few stat calls close most of that gap: of MEMORY.md and USER.md, the newest notes, and the
directories where new notes appear. A directory that has changed is listed, so that of ten thousand notes only the new one is
checked.

Checks run on a thread of their own: concurrent searches share one, and a dead disk delays no other work.
"""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from heapq import nlargest
from pathlib import Path

import msgspec

from memd.domain_types import FoundFile, Kind, Stamp
from memd.errors import MemdError
from memd.indexing.watch_changes import Look, PollComparison
from memd.runtime.threads import Threads
from memd.runtime.timers import ClockNs, until_next_tick_s
from memd.sources.root_links import RootLinks
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    ExtraDirectory,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    is_markdown,
)
from memd.watch.watch_plan import Identity, listable, replaced

NEWEST = 24

# A file dated further ahead was not written just now: its time was set, or the clock was set back since.
_AHEAD_NS = 2_000_000_000

_NO_MATTER = -1  # instead of the inode of an entry that is neither a directory nor named like a note


class FileSignature(msgspec.Struct, frozen=True):
    """The stamp and, for a directory, the entries of a path."""

    stamp: Stamp
    # For a directory: name -> inode, or _NO_MATTER. None: a file, or a directory that cannot be listed.
    entries: Mapping[str, int] | None = None


class RecentFiles:
    """The signatures of a few paths, as of the last pass that covered them."""

    def __init__(self, roots: Iterable[Root], now_ns: ClockNs = time.time_ns) -> None:
        """Start without files.

        Args:
            roots: See sources.roots.
            now_ns: Returns Unix time in nanoseconds.
        """
        self._now_ns = now_ns
        self._fixed = tuple(path for root in roots for path in _fixed(root))
        self._newest: dict[Path, int] = {}  # file -> mtime_ns
        self._looks: dict[Path, FileSignature | None] = {}  # None: the path does not exist

    def look(self) -> dict[Path, FileSignature | None]:
        """Return the current signatures; called before a pass scans the disk."""
        return {path: _look(path, self._looks.get(path)) for path in self._paths()}

    def remember(
        self,
        found: Collection[FoundFile],
        before: Mapping[Path, FileSignature | None],
        within: Collection[Path] | None,
    ) -> None:
        """Record signatures after a pass; files written while it ran, and files that it did not cover, count as changed.

        Args:
            found: The files that it found, with their stamps.
            before: The signatures from `look` before the pass.
            within: The files and directories that it covered; None: all.
        """
        # Otherwise notes dated while the clock was ahead would displace all newer ones.
        latest = self._now_ns() + _AHEAD_NS
        # Of ten thousand, only these are looked up by path.
        newest = nlargest(
            NEWEST,
            _newer_notes(found, latest),
            key=lambda file: _recency(file.stamp.mtime_ns, latest, file.location),
        )
        met = {file.file: file.stamp for file in newest}
        # Deleted files stay in the list as long as there is room: they may be about to be replaced.
        about = None if within is None else frozenset(within)
        went = [path for path in self._newest if about is None or not about.isdisjoint((path, *path.parents))]
        self._newest |= dict.fromkeys(went, -1) | {path: stamp.mtime_ns for path, stamp in met.items()}
        kept = nlargest(
            NEWEST, self._newest.items(), key=lambda item: _recency(item[1], latest, str(item[0]))
        )
        self._newest = dict(kept)
        looks: dict[Path, FileSignature | None] = {}
        for path in self._paths():
            now = before[path] if path in before else _look(path, None)
            if path in met:
                looks[path] = FileSignature(met[path])
            elif (
                path not in self._looks
                or about is None
                or about.issuperset(_different(path, self._looks[path], now))
            ):
                looks[path] = now
            else:
                looks[path] = now if any(path.is_relative_to(one) for one in about) else self._looks[path]
        self._looks = looks

    def changed(self) -> list[Path]:
        """Return the paths whose signatures differ now; for a listed directory, the changed entries."""
        return self._changed(list(self._looks))

    def changed_in(self, directories: Collection[Path]) -> list[Path]:
        """Return the changed paths within some directories."""
        return self._changed(
            [path for path in self._looks if any(path.is_relative_to(one) for one in directories)]
        )

    def _changed(self, paths: Iterable[Path]) -> list[Path]:
        changed: dict[Path, None] = {}
        for path in paths:
            look = self._looks[path]
            now = _look(path, look)
            different = _different(path, look, now)
            changed.update(dict.fromkeys(different))
            if not different:
                # Entries that are no notes came or went: the directory is not listed again because of them.
                self._looks[path] = now
        return list(changed)

    def _paths(self) -> dict[Path, None]:
        files = dict.fromkeys(self._newest)
        return {
            **dict.fromkeys(self._fixed),
            **files,
            **dict.fromkeys(file.parent for file in files if self._is_inner(file)),
        }

    def _is_inner(self, file: Path) -> bool:
        # The workspace directory changes constantly; only what is below memory/ indicates notes.
        return any(file.parent == path or path in file.parents for path in self._fixed)


def _newer_notes(found: Collection[FoundFile], latest_ns: int) -> list[FoundFile]:
    """Return the notes among which are the NEWEST ones: comparing thousands as `_recency` does takes longer than sorting their times."""
    notes = [file for file in found if file.kind < Kind.SESSION]
    times = sorted(file.stamp.mtime_ns for file in notes if file.stamp.mtime_ns <= latest_ns)
    if len(times) <= NEWEST:
        return notes
    least = times[-NEWEST]
    return [file for file in notes if least <= file.stamp.mtime_ns <= latest_ns]


def _recency(mtime_ns: int, latest_ns: int, location: str) -> tuple[bool, int, str]:
    return mtime_ns <= latest_ns, mtime_ns, location


def _fixed(root: Root) -> tuple[Path, ...]:
    match root:
        case Workspace():
            return root.directory / "MEMORY.md", root.directory / "USER.md", root.directory / MEMORY_DIRECTORY
        case ExtraDirectory():
            return (root.directory,)
        case SingleFile():
            return (root.directory / root.file,)
        case SessionPaths():
            return ()  # searches do not wait for transcripts


def _look(path: Path, last: FileSignature | None) -> FileSignature | None:
    """Return the signature of a path; a directory is listed only if its stamp differs from the last one."""
    try:
        status = path.lstat()
    except OSError:
        return None
    stamp = Stamp.of(status)
    if last is not None and last.stamp == stamp:
        return last
    return FileSignature(stamp, _entries(path) if stat.S_ISDIR(status.st_mode) else None)


def _entries(directory: Path) -> dict[str, int] | None:
    try:
        with os.scandir(directory) as listing:
            return {entry.name: entry.inode() if _matters(entry) else _NO_MATTER for entry in listing}
    except OSError:
        return None


def _matters(entry: os.DirEntry[str]) -> bool:
    return is_markdown(entry.name) or entry.is_dir(follow_symlinks=False)


def _different(path: Path, one: FileSignature | None, other: FileSignature | None) -> list[Path]:
    """Return the paths to check after the signature of a path changed."""
    if one == other:
        return []
    if one is None or other is None or one.entries is None or other.entries is None:
        return [path]
    changed = one.entries.items() ^ other.entries.items()
    # A note that was deleted and created again may have the inode of the old one, so its entry looks the same.
    if not changed or one.stamp.inode != other.stamp.inode:
        return [path]
    return [path / name for name, inode in sorted(changed) if inode != _NO_MATTER]


LOOK_S = 0.1  # the longest check that a search waits for, whatever its own timeout is
_SHARE = 20.0  # a longer check is repeated only after this many times its duration
LINKS_S = 2.0  # between two comparisons of where the links lead, while nobody searches
_UNMOVED_S = 0.5  # an agent is not started again sooner than this, however often its links change
LINKS_ANSWER_S = 1.0  # the longest wait for such a comparison


class RecentFileCheck:
    """Runs the checks of RecentFiles and others on a thread, one at a time; each compares the links, too."""

    def __init__(
        self, recent: RecentFiles, threads: Threads, look: Look, links: RootLinks | None = None
    ) -> None:
        """Create the object.

        Args:
            recent: The recent files.
            threads: One thread, used for checks only.
            look: Returns the stamps of all notes in some places.
            links: The configured paths to follow; None: there are none.
        """
        self.links = RootLinks({}) if links is None else links
        self._noticed = asyncio.Event()  # a link was found to have moved
        self._recent = recent
        self._threads = threads
        self._comparison = PollComparison(look)
        # By kind of check: one that has not begun yet, which later callers share.
        self._next: dict[object, asyncio.Future[Collection[Path]]] = {}

    def blocked_s(self) -> float:
        """Return for how many seconds the running check has not returned."""
        return self._threads.busy_s()

    async def changed(self, timeout_s: float) -> Collection[Path] | None:
        """Return the recent files that have changed at some moment after this call.

        Args:
            timeout_s: The timeout. If another caller has waited for longer, this one does not wait.

        Returns:
            None if the files do not answer in time.
        """
        return await self._ask(None, self._recent.changed, timeout_s)

    async def changed_in(
        self,
        absent: frozenset[Path],
        unseen: frozenset[Path],
        timeout_s: float,
    ) -> Collection[Path] | None:
        """Return the notes in some places that have changed since the last check, at some moment after this call.

        Args:
            absent: Directories that did not exist, or could not be listed.
            unseen: Files, and directories with all below.
            timeout_s: Seconds until the check is given up.

        Returns:
            None if a check takes longer than LOOK_S, or the files do not answer.
        """
        comparison = self._comparison
        if unseen and comparison.took_s > LOOK_S:
            if time.monotonic() - comparison.at < _SHARE * comparison.took_s:
                return None
            timeout_s = min(timeout_s, LOOK_S)

        def look() -> Collection[Path]:
            came = [*listable(absent), *self._recent.changed_in(absent)]
            if not unseen:
                return came
            changed = comparison.changed(unseen)
            return [*came, *(unseen if changed is None else changed)]

        return await self._ask((absent, unseen), look, timeout_s)

    async def replaced(
        self, roots: Mapping[Path, Identity | None], timeout_s: float
    ) -> Collection[Path] | None:
        """Return those of some directories that were replaced by another one, at some moment after this call.

        The thread costs 0.1 ms. On the event loop, one disk that does not answer would delay all agents.

        Args:
            roots: Directories with their previous identities.
            timeout_s: Seconds until the check is given up.
        """
        return await self._ask(("replaced", *roots.items()), lambda: replaced(roots), timeout_s)

    async def compare_links(self) -> None:
        """Compare where the links lead, unless the disk does not answer within LINKS_ANSWER_S."""
        if self.links:
            await self._ask("links", tuple, LINKS_ANSWER_S)

    async def links_moved(self, period_s: float = LINKS_S) -> None:
        """Return when a link leads to another place: each search notices that, and a comparison in each period does."""
        if not self.links:
            await asyncio.Event().wait()
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(_UNMOVED_S)
        while not self.links.is_moved:
            self._noticed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until_next_tick_s(clock(), period_s)):
                    await self._noticed.wait()
            await self.compare_links()

    async def _ask(
        self, question: object, look: Callable[[], Collection[Path]], timeout_s: float
    ) -> Collection[Path] | None:
        if self._threads.busy_s() > timeout_s:
            return None

        def begin() -> Collection[Path]:
            # Removed before the disk is read: later callers may have written something that this check misses.
            self._next.pop(question, None)
            self.links.look()
            return look()

        asked = self._next.get(question)  # read once, since the thread may remove it at any moment
        if asked is None:
            asked = self._next[question] = asyncio.ensure_future(self._threads.run(begin))
            asked.add_done_callback(partial(self._forget, question))
        answered, _ = await asyncio.wait([asked], timeout=timeout_s)
        if self.links.is_moved:
            self._noticed.set()
        if not answered:
            return None
        try:
            return asked.result()
        except (MemdError, OSError):
            return None  # for example, the process has no free descriptor

    def _forget(self, question: object, asked: asyncio.Future[Collection[Path]]) -> None:
        """Remove a check, even if no thread has begun it: its failure must not be the result for later callers."""
        if self._next.get(question) is asked:
            del self._next[question]

    async def look(self) -> dict[Path, FileSignature | None]:
        """Return the current signatures; see RecentFiles.look."""
        return await self._threads.run(self._recent.look)

    async def remember(
        self,
        found: Collection[FoundFile],
        before: Mapping[Path, FileSignature | None],
        within: Collection[Path] | None,
    ) -> None:
        """Record signatures after a pass; see RecentFiles.remember."""
        await self._threads.run(self._recent.remember, found, before, within)
