"""Keeps one agent's index up to date with its files: builds the parts that do so, and is their interface."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from random import Random

import msgspec

from memd.config.settings import AgentSettings
from memd.embedding.passage_queue.agent_backlog import PublishedVectors
from memd.embedding.passage_queue.scheduler import STALLED_S, EmbeddingQueue
from memd.embedding.registry import AgentProviders, AgentQueues
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.freshness import Freshness
from memd.indexing.pass_scheduler import PassReport, PassScheduler
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
from memd.runtime.timers import Clock
from memd.sources.origins import RootOrigin
from memd.sources.root_links import ChangedLink, RootLinks
from memd.store.chunks import Counts
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.memory_paths import as_text
from memd.watch.event_barrier import EventBarrier

# Threads that read files: one for passes, one for edits while a pass reads a long file, one for a rebuild.
READERS = 3
LOOK_S = 0.2  # between two checks whether an index for other vectors is ready
BLOCKED_S = 5.0  # a check that takes longer is waiting for a disk that does not answer
WATCHING = "watching the files"  # the background task whose failures are reported as the watcher's


class IndexHealth(msgspec.Struct, frozen=True):
    """What does not work, by part; None: the part works."""

    keyword: str | None
    watcher: str | None
    watcher_note: str | None  # a remark about a watcher that works
    rebuild: str | None
    store: str | None  # why nothing can be written
    maintenance: str | None  # background tasks that failed unexpectedly, until their next attempt


class IndexParts(msgspec.Struct, frozen=True):
    """The parts of an index service; each is built from those before it."""

    queues: AgentQueues
    recent: RecentFileCheck
    barrier: EventBarrier
    triggers: MaintenanceTriggers
    runner: PassRunner
    passes: PassScheduler
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
    pending: DebouncedChanges,
    providers: AgentProviders,
    rng: Random,
    published: PublishedVectors | None = None,
    links: RootLinks | None = None,
    clock: Clock = time.monotonic,
) -> IndexParts:
    """Build the parts of one agent's index service; none runs yet.

    Args:
        agent: The agent's id.
        settings: The agent's settings.
        rules: How its files are read and cut.
        index: The agent's index, open.
        fingerprint: The settings and model that the index is for, as far as they are known.
        pending: The marks of changed files.
        providers: The agent's embedding providers.
        rng: Source of the jitter of backoffs.
        published: What the agent has published; None: it publishes nothing.
        links: The configured paths to follow; None: there are none.
        clock: Returns seconds, monotonic, by which passes are measured.
    """
    # Threads of this agent alone, so that a disk that does not answer blocks no other agent.
    files = Threads(READERS, f"memd-files-{agent}")
    looking = Threads(1, f"memd-look-{agent}")
    queues = AgentQueues(agent, providers, published)
    recent = RecentFileCheck(
        RecentFiles(rules.roots), looking, look_by_scan(rules.roots, rules.max_bytes), links
    )
    barrier = EventBarrier()
    triggers = MaintenanceTriggers()
    runner = PassRunner(
        agent, rules, index, pending=pending, recent=recent, barrier=barrier, files=files, queues=queues
    )
    passes = PassScheduler(agent, index, pending, runner, triggers, rng=rng, clock=clock)
    freshness = Freshness(pending, passes, recent, barrier, settings.sync.wait_ms / 1000)
    estimate = CostEstimate(settings, rules, index, queues, files)
    permission = RebuildPermission(agent, queues, estimate)
    embedding = NewIndexEmbedding(index, queues, runner)
    rebuilder = Rebuilder(agent, index, fingerprint, runner, embedding, permission, triggers, rng)
    follower = ModelFollower(
        agent, settings, index, fingerprint, queues=queues, rebuilder=rebuilder, permission=permission
    )
    background = BackgroundTasks(agent, rng)
    return IndexParts(
        queues, recent, barrier, triggers, runner, passes,
        freshness, estimate, embedding, rebuilder, follower, background,
    )  # fmt: skip


class IndexService:
    """The interface of the parts that keep the index of one agent up to date."""

    def __init__(
        self,
        agent: str,
        index: Index,
        pending: DebouncedChanges,
        parts: IndexParts,
        clock: Clock = time.monotonic,
    ) -> None:
        """Create the service; `run` starts it.

        Args:
            agent: The agent's id.
            index: The agent's index, open.
            pending: The marks of changed files.
            parts: See index_parts.
            clock: Returns seconds; must be monotonic.
        """
        self.watcher_trouble: str | None = None
        self.watcher_note: str | None = None
        self.barrier = parts.barrier  # for the task that watches the files
        self.background = parts.background
        self._agent = agent
        self._index = index
        self._pending = pending
        self._parts = parts
        self._clock = clock

    # --- status

    @property
    def queue(self) -> EmbeddingQueue | None:
        """The queue that embeds for the current index; None if there is none now."""
        return self._parts.queues.queue(self._index.space)

    @property
    def queues(self) -> frozenset[EmbeddingQueue]:
        """All queues that embed for the agent, also for an index that is being rebuilt."""
        return frozenset(self._parts.queues.queues)

    @property
    def vectors_suspended(self) -> bool:
        """Whether embedding is suspended, because no search uses vectors now."""
        return self._parts.queues.suspended

    @property
    def is_whole(self) -> bool:
        """Whether a pass has scanned everything since the start: a file that the index lacks is then not on the disk."""
        return self._parts.triggers.whole.is_set() and not self._parts.runner.kept

    @property
    def last_pass(self) -> PassReport | None:
        """The report of the last pass; None if there was none."""
        return self._parts.passes.last

    @property
    def notable_passes(self) -> list[PassReport]:
        """The last passes that changed something or failed, newest first."""
        return list(self._parts.passes.notable)

    @property
    def progress(self) -> tuple[int, int] | None:
        """(files read, files to read) of the longest pass in progress, including that of a rebuild."""
        return self._parts.runner.progress

    @property
    def pending(self) -> int:
        """The number of marks that wait for a pass."""
        return self._pending.count

    @property
    def unfinished(self) -> int:
        """The number of marks that wait for a pass, or that a running pass has taken."""
        return self._pending.unfinished

    @property
    def missing(self) -> list[RootOrigin]:
        """See PassRunner.missing."""
        return self._parts.runner.missing

    @property
    def skipped(self) -> Mapping[str, int]:
        """See PassRunner.skipped."""
        return self._parts.runner.skipped

    @property
    def growing(self) -> int:
        """The number of transcripts that have grown, and are read once more has been added or they stop growing."""
        return self._parts.runner.growing

    @property
    def health(self) -> IndexHealth:
        """What does not work now."""
        return IndexHealth(
            self._index.damage.keyword,
            self._watcher_trouble,
            self.watcher_note,
            self._rebuild_in_words()
            or ("the index was damaged and is filled anew" if self._is_filled_anew else None),
            self._parts.passes.failure or self._parts.rebuilder.failure,
            "; ".join(
                f"{task} failed: {why}" for task, why in self.background.failed.items() if task != WATCHING
            )
            or None,
        )

    @property
    def _is_filled_anew(self) -> bool:
        """Whether most of the index is missing until a pass has scanned everything."""
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
            for one in (failed, self._moved_root, self.watcher_trouble, _in_words(self._parts.runner.kept))
            if one is not None
        ]
        return "; ".join(reasons) or None

    @property
    def _moved_root(self) -> str | None:
        changed = self._parts.recent.links.changed
        return None if changed is None else str(changed)

    # --- requests

    def request(self, *, force: bool = False) -> int:
        """Request a pass over everything, growing transcripts included, that begins after this call; return its number."""
        self._parts.rebuilder.retry_now()
        return self._pending.mark_all(force=force, eager=True)

    async def changed_link(self) -> ChangedLink | None:
        """Return a configured path that leads elsewhere now than when the agent was started; None: no such path is known."""
        await self._parts.recent.compare_links()
        return self._parts.recent.links.changed

    async def forget_links(self) -> None:
        """Have the next start of the agent forget what came from places where configured paths lead no longer.

        The index then records these places, and not the paths that led there.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        led = {as_text(link.path): as_text(link.before) for link in self._parts.recent.links.all_changed}
        before = await self._index.origins() or []
        after = [(prefix, led.get(path, path), place) for prefix, path, place in before]
        if after != before:
            await self._index.put_origins(after)

    async def wait_for_pass(self, number: int) -> PassReport:
        """See PassScheduler.wait_for_pass."""
        return await self._parts.passes.wait_for_pass(number)

    async def catch_up(self) -> bool:
        """See Freshness.catch_up; also False while the index keeps files that the last scan could not find."""
        return await self._parts.freshness.catch_up() and not self._parts.runner.kept

    async def counts(self) -> Counts:
        """Return how much the index holds; vectors of another model than the wanted one count as waiting.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        counts = await self._index.counts()
        if self._has_wanted_space:
            return counts
        done, _ = self._parts.embedding.progress or (0, 0)
        done = min(done, counts.chunks)
        return msgspec.structs.replace(counts, done=done, waiting=counts.chunks - done, refused=0)

    @property
    def _has_wanted_space(self) -> bool:
        if not self._parts.queues.embeds or self._index.space is None:
            return True  # nothing else is wanted, or nothing is embedded
        wanted = self._parts.queues.providers.wanted
        return wanted is not None and space_of(wanted) == self._index.space

    async def wait_for_vectors(self) -> None:
        """Wait until all chunks have the vectors that are wanted by then, or there is no progress.

        Raises:
            StoreUnavailable, StoreDamaged.
        """
        providers = self._parts.queues.providers
        moved_at, seen = self._clock(), object()
        while self._parts.queues.embeds:
            version, wanted = providers.changes.version, providers.wanted
            if wanted is None and not providers.is_probing_model:
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
        """Build a new index beside the current one, and swap them.

        Args:
            reason: Why, for the status.
            force: Whether to embed all chunks again, too.
        """
        self._parts.rebuilder.request(reason, force=force)

    async def cost(self, *, force: bool) -> RebuildCost:
        """Return what a rebuild would have to embed; see CostEstimate.of_rebuild."""
        return await self._parts.estimate.of_rebuild(force=force)

    def suspend_vectors(self) -> None:
        """Suspend embedding, because another backend answers searches; existing vectors stay."""
        self._parts.queues.suspended = True
        self._parts.follower.look_again()

    def resume_vectors(self) -> None:
        """Resume embedding."""
        self._parts.queues.suspended = False
        self._parts.follower.look_again()

    # --- background tasks

    async def roots_moved(self) -> None:
        """Return when a configured path leads to another place, so that the agent is to be started again with it."""
        await self._parts.recent.links_moved()

    async def run(self) -> None:
        """Keep the index up to date until cancelled."""
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
        """Stop the parts, and fail those that wait for a pass, as none will come once `run` is cancelled."""
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
