"""The embedding scheduler: embeds waiting chunks, the newest first, in turns between agents."""

import asyncio
import contextlib

import structlog

from memd.domain_types import TextHash
from memd.embedding.health_transitions import Healthy, Retrying, failures_after
from memd.embedding.passage_queue.agent_backlog import (
    BURST_S,
    AgentBacklog,
    IndexToEmbed,
    Paused,
    State,
    in_words,
)
from memd.embedding.passage_queue.batch_submitter import BatchSubmitter
from memd.embedding.passage_queue.fair_slots import InFlight, RequestSender, end_all
from memd.embedding.passage_queue.passage_embedder import PassageEmbedder
from memd.embedding.passage_queue.results import CacheBound, ResultWriter
from memd.embedding.passage_queue.user_controls import ANY_SPACE, CostConfirmations, UserSwitches
from memd.embedding.provider_health import ProviderHealth
from memd.errors import FatalError, TransientError
from memd.providers.provider import Provider
from memd.runtime.asyncio_helpers import first_of
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import delay_s
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreClosed, StoreDamaged, StoreNewer
from memd.store.index import Index
from memd.store.provider_records import ProviderStore

log = structlog.get_logger()

LOOK_AHEAD = 400  # chunks that are looked up in the cache in one query
STALLED_S = 60.0  # the time without progress after which waiters return
AGAIN_S = 30.0  # until the use of a confirmation is written again after a failure
# Factor on the provider's concurrency: the most requests of an agent that are in flight or not stored yet.
UNSTORED = 2


