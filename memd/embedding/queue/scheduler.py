"""The embedding scheduler: chunks that wait for a vector get one, newest first, turn by turn between agents."""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import structlog

from memd.embedding.health import ProviderHealth
from memd.embedding.health_state import Healthy, Refusing, Retrying
from memd.embedding.queue.agent_backlog import AgentBacklog, IndexToEmbed
from memd.embedding.queue.batching import Bulk
from memd.embedding.queue.cache import CacheBound, SpaceCache
from memd.embedding.queue.cost_confirmation import CostConfirmations
from memd.embedding.queue.in_flight import InFlight, RequestSlots, end_all
from memd.embedding.queue.passage_embedder import PassageEmbedder
from memd.embedding.queue.results import ResultWriter
from memd.embedding.queue.states import (
    BURST_S,
    Paused,
    State,
    in_words,
)
from memd.embedding.queue.user_switches import SpaceDocuments, UserSwitches, forgetful
from memd.errors import FatalError, TransientError
from memd.model import TextHash
from memd.providers.provider import Provider
from memd.runtime.backoff import delay_s
from memd.runtime.safe_traceback import told
from memd.store.embeddings import EmbeddingStore, KnownVectors, Space
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.index import Index

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

    Whoever builds the queue runs `run` and, where there is a batch API, calls `bulk.use` before.
    """

    def __init__(
        self,
        provider: Provider,
        cache: EmbeddingStore,
        bound: CacheBound,
        health: ProviderHealth,
        *,
        confirm_above: int | None = None,
        documents: Callable[[Space], SpaceDocuments] = forgetful,
        under_way: InFlight | None = None,
        burst_s: float = BURST_S,
    ) -> None:
        """Nothing runs yet.

        Args:
            provider: Whom to ask.
            cache: Where vectors are kept by text hash.
            bound: How many of them stay, the least recently used going first.
            health: Of the provider; its clock and its source of jitter are the queue's, too.
            confirm_above: More texts than this, not cached, wait for a person to confirm them; None: nobody is asked,
                as the work costs nothing.
            documents: Where the wishes of a person are kept.
            under_way: What is asked for in the space of the provider, also by other queues; None: there is no other.
            burst_s: After so long without any being sent, texts that were sent before do not count for confirm_above.
        """
        self.health = health
        self._clock = health.clock
        self._rng = health.rng
        self._moves = health.progress
        self._embedder = PassageEmbedder(provider, health)
        self._burst_s = burst_s
        self._served: dict[str, AgentBacklog] = {}  # by agent
        self._came = asyncio.Event()  # an agent without a task
        self._gathering = asyncio.Lock()
        identity = provider.identity
        space = (identity.provider, identity.model, identity.key)
        self.known = KnownVectors(cache, space)
        self.bulk = Bulk(self.known)
        self._wishes = UserSwitches(space, documents)
        self._cached = SpaceCache(self.known, bound)
        self._confirmations = CostConfirmations(confirm_above, self._wishes, self._cached, self._moves)
        self._storing = ResultWriter(space, self._cached, self._moves)
        self._lanes = RequestSlots(
            self._served,
            self._embedder,
            health,
            bulk=self.bulk,
            cached=self._cached,
            storing=self._storing,
            may_send=self._may_send,
            under_way=under_way or InFlight(),
        )

    # --- how it stands

    @property
    def provider(self) -> Provider:
        """Whom the queue asks."""
        return self._embedder.provider

    @property
    def trouble(self) -> str | None:
        """Why nothing is embedded just now, for anybody."""
        passages = self.health.now.passages
        return None if isinstance(passages, Healthy) else passages.reason

    def state_of(self, agent: str) -> State:
        """How an agent stands: what a person wished goes before its store, and that before the provider."""
        if self._wishes.of(agent).paused:
            return Paused()
        served = self._served.get(agent)
        asked = self._confirmations.asked_before_rebuild(agent) or (
            None if served is None else served.unconfirmed
        )
        if asked is not None:
            return asked
        if served is not None and isinstance(served.store, Retrying):
            return served.store
        return self.health.now.passages

    def trouble_of(self, agent: str) -> str | None:
        """Why nothing of an agent is embedded just now."""
        return in_words(self.state_of(agent), agent)

    def note_of(self, agent: str) -> str | None:
        """What chunks of an agent wait for although nothing is wrong, where that takes its time."""
        served = self._served.get(agent)
        return self.bulk.note if served is not None and served.held else None

    def only_jobs_left(self, agent: str) -> bool:
        """Whether all that waits of an agent is in batch jobs that nobody waits for."""
        served = self._served.get(agent)
        return served is not None and served.only_jobs_left and not self.bulk.is_waited_for

    def next_try_s(self, agent: str) -> float | None:
        """Seconds until what failed is tried again."""
        state = self.state_of(agent)
        return max(0.0, state.until - self._clock()) if isinstance(state, Retrying) else None

    def eta_s(self, waiting: int) -> float | None:
        """Seconds until so many chunks of an agent are done, at the rate of late, if all others have as many."""
        rate = self._embedder.rate.per_s
        if not waiting or not rate or self.trouble:
            return None
        sharing = sum(not served.is_idle for served in self._served.values())
        return waiting * max(1, sharing) / rate

    # --- what a person wishes

    async def recall(self, agent: str) -> None:
        """Learn what was wished for an agent before the daemon, or the agent, was started again; else state_of cannot know."""
        await self._wishes.read(agent)

    async def pause(self, agent: str) -> None:
        """Ask for nothing of an agent any more; what is under way comes to its end.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: a restart would end the pause.
        """
        await self._wishes.read(agent)
        try:
            await self._wishes.pause(agent, paused=True)
        finally:
            self._moves.notify()

    async def resume(self, agent: str) -> None:
        """End a pause; a provider that is waited for, or has refused, is asked again now.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: a restart would bring the pause back.
        """
        await self._wishes.read(agent)
        try:
            await self._wishes.pause(agent, paused=False)
        finally:
            self.ask_again()

    def ask_again(self) -> None:
        """Ask a provider that is waited for, or has refused, again now."""
        self.health.retry_passages()
        self._wake_all()

    async def confirm(self, agent: str) -> None:
        """Let an agent send whatever it has, until all of it is done.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: a restart would ask again.
        """
        await self._wishes.read(agent)
        try:
            await self._wishes.confirm(agent, confirmed=True)
        finally:
            self._moves.notify()
            self._wake_all()

    def asks_before(self, texts: int) -> bool:
        """Whether so many texts would have to be confirmed."""
        return self._confirmations.asks_before(texts)

    def awaits_permission(self, agent: str) -> bool:
        """Whether an index is not built anew yet because a person has not confirmed what it costs."""
        return self._confirmations.asked_before_rebuild(agent) is not None

    def permitted(self, agent: str, texts: int, tokens: int) -> AbstractAsyncContextManager[None]:
        """See CostConfirmations.permitted."""
        return self._confirmations.permitted(agent, texts, tokens)

    # --- who is served

    def serve(self, customer: IndexToEmbed) -> None:
        """Take an agent's index on; called again, what was written last is next."""
        served = self._served.get(customer.agent)
        if served is None or served.customer.index is not customer.index:
            self._forget(customer.agent)
            served = self._served[customer.agent] = AgentBacklog(customer)
        served.customer = customer
        served.wake(anew=True)
        self._lanes.turns.hurry(customer.agent)
        self._came.set()

    async def leave(self, agent: str) -> None:
        """Serve an agent no more; whoever waits for its vectors looks again."""
        task = self._forget(agent)
        if task is not None:
            await asyncio.wait([task])
        self._wishes.forget(agent)
        self._rest()
        self._moves.notify()

    def batches_changed(self) -> None:
        """Batches have brought vectors, or let texts go: whoever waits for them looks again."""
        self._wake_all()

    def _forget(self, agent: str) -> asyncio.Task[None] | None:
        served = self._served.pop(agent, None)
        if served is None or served.task is None:
            return None
        served.task.cancel()
        return served.task

    def _drop(self, served: AgentBacklog) -> None:
        # The agent may have come back with other settings meanwhile.
        if self._served.get(served.agent) is served:
            del self._served[served.agent]
        self._rest()
        self._moves.notify()

    def _wake_all(self) -> None:
        for served in self._served.values():
            served.wake(anew=True)

    # --- the work

    async def run(self) -> None:
        """Embed whatever waits, for ever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._came.clear()
                    for served in self._served.values():
                        if served.task is None:
                            served.task = tasks.create_task(self._work_for(served))
                    await self._came.wait()
        finally:
            for served in self._served.values():
                served.task = None

    async def _work_for(self, served: AgentBacklog) -> None:
        """Embed what waits of one agent, for as long as its store is open."""
        await self._wishes.read(served.agent)
        try:
            while True:
                try:
                    await self._work_through(served)
                except TransientError as failure:
                    if isinstance(failure, StoreClosed):
                        raise
                    await self._let_recover(served, str(failure))
                except (FatalError, StoreDamaged):
                    raise
                except Exception as bug:
                    # It must be the trouble of no other agent, and not the end of the daemon.
                    log.exception("embed.failed", agent=served.agent)
                    await self._let_recover(served, told(bug))
        except StoreClosed:
            self._drop(served)  # the agent was stopped, which is no trouble of the provider's
        except StoreDamaged as damage:
            self._drop(served)
            served.customer.index.damage.report(str(damage))
        finally:
            await end_all(served.lanes)

    async def _work_through(self, served: AgentBacklog) -> None:
        worked = False
        while True:
            while await self._step(served):
                worked = True
                await asyncio.sleep(
                    0
                )  # a step need not suspend; without this a fault in it would stop the daemon
            if not served.lanes and not served.woken.is_set():  # else what a lane has put back was overlooked
                served.is_idle = not served.anew.is_set()
                self._rest()
                await self._all_done(served)
                if served.held:
                    self._moves.notify()  # all else is done
                if worked:
                    held = await self._held()
                    # Thousands may be too many after a rebuild: what is written meanwhile does not wait for that.
                    while await self._cached.prune(held) and not served.woken.is_set():
                        pass
                    worked = served.woken.is_set()
            await self._woken(served)

    async def _woken(self, served: AgentBacklog) -> None:
        """Wait until there may be something to do: what a person is asked about only because of a burst, when that is over."""
        asked = served.unconfirmed
        is_for_burst = asked is not None and asked.sent and served.answered
        left_s = max(0.0, served.asked_at + self._burst_s - self._clock()) if is_for_burst else None
        try:
            async with asyncio.timeout(left_s):
                await served.woken.wait()
        except TimeoutError:
            served.answered = 0
            served.wake(anew=True)

    async def _held(self) -> int:
        """How many texts there are of the agents that are served."""
        counts = [await one.customer.index.counts() for one in [*self._served.values()]]
        return sum(one.held for one in counts)

    async def _all_done(self, served: AgentBacklog) -> None:
        """With nothing left to do, a confirmation has been used up."""
        if (
            not served.is_idle
            or (await served.customer.index.counts()).waiting
            or self._confirmations.is_in_use(served.agent)
        ):
            return
        served.unconfirmed = None
        if self._wishes.of(served.agent).confirmed or self._wishes.is_unkept(served.agent):
            is_kept = await self._cached.unless_broken(
                self._use_up_confirmation(served.agent), otherwise=False
            )
            if not is_kept:  # after a restart it would be paid for unasked
                asyncio.get_running_loop().call_later(AGAIN_S, served.wake)

    async def _use_up_confirmation(self, agent: str) -> bool:
        await self._wishes.confirm(agent, confirmed=False)
        return True

    async def _let_recover(self, served: AgentBacklog, reason: str) -> None:
        failures = served.store.failures + 1 if isinstance(served.store, Retrying) else 1
        since = served.store.since if isinstance(served.store, Retrying) else self._clock()
        wait_s = delay_s(failures, self._rng)
        log.warning("embed.store_failed", agent=served.agent, reason=reason, wait_s=round(wait_s, 1))
        served.store = Retrying(since, self._clock() + wait_s, failures, reason)
        self._moves.notify()
        # A pass that went well wrote to the store: there is no need to wait any longer.
        served.anew.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await served.anew.wait()
        served.failure = None
        served.anew.set()

    def _rest(self) -> None:
        is_failing = isinstance(self.health.now.passages, Retrying)
        if is_failing and all(served.is_idle for served in self._served.values()):
            self.health.retry_passages()  # what failed is not wanted any more

    async def _step(self, served: AgentBacklog) -> bool:
        """Bring one agent forward; False: there is nothing to do until it is woken."""
        served.woken.clear()
        if served.failure is not None:
            failure, served.failure = served.failure, None
            raise failure
        is_anew = served.anew.is_set()
        served.anew.clear()
        if isinstance(served.store, Retrying):
            await self._storing.store(served, [])  # before anything is paid for: does it take again?
            served.store = Healthy()
            self._moves.notify()
        if (is_anew or not served.ahead) and await self._look(served):
            return True  # what came out of the cache may have been all of what was read
        if not served.ahead or not self._may_send(served):
            return False
        if len(served.lanes) >= UNSTORED * self.provider.limits.concurrency:
            return False
        if await self._hand_over(served):
            return True
        return await self._lanes.send(served, quick=is_anew)

    def _may_send(self, served: AgentBacklog) -> bool:
        if self._wishes.of(served.agent).paused or isinstance(self.health.now.passages, Refusing):
            return False
        return served.unconfirmed is None or self._wishes.of(served.agent).confirmed

    # --- what there is to do

    async def _look(self, served: AgentBacklog) -> bool:
        """Read what is wanted most; whether some of it was settled out of the cache."""
        customer = served.customer
        if customer.index.space not in {None, self.known.space}:
            # Another index is in its place, with the vectors of another model.
            served.ahead, served.open = [], 0
            return False
        served.held = await self.bulk.held(customer.index)
        taken = served.held.union(served.out)
        waiting = await customer.index.waiting(LOOK_AHEAD, taken | served.passed_over)
        # Texts that never get their vectors, or a job of hours, must not make one burst of a life.
        if all(text_hash in served.alone for text_hash in (*served.out, *(chunk.hash for chunk in waiting))):
            served.answered = 0
        if not waiting and served.passed_over:
            served.suspect_none()
            waiting = await customer.index.waiting(LOOK_AHEAD, taken)
        elif waiting and served.fails_at_deferred:
            served.fails_at_deferred = False
            self.health.hurry_passages()
        settled = frozenset[TextHash]()
        if customer.use_cache and waiting:
            settled = await self._storing.from_cache(served, waiting)
        served.ahead = [chunk for chunk in waiting if chunk.hash not in settled]
        if not served.ahead:
            served.open = 0
        else:
            counts = await customer.index.counts()
            served.open = max(len(served.ahead), counts.texts - len(served.held) - len(served.out))
            before = served.unconfirmed
            served.unconfirmed = await self._confirmations.wanted(served, counts.texts)
            if before is None:
                served.asked_at = self._clock()
            if served.unconfirmed != before:
                self._moves.notify()
        return bool(settled)

    async def _hand_over(self, served: AgentBacklog) -> bool:
        """Put what waits of all agents into batch jobs, where that is wanted and there is enough; whether it was."""
        if not served.customer.use_cache or not self.bulk.is_wanted(self._open_for_bulk()):
            return False
        async with self._gathering:
            if served.anew.is_set() or not self.bulk.is_wanted(self._open_for_bulk()):
                return served.anew.is_set()  # somebody else has gathered meanwhile
            sources = [
                one
                for one in self._served.values()
                if one.customer.use_cache and one.open and self._may_send(one)
            ]
            taken = await self.bulk.submit(
                [(one.customer.index, one.out) for one in sources], self._lanes.asking
            )
            for one in sources:
                one.open = 0  # until the next look: to gather all that waits takes its time
                if taken:
                    one.wake(anew=True)
            served.answered += taken
            return bool(taken)

    def _open_for_bulk(self) -> int:
        return sum(
            one.open for one in self._served.values() if one.customer.use_cache and self._may_send(one)
        )

    # --- whoever waits

    async def wait_for(self, index: Index) -> tuple[int, str | None]:
        """Wait until nothing of an index waits, or nothing moves.

        Returns:
            (chunks that still wait, why), or (0, None).
        """
        while True:
            version = self._moves.version
            served = next((one for one in self._served.values() if one.customer.index is index), None)
            async with contextlib.nullcontext() if served is None else served.storing:
                counts = await index.counts()
            if not counts.waiting:
                return 0, None
            trouble = self.trouble if served is None else self.trouble_of(served.agent)
            if trouble is not None:
                return counts.waiting, trouble
            is_in_jobs = served is not None and served.only_jobs_left
            if is_in_jobs and not self.bulk.is_waited_for:
                return counts.waiting, self.bulk.note
            try:
                async with asyncio.timeout(None if is_in_jobs else STALLED_S):
                    await self._moves.since(version)
            except TimeoutError:
                return counts.waiting, f"no chunk was embedded in the last {STALLED_S:.0f} s"
