"""The embedding scheduler: chunks that wait for a vector get one, newest first, in turn between agents."""

import asyncio
import contextlib
from collections.abc import Mapping

import structlog

from memd.domain_types import TextHash
from memd.embedding.health_transitions import Healthy, Retrying, failures_after
from memd.embedding.provider_health import ProviderHealth
from memd.embedding.queue.agent_backlog import BURST_S, AgentBacklog, IndexToEmbed, Paused, State, in_words
from memd.embedding.queue.batch_submitter import BatchSubmitter
from memd.embedding.queue.fair_slots import InFlight, RequestSlots, end_all
from memd.embedding.queue.passage_embedder import PassageEmbedder
from memd.embedding.queue.results import CacheBound, ResultWriter
from memd.embedding.queue.user_controls import ANY_SPACE, CostConfirmations, UserSwitches
from memd.errors import FatalError, TransientError
from memd.providers.provider import Provider
from memd.runtime.safe_traceback import safe_message
from memd.runtime.synchronization import first_of
from memd.runtime.timing import delay_s
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreClosed, StoreDamaged, StoreNewer
from memd.store.index import Index
from memd.store.provider_records import ProviderStore

log = structlog.get_logger()

LOOK_AHEAD = 400  # chunks that are looked up in the cache at once
STALLED_S = 60.0  # no vector for so long: whoever waits for the rest is told
AGAIN_S = 30.0  # until it is written again that a confirmation is used up
UNSTORED = 2  # requests of an agent that are under way or not stored yet, for each that may be under way


