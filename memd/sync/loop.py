"""Keeps one agent's index like its files: takes marks, runs passes, rebuilds when it must."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from random import Random

import msgspec
import structlog

from memd.backoff import delay_s
from memd.config import AgentSettings
from memd.errors import TransientError
from memd.model import FoundFile
from memd.paths import Root
from memd.sources.fence import Missing, Unreadable
from memd.sources.losses import anchors_after, lost_roots
from memd.sources.scan import Anchor, Scan, scan
from memd.store.database import StoreDamaged
from memd.store.embeddings import KnownVectors
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.sync.apply import apply_files
from memd.sync.cost import Cost, cost
from memd.sync.dirty import Dirty, Taken
from memd.sync.glance import Glance
from memd.sync.plan import groups, plan
from memd.sync.rebuild import discard, rebuild
from memd.sync.vectors import Customer, VectorQueue

log = structlog.get_logger()

OUTCOMES = 100  # passes whose end is remembered for whoever waited


class PassReport(msgspec.Struct, frozen=True):
    """How a pass ended."""

    at: float  # unix time of its end
    took_s: float
    changed: int = 0  # files that were indexed anew
    removed: int = 0
    failed: str | None = None


class Health(msgspec.Struct, frozen=True):
    """What is wrong, part by part; None where nothing is."""

    skipped: Mapping[str, int]  # reason -> files
    keyword: str | None
    watcher: str | None
    rebuild: str | None


class PassFailed(TransientError):
    """The pass that was waited for did not succeed; it is tried again by itself."""


class SyncLoop:
    """The passes of one agent, one after the other.

    A long pass lets short ones through between two groups of files, so that an edit is searchable at once while thousands of
    files are read.
    """

    def __init__(
        self,
        agent: str,
        settings: AgentSettings,
        roots: tuple[Root, ...],
        index: Index,
        fingerprint: Fingerprint,
        *,
        dirty: Dirty,
        queue: VectorQueue | None,
        vectors: KnownVectors | None,
        rng: Random,
    ) -> None:
        self._agent = agent
        self._settings = settings
        self._roots = roots
        self._index = index
        self._fingerprint = fingerprint
        self._dirty = dirty
        self._queue = queue
        self._vectors = vectors
        self._rng = rng
        self._glance = Glance(roots)
        self._max_bytes = int(settings.max_file_mb * 1_000_000)
        self._anchors: dict[str, Anchor] = {}
        self._skipped: dict[str, str] = {}  # path -> reason
        self._failures = 0
        self._outcomes: dict[int, PassReport] = {}
        self._rebuild_wanted = asyncio.Event()
        self._rebuilding: str | None = None  # why
        self._embed_again = False
        self._keyword_trouble: str | None = None
        self._pass_lock = asyncio.Lock()
        self.progress: tuple[int, int] | None = (
            None  # (files read, files to read) of a pass that is under way
        )
        self.last_pass: PassReport | None = None
        self.watcher_trouble: str | None = None

    # --- what others ask of it

    @property
    def pending(self) -> int:
        """How many marks wait for a pass."""
        return self._dirty.pending

    @property
    def health(self) -> Health:
        """What is wrong just now."""
        counted: dict[str, int] = {}
        for reason in self._skipped.values():
            counted[reason] = counted.get(reason, 0) + 1
        return Health(counted, self._keyword_trouble, self.watcher_trouble, self._rebuilding)

    def request(self, *, force: bool = False) -> int:
        """Ask for a pass over everything that begins after this call; its number."""
        return self._dirty.mark_all(force=force)

    async def settled(self, number: int) -> PassReport:
        """Wait for the end of a pass.

        Raises:
            PassFailed: it failed, and is tried again by itself.
            StoreClosed: the loop has stopped.
        """
        await self._dirty.wait_for(number)
        outcome = self._outcomes.get(number, self.last_pass)
        if outcome is None or outcome.failed is not None:
            raise PassFailed(
                "the index could not be brought up to date" + (f": {outcome.failed}" if outcome else "")
            )
        return outcome

    async def catch_up(self) -> bool:
        """Have what is known to have changed indexed now, waiting for it as long as configured.

        Returns:
            Whether the index is up to date with every change that was known at the call.

        Raises:
            StoreClosed: the loop has stopped.
        """
        wait_s = self._settings.sync.wait_ms / 1000
        changed = await asyncio.to_thread(self._glance.changed)
        if changed:
            self._dirty.mark(changed)
        running = self._dirty.running_for_s()
        # A pass that has run for longer is a long one: waiting once more for it would only make every search slow.
        numbers = [number for number, ran_s in running.items() if ran_s <= wait_s]
        long_one_runs = len(numbers) < len(running)
        if self._dirty.pending:
            numbers.append(self._dirty.hurry())
        try:
            async with asyncio.timeout(wait_s):
                for number in numbers:
                    await self._dirty.wait_for(number)
        except TimeoutError:
            return False
        return not long_one_runs and all(self._succeeded(number) for number in numbers)

    def _succeeded(self, number: int) -> bool:
        outcome = self._outcomes.get(number)
        return outcome is not None and outcome.failed is None

    def rebuild(self, reason: str, *, force: bool = False) -> None:
        """Build the index anew beside the one that serves, and swap.

        Args:
            reason: Why, for status.
            force: Embed every chunk again, too.
        """
        self._embed_again |= force
        self._rebuilding = reason
        self._rebuild_wanted.set()

    async def cost(self, *, force: bool) -> Cost:
        """What a rebuild would have to embed."""
        return await cost(self._roots, self._settings, self._max_bytes, self._vectors, force=force)

    def keyword_failed(self, reason: str) -> None:
        """A search found the keyword index broken: it is rebuilt."""
        if self._keyword_trouble is None:
            self._keyword_trouble = reason
            self.rebuild("the keyword index is broken")

    def damaged(self, reason: str) -> None:
        """Something in the index is not what memd wrote there: it is rebuilt."""
        if self._rebuilding is None:  # else what is wrong is about to be replaced
            log.error("sync.index_damaged", agent=self._agent, reason=reason)
            self.rebuild("the index is damaged")

    async def stop(self) -> None:
        """Send those away who wait for a pass: with run cancelled, none comes any more."""
        await self._dirty.close()

    # --- passes

    async def run(self) -> None:
        """Keep the index up to date, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._passes())
            tasks.create_task(self._rebuilds())

    async def _passes(self) -> None:
        self._dirty.mark_all()
        while True:
            taken = await self._dirty.take()
            async with self._pass_lock:
                await self._attempt(taken)

    async def _attempt(self, taken: Taken) -> None:
        """One pass; what it was to do waits again if it fails."""
        began = time.monotonic()
        before = self.progress  # of the long pass that let this one through, if one did
        changed = removed = 0
        failed: str | None = None
        try:
            changed, removed = await self._pass(self._index, taken)
            self._failures = 0
        except TransientError as failure:
            failed = str(failure)
            self._dirty.put_back(taken)
            self._failures += 1
            wait_s = delay_s(self._failures, self._rng)
            log.warning("sync.retry_scheduled", agent=self._agent, reason=failed, wait_s=round(wait_s, 1))
            asyncio.get_running_loop().call_later(wait_s, self._dirty.hurry)
        except StoreDamaged as damage:
            failed = str(damage)
            self._dirty.put_back(taken)
            self.damaged(failed)
        finally:
            took_s = round(time.monotonic() - began, 4)
            self._remember(taken.number, PassReport(time.time(), took_s, changed, removed, failed))
            self.progress = before
            await self._dirty.finish(taken)
        if changed or removed:
            log.info("sync.finished", agent=self._agent, changed=changed, removed=removed, took_s=took_s)
        if failed is None:
            # Also where nothing changed: chunks may wait since an earlier life of the daemon.
            self._wake_queue()

    def _remember(self, number: int, report: PassReport) -> None:
        self.last_pass = self._outcomes[number] = report
        while len(self._outcomes) > OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]

    def _wake_queue(self) -> None:
        # An index that is about to be replaced gets no vectors: most of its chunks will not be there again.
        if self._queue is not None and self._rebuilding is None:
            self._queue.serve(Customer(self._agent, self._index, self._settings.cache.enabled, self.damaged))

    async def _pass(self, index: Index, taken: Taken) -> tuple[int, int]:
        """Bring an index up to date with what is marked; (files indexed anew, files removed)."""
        before = await asyncio.to_thread(self._glance.look)
        seen = await self._look(taken)
        indexed = await index.known(seen.looked)
        known = {path: file for path, file in indexed.items() if seen.covers(path)}
        work = plan(known, self._anchors, seen, force=taken.force)
        lost = lost_roots(known, self._anchors, seen)
        if lost:
            log.warning("sync.root_vanished", agent=self._agent, roots=sorted(lost))
        self._anchors = anchors_after(self._anchors, seen, lost)
        changed = done = 0
        for group in groups(work.read):
            changed += await self._take_in(index, group, known)
            done += len(group)
            self.progress = (done, len(work.read))
            if index is self._index:
                await self._let_through()
        # A pass that went in between may have met such a file again.
        now = await index.known(work.remove) if work.remove else {}
        gone = [path for path in work.remove if now.get(path) == known[path]]
        if gone:
            await index.remove(gone)
        within = None if taken.everything else taken.paths
        await asyncio.to_thread(self._glance.remember, seen.found.values(), before, within)
        return changed, len(gone)

    async def _look(self, taken: Taken) -> Scan:
        within = None if taken.everything else taken.paths
        seen = await asyncio.to_thread(scan, self._roots, max_bytes=self._max_bytes, within=within)
        self._skipped = {path: reason for path, reason in self._skipped.items() if not seen.covers(path)}
        self._skipped.update(seen.skipped)
        return seen

    async def _let_through(self) -> None:
        urgent = self._dirty.take_due_paths()
        if urgent is not None:
            await self._attempt(urgent)

    async def _take_in(self, index: Index, group: Sequence[FoundFile], known: Mapping[str, KnownFile]) -> int:
        """Some files into an index; how many of them were indexed anew."""
        applied = await apply_files(
            index,
            group,
            known,
            roots=self._roots,
            chunking=self._settings.chunking,
            max_bytes=self._max_bytes,
            vectors=self._vectors,
        )
        for path in applied.taken:
            self._skipped.pop(path, None)
        for path, trouble in applied.failed.items():
            if isinstance(trouble, Missing):
                continue  # it went after the scan saw it: its deletion is an event of its own
            self._skipped[path] = trouble.reason
            # Unreadable today is no reason to forget what it said; what is no note any more is forgotten.
            if path in known and not isinstance(trouble, Unreadable):
                await index.remove([path])
        return applied.changed

    # --- rebuilds

    async def _rebuilds(self) -> None:
        discard(self._index)  # what an attempt left that was killed, even where it is not wanted any more
        failures = 0
        while True:
            await self._rebuild_wanted.wait()
            self._rebuild_wanted.clear()
            reason, began = self._rebuilding, time.monotonic()
            log.info("rebuild.started", agent=self._agent, reason=reason)
            try:
                await self._rebuild()
            except (TransientError, StoreDamaged) as failure:
                failures += 1
                wait_s = delay_s(failures, self._rng)
                log.warning(
                    "rebuild.retry_scheduled", agent=self._agent, reason=str(failure), wait_s=round(wait_s, 1)
                )
                await asyncio.sleep(wait_s)
                self._rebuild_wanted.set()
                continue
            failures = 0
            if not self._rebuild_wanted.is_set():
                self._rebuilding = self._keyword_trouble = None
            log.info("rebuild.finished", agent=self._agent, took_s=round(time.monotonic() - began, 3))
            self._dirty.hurry()
            self._wake_queue()

    async def _rebuild(self) -> None:
        everything = Taken(0, frozenset(), everything=True, force=False)
        vectors = self._vectors
        if self._embed_again and vectors is not None:
            await vectors.forget(await self._index.hashes())
            self._embed_again = False
        await rebuild(
            self._index, self._fingerprint, lambda index: self._pass(index, everything), self._pass_lock
        )
