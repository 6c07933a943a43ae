"""When a transcript that has grown is read again, and the alarm for the next one that is due.

An agent writes to its transcript all the time, and what it has just said it knows anyway. So a transcript is read when
enough has come, or when nothing has for a while.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from memd.config.settings import SessionSettings
from memd.domain_types import FoundFile, Stamp
from memd.indexing.pending_changes import PendingChanges
from memd.runtime.threads import Threads
from memd.runtime.timing import Clock
from memd.sources.safe_open import SourceError
from memd.sources.transcripts.database_reader import entry_growth
from memd.sources.transcripts.open_transcript import Growth, growth
from memd.sources.transcripts.read_position import ReadProgress, decoded
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.text.memory_paths import Root

# A time further ahead than this was set, or the clock was put back since: it tells nothing about quiet.
_AHEAD_S = 2.0


def due_at(
    came_bytes: int, came_lines: int, changed_at: float, settings: SessionSettings, now: float
) -> float:
    """When a transcript that has changed is to be read.

    Args:
        came_bytes: Since it was read last; all of it where it never was. None, or less than none: it was cut, written
            anew, compressed or only touched, and what the index says of it may not be true any more.
        came_lines: Likewise; 0 where nobody has counted, which can only make it later.
        changed_at: When the file was last written to, in Unix time.
        settings: How much is enough, and how long a while.
        now: Unix time.

    Returns:
        Unix time; now or earlier: at once. It is never further away than the time of quiet, and a little.
    """
    if came_bytes <= 0 or came_bytes >= settings.delta_bytes or came_lines >= settings.delta_messages:
        return now
    if changed_at > now + _AHEAD_S:
        return now
    return changed_at + settings.idle_seconds


_UNCOUNTED = Growth(0, 0)  # which can only make it later

_TOGETHER_S = 1.0  # those that are due so soon after one another are marked at once


class _Later(msgspec.Struct, frozen=True):
    file: Path
    at: float  # unix time
    stamp: Stamp  # as it was seen


class TranscriptSchedule:
    """Decides of transcripts that have changed which are read now, and has the others marked when they are due."""

    def __init__(
        self,
        settings: SessionSettings,
        index: Index,
        roots: Sequence[Root],
        threads: Threads,
        pending: PendingChanges,
        *,
        now: Clock = time.time,
    ) -> None:
        """None grows yet.

        Args:
            settings: How much is enough, and how long is quiet.
            index: Knows how far each was read.
            roots: Of the agent.
            threads: Where lines are counted.
            pending: Where those that are due are marked.
            now: Unix time.
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
        """Those of some transcripts that are to be read now, in the same order.

        Args:
            changed: The transcripts that a pass has met and that are not as the index has them.
            known: What the index holds of what the pass is about.
            covers: Whether the pass is about a path.
            eager: All of them are due.

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
        # What the size and the time of a file decide needs no opening of it.
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
        """Whether another file is in the place of the one that was read: an agent that always writes all of it anew.

        How much of that is new, only reading all of it would tell.
        """
        before = known.get(found.path)
        return before is not None and before.stamp.inode != found.stamp.inode

    def _due_at(self, found: FoundFile, known: Mapping[str, KnownFile], came: Growth, now: float) -> float:
        before = known.get(found.path)
        # One that was just made and has nothing in it yet is no transcript that was cut.
        came_bytes = max(1, found.stamp.size) if before is None else found.stamp.size - before.stamp.size
        if found.entry and came_bytes > 0:
            came_bytes = max(1, came.bytes)  # its stamp tells events
        return due_at(came_bytes, came.lines, found.stamp.mtime_ns / 1e9, self._settings, now)

    def _count(
        self, unsure: Sequence[FoundFile], progress: Mapping[str, ReadProgress | None]
    ) -> dict[str, Growth]:
        """What came, of those that can be read: of the others, only reading tells what is wrong."""
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
        # Whatever the clock says by now: the pass over them decides again, and sets the next alarm.
        self._pending.mark(files)

    async def forget(self, taken: Collection[str]) -> None:
        """Wait no longer for transcripts that were read to where they were seen to have grown, all the same.

        A long pass lets short ones through, which may meet what it has not come to yet.

        Args:
            taken: The paths of some that were read; what is not waited for among them does not matter.

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
        """Another index is there, which may have been given all of them."""
        if self._later:
            self._pending.mark([one.file for one in self._later.values()])

    def stop(self) -> None:
        """Ring no more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def _is_as_seen(stamp: Stamp, seen: Stamp) -> bool:
    # Of a file that was just written to, the time is not kept; see notes.reliable_stamp.
    return (stamp.size, stamp.inode) == (seen.size, seen.inode)
