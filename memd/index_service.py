"""Keeps one agent's index like its files: puts together what does, and answers for it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from random import Random

import msgspec

from memd.config.settings import AgentSettings
from memd.embedding.queue.agent_queues import AgentQueues
from memd.embedding.queue.scheduler import STALLED_S, EmbeddingQueue
from memd.embedding.registry import AgentProviders
from memd.indexing.changes.check_recent_files import RecentFileCheck
from memd.indexing.changes.pending import PendingChanges, TakenChanges
from memd.indexing.changes.poll import look_by_scan
from memd.indexing.changes.recent_files import RecentFiles
from memd.indexing.freshness import Freshness
from memd.indexing.passes import Passes, PassReport
from memd.indexing.rules import IndexingRules
from memd.indexing.run_pass import PassResult, PassRunner
from memd.maintenance.delete_backups import keep_proving
from memd.maintenance.integrity_check import keep_checking
from memd.maintenance.optimize_keywords import KeywordOptimizer
from memd.maintenance.refill_cache import keep_filled
from memd.maintenance.truncate_wal import keep_wiping
from memd.providers.provider import space_of
from memd.rebuild.confirm_cost import RebuildPermission
from memd.rebuild.cost import RebuildCost, cost
from memd.rebuild.embed_new_index import NewIndexEmbedding
from memd.rebuild.fingerprint import embeds_parts
from memd.rebuild.follow_model import ModelFollower
from memd.rebuild.rebuilder import Rebuilder
from memd.runtime.threads import Threads
from memd.store.chunks import Counts
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.watch.event_barrier import EventBarrier

READERS = 3  # threads that read files: one for passes, one for edits while a pass is at a long file, one for a rebuild
# What a pass is about that fills an index built beside.
EVERYTHING = TakenChanges(0, frozenset(), everything=True, force=False, eager=True)
LOOK_S = 0.2  # between two looks whether an index that is built for other vectors is there
BLOCKED_S = 5.0  # a look that takes longer is waiting for a disk that does not answer


class IndexHealth(msgspec.Struct, frozen=True):
    """What is wrong, part by part; None where nothing is."""

    skipped: Mapping[str, int]  # reason -> files
    keyword: str | None
    watcher: str | None
    watcher_note: str | None  # nothing wrong, but good to know
    rebuild: str | None
    store: str | None  # why nothing can be written


class IndexService:
    """What keeps the index of one agent up to date, as others see it."""

    def __init__(
        self,
        agent: str,
        settings: AgentSettings,
        treatment: IndexingRules,
        index: Index,
        fingerprint: Fingerprint,
        *,
        dirty: PendingChanges,
        spaces: AgentProviders | None,
        rng: Random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing runs yet.

        Args:
            agent: Its id.
            settings: Of the agent.
            treatment: Of its files.
            index: Is open.
            fingerprint: What the index is for, as far as that is known.
            dirty: What has changed.
            spaces: Who embeds; None: nobody ever does.
            rng: Source of the jitter of a backoff.
            clock: Seconds, monotonic, by which passes are measured.
        """
        self._agent = agent
        self._settings = settings
        self._clock = clock
        self._treatment = treatment
        self._index = index
        self._dirty = dirty
        self._refills = index.begun_anew is not None  # until a pass over everything, most is missing
        self._left_over = asyncio.Event()  # text that is in the index no more may still be in its log
        self._whole = asyncio.Event()  # a pass over everything has succeeded
        self.watcher_trouble: str | None = None
        self.watcher_note: str | None = None
        self.backlog = EventBarrier()  # for whoever follows the files
        # Threads of this agent's own: what its disk does not answer holds up nobody else.
        self._files = Threads(READERS, f"memd-files-{agent}")
        self._peek = RecentFileCheck(
            RecentFiles(treatment.roots),
            Threads(1, f"memd-look-{agent}"),
            look_by_scan(treatment.roots, treatment.max_bytes),
        )
        self._embedders = AgentQueues(agent, spaces, use_cache=settings.cache.enabled)
        self._tidy = KeywordOptimizer(index, self.damaged, self._left_over.set)
        writing = asyncio.Lock()
        self._passes = Passes(
            agent,
            dirty,
            self._make,
            lock=writing,
            rng=rng,
            clock=clock,
            damaged=self.damaged,
            succeeded=self._succeeded,
        )
        self._intake = PassRunner(
            agent,
            settings.sessions,
            treatment,
            index,
            dirty=dirty,
            peek=self._peek,
            backlog=self.backlog,
            files=self._files,
            vectors=self._embedders.known,
            let=self._passes.attempt,
        )
        self._freshness = Freshness(
            dirty, self._passes, self._peek, self.backlog, settings.sync.wait_ms / 1000
        )
        self._beside = NewIndexEmbedding(index, self._embedders, self._fill)
        permission = RebuildPermission(agent, self._embedders, lambda force: self.cost(force=force))
        self._renewal = Rebuilder(
            agent,
            index,
            fingerprint,
            fill=self._fill,
            embed=self._beside.embed,
            permit=permission.permitted,
            lock=writing,
            cache=self._embedders.cache,
            rng=rng,
            done=self._renewed,
        )
        self._adaptation = ModelFollower(
            agent,
            settings,
            index,
            fingerprint,
            embedders=self._embedders,
            renewal=self._renewal,
            permission=permission,
        )

    # --- how it stands

    @property
    def queue(self) -> EmbeddingQueue | None:
        """What embeds for the index that serves; None: nobody does just now."""
        return self._embedders.queue(self._index.space)

    @property
    def queues(self) -> frozenset[EmbeddingQueue]:
        """Whoever embeds for the agent, be it for an index that is built beside."""
        return self._embedders.queues

    @property
    def vectors_rest(self) -> bool:
        """Whether nobody searches by vectors just now, so that none are made."""
        return self._embedders.rest

    @property
    def last_pass(self) -> PassReport | None:
        """How the last pass ended; None: none has."""
        return self._passes.last

    @property
    def progress(self) -> tuple[int, int] | None:
        """(files read, files to read) of the longest pass that is under way, be it that of a rebuild."""
        return self._intake.progress

    @property
    def pending(self) -> int:
        """How many marks wait for a pass."""
        return self._dirty.pending

    @property
    def growing(self) -> int:
        """How many transcripts have grown, and are read when more has come or they are quiet."""
        return self._intake.growing

    @property
    def health(self) -> IndexHealth:
        """What is wrong just now."""
        return IndexHealth(
            self._intake.skipped,
            self._renewal.keyword,
            self._watcher_trouble,
            self.watcher_note,
            self._rebuild_in_words()
            or ("the index was damaged and is filled anew" if self._refills else None),
            self._passes.trouble or self._renewal.trouble,
        )

    def _rebuild_in_words(self) -> str | None:
        reason, embedded = self._renewal.reason, self._beside.progress
        if reason is None or embedded is None:
            return reason
        done, chunks = embedded
        return f"{reason}; {done:,} of {chunks:,} chunks have their new vectors"

    @property
    def _watcher_trouble(self) -> str | None:
        blocked_s = self._peek.blocked_s()
        if blocked_s >= BLOCKED_S:
            return f"the files have not answered for {blocked_s:.0f} s: is a network mount down?"
        told = [one for one in (self.watcher_trouble, _in_words(self._intake.kept)) if one is not None]
        return "; ".join(told) or None

    # --- what others ask of it

    def request(self, *, force: bool = False) -> int:
        """Ask for a pass over everything that begins after this call, transcripts that still grow included; its number."""
        self._renewal.hurry()
        return self._dirty.mark_all(force=force, eager=True)

    async def settled(self, number: int) -> PassReport:
        """See Passes.settled."""
        return await self._passes.settled(number)

    async def catch_up(self) -> bool:
        """See Freshness.catch_up. An index that holds what was not on the disk when somebody looked is not up to date."""
        return await self._freshness.catch_up() and not self._intake.kept

    async def counts(self) -> Counts:
        """How much the index holds. Vectors of another model than the one that is wanted now are not done: all wait.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        counts = await self._index.counts()
        if self._has_wanted_space:
            return counts
        done, _ = self._beside.progress or (0, 0)
        done = min(done, counts.chunks)
        return msgspec.structs.replace(counts, done=done, waiting=counts.chunks - done, set_aside=0)

    @property
    def _has_wanted_space(self) -> bool:
        spaces = self._embedders.spaces
        if spaces is None or not self._embedders.embeds or self._index.space is None:
            return True  # what there is, is all there is to be; or nothing is done
        wanted = spaces.wanted
        return wanted is not None and space_of(wanted) == self._index.space

    async def wait_for_vectors(self) -> None:
        """Wait until all chunks have the vectors that are wanted by then, or nothing moves.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        spaces = self._embedders.spaces
        moved_at, seen = self._clock(), object()
        while spaces is not None and self._embedders.embeds:
            version, wanted = spaces.version, spaces.wanted
            if wanted is None and not spaces.is_being_found_out:
                return
            if wanted is None:
                await spaces.changed_since(version)
                continue
            space = space_of(wanted)
            queue = spaces.queue(space)
            if self._index.space == space and queue is not None:
                await queue.wait_for(self._index)
                if spaces.version == version:
                    return
                continue
            # Another index is being built, with those vectors.
            trouble = self._renewal.trouble or (queue and queue.trouble_of(self._agent))
            is_left = queue is not None and queue.only_jobs_left(self._agent)
            progress = self._beside.progress, self._intake.progress
            if progress != seen:
                moved_at, seen = self._clock(), progress
            if trouble or is_left or self._clock() - moved_at > STALLED_S:
                return
            await asyncio.sleep(LOOK_S)

    def rebuild(self, reason: str, *, force: bool = False) -> None:
        """Build the index anew beside the one that serves, and swap.

        Args:
            reason: Why, for status.
            force: Embed every chunk again, too.
        """
        self._renewal.want(reason, force=force)

    async def cost(self, *, force: bool) -> RebuildCost:
        """What a rebuild would have to embed."""
        spaces = self._embedders.spaces
        wanted = None if spaces is None else spaces.wanted
        space = None if wanted is None else space_of(wanted)
        known = self._embedders.known(space)
        # A rebuild puts what the index has into the cache first.
        is_kept = known is not None and not force and self._index.space == space
        return await cost(
            self._treatment,
            known,
            held=frozenset(await self._index.embedded()) if is_kept else frozenset(),
            force=force,
            embeds=self._embedders.embeds,
            with_parts=wanted is not None and embeds_parts(self._settings, wanted.provider),
            threads=self._files,
        )

    def rest_vectors(self) -> None:
        """Embed nothing until vectors are wanted: another engine answers searches. Those that are there stay."""
        self._embedders.rest = True
        self._adaptation.look_again()

    def want_vectors(self) -> None:
        """Embed what waits, and go on doing so."""
        self._embedders.rest = False
        self._adaptation.look_again()

    def keyword_failed(self, reason: str) -> None:
        """A search found the keyword index broken: the index is built anew."""
        self._renewal.keyword_failed(reason)

    def damaged(self, reason: str) -> None:
        """Something in the index is not what memd wrote there: it is built anew."""
        self._renewal.damaged(reason)

    # --- all of it

    async def run(self) -> None:
        """Keep the index up to date, for ever."""
        spaces, cache = self._embedders.spaces, self._embedders.cache
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._passes.run())
            tasks.create_task(self._renewal.run())
            tasks.create_task(self._tidy.run())
            tasks.create_task(keep_wiping(self._index, self._left_over))
            tasks.create_task(keep_checking(self._index, self.damaged, self._is_busy))
            tasks.create_task(keep_proving(self._index, self._whole, self.damaged))
            if spaces is not None:
                tasks.create_task(self._adaptation.run(spaces))
            if cache is not None:
                tasks.create_task(keep_filled(self._index, cache))
                tasks.create_task(keep_proving(cache, self._whole, _mended_by_itself))

    async def stop(self) -> None:
        """Send those away who wait for a pass: with run cancelled, none comes any more."""
        self._passes.stop()
        self._intake.stop()
        await self._dirty.close()
        await self._embedders.leave()

    def _is_busy(self) -> bool:
        return self.progress is not None or self.pending > 0 or self._renewal.reason is not None

    async def _make(self, taken: TakenChanges) -> PassResult:
        await self._index.settle()
        done = await self._intake.run(self._index, taken)
        await self._index.mistrust()  # afterwards: what is new is found meanwhile, whatever the disk keeps
        return done

    async def _fill(self, beside: Index) -> None:
        await self._intake.run(beside, EVERYTHING)

    def _succeeded(self, taken: TakenChanges, done: PassResult) -> None:
        """A pass went well."""
        if taken.everything:
            self._refills = False
            self._whole.set()
        if done.changed or done.removed:
            self._tidy.note(done.changed + done.removed)
        # Also where nothing changed: chunks may wait since an earlier life of the daemon.
        self._adaptation.wake_queue()

    def _renewed(self) -> None:
        """Another index is in place: what failed with the one before goes on."""
        self._refills = False
        self._left_over.set()
        self._intake.look_again()
        self._tidy.note()
        self._dirty.hurry()
        self._adaptation.wake_queue()
        self._adaptation.look_again()


def _in_words(kept: Mapping[str, int]) -> str | None:
    if not kept:
        return None
    reasons = ", ".join(f"{reason} ({files})" for reason, files in sorted(kept.items()))
    count = sum(kept.values())
    which = (
        "1 indexed file is shown as it was" if count == 1 else f"{count} indexed files are shown as they were"
    )
    return f"{which} seen last: {reasons}"


def _mended_by_itself(_: str) -> None:
    """The cache has replaced its file, and says so."""
