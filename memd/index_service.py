"""Keeps one agent's index like its files: puts together what does, and answers for it."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from random import Random

import msgspec

from memd.config.settings import AgentSettings
from memd.embedding.queue.scheduler import STALLED_S, EmbeddingQueue
from memd.embedding.registry import AgentProviders, AgentQueues
from memd.indexing.freshness import Freshness
from memd.indexing.passes import Passes, PassReport
from memd.indexing.pending_changes import PendingChanges
from memd.indexing.recent_files import RecentFileCheck, RecentFiles
from memd.indexing.rules import IndexingRules
from memd.indexing.run_pass import PassRunner
from memd.indexing.watch_changes import look_by_scan
from memd.maintenance.loop import BackgroundTask, BackgroundTasks
from memd.maintenance.tasks import (
    MaintenanceTriggers,
    check_integrity,
    delete_backups,
    optimize_keywords,
    refill_cache,
    truncate_wal,
)
from memd.providers.provider import space_of
from memd.rebuild.build_and_swap import NewIndexEmbedding
from memd.rebuild.cost import CostEstimate, RebuildCost, RebuildPermission
from memd.rebuild.follow_model import ModelFollower
from memd.rebuild.rebuilder import Rebuilder
from memd.runtime.threads import Threads
from memd.runtime.timing import Clock
from memd.store.chunks import Counts
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.watch.event_barrier import EventBarrier

READERS = 3  # threads that read files: one for passes, one for edits while a pass is at a long file, one for a rebuild
LOOK_S = 0.2  # between two looks whether an index that is built for other vectors is there
BLOCKED_S = 5.0  # a look that takes longer is waiting for a disk that does not answer
WATCHING = "watching the files"  # the background task whose failures are the watcher's


class IndexHealth(msgspec.Struct, frozen=True):
    """What is wrong, part by part; None where nothing is."""

    skipped: Mapping[str, int]  # reason -> files
    keyword: str | None
    watcher: str | None
    watcher_note: str | None  # nothing wrong, but good to know
    rebuild: str | None
    store: str | None  # why nothing can be written
    maintenance: str | None  # background tasks that failed unforeseen, until they are tried again


class IndexParts(msgspec.Struct, frozen=True):
    """What keeps the index of one agent up to date, each made of those before it."""

    queues: AgentQueues
    recent: RecentFileCheck
    backlog: EventBarrier
    triggers: MaintenanceTriggers
    runner: PassRunner
    passes: Passes
    freshness: Freshness
    estimate: CostEstimate
    embedding: NewIndexEmbedding
    rebuilder: Rebuilder
    follower: ModelFollower
    background: BackgroundTasks


def index_parts(
    agent: str,
    settings: AgentSettings,
    rules: IndexingRules,
    index: Index,
    fingerprint: Fingerprint,
    *,
    pending: PendingChanges,
    providers: AgentProviders,
    rng: Random,
    clock: Clock = time.monotonic,
) -> IndexParts:
    """Make the parts of one agent's index service; nothing runs yet.

    Args:
        agent: Its id.
        settings: Of the agent.
        rules: How its files are read and cut.
        index: Is open.
        fingerprint: What the index is for, as far as that is known.
        pending: What has changed.
        providers: What embeds for the agent.
        rng: Source of the jitter of a backoff.
        clock: Seconds, monotonic, by which passes are measured.
    """
    # Threads of this agent's own: what its disk does not answer holds up nobody else.
    files = Threads(READERS, f"memd-files-{agent}")
    looking = Threads(1, f"memd-look-{agent}")
    queues = AgentQueues(agent, providers)
    recent = RecentFileCheck(RecentFiles(rules.roots), looking, look_by_scan(rules.roots, rules.max_bytes))
    backlog = EventBarrier()
    triggers = MaintenanceTriggers()
    runner = PassRunner(
        agent, rules, index, pending=pending, recent=recent, backlog=backlog, files=files, queues=queues
    )
    passes = Passes(agent, index, pending, runner, triggers, rng=rng, clock=clock)
    freshness = Freshness(pending, passes, recent, backlog, settings.sync.wait_ms / 1000)
    estimate = CostEstimate(settings, rules, index, queues, files)
    permission = RebuildPermission(agent, queues, estimate)
    embedding = NewIndexEmbedding(index, queues, runner)
    rebuilder = Rebuilder(agent, index, fingerprint, runner, embedding, permission, triggers, rng)
    follower = ModelFollower(
        agent, settings, index, fingerprint, queues=queues, rebuilder=rebuilder, permission=permission
    )
    background = BackgroundTasks(agent, rng)
    return IndexParts(
        queues, recent, backlog, triggers, runner, passes,
        freshness, estimate, embedding, rebuilder, follower, background,
    )  # fmt: skip


class IndexService:
    """What keeps the index of one agent up to date, as others see it."""

    def __init__(
        self,
        agent: str,
        index: Index,
        pending: PendingChanges,
        parts: IndexParts,
        clock: Clock = time.monotonic,
    ) -> None:
        """Nothing runs yet.

        Args:
            agent: Its id.
            index: Is open.
            pending: What has changed.
            parts: See index_parts.
            clock: Seconds, monotonic.
        """
        self.watcher_trouble: str | None = None
        self.watcher_note: str | None = None
        self.backlog = parts.backlog  # for whoever follows the files
        self.background = parts.background
        self._agent = agent
        self._index = index
        self._pending = pending
        self._parts = parts
        self._clock = clock

    # --- how it stands

    @property
    def queue(self) -> EmbeddingQueue | None:
        """What embeds for the index that serves; None: nobody does just now."""
        return self._parts.queues.queue(self._index.space)

    @property
    def queues(self) -> frozenset[EmbeddingQueue]:
        """Whoever embeds for the agent, be it for an index that is built beside."""
        return frozenset(self._parts.queues.queues)

    @property
    def vectors_rest(self) -> bool:
        """Whether nobody searches by vectors just now, so that none are made."""
        return self._parts.queues.rest

    @property
    def is_whole(self) -> bool:
        """Whether a pass has looked at everything since it began: what the index lacks then is not on the disk."""
        return self._parts.triggers.whole.is_set() and not self._parts.runner.kept

    @property
    def last_pass(self) -> PassReport | None:
        """How the last pass ended; None: none has."""
        return self._parts.passes.last

    @property
    def notable_passes(self) -> list[PassReport]:
        """The last passes that changed something or failed, the newest first."""
        return list(self._parts.passes.notable)

    @property
    def progress(self) -> tuple[int, int] | None:
        """(files read, files to read) of the longest pass that is under way, be it that of a rebuild."""
        return self._parts.runner.progress

    @property
    def pending(self) -> int:
        """How many marks wait for a pass."""
        return self._pending.count

    @property
    def growing(self) -> int:
        """How many transcripts have grown, and are read when more has come or they are quiet."""
        return self._parts.runner.growing

    @property
    def health(self) -> IndexHealth:
        """What is wrong just now."""
        return IndexHealth(
            self._parts.runner.skipped,
            self._index.damage.keyword,
            self._watcher_trouble,
            self.watcher_note,
            self._rebuild_in_words()
            or ("the index was damaged and is filled anew" if self._is_filled_anew else None),
            self._parts.passes.trouble or self._parts.rebuilder.failure,
            "; ".join(
                f"{task} failed: {why}" for task, why in self.background.failed.items() if task != WATCHING
            )
            or None,
        )

    @property
    def _is_filled_anew(self) -> bool:
        """Whether most is missing until there was a pass over everything."""
        return self._index.begun_anew is not None and not self._parts.triggers.whole.is_set()

    def _rebuild_in_words(self) -> str | None:
        reason, embedded = self._parts.rebuilder.reason, self._parts.embedding.progress
        if reason is None or embedded is None:
            return reason
        done, chunks = embedded
        return f"{reason}; {done:,} of {chunks:,} chunks have their new vectors"

    @property
    def _watcher_trouble(self) -> str | None:
        blocked_s = self._parts.recent.blocked_s()
        if blocked_s >= BLOCKED_S:
            return f"the files have not answered for {blocked_s:.0f} s: is a network mount down?"
        why = self.background.failed.get(WATCHING)
        failed = None if why is None else f"{WATCHING} failed: {why}"
        reasons = [
            one
            for one in (failed, self.watcher_trouble, _in_words(self._parts.runner.kept))
            if one is not None
        ]
        return "; ".join(reasons) or None

    # --- what others ask of it

    def request(self, *, force: bool = False) -> int:
        """Ask for a pass over everything that begins after this call, transcripts that still grow included; its number."""
        self._parts.rebuilder.hurry()
        return self._pending.mark_all(force=force, eager=True)

    async def wait_for_pass(self, number: int) -> PassReport:
        """See Passes.wait_for_pass."""
        return await self._parts.passes.wait_for_pass(number)

    async def catch_up(self) -> bool:
        """See Freshness.catch_up. An index that holds what was not on the disk when somebody looked is not up to date."""
        return await self._parts.freshness.catch_up() and not self._parts.runner.kept

    async def counts(self) -> Counts:
        """How much the index holds. Vectors of another model than the one that is wanted now are not done: all wait.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        counts = await self._index.counts()
        if self._has_wanted_space:
            return counts
        done, _ = self._parts.embedding.progress or (0, 0)
        done = min(done, counts.chunks)
        return msgspec.structs.replace(counts, done=done, waiting=counts.chunks - done, set_aside=0)

    @property
    def _has_wanted_space(self) -> bool:
        if not self._parts.queues.embeds or self._index.space is None:
            return True  # what there is, is all there is to be; or nothing is done
        wanted = self._parts.queues.providers.wanted
        return wanted is not None and space_of(wanted) == self._index.space

    async def wait_for_vectors(self) -> None:
        """Wait until all chunks have the vectors that are wanted by then, or nothing moves.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        providers = self._parts.queues.providers
        moved_at, seen = self._clock(), object()
        while self._parts.queues.embeds:
            version, wanted = providers.changes.version, providers.wanted
            if wanted is None and not providers.is_being_found_out:
                return
            if wanted is None:
                await providers.changes.since(version)
                continue
            space = space_of(wanted)
            queue = providers.queue(space)
            is_replaced = self._index.space == space and not self._parts.rebuilder.changes_space
            if is_replaced and queue is not None:
                await queue.wait_for(self._index)
                if providers.changes.version == version:
                    return
                continue
            # Another index is being built, with those vectors.
            trouble = self._parts.rebuilder.failure or (queue and queue.reason_of(self._agent))
            is_left = queue is not None and queue.only_jobs_left(self._agent)
            progress = self._parts.embedding.progress, self._parts.runner.progress
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
        self._parts.rebuilder.want(reason, force=force)

    async def cost(self, *, force: bool) -> RebuildCost:
        """What a rebuild would have to embed; see CostEstimate.of_rebuild."""
        return await self._parts.estimate.of_rebuild(force=force)

    def rest_vectors(self) -> None:
        """Embed nothing until vectors are wanted: another backend answers searches. Those that are there stay."""
        self._parts.queues.rest = True
        self._parts.follower.look_again()

    def want_vectors(self) -> None:
        """Embed what waits, and go on doing so."""
        self._parts.queues.rest = False
        self._parts.follower.look_again()

    # --- all of it

    async def run(self) -> None:
        """Keep the index up to date, for ever."""
        async with asyncio.TaskGroup() as tasks:
            for task in self._tasks():
                tasks.create_task(self.background.keep(task))

    def _tasks(self) -> list[BackgroundTask]:
        parts, index, triggers, damage = self._parts, self._index, self._parts.triggers, self._index.damage
        cache = parts.queues.providers.cache
        tasks = [
            BackgroundTask("indexing what has changed", parts.passes.run, damage=damage),
            BackgroundTask("building the index anew", parts.rebuilder.run, damage=damage),
            BackgroundTask("waking the queue", partial(parts.follower.keep_queue_awake, parts.passes)),
            optimize_keywords(index, triggers),
            truncate_wal(index, triggers),
            check_integrity(index, self._is_busy),
            delete_backups(index.database, triggers.whole, damage),
            BackgroundTask("following the embedding model", parts.follower.run, damage=damage),
        ]
        if cache is not None:
            tasks += [refill_cache(index, cache), delete_backups(cache, triggers.whole, None)]
        return tasks

    async def stop(self) -> None:
        """Send those away who wait for a pass: with run cancelled, none comes any more."""
        self._parts.passes.stop()
        self._parts.runner.stop()
        await self._pending.close()
        await self._parts.queues.leave()

    def _is_busy(self) -> bool:
        return self.progress is not None or self.pending > 0 or self._parts.rebuilder.reason is not None


def _in_words(kept: Mapping[str, int]) -> str | None:
    if not kept:
        return None
    reasons = ", ".join(f"{reason} ({files})" for reason, files in sorted(kept.items()))
    count = sum(kept.values())
    which = (
        "1 indexed file is shown as it was" if count == 1 else f"{count} indexed files are shown as they were"
    )
    return f"{which} seen last: {reasons}"
