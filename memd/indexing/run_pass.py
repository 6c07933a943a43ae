"""Runs one pass: compares the marked paths with the disk, and updates an index."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from memd.domain_types import FoundFile, Stamp
from memd.embedding.registry import AgentQueues
from memd.indexing.debounced_changes import DebouncedChanges, TakenChanges
from memd.indexing.index_notes import AppliedChanges, apply_files, each_by_itself
from memd.indexing.plan import PassPlan, groups, plan
from memd.indexing.recent_files import RecentFileCheck
from memd.indexing.rules import IndexingRules
from memd.indexing.transcript_schedule import TranscriptSchedule
from memd.runtime.asyncio_helpers import first_of
from memd.runtime.profiling import timed_part
from memd.runtime.threads import Threads
from memd.sources.origins import RootOrigin
from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable, NoRoot
from memd.sources.scan import scan
from memd.sources.scan_result import DOUBLES, BlindReason, MountPoint, Scan, SkipReason, skip_of
from memd.sources.vanished import mounts_after, still_covered
from memd.store.errors import StoreFull, StoreUnavailable
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.text.memory_paths import SessionPaths, is_under, is_utf8, prefix_of
from memd.watch.event_barrier import EventBarrier

log = structlog.get_logger()

T = TypeVar("T")

HELD_S = 5.0  # until a file is checked again that another program had locked
# Files changed within this time before a full scan get watches of their own: setting up watches takes less time.
_JUST_NS = 10_000_000_000
_MOST_JUST_CHANGED = 256


Between = Callable[[TakenChanges], Awaitable[None]]
"""Runs a short pass over urgent paths in the middle of a long one."""

# The marks of a pass that fills a new index.
_EVERYTHING = TakenChanges(0, frozenset(), everything=True, force=False, eager=True)


class PassResult(msgspec.Struct, frozen=True):
    """The result of a pass."""

    changed: int = 0  # files that were indexed again
    removed: int = 0
    late: bool = False  # due transcripts wait for another pass to finish reading
    looked: int = 0  # files whose stamps were checked
    read: int = 0  # files that were read, or were skipped because they are not due


class _Pass:
    """A running pass."""

    def __init__(self, index: Index, between: Between | None = None, *, is_short: bool = False) -> None:
        self.index = index
        self.between = between  # None: the pass fills a new index
        self.is_short = is_short  # the pass runs in the middle of a long one
        self.known_at: int | None = None  # the version of index.changed before the index was read


class PassRunner:
    """Runs the passes of one agent, and keeps state from one pass to the next.

    A long pass lets short ones run between two groups of files, and while it reads a long transcript, so that an edit is searchable
    at once while thousands of files are read.
    """

    def __init__(
        self,
        agent: str,
        rules: IndexingRules,
        index: Index,
        *,
        pending: DebouncedChanges,
        recent: RecentFileCheck,
        barrier: EventBarrier,
        files: Threads,
        queues: AgentQueues,
    ) -> None:
        """Create the object; `run` runs a pass.

        Args:
            agent: The agent's id.
            rules: The rules for the agent's files.
            index: The current index.
            pending: The marks of changed paths that wait for a pass.
            recent: Records the signatures of the newest files.
            barrier: Receives files with several names.
            files: The threads that read files.
            queues: Provide the cached vectors.
        """
        self.writing = asyncio.Lock()  # held while the current index is written to
        self._agent = agent
        self._rules = rules
        self._index = index
        self._pending = pending
        self._recent = recent
        self._barrier = barrier
        self._files = files
        self._queues = queues
        self._schedule = TranscriptSchedule(rules.sessions, index, rules.roots, files, pending)
        # The running passes over the current index, each with the scans that others have made since it began.
        self._later: dict[_Pass, list[Scan]] = {}
        self._absent: frozenset[str] = frozenset()  # prefixes of roots that do not exist
        self._is_full = False  # a write failed because the disk was full, and no space was freed since
        self._has_space_to_free = False  # files were deleted since, and their space is not freed yet
        self._is_reading_transcripts = False  # transcripts are being read for the current index
        self._due_meanwhile: set[Path] = set()  # transcripts that became due meanwhile
        # The expected mount points; None: not read from the index yet.
        self._mounts: frozenset[MountPoint] | None = None
        self._kept: dict[str, BlindReason] = {}  # by path: why an indexed file could not be read again
        # By path: why a scan skipped a file; another file may be indexed under that name.
        self._skipped: dict[str, SkipReason] = {}
        self._failed: dict[str, SkipReason] = {}  # by path: why a file could not be read
        # By path, of transcripts that could not be read: their stamps then.
        self._refused: dict[str, Stamp] = {}
        self._reading: dict[_Pass, tuple[int, int]] = {}  # progress of each running pass

    @property
    def progress(self) -> tuple[int, int] | None:
        """(files read, files to read) of the longest running pass, rebuilds included; None: none runs."""
        return max(self._reading.values(), key=lambda one: one[1], default=None)

    @property
    def growing(self) -> int:
        """The number of transcripts that have grown, and are read once they grew further or are quiet."""
        return len(self._schedule)

    @property
    def skipped(self) -> Mapping[str, int]:
        """By reason: the number of files that are not indexed."""
        counted: dict[str, int] = {}
        for reason in (*self._skipped.values(), *self._failed.values()):
            counted[reason] = counted.get(reason, 0) + 1
        return counted

    @property
    def kept(self) -> Mapping[str, int]:
        """By reason: the number of indexed files that could not be read again, whose content may be outdated."""
        # Each search asks twice, and nearly always nothing is kept.
        return Counter(map(str, self._kept.values())) if self._kept else {}

    @property
    def missing(self) -> list[RootOrigin]:
        """The roots that did not exist when they were last looked at, as configured."""
        return [origin for origin in self._rules.origins if origin.prefix in self._absent]

    def index_replaced(self) -> None:
        """Adapt to a replaced index, which may include all grown transcripts; what failed before is retried."""
        self._schedule.look_again()
        self._pending.hurry()
        self._mounts = None
        self._set_kept({path: why for path, why in self._kept.items() if why is BlindReason.CLOSED})

    def stop(self) -> None:
        """Cancel the timers of transcripts."""
        self._schedule.stop()

    async def fill(self, beside: Index) -> None:
        """Bring a new index up to date with the disk.

        Raises:
            StoreUnavailable, StoreDamaged, ProcessExhausted: see run.
        """
        await beside.put_origins([origin.stored for origin in self._rules.origins])
        await self._run(_EVERYTHING, _Pass(beside))

    async def run(self, taken: TakenChanges, between: Between, *, is_short: bool) -> PassResult:
        """Bring the current index up to date with the marked paths.

        Args:
            taken: The marks that this pass handles.
            between: Called with urgent paths between two groups of files, and while a transcript is read.
            is_short: Whether the pass runs in the middle of another one: then it lets no others run, which would nest without
                limit.

        Raises:
            StoreUnavailable, StoreDamaged: the pass was not completed.
            ProcessExhausted: the process has no free descriptors.
        """
        this = _Pass(self._index, between, is_short=is_short)
        self._later[this] = []
        try:
            return await self._run(taken, this)
        finally:
            del self._later[this]

    async def _run(self, taken: TakenChanges, this: _Pass) -> PassResult:
        index = this.index
        with timed_part("looking"):
            before = await self._recent.look()
            seen = await self._scan_disk(taken)
            this.known_at = index.changed.version
            indexed = await index.known(seen.looked)
            is_all = seen.looked is None
            known = indexed if is_all else {path: file for path, file in indexed.items() if seen.covers(path)}
            mounts = await self._expected_mounts(index)
            work = plan(known, mounts, seen, self._rules.roots, marked=taken.paths, force=taken.force)
            await self._expect_mounts(index, mounts, mounts_after(mounts, seen, work.kept))
        # Files to be read again stay recorded as failed until they are read successfully.
        still = self._refused.keys() | {found.path for found in work.read}
        self._failed = {
            path: why for path, why in self._failed.items() if path in still or not seen.covers(path)
        }
        if index is self._index:
            self._note_kept(work.kept, seen, still)
            self._absent = frozenset(prefix for prefix in self._absent if not seen.covers(prefix)) | {
                prefix for prefix, why in seen.blind.items() if why is BlindReason.ABSENT
            }
            if seen.looked is None:
                self._barrier.set_linked(seen.linked | _just_changed(seen, time.time_ns()))
            for other, later in self._later.items():
                if other is not this:
                    later.append(seen)
        try:
            gone = 0
            try:
                changed = await self._read_notes(work, known, this)
            except StoreFull:
                self._is_full = True
                gone = await self._remove(index, work, this)
                if not self._has_space_to_free:
                    raise
                await self._free_space()
                changed = await self._read_notes(work, known, this)  # the deletions have freed space
            gone = gone or await self._remove(index, work, this)
            within = None if taken.everything else taken.paths
            with timed_part("looking"):
                await self._recent.remember(seen.found.values(), before, within)
            more, late = await self._read_sessions(index, work, known, seen, taken, this)
            if self._has_space_to_free:
                await self._free_space()
        finally:
            self._reading.pop(this, None)
        return PassResult(changed + more, gone, late, len(seen.found), len(work.read))

    async def _expected_mounts(self, index: Index) -> frozenset[MountPoint]:
        """Return the expected mount points of an index's files."""
        if index is self._index and self._mounts is not None:
            return self._mounts
        stored = frozenset(MountPoint(*pair) for pair in await index.mounts())
        return still_covered(stored, self._rules.roots)

    async def _expect_mounts(
        self, index: Index, before: frozenset[MountPoint], after: frozenset[MountPoint]
    ) -> None:
        if index is self._index:
            self._mounts = after
        if after == before:
            return
        pairs = sorted((mount.place, mount.prefix) for mount in after if is_utf8(mount.place + mount.prefix))
        with contextlib.suppress(StoreUnavailable):  # not needed before the next start
            await index.put_mounts(pairs)

    def _note_kept(self, kept: Mapping[str, BlindReason], seen: Scan, still: Collection[str]) -> None:
        if kept.keys() - self._kept.keys():
            log.warning(
                "sync.files_kept", agent=self._agent, files=len(kept), reasons=sorted(set(kept.values()))
            )
        others = {path: why for path, why in self._kept.items() if path in still or not seen.covers(path)}
        self._set_kept({**others, **kept})

    def _set_kept(self, kept: dict[str, BlindReason]) -> None:
        self._kept = kept
        absent = [path for path, why in kept.items() if why is BlindReason.ABSENT]
        self._barrier.set_missing(
            frozenset(
                root.directory
                for root in self._rules.roots
                if any(is_under(path, prefix_of(root)) for path in absent)
                and not (isinstance(root, SessionPaths) and not root.expected)
            )
        )
        unmounted = [path for path, why in kept.items() if why is BlindReason.UNMOUNTED]
        mounts = self._mounts or frozenset()
        away = [mount for mount in mounts if any(is_under(path, mount.prefix) for path in unmounted)]
        self._barrier.set_mounts(
            frozenset(Path(mount.place) for mount in mounts.difference(away)),
            frozenset(Path(mount.place) for mount in away),
        )

    async def _remove(self, index: Index, work: PassPlan, this: _Pass) -> int:
        """Remove deleted files from an index; return their number."""
        # A path that a later pass has scanned is as that pass saw it: the file may exist again.
        gone = [path for path in work.remove if not self._later_scans(this, path)]
        if gone:
            self._has_space_to_free |= self._is_full
            with timed_part("writing"):
                await remove_in_parts(index, gone)
        return len(gone)

    async def _free_space(self) -> None:
        """Free disk space that the index does not need; if that fails or a search runs, the next pass tries again."""
        # The WAL may have filled the disk: after a checkpoint it is reused from its beginning.
        await self._index.database.checkpoint(wait=False)
        while await self._index.database.shrink():
            await self._index.database.checkpoint(wait=False)
        if await self._index.database.truncate_wal():
            self._is_full = self._has_space_to_free = False

    async def _read_notes(self, work: PassPlan, known: Mapping[str, KnownFile], this: _Pass) -> int:
        """Index new and changed notes; return how many were indexed again."""
        changed = done = 0
        for group in groups(work.notes):
            self._reading[this] = (done, len(work.read))
            changed += await self._index_notes(this, group, known)
            done += len(group)
            if not this.is_short:
                await self._run_due_pass(this)
        return changed

    async def _read_sessions(
        self,
        index: Index,
        work: PassPlan,
        known: Mapping[str, KnownFile],
        seen: Scan,
        taken: TakenChanges,
        this: _Pass,
    ) -> tuple[int, bool]:
        """Index new and changed transcripts that are due.

        Returns:
            How many were indexed again, and whether some wait because another pass is reading transcripts.
        """
        due: Sequence[FoundFile] = work.sessions
        if index is self._index:
            with timed_part("looking"):
                due = await self._schedule.due(due, known, seen.covers, eager=taken.eager or taken.force)
            if due and self._is_reading_transcripts:
                self._due_meanwhile.update(found.file for found in due)
                return 0, True
        changed, done = 0, len(work.notes)
        for group in groups(due):
            self._reading[this] = (done, len(work.notes) + len(due))
            changed += await self._index_transcripts(this, index, group, known, force=taken.force)
            done += len(group)
            if not this.is_short:
                await self._run_due_pass(this)
        return changed, False

    async def _scan_disk(self, taken: TakenChanges) -> Scan:
        everything = taken.everything or not DOUBLES.isdisjoint(self._skipped.values())
        within = None if everything else taken.paths
        seen = await self._files.run(scan, self._rules.roots, max_bytes=self._rules.max_bytes, within=within)
        # A transcript that could not be read and has not changed is not read by each pass; its reason stays recorded.
        self._refused = {
            path: stamp
            for path, stamp in self._refused.items()
            if not seen.covers(path) or (path in seen.found and seen.found[path].stamp == stamp)
        }
        self._skipped = {path: why for path, why in self._skipped.items() if not seen.covers(path)}
        self._skipped.update(seen.skipped)
        return seen

    async def _run_due_pass(self, this: _Pass) -> None:
        if this.between is not None and (urgent := self._pending.take_due_paths()) is not None:
            with timed_part("edits in between"):
                await this.between(urgent)

    async def _index_notes(
        self, this: _Pass, group: Sequence[FoundFile], known: Mapping[str, KnownFile]
    ) -> int:
        """Index some notes; return how many were indexed again."""
        index = this.index
        applied = await each_by_itself(
            group,
            lambda some: apply_files(
                index,
                some,
                known,
                known_at=this.known_at,
                rules=self._rules,
                vectors=self._queues.known(index.space),
                threads=self._files,
            ),
        )
        self._retry_held(group, applied)
        return await self._record_results(this, applied, known)

    async def _index_transcripts(
        self,
        this: _Pass,
        index: Index,
        group: Sequence[FoundFile],
        known: Mapping[str, KnownFile],
        *,
        force: bool,
    ) -> int:
        """Index some transcripts while short passes go on; return how many were indexed again."""
        # Imported only here, because it imports the parsers of all formats.
        from memd.indexing.index_transcripts import apply_sessions  # noqa: PLC0415

        work = each_by_itself(
            group,
            lambda some: apply_sessions(
                index,
                some,
                rules=self._rules,
                vectors=self._queues.known(index.space),
                threads=self._files,
                force=force,
            ),
        )
        if index is not self._index:
            return await self._record_results(this, await work, known)
        self._is_reading_transcripts = True
        try:
            applied = await self._run_with_short_passes(this, work)
        finally:
            self._is_reading_transcripts = False
            due_meanwhile, self._due_meanwhile = self._due_meanwhile, set()
            self._pending.mark(due_meanwhile)
        if due_meanwhile:
            self._pending.hurry()
        self._pending.mark(found.file for found in group if found.path in applied.stale)
        # One that a later scan missed was deleted after it was read; that scan did not find it in the index either.
        self._pending.mark(
            found.file
            for found in group
            if any(found.path not in seen.found for seen in self._later_scans(this, found.path))
        )
        self._refused |= {found.path: found.stamp for found in group if found.path in applied.failed}
        self._retry_held(group, applied)
        await self._schedule.forget(applied.taken)
        return await self._record_results(this, applied, known)

    def _retry_held(self, group: Sequence[FoundFile], applied: AppliedChanges) -> None:
        # Opening it makes its holder release the lease, and no event reports the release.
        held = [found.file for found in group if isinstance(applied.failed.get(found.path), FileHeld)]
        if held:
            asyncio.get_running_loop().call_later(HELD_S, self._pending.mark, held)

    async def _run_with_short_passes(self, this: _Pass, work: Coroutine[None, None, T]) -> T:
        """Run long work with short passes in between, and return its result."""
        task = asyncio.create_task(work)
        try:
            while not task.done():
                await first_of(asyncio.wait([task]), self._pending.paths_due())
                await self._run_due_pass(this)
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _later_scans(self, this: _Pass, path: str) -> list[Scan]:
        """Return the scans of a path that other passes have made since a pass began."""
        return [seen for seen in self._later.get(this, ()) if seen.covers(path)]

    async def _record_results(
        self, this: _Pass, applied: AppliedChanges, known: Mapping[str, KnownFile]
    ) -> int:
        """Record the results for some files; return how many were indexed again."""
        index = this.index
        for path in applied.taken:
            self._failed.pop(path, None)
            self._refused.pop(path, None)
        for path, trouble in applied.failed.items():
            # Its deletion is a separate event, and the file may return together with its root.
            if isinstance(trouble, FileMissing):
                # A later scan has decided about the path already, and no further one would clear this reason.
                if not self._later_scans(this, path):
                    self._failed[path] = SkipReason.WENT
                continue
            self._failed[path] = skip_of(trouble)
            # An unreadable file keeps its indexed content; a file that is no note any more is removed.
            if path in known and not isinstance(trouble, FileUnreadable):
                with timed_part("writing"):
                    await index.remove([path])
        if index is self._index:
            self._set_kept(
                {
                    **{path: why for path, why in self._kept.items() if path not in applied.taken},
                    **{
                        path: BlindReason.ABSENT if isinstance(trouble, NoRoot) else BlindReason.CLOSED
                        for path, trouble in applied.failed.items()
                        if path in known and isinstance(trouble, NoRoot | FileUnreadable)
                    },
                }
            )
        return applied.changed


async def remove_in_parts(index: Index, paths: Sequence[str]) -> None:
    """Remove files from an index, together or, if the disk has no room for that, in parts."""
    try:
        await index.remove(paths)
    except StoreFull:
        if len(paths) == 1:
            raise
        await index.database.checkpoint(wait=False)  # so that the WAL is reused
        half = len(paths) // 2
        await remove_in_parts(index, paths[:half])
        await remove_in_parts(index, paths[half:])


def _just_changed(seen: Scan, now_ns: int) -> frozenset[tuple[Path, int]]:
    """Return recently changed notes with their inodes, the newest ones.

    A program may keep writing to a file whose name is gone. While watches were set, no event reported that the file was created.
    """
    recent = [
        found
        for found in seen.found.values()
        if found.stamp.ctime_ns > now_ns - _JUST_NS and not found.kind.is_session
    ]
    newest = nlargest(_MOST_JUST_CHANGED, recent, key=lambda found: found.stamp.ctime_ns)
    return frozenset((found.file, found.stamp.inode) for found in newest)
