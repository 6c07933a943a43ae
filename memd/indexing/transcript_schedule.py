"""Decides when a transcript that has grown is read again, and sets a timer for the next one that is due.

An agent writes to its transcript constantly, and knows what it has just said. So a transcript is read when it has grown enough,
or has been quiet for a while.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from memd.config.settings import SessionSettings
from memd.domain_types import FoundFile, Stamp
from memd.indexing.debounced_changes import DebouncedChanges
from memd.runtime.threads import Threads
from memd.runtime.timers import Clock
from memd.sources.safe_open import SourceError
from memd.sources.transcripts.open_transcript import Growth, growth
from memd.sources.transcripts.read_position import ReadProgress, decoded
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.text.memory_paths import Root

# A file dated further ahead had its time set, or the clock was set back: its time says nothing about quiet.
_AHEAD_S = 2.0


def due_at(
    came_bytes: int, came_lines: int, changed_at: float, settings: SessionSettings, now: float
) -> float:
    """Return when a changed transcript is to be read.

    Args:
        came_bytes: How much it has grown since it was read; its size if it never was. Zero or negative: it was truncated,
            rewritten, compressed or only touched, and the index may be wrong.
        came_lines: The same in lines; 0 if they were not counted, which can only delay reading.
        changed_at: The time of the last write, in Unix time.
        settings: The growth and the quiet time after which a transcript is read.
        now: Unix time.

    Returns:
        Unix time; at once if it is not after `now`. At most the quiet time and a little later.
    """
    if came_bytes <= 0 or came_bytes >= settings.delta_bytes or came_lines >= settings.delta_messages:
        return now
    if changed_at > now + _AHEAD_S:
        return now
    return changed_at + settings.idle_seconds


_UNCOUNTED = Growth(0, 0)  # no count can only delay reading

_TOGETHER_S = 1.0  # transcripts that are due within this time are marked together


class _Later(msgspec.Struct, frozen=True):
    file: Path
    at: float  # unix time
    stamp: Stamp  # when it was scheduled


class TranscriptSchedule:
    """Decides which changed transcripts are read now, and marks the others when they are due."""

    def __init__(
        self,
        settings: SessionSettings,
        index: Index,
        roots: Sequence[Root],
        threads: Threads,
        pending: DebouncedChanges,
        *,
        now: Clock = time.time,
    ) -> None:
        """Start without transcripts.

        Args:
            settings: The growth and the quiet time after which a transcript is read.
            index: Contains the progress of each transcript.
            roots: The agent's roots.
            threads: The threads that count lines.
            pending: Receives the marks.
            now: Returns Unix time.
        """
        self._settings = settings
        self._index = index
        self._roots = roots
        self._threads = threads
        self._pending = pending
        self._now = now
        self._later: dict[str, _Later] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._later)

    async def due(
        self,
        changed: Sequence[FoundFile],
        known: Mapping[str, KnownFile],
        covers: Callable[[str], bool],
        *,
        eager: bool,
    ) -> list[FoundFile]:
        """Return the transcripts to read now, in the same order, and schedule the others.

        Args:
            changed: Transcripts that differ from the index.
            known: The indexed files that the pass covers.
            covers: Whether the pass covers a path.
            eager: Whether all of them are due.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        later = {} if eager else await self._not_due(changed, known)
        self._later = {path: one for path, one in self._later.items() if not covers(path)} | later
        self._set_alarm()
        return [found for found in changed if found.path not in later]

    async def _not_due(
        self, changed: Sequence[FoundFile], known: Mapping[str, KnownFile]
    ) -> dict[str, _Later]:
        now = self._now()
        # If size and time alone decide, the file need not be opened.
        unsure = [found for found in changed if self._due_at(found, known, _UNCOUNTED, now) > now]
        stored = await self._index.stored_sessions([found.path for found in unsure]) if unsure else {}
        progress = {path: decoded(one.progress) for path, one in stored.items()}
        anew = {found.path for found in unsure if self._is_anew(found, known)}
        counted = [found for found in unsure if found.path not in anew]
        came = await self._threads.run(self._count, counted, progress) if counted else {}
        came |= dict.fromkeys(anew, _UNCOUNTED)
        later: dict[str, _Later] = {}
        for found in unsure:
            if found.path in came and (at := self._due_at(found, known, came[found.path], now)) > now:
                later[found.path] = _Later(found.file, at, found.stamp)
        return later

    @staticmethod
    def _is_anew(found: FoundFile, known: Mapping[str, KnownFile]) -> bool:
        """Return whether a file was replaced, as by an agent that rewrites its whole transcript each time.

        How much of it is new is then known only after reading all of it.
        """
        before = known.get(found.path)
        return before is not None and before.stamp.inode != found.stamp.inode

    def _due_at(self, found: FoundFile, known: Mapping[str, KnownFile], came: Growth, now: float) -> float:
        before = known.get(found.path)
        # An empty new file is not a truncated transcript.
        came_bytes = max(1, found.stamp.size) if before is None else found.stamp.size - before.stamp.size
        if found.entry and came_bytes > 0:
            came_bytes = max(1, came.bytes)  # the size in its stamp counts events
        return due_at(came_bytes, came.lines, found.stamp.mtime_ns / 1e9, self._settings, now)

    def _count(
        self, unsure: Sequence[FoundFile], progress: Mapping[str, ReadProgress | None]
    ) -> dict[str, Growth]:
        """Count new lines of the transcripts that can be read; for others, reading reports the reason."""
        # Imported only here, because it imports the parsers of all formats.
        from memd.sources.transcripts.database_reader import entry_growth  # noqa: PLC0415

        came: dict[str, Growth] = {}
        at_most = self._settings.delta_bytes
        for found in unsure:
            count = entry_growth if found.entry else growth
            with contextlib.suppress(SourceError):
                came[found.path] = count(found, self._roots, progress.get(found.path), at_most=at_most)
        return came

    def _set_alarm(self) -> None:
        self.stop()
        if self._later:
            first = min(one.at for one in self._later.values())
            files = [one.file for one in self._later.values() if one.at <= first + _TOGETHER_S]
            wait_s = max(0.0, first - self._now())
            self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring, files)

    def _ring(self, files: Collection[Path]) -> None:
        self._alarm = None
        # Whatever the clock says: the pass over them decides again, and sets the next timer.
        self._pending.mark(files)

    async def forget(self, taken: Collection[str]) -> None:
        """Remove transcripts that were read as far as they had grown when they were scheduled.

        A long pass lets short passes run, which may read transcripts that it has not reached yet.

        Args:
            taken: The paths of read transcripts; unscheduled ones are ignored.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        both = [path for path in taken if path in self._later]
        if not both:
            return
        for path, known in (await self._index.known(both)).items():
            later = self._later.get(path)
            if later is not None and _is_as_seen(known.stamp, later.stamp):
                del self._later[path]
        self._set_alarm()

    def look_again(self) -> None:
        """Adapt to a replaced index, which may include all grown transcripts."""
        if self._later:
            self._pending.mark([one.file for one in self._later.values()])

    def stop(self) -> None:
        """Cancel the timer."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def _is_as_seen(stamp: Stamp, seen: Stamp) -> bool:
    # The mtime of a file that was just written is not stored; see notes.reliable_stamp.
    return (stamp.size, stamp.inode) == (seen.size, seen.inode)