class EmbeddingQueue:
    """What one provider has to embed, for all agents that use it.

    Each agent has a task of its own, so that no store waits for another's. As many requests are under way as the
    provider's limits allow, turn by turn; an agent of which something was just written is next, for one request. What
    an answer brought is stored while the next requests are under way.

    A provider that does not answer is asked for one text at a time, after longer and longer waits, until it does.

    Whoever builds the queue runs `run` and, where there is a batch API, calls `batch_submitter.use` before.
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
        """Embed nothing before `run`.

        Args:
            provider: Embeds the texts.
            cache: Where vectors are kept by text hash, and pauses and confirmations of the user.
            bound: How many of them stay, the least recently used going first.
            health: Of the provider; its clock and its source of jitter are the queue's, too.
            confirm_above: More texts than this, not cached, wait for a person to confirm them; None: nobody is asked,
                as the work costs nothing.
            in_flight: What is requested in the space of the provider, also by other queues; None: there is no other.
        """
        self.health = health
        self._clock = health.clock
        self._rng = health.rng
        self._progress = health.progress
        self._embedder = PassageEmbedder(provider, health)
        self._backlogs: dict[str, AgentBacklog] = {}  # by agent
        self._agent_came = asyncio.Event()  # an agent without a task
        self._gathering = asyncio.Lock()
        identity = provider.identity
        space = (identity.provider, identity.model, identity.key)
        self.known = KnownVectors(cache, space)
        self.batch_submitter = BatchSubmitter(self.known)
        self._switches = UserSwitches(ProviderStore(cache, space), ProviderStore(cache, ANY_SPACE))
        self._bound = bound
        self._has_cache_failed = False  # and that was logged
        self.confirmations = CostConfirmations(confirm_above, self._switches, self.known, self._progress)
        self._results = ResultWriter(self.known, self._progress)
        self._slots = RequestSlots(
            self._backlogs,
            self._embedder,
            health,
            batch_submitter=self.batch_submitter,
            known=self.known,
            storing=self._results,
            switches=self._switches,
            in_flight=in_flight or InFlight(),
        )

    # --- state

    @property
    def provider(self) -> Provider:
        """The provider that embeds the texts."""
        return self._embedder.provider

    @property
    def backlogs(self) -> Mapping[str, AgentBacklog]:
        """What waits and what is in flight, by agent."""
        return self._backlogs

    @property
    def switches(self) -> UserSwitches:
        """What the user has paused and confirmed."""
        return self._switches

    @property
    def waiting_turns(self) -> int:
        """How many agents wait until a request of theirs may be sent."""
        return self._slots.turns.waiting

    @property
    def reason(self) -> str | None:
        """Why nothing is embedded just now, for any agent; None: something is, or could be."""
        passages = self.health.now.passages
        return None if isinstance(passages, Healthy) else passages.reason

    def state_of(self, agent: str) -> State:
        """The state of an agent: a pause or a missing confirmation goes before a failing store, and that before the provider."""
        if self._switches.of(agent).paused:
            return Paused()
        backlog = self._backlogs.get(agent)
        asked = self.confirmations.asked_before_rebuild(agent) or (
            None if backlog is None else backlog.unconfirmed
        )
        if asked is not None:
            return asked
        if backlog is not None and isinstance(backlog.store, Retrying):
            return backlog.store
        return self.health.now.passages

    def reason_of(self, agent: str) -> str | None:
        """Why nothing of an agent is embedded just now."""
        return in_words(self.state_of(agent), agent)

    def note_of(self, agent: str) -> str | None:
        """What chunks of an agent wait for although nothing is wrong: batch jobs; None: nothing."""
        backlog = self._backlogs.get(agent)
        return self.batch_submitter.note if backlog is not None and backlog.held else None

    def only_jobs_left(self, agent: str) -> bool:
        """Whether all that waits of an agent is in batch jobs that nobody waits for."""
        backlog = self._backlogs.get(agent)
        return backlog is not None and backlog.only_jobs_left and not self.batch_submitter.is_waited_for

    def next_try_s(self, agent: str) -> float | None:
        """Seconds until what failed is tried again."""
        state = self.state_of(agent)
        return max(0.0, state.until - self._clock()) if isinstance(state, Retrying) else None

    def eta_s(self, waiting: int) -> float | None:
        """Seconds until so many chunks of an agent are done, at the rate of late, if all others have as many."""
        rate = self._embedder.rate.per_s
        if not waiting or not rate or self.reason:
            return None
        sharing = sum(not backlog.is_idle for backlog in self._backlogs.values())
        return waiting * max(1, sharing) / rate

    # --- what a person switches

    async def recall(self, agent: str) -> None:
        """Read whether an agent was paused or confirmed before a restart; state_of needs it."""
        await self._switches.read(agent)

    async def pause(self, agent: str) -> None:
        """Send nothing of an agent any more; requests in flight are not cancelled.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: a restart would end the pause.
        """
        try:
            await self._switches.pause(agent, paused=True)
        finally:
            self._progress.notify()

    async def resume(self, agent: str) -> None:
        """End a pause; what waits for a failing or refusing provider is sent now.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: a restart would bring the pause back.
        """
        await self._switches.read(agent)
        try:
            await self._switches.pause(agent, paused=False)
        finally:
            self.ask_again()

    def ask_again(self) -> None:
        """Send now what waits for a failing or refusing provider."""
        self.health.retry_passages()
        self._wake_all()

    async def confirm(self, agent: str) -> None:
        """Let an agent send whatever it has, until all of it is done.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: a restart would ask again.
        """
        await self._switches.read(agent)
        try:
            await self._switches.confirm(agent, confirmed=True)
        finally:
            self._progress.notify()
            self._wake_all()

    # --- agents

    def serve(self, source: IndexToEmbed) -> None:
        """Embed what waits in an agent's index; called again, what was written last is next."""
        backlog = self._backlogs.get(source.agent)
        if backlog is None or backlog.source.index is not source.index:
            self._forget(source.agent)
            backlog = self._backlogs[source.agent] = AgentBacklog(source)
        backlog.source = source
        backlog.wake(anew=True)
        self._slots.turns.hurry(source.agent)
        self._agent_came.set()

    async def leave(self, agent: str) -> None:
        """Embed nothing of an agent any more; calls of wait_for look again."""
        task = self._forget(agent)
        if task is not None:
            await asyncio.wait([task])
        self._switches.forget(agent)
        self._rest()
        self._progress.notify()

    def _forget(self, agent: str) -> asyncio.Task[None] | None:
        backlog = self._backlogs.pop(agent, None)
        if backlog is None or backlog.task is None:
            return None
        backlog.task.cancel()
        return backlog.task

    def _drop(self, backlog: AgentBacklog) -> None:
        # The agent may have come back with other settings meanwhile.
        if self._backlogs.get(backlog.agent) is backlog:
            del self._backlogs[backlog.agent]
        self._rest()
        self._progress.notify()

    def _wake_all(self) -> None:
        for backlog in self._backlogs.values():
            backlog.wake(anew=True)

    # --- the work

    async def run(self) -> None:
        """Embed what waits, for ever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow_jobs())
                while True:
                    self._agent_came.clear()
                    for backlog in self._backlogs.values():
                        if backlog.task is None:
                            backlog.task = tasks.create_task(self._work_for(backlog))
                    await self._agent_came.wait()
        finally:
            for backlog in self._backlogs.values():
                backlog.task = None

    async def _follow_jobs(self) -> None:
        """Look again for all agents whenever batch jobs have brought vectors, or given texts back."""
        version = self.batch_submitter.changes.version
        while True:
            version = await self.batch_submitter.changes.since(version)
            self._wake_all()

    async def _work_for(self, backlog: AgentBacklog) -> None:
        """Embed what waits of one agent, for as long as its store is open."""
        await self._switches.read(backlog.agent)
        try:
            while True:
                try:
                    await self._work_through(backlog)
                except TransientError as failure:
                    if isinstance(failure, StoreClosed):
                        raise
                    await self._let_recover(backlog, str(failure))
                except (FatalError, StoreDamaged):
                    raise
                except Exception as bug:
                    # It must be the trouble of no other agent, and not the end of the daemon.
                    log.exception("embed.failed", agent=backlog.agent)
                    await self._let_recover(backlog, safe_message(bug))
        except StoreClosed:
            self._drop(backlog)  # the agent was stopped, which is no trouble of the provider's
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
                # A step need not suspend; without this a fault in it would stop the daemon.
                await asyncio.sleep(0)
            # Else what a lane has put back was overlooked.
            if not backlog.requests and not backlog.woken.is_set():
                backlog.is_idle = not backlog.anew.is_set()
                self._rest()
                await self._all_done(backlog)
                if backlog.held:
                    self._progress.notify()  # all else is done
                if worked and (held := await self._held()) is not None:
                    # Thousands may be too many after a rebuild: what is written meanwhile does not wait for that.
                    bound = self._bound.entries(self.known, held)
                    while await self.known.prune(bound) and not backlog.woken.is_set():
                        pass
                    worked = backlog.woken.is_set()
            await self._woken(backlog)

    async def _woken(self, backlog: AgentBacklog) -> None:
        """Wait until there may be something to do: what a person is asked about only because of a burst, when that is over."""
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
        """How many texts there are of the agents that are served; None: one of them cannot tell, and may need what is cached."""
        try:
            counts = [await one.source.index.counts() for one in [*self._backlogs.values()]]
        except (TransientError, StoreDamaged):
            return None  # whose index it is meets that when it is served itself
        return sum(one.held for one in counts)

    async def _all_done(self, backlog: AgentBacklog) -> None:
        """With nothing left to do, a confirmation has been used up."""
        if (
            not backlog.is_idle
            or (await backlog.source.index.counts()).waiting
            or self.confirmations.is_in_use(backlog.agent)
        ):
            return
        backlog.unconfirmed = None
        is_to_be_used_up = self._switches.of(backlog.agent).confirmed or self._switches.is_unkept(
            backlog.agent
        )
        if is_to_be_used_up and not await self._use_up_confirmation(backlog.agent):
            # After a restart it would be paid for unasked.
            asyncio.get_running_loop().call_later(AGAIN_S, backlog.wake)

    async def _use_up_confirmation(self, agent: str) -> bool:
        """Whether it is written that a confirmation is used up."""
        try:
            await self._switches.confirm(agent, confirmed=False)
        except (TransientError, StoreDamaged, StoreNewer) as failure:
            if not self._has_cache_failed:
                log.warning("embed.cache_failed", reason=str(failure))
            self._has_cache_failed = True
            return False
        self._has_cache_failed = False
        return True

    async def _let_recover(self, backlog: AgentBacklog, reason: str) -> None:
        failures = failures_after(backlog.store)
        since = backlog.store.since if isinstance(backlog.store, Retrying) else self._clock()
        wait_s = delay_s(failures, self._rng)
        log.warning("embed.store_failed", agent=backlog.agent, reason=reason, wait_s=round(wait_s, 1))
        backlog.store = Retrying(since, self._clock() + wait_s, failures, reason)
        self._progress.notify()
        # A pass that went well wrote to the store: there is no need to wait any longer.
        backlog.anew.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await backlog.anew.wait()
        backlog.failure = None
        backlog.anew.set()

    def _rest(self) -> None:
        is_failing = isinstance(self.health.now.passages, Retrying)
        if is_failing and all(backlog.is_idle for backlog in self._backlogs.values()):
            self.health.retry_passages()  # what failed is not wanted any more

    async def _step(self, backlog: AgentBacklog) -> bool:
        """Bring one agent forward; False: there is nothing to do until it is woken."""
        backlog.woken.clear()
        if backlog.failure is not None:
            failure, backlog.failure = backlog.failure, None
            raise failure
        is_anew = backlog.anew.is_set()
        backlog.anew.clear()
        if isinstance(backlog.store, Retrying):
            await self._results.store(backlog, [])  # before anything is paid for: does it take again?
            backlog.store = Healthy()
            self._progress.notify()
        if is_anew:
            await self._results.from_published(backlog)
        if (is_anew or not backlog.ahead) and await self._look(backlog):
            return True  # what came out of the cache may have been all of what was read
        if not backlog.ahead or not self._slots.may_send(backlog):
            return False
        if len(backlog.requests) >= UNSTORED * self.provider.limits.concurrency:
            return False
        if await self._hand_over(backlog):
            return True
        return await self._slots.send(backlog, quick=is_anew)

    # --- what there is to do

    async def _look(self, backlog: AgentBacklog) -> bool:
        """Read what is wanted most; whether the cache knew some of it."""
        source = backlog.source
        if source.index.space not in {None, self.known.space}:
            # Another index is in its place, with the vectors of another model.
            backlog.ahead, backlog.open = [], 0
            return False
        backlog.held = await self.batch_submitter.held(source.index)
        taken = backlog.held.union(backlog.out)
        waiting = await source.index.waiting(LOOK_AHEAD, taken | backlog.passed_over)
        # Texts that never get their vectors, or a job of hours, must not make one burst of a life.
        if all(
            text_hash in backlog.alone for text_hash in (*backlog.out, *(chunk.hash for chunk in waiting))
        ):
            backlog.answered = 0
        if not waiting and backlog.passed_over:
            backlog.suspect_none()
            waiting = await source.index.waiting(LOOK_AHEAD, taken)
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
            counts = await source.index.counts()
            backlog.open = max(len(backlog.ahead), counts.texts - len(backlog.held) - len(backlog.out))
            before = backlog.unconfirmed
            backlog.unconfirmed = await self.confirmations.wanted(backlog, counts.texts)
            if before is None:
                backlog.asked_at = self._clock()
            if backlog.unconfirmed != before:
                self._progress.notify()
        return bool(known)

    async def _hand_over(self, backlog: AgentBacklog) -> bool:
        """Put what waits of all agents into batch jobs, where that is wanted and there is enough; whether it was."""
        if not backlog.source.use_cache or not self.batch_submitter.is_wanted(self._open_for_batches()):
            return False
        async with self._gathering:
            if backlog.anew.is_set() or not self.batch_submitter.is_wanted(self._open_for_batches()):
                return backlog.anew.is_set()  # somebody else has gathered meanwhile
            sources = [
                one
                for one in self._backlogs.values()
                if one.source.use_cache and one.open and self._slots.may_send(one)
            ]
            taken = await self.batch_submitter.submit(
                [(one.source.index, one.out) for one in sources], self._slots.asking
            )
            for one in sources:
                one.open = 0  # until the next look: to gather all that waits takes its time
                if taken:
                    one.wake(anew=True)
            backlog.answered += taken
            return bool(taken)

    def _open_for_batches(self) -> int:
        return sum(
            one.open for one in self._backlogs.values() if one.source.use_cache and self._slots.may_send(one)
        )

    # --- waiting for vectors

    async def wait_for(self, index: Index) -> tuple[int, str | None]:
        """Wait until nothing of an index waits, or nothing moves.

        Returns:
            (chunks that still wait, why), or (0, None).
        """
        clock = asyncio.get_running_loop().time
        moved_at, seen = clock(), self._progress.version
        while True:
            version, changed = self._progress.version, index.changed.version
            if version != seen:
                moved_at, seen = clock(), version
            backlog = next((one for one in self._backlogs.values() if one.source.index is index), None)
            async with contextlib.nullcontext() if backlog is None else backlog.storing:
                counts = await index.counts()
            if not counts.waiting:
                return 0, None
            reason = self.reason if backlog is None else self.reason_of(backlog.agent)
            if reason is not None:
                return counts.waiting, reason
            is_in_jobs = backlog is not None and backlog.only_jobs_left
            if is_in_jobs and not self.batch_submitter.is_waited_for:
                return counts.waiting, self.batch_submitter.note
            try:
                async with asyncio.timeout_at(None if is_in_jobs else moved_at + STALLED_S):
                    # A rebuild puts vectors in place without this queue, and a pass may take what waits away.
                    await first_of(self._progress.since(version), index.changed.since(changed))
            except TimeoutError:
                return counts.waiting, f"no chunk was embedded in the last {STALLED_S:.0f} s"