class EmbeddingQueue:
    """The texts that one provider has to embed, for all agents that use it.

    Each agent has a task, so that no agent's disk delays another agent. As many requests are in flight as the provider's limits
    allow, in turns between agents; an agent whose texts were just written is next, for one request. Results are stored while the
    next requests are in flight.

    While a provider fails, it is sent one text at a time, with increasing waits.

    The owner runs `run` and, if there is a batch API, calls `batch_submitter.use` before.
    """

    def __init__(
        self,
        provider: Provider,
        cache: EmbeddingStore,
        bound: CacheBound,
        health: ProviderHealth,
        *,
        confirm_above: int | None = None,
        in_flight: InFlight | None = None,
    ) -> None:
        """Create the queue; `run` embeds.

        Args:
            provider: Embeds the texts.
            cache: Stores vectors by text hash, and the user's pauses and confirmations.
            bound: The number of vectors that the cache keeps; the least recently used are deleted.
            health: The provider's health; its clock and its source of jitter are also the queue's.
            confirm_above: More uncached texts than this wait for the user's confirmation; None: none is required, since embedding
                is free.
            in_flight: The texts in flight in the provider's space, shared with other queues; None: there are none.
        """
        self.health = health
        self._clock = health.clock
        self._rng = health.rng
        self._progress = health.progress
        self._embedder = PassageEmbedder(provider, health)
        self.backlogs: dict[str, AgentBacklog] = {}  # by agent
        self._agent_came = asyncio.Event()  # set when an agent without a task is added
        self._gathering = asyncio.Lock()
        identity = provider.identity
        space = (identity.provider, identity.model, identity.key)
        self.known = KnownVectors(cache, space)
        self.batch_submitter = BatchSubmitter(self.known)
        self.switches = UserSwitches(ProviderStore(cache, space), ProviderStore(cache, ANY_SPACE))
        self._bound = bound
        self._has_cache_failed = False  # a failure was logged, and not repeated since
        self.confirmations = CostConfirmations(confirm_above, self.switches, self.known, self._progress)
        self._results = ResultWriter(self.known, self._progress)
        self._sender = RequestSender(
            self.backlogs,
            self._embedder,
            health,
            batch_submitter=self.batch_submitter,
            known=self.known,
            storing=self._results,
            switches=self.switches,
            in_flight=in_flight or InFlight(),
        )

    # --- state

    @property
    def provider(self) -> Provider:
        """The provider that embeds the texts."""
        return self._embedder.provider

    @property
    def waiting_for_slots(self) -> int:
        """The number of agents that wait for a slot."""
        return self._sender.slots.waiting

    @property
    def reason(self) -> str | None:
        """Why nothing is embedded for any agent; None: nothing prevents it."""
        passages = self.health.now.passages
        return None if isinstance(passages, Healthy) else passages.reason

    def state_of(self, agent: str) -> State:
        """Return the state of an agent: a pause or missing confirmation precedes a failing index, which precedes the provider."""
        if self.switches.of(agent).paused:
            return Paused()
        backlog = self.backlogs.get(agent)
        asked = self.confirmations.asked_before_rebuild(agent) or (
            None if backlog is None else backlog.unconfirmed
        )
        if asked is not None:
            return asked
        if backlog is not None and isinstance(backlog.store, Retrying):
            return backlog.store
        return self.health.now.passages

    def reason_of(self, agent: str) -> str | None:
        """Return why nothing of an agent is embedded; None: nothing prevents it."""
        return in_words(self.state_of(agent), agent)

    def store_trouble(self, agent: str) -> str | None:
        """Return why an agent's index takes no vectors; None: it takes them, as far as is known."""
        backlog = self.backlogs.get(agent)
        if backlog is None or backlog.has_met_bug or not isinstance(backlog.store, Retrying):
            return None
        return backlog.store.reason

    def note_of(self, agent: str) -> str | None:
        """Return the message about batch jobs that an agent's texts are in; None: they are in none."""
        backlog = self.backlogs.get(agent)
        return self.batch_submitter.note if backlog is not None and backlog.held else None

    def only_jobs_left(self, agent: str) -> bool:
        """Return whether all waiting texts of an agent are in batch jobs that a sync does not wait for."""
        backlog = self.backlogs.get(agent)
        return backlog is not None and backlog.only_jobs_left and not self.batch_submitter.is_waited_for

    def next_try_s(self, agent: str) -> float | None:
        """Return the seconds until the next attempt after a failure; None: there was none."""
        state = self.state_of(agent)
        return max(0.0, state.until - self._clock()) if isinstance(state, Retrying) else None

    def eta_s(self, waiting: int) -> float | None:
        """Estimate the seconds until this number of an agent's chunks is embedded, if other busy agents have as many."""
        rate = self._embedder.rate.per_s
        if not waiting or not rate or self.reason:
            return None
        sharing = sum(not backlog.is_idle for backlog in self.backlogs.values())
        return waiting * max(1, sharing) / rate

    # --- user switches

    async def load(self, agent: str) -> None:
        """Load the stored switches of an agent; state_of needs them."""
        await self.switches.read(agent)

    async def pause(self, agent: str) -> None:
        """Pause an agent; requests in flight are not cancelled.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: the pause lasts only until the daemon ends.
        """
        try:
            await self.switches.pause(agent, paused=True)
        finally:
            self._progress.notify()

    async def resume(self, agent: str) -> None:
        """Resume an agent, and retry a failing or refusing provider now.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: the agent is paused again after a restart.
        """
        await self.switches.read(agent)
        try:
            await self.switches.pause(agent, paused=False)
        finally:
            self.ask_again()

    def ask_again(self) -> None:
        """Retry a failing or refusing provider now."""
        self.health.retry_passages()
        self._wake_all()

    async def confirm(self, agent: str) -> None:
        """Allow an agent to send all its texts, until all are embedded.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: confirmation is required again after a restart.
        """
        await self.switches.read(agent)
        try:
            await self.switches.confirm(agent, confirmed=True)
        finally:
            self._progress.notify()
            self._wake_all()

    # --- agents

    def serve(self, source: IndexToEmbed) -> None:
        """Embed the waiting texts of an agent's index; called again after writes, it puts the newest texts first."""
        backlog = self.backlogs.get(source.agent)
        if backlog is None or backlog.source.index is not source.index:
            self._forget(source.agent)
            backlog = self.backlogs[source.agent] = AgentBacklog(source)
        backlog.source = source
        backlog.wake(anew=True)
        self._sender.slots.hurry(source.agent)
        self._agent_came.set()

    async def leave(self, agent: str) -> None:
        """Stop embedding for an agent; waiters in wait_for check again."""
        task = self._forget(agent)
        if task is not None:
            await asyncio.wait([task])
        self.switches.forget(agent)
        self._rest()
        self._progress.notify()

    def _forget(self, agent: str) -> asyncio.Task[None] | None:
        backlog = self.backlogs.pop(agent, None)
        if backlog is None or backlog.task is None:
            return None
        backlog.task.cancel()
        return backlog.task

    def _drop(self, backlog: AgentBacklog) -> None:
        # The agent may have been added again with other settings.
        if self.backlogs.get(backlog.agent) is backlog:
            del self.backlogs[backlog.agent]
        self._rest()
        self._progress.notify()

    def _wake_all(self) -> None:
        for backlog in self.backlogs.values():
            backlog.wake(anew=True)

    # --- work

    async def run(self) -> None:
        """Embed waiting texts until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow_jobs())
                while True:
                    self._agent_came.clear()
                    for backlog in self.backlogs.values():
                        if backlog.task is None:
                            backlog.task = tasks.create_task(self._work_for(backlog))
                    await self._agent_came.wait()
        finally:
            for backlog in self.backlogs.values():
                backlog.task = None

    async def _follow_jobs(self) -> None:
        """Wake all agents whenever batch jobs have delivered vectors or returned texts."""
        version = self.batch_submitter.changes.version
        while True:
            version = await self.batch_submitter.changes.since(version)
            self._wake_all()

    async def _work_for(self, backlog: AgentBacklog) -> None:
        """Embed the texts of one agent until its index is closed."""
        await self.switches.read(backlog.agent)
        try:
            while True:
                try:
                    await self._work_through(backlog)
                except TransientError as failure:
                    if isinstance(failure, StoreClosed):
                        raise
                    backlog.has_met_bug = False
                    await self._let_recover(backlog, str(failure))
                except (FatalError, StoreDamaged):
                    raise
                except Exception as bug:
                    # A defect must neither affect other agents nor end the daemon.
                    log.exception("embed.failed", agent=backlog.agent)
                    backlog.has_met_bug = True
                    await self._let_recover(backlog, safe_message(bug))
        except StoreClosed:
            self._drop(backlog)  # the agent was stopped
        except StoreDamaged as damage:
            self._drop(backlog)
            backlog.source.index.damage.report(str(damage))
        finally:
            await end_all(backlog.requests)

    async def _work_through(self, backlog: AgentBacklog) -> None:
        worked = False
        while True:
            while await self._step(backlog):
                worked = True
                # A step may return without suspending; without this, a defect in it would block the event loop.
                await asyncio.sleep(0)
            # Otherwise texts that a request has put back would be overlooked.
            if not backlog.requests and not backlog.woken.is_set():
                backlog.is_idle = not backlog.anew.is_set()
                self._rest()
                await self._all_done(backlog)
                if backlog.held:
                    self._progress.notify()  # waiters for all but batch jobs may return
                if worked and (held := await self._held()) is not None:
                    # Pruning in steps: thousands may be too many after a rebuild, and texts written meanwhile must not wait.
                    bound = self._bound.entries(self.known, held)
                    while await self.known.prune(bound) and not backlog.woken.is_set():
                        pass
                    worked = backlog.woken.is_set()
            await self._woken(backlog)

    async def _woken(self, backlog: AgentBacklog) -> None:
        """Wait until woken, or until a burst ends that alone requires confirmation."""
        asked = backlog.unconfirmed
        is_for_burst = asked is not None and asked.sent and backlog.answered
        left_s = max(0.0, backlog.asked_at + BURST_S - self._clock()) if is_for_burst else None
        try:
            async with asyncio.timeout(left_s):
                await backlog.woken.wait()
        except TimeoutError:
            backlog.answered = 0
            backlog.wake(anew=True)

    async def _held(self) -> int | None:
        """Return the number of texts of all served agents; None: an index cannot be read, and may need cached vectors."""
        try:
            counts = [await one.source.index.counts() for one in [*self.backlogs.values()]]
        except (TransientError, StoreDamaged):
            return None  # raised again when that index is served itself
        return sum(one.held for one in counts)

    async def _all_done(self, backlog: AgentBacklog) -> None:
        """After the last text, clear the confirmation."""
        if backlog.unconfirmed is None and not self.switches.has_confirmation(backlog.agent):
            return
        if (
            not backlog.is_idle
            or not await backlog.source.index.is_complete()
            or self.confirmations.is_in_use(backlog.agent)
        ):
            return
        backlog.unconfirmed = None
        if self.switches.has_confirmation(backlog.agent):
            await self._use_up_confirmation(backlog)

    async def _use_up_confirmation(self, backlog: AgentBacklog) -> None:
        """Store that a confirmation is used up; otherwise, texts would be sent without confirmation after a restart."""
        try:
            await self.switches.confirm(backlog.agent, confirmed=False)
        except (TransientError, StoreDamaged, StoreNewer) as failure:
            if not self._has_cache_failed:
                log.warning("embed.cache_failed", reason=str(failure))
            self._has_cache_failed = True
            asyncio.get_running_loop().call_later(AGAIN_S, backlog.wake)
        else:
            self._has_cache_failed = False

    async def _let_recover(self, backlog: AgentBacklog, reason: str) -> None:
        failures = failures_after(backlog.store)
        since = backlog.store.since if isinstance(backlog.store, Retrying) else self._clock()
        wait_s = delay_s(failures, self._rng)
        log.warning("embed.store_failed", agent=backlog.agent, reason=reason, wait_s=round(wait_s, 1))
        backlog.store = Retrying(since, self._clock() + wait_s, failures, reason)
        self._progress.notify()
        # After a successful pass, the store works again: the wait ends.
        backlog.anew.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await backlog.anew.wait()
        backlog.failure = None
        backlog.anew.set()

    def _rest(self) -> None:
        is_failing = isinstance(self.health.now.passages, Retrying)
        if is_failing and all(backlog.is_idle for backlog in self.backlogs.values()):
            self.health.retry_passages()  # the failed texts are not wanted any longer

    async def _step(self, backlog: AgentBacklog) -> bool:
        """Do one step for an agent; return False if there is nothing to do until it is woken."""
        backlog.woken.clear()
        if backlog.failure is not None:
            failure, backlog.failure = backlog.failure, None
            raise failure
        is_anew = backlog.anew.is_set()
        backlog.anew.clear()
        if isinstance(backlog.store, Retrying):
            # Checks that the index can be written before anything is paid for.
            await self._results.store(backlog, [])
            backlog.store = Healthy()
            self._progress.notify()
        if is_anew:
            await self._results.from_published(backlog)
        if (is_anew or not backlog.ahead) and await self._look(backlog):
            return True  # the cache may have held all texts that were read
        if not backlog.ahead or not self._sender.may_send(backlog):
            return False
        if len(backlog.requests) >= UNSTORED * self.provider.limits.concurrency:
            return False
        if await self._hand_over(backlog):
            return True
        return await self._sender.send(backlog, quick=is_anew)

    # --- choosing texts

    async def _look(self, backlog: AgentBacklog) -> bool:
        """Read the most important waiting texts; return whether the cache held any."""
        source = backlog.source
        if source.index.space not in {None, self.known.space}:
            # Another index replaced it, with vectors of another model.
            backlog.ahead, backlog.open = [], 0
            return False
        backlog.held = await self.batch_submitter.held(source.index)
        taken = backlog.held.union(backlog.out)
        waiting = backlog.looked_up(await source.index.waiting(LOOK_AHEAD, taken | backlog.passed_over))
        # Texts that always fail, or a job of hours, must not prolong the burst forever.
        if all(
            text_hash in backlog.alone for text_hash in (*backlog.out, *(chunk.hash for chunk in waiting))
        ):
            backlog.answered = 0
        if not waiting and backlog.passed_over:
            backlog.suspect_none()
            waiting = backlog.looked_up(await source.index.waiting(LOOK_AHEAD, taken))
        elif waiting and backlog.fails_at_deferred:
            backlog.fails_at_deferred = False
            self.health.hurry_passages()
        known = frozenset[TextHash]()
        if source.use_cache and waiting:
            known = await self._results.from_cache(backlog, waiting)
        backlog.ahead = [chunk for chunk in waiting if chunk.hash not in known]
        if not backlog.ahead:
            backlog.open = 0
        else:
            texts = 0
            if self.confirmations.may_ask or self.batch_submitter.batches is not None:
                # Counting takes tens of milliseconds for 100,000 chunks with parts.
                texts = (await source.index.counts()).texts
            backlog.open = max(len(backlog.ahead), texts - len(backlog.held) - len(backlog.out))
            before = backlog.unconfirmed
            backlog.unconfirmed = await self.confirmations.wanted(backlog, texts)
            if before is None:
                backlog.asked_at = self._clock()
            if backlog.unconfirmed != before:
                self._progress.notify()
        return bool(known)

    async def _hand_over(self, backlog: AgentBacklog) -> bool:
        """Submit the waiting texts of all agents to batch jobs if there are enough; return whether any were taken."""
        if not backlog.source.use_cache or not self.batch_submitter.is_wanted(self._open_for_batches()):
            return False
        async with self._gathering:
            if backlog.anew.is_set() or not self.batch_submitter.is_wanted(self._open_for_batches()):
                return backlog.anew.is_set()  # another agent has collected them meanwhile
            sources = [
                one
                for one in self.backlogs.values()
                if one.source.use_cache and one.open and self._sender.may_send(one)
            ]
            taken = await self.batch_submitter.submit(
                [(one.source.index, one.out) for one in sources], self._sender.asking
            )
            for one, texts in zip(sources, taken, strict=True):
                one.open = 0  # until the next look, since collecting all texts takes long
                one.answered += texts
                if any(taken):
                    one.wake(anew=True)
            return any(taken)

    def _open_for_batches(self) -> int:
        return sum(
            one.open for one in self.backlogs.values() if one.source.use_cache and self._sender.may_send(one)
        )

    # --- waiting for vectors

    async def wait_for(self, index: Index) -> tuple[int, str | None]:
        """Wait until no chunk of an index waits for a vector, or there is no progress.

        Returns:
            (number of chunks that still wait, why), or (0, None).
        """
        clock = asyncio.get_running_loop().time
        moved_at, seen = clock(), self._progress.version
        while True:
            version, changed = self._progress.version, index.changed.version
            if version != seen:
                moved_at, seen = clock(), version
            backlog = next((one for one in self.backlogs.values() if one.source.index is index), None)
            async with contextlib.nullcontext() if backlog is None else backlog.storing:
                is_complete = await index.is_complete()
            if is_complete:
                return 0, None
            reason = self.reason if backlog is None else self.reason_of(backlog.agent)
            if reason is not None:
                return await _left(index, reason)
            is_in_jobs = backlog is not None and backlog.only_jobs_left
            if is_in_jobs and not self.batch_submitter.is_waited_for:
                return await _left(index, self.batch_submitter.note)
            try:
                async with asyncio.timeout_at(None if is_in_jobs else moved_at + STALLED_S):
                    # A rebuild stores vectors without this queue, and a pass may delete waiting chunks.
                    await first_of(self._progress.since(version), index.changed.since(changed))
            except TimeoutError:
                return await _left(index, f"no chunk was embedded in the last {STALLED_S:.0f} s")


async def _left(index: Index, reason: str | None) -> tuple[int, str | None]:
    """Return how many chunks of an index wait, and why; (0, None) if none does any more."""
    waiting = (await index.counts()).waiting
    return (waiting, reason) if waiting else (0, None)
