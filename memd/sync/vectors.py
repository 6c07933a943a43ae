"""The embedding scheduler: chunks that wait for a vector get one, newest first, turn by turn between agents."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

import msgspec
import numpy as np
import structlog

from memd.backoff import delay_s
from memd.embed.provider import (
    EmbedRejected,
    EmbedTerminal,
    EmbedUnavailable,
    Limits,
    Provider,
    Vectors,
)
from memd.errors import TransientError
from memd.model import ChunkId, TextHash
from memd.store.chunks import WaitingChunk
from memd.store.embeddings import EmbeddingStore, KnownVectors, Space
from memd.store.index import Index
from memd.store.trouble import StoreClosed, StoreDamaged
from memd.sync.bulk import Bulk
from memd.sync.rate import Rate
from memd.sync.standing import (
    BackingOff,
    Paused,
    Provided,
    State,
    Stopped,
    WaitingForConfirmation,
    Working,
    failed,
    failures_after,
    in_words,
)
from memd.sync.turns import Turns
from memd.sync.wishes import Documents, Wishes, forgetful
from memd.text import estimate_tokens

T = TypeVar("T")

log = structlog.get_logger()

LOOK_AHEAD = 400  # chunks that are looked up in the cache at once
STALLED_S = 60.0  # no vector for so long: whoever waits for the rest is told
UNSTORED = 2  # requests of an agent that are under way or not stored yet, for each that may be under way
SAMPLE = 400  # chunks by which the tokens of many are estimated


class Customer(msgspec.Struct, frozen=True):
    """An agent's index, as the scheduler serves it."""

    agent: str
    index: Index
    use_cache: bool
    damaged: Callable[[str], None] | None = None  # told when the index turns out to be damaged


class _Served:
    """An agent that is served, and how far that is."""

    def __init__(self, customer: Customer) -> None:
        self.customer = customer  # each time the agent is served it is another
        self.anew = asyncio.Event()  # something was written since the last batch was put together
        self.woken = asyncio.Event()  # there may be something to do
        self.ahead: list[WaitingChunk] = []  # read, and not asked for yet, the most wanted first
        self.out: set[TextHash] = set()  # asked for, or about to be stored
        self.lanes: set[asyncio.Task[None]] = set()
        self.failure: BaseException | None = None  # what a lane met
        self.struck: dict[TextHash, int] = {}  # texts whose request failed -> answers there had been by then
        self.deferred: set[TextHash] = set()  # texts that failed while others did not: after all others
        self.held: frozenset[TextHash] = frozenset()  # waiting texts that are in batch jobs
        self.open = 0  # chunks, at the last look, that were neither asked for nor in a job
        self.sent = 0  # texts, since nothing waited last
        self.unconfirmed: WaitingForConfirmation | None = None
        self.awaits_others = False  # all it wants has been asked for, for other agents
        self.storing = asyncio.Lock()
        self.store: Working | BackingOff = Working()
        self.is_idle = False
        self.task: asyncio.Task[None] | None = None

    @property
    def agent(self) -> str:
        """Its id."""
        return self.customer.agent

    def wake(self, *, anew: bool = False) -> None:
        """Look whether there is something to do."""
        if anew:
            self.is_idle = False
            self.anew.set()
        self.woken.set()


class _Request:
    """Some texts of one agent on their way to the provider and back."""

    def __init__(
        self, customer: Customer, chunks: Sequence[WaitingChunk], texts: Mapping[TextHash, str]
    ) -> None:
        self.customer = customer
        self.chunks = chunks
        self.texts = texts
        self.has_place = False


class VectorQueue:
    """What one provider has to embed, for all agents that use it.

    Each agent has a task of its own, so that no store waits for another's. As many requests are under way as the
    provider's limits allow, turn by turn; an agent of which something was just written is next, for one request. What
    an answer brought is stored while the next requests are under way.

    A provider that does not answer is asked for one text at a time, after longer and longer waits, until it does.

    Whoever builds the queue runs `run` and, where there is a batch API, calls `bulk.use` before. Whether a provider
    has been down for long is read off `state` (BackingOff.since is of the queue's clock), which `changed` waits for.
    """

    def __init__(
        self,
        provider: Provider,
        cache: EmbeddingStore,
        max_entries: int,
        rng: Random,
        clock: Callable[[], float] = time.monotonic,
        *,
        confirm_above: int | None = None,
        documents: Callable[[Space], Documents] = forgetful,
        first_wait_s: float = 1.0,
    ) -> None:
        """Nothing runs yet.

        Args:
            provider: Whom to ask.
            cache: Where vectors are kept by text hash.
            max_entries: How many of them stay, the least recently used going first.
            rng: Source of the jitter of a backoff.
            clock: Seconds, monotonic.
            confirm_above: More texts than this, not cached, wait for a person to confirm them; None: nobody is asked,
                as the work costs nothing.
            documents: Where the wishes of a person are kept.
            first_wait_s: The full wait after the first failure; it doubles from there.
        """
        self._provider = provider
        self._cache = cache
        self._max_entries = max_entries
        self._rng = rng
        self._clock = clock
        self._confirm_above = confirm_above
        self._first_wait_s = first_wait_s
        self._served: dict[str, _Served] = {}  # by agent
        self._turns = Turns(lambda: self._provider.limits.concurrency)
        self._asking: set[TextHash] = set()  # texts under way for agents that use the cache
        self._came = asyncio.Event()  # an agent without a task
        self._moved = asyncio.Event()  # set, and replaced, at each progress and each trouble
        self._state: Provided = Working()
        self._probing = asyncio.Lock()
        self._gathering = asyncio.Lock()
        self._answers = 0  # requests that were answered
        self._cache_trouble: str | None = None
        self._rate = Rate()
        self._asked_first: dict[str, WaitingForConfirmation] = {}  # rebuilds that wait, by agent
        self._rebuilding: dict[str, int] = {}  # permitted rebuilds that are under way, by agent
        identity = provider.identity
        space = (identity.provider, identity.model, identity.key)
        self.known = KnownVectors(cache, space)
        self.bulk = Bulk(self.known)
        self._wishes = Wishes(space, documents)

    # --- how it stands

    @property
    def provider(self) -> Provider:
        """Whom the queue asks."""
        return self._provider

    @property
    def state(self) -> Provided:
        """How the provider stands."""
        return self._state

    async def changed(self, seen: Provided) -> Provided:
        """Wait until the provider stands otherwise than it did; how it stands then."""
        while self._state == seen:
            await self._moved.wait()
        return self._state

    @property
    def trouble(self) -> str | None:
        """Why nothing is embedded just now, for anybody."""
        return None if isinstance(self._state, Working) else self._state.reason

    def state_of(self, agent: str) -> State:
        """How an agent stands: what a person wished goes before its store, and that before the provider."""
        if self._wishes.of(agent).paused:
            return Paused()
        served = self._served.get(agent)
        asked = self._asked_first.get(agent) or (None if served is None else served.unconfirmed)
        if asked is not None:
            return asked
        if served is not None and isinstance(served.store, BackingOff):
            return served.store
        return self._state

    def trouble_of(self, agent: str) -> str | None:
        """Why nothing of an agent is embedded just now."""
        return in_words(self.state_of(agent), agent)

    def note_of(self, agent: str) -> str | None:
        """What chunks of an agent wait for although nothing is wrong, where that takes its time."""
        served = self._served.get(agent)
        return self.bulk.note if served is not None and served.held else None

    def next_try_s(self, agent: str) -> float | None:
        """Seconds until what failed is tried again."""
        state = self.state_of(agent)
        return max(0.0, state.until - self._clock()) if isinstance(state, BackingOff) else None

    def eta_s(self, waiting: int) -> float | None:
        """Seconds until so many chunks of an agent are done, at the rate of late, if all others have as many."""
        rate = self._rate.per_s
        if not waiting or not rate or self.trouble:
            return None
        sharing = sum(not served.is_idle for served in self._served.values())
        return waiting * max(1, sharing) / rate

    # --- what a person wishes

    async def pause(self, agent: str) -> None:
        """Ask for nothing of an agent any more; what is under way comes to its end.

        Raises:
            StoreUnavailable: a restart would end the pause.
        """
        await self._wishes.read(agent)
        try:
            await self._wishes.pause(agent, paused=True)
        finally:
            self._tell()

    async def resume(self, agent: str) -> None:
        """End a pause; a provider that is waited for, or has refused, is asked again now.

        Raises:
            StoreUnavailable: a restart would bring the pause back.
        """
        await self._wishes.read(agent)
        try:
            await self._wishes.pause(agent, paused=False)
        finally:
            self.ask_again()

    def ask_again(self) -> None:
        """Ask a provider that is waited for, or has refused, again now."""
        self._enter(Working())
        self._wake_all()

    async def confirm(self, agent: str) -> None:
        """Let an agent send whatever it has, until all of it is done.

        Raises:
            StoreUnavailable: a restart would ask again.
        """
        await self._wishes.read(agent)
        try:
            await self._wishes.confirm(agent, confirmed=True)
        finally:
            self._tell()
            self._wake_all()

    def asks_before(self, texts: int) -> bool:
        """Whether so many texts would have to be confirmed."""
        return self._confirm_above is not None and texts > self._confirm_above

    def awaits_permission(self, agent: str) -> bool:
        """Whether an index is not built anew yet because a person has not confirmed what it costs."""
        return agent in self._asked_first

    @contextlib.asynccontextmanager
    async def permitted(self, agent: str, texts: int, tokens: int) -> AsyncIterator[None]:
        """Wait until an index may be built anew, which sends so many texts; a confirmation lasts at least that long."""
        wish = await self._wishes.read(agent)
        try:
            if self.asks_before(texts) and not wish.confirmed:
                log.info("embed.confirmation_wanted", agent=agent, texts=texts, tokens=tokens)
                self._asked_first[agent] = WaitingForConfirmation(texts, tokens)
                self._tell()
                while not self._wishes.of(agent).confirmed:
                    await self._moved.wait()
            self._rebuilding[agent] = self._rebuilding.get(agent, 0) + 1
        finally:
            self._asked_first.pop(agent, None)
        try:
            yield
        finally:
            self._rebuilding[agent] -= 1

    # --- who is served

    def serve(self, customer: Customer) -> None:
        """Take an agent's index on; called again, what was written last is next."""
        served = self._served.get(customer.agent)
        if served is None or served.customer.index is not customer.index:
            self._forget(customer.agent)
            served = self._served[customer.agent] = _Served(customer)
        served.customer = customer
        served.wake(anew=True)
        self._turns.hurry(customer.agent)
        self._came.set()

    async def leave(self, agent: str) -> None:
        """Serve an agent no more; whoever waits for its vectors looks again."""
        task = self._forget(agent)
        if task is not None:
            await asyncio.wait([task])
        self._wishes.forget(agent)
        self._rest()
        self._tell()

    def batches_changed(self) -> None:
        """Batches have brought vectors, or let texts go: whoever waits for them looks again."""
        self._wake_all()

    def _forget(self, agent: str) -> asyncio.Task[None] | None:
        served = self._served.pop(agent, None)
        if served is None or served.task is None:
            return None
        served.task.cancel()
        return served.task

    def _drop(self, served: _Served) -> None:
        # The agent may have come back with other settings meanwhile.
        if self._served.get(served.agent) is served:
            del self._served[served.agent]
        self._rest()
        self._tell()

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

    async def _work_for(self, served: _Served) -> None:
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
        except StoreClosed:
            self._drop(served)  # the agent was stopped, which is no trouble of the provider's
        except StoreDamaged as damage:
            self._drop(served)
            if served.customer.damaged is not None:
                served.customer.damaged(str(damage))
        finally:
            await _ended(served.lanes)

    async def _work_through(self, served: _Served) -> None:
        worked = False
        while True:
            while await self._step(served):
                worked = True
            if not served.lanes and not served.woken.is_set():  # else what a lane has put back was overlooked
                served.is_idle = not served.anew.is_set()
                self._rest()
                await self._all_done(served)
                if served.held:
                    self._tell()  # all else is done
                if worked:
                    worked = False
                    await self._unless_broken(self._cache.prune(self._max_entries), 0)
            await served.woken.wait()

    async def _all_done(self, served: _Served) -> None:
        """With nothing left to do, a confirmation has been used up."""
        if (
            not served.is_idle
            or (await served.customer.index.counts()).waiting
            or not self._done_with(served)
        ):
            return
        served.sent = 0
        served.unconfirmed = None
        if self._wishes.of(served.agent).confirmed:
            await self._unless_broken(self._wishes.confirm(served.agent, confirmed=False), None)

    def _done_with(self, served: _Served) -> bool:
        return not self._rebuilding.get(served.agent) and served.agent not in self._asked_first

    async def _let_recover(self, served: _Served, reason: str) -> None:
        failures = served.store.failures + 1 if isinstance(served.store, BackingOff) else 1
        since = served.store.since if isinstance(served.store, BackingOff) else self._clock()
        wait_s = delay_s(failures, self._rng)
        log.warning("embed.store_failed", agent=served.agent, reason=reason, wait_s=round(wait_s, 1))
        served.store = BackingOff(since, self._clock() + wait_s, failures, reason)
        self._tell()
        # A pass that went well wrote to the store: there is no need to wait any longer.
        served.anew.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await served.anew.wait()
        served.failure = None
        served.anew.set()

    def _rest(self) -> None:
        if isinstance(self._state, BackingOff) and all(served.is_idle for served in self._served.values()):
            self._enter(Working())  # what failed is not wanted any more

    def _enter(self, state: Provided) -> None:
        self._state = state
        self._tell()

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _unless_broken(self, work: Awaitable[T], otherwise: T) -> T:
        """What the cache says, or, where it fails, something in its place: it only saves work."""
        try:
            done = await work
        except (TransientError, StoreDamaged) as failure:
            if self._cache_trouble is None:
                log.warning("embed.cache_failed", reason=str(failure))
            self._cache_trouble = str(failure)
            return otherwise
        self._cache_trouble = None
        return done

    async def _step(self, served: _Served) -> bool:
        """Bring one agent forward; False: there is nothing to do until it is woken."""
        served.woken.clear()
        if served.failure is not None:
            failure, served.failure = served.failure, None
            raise failure
        is_anew = served.anew.is_set()
        served.anew.clear()
        if isinstance(served.store, BackingOff):
            await self._store(served, [])  # before anything is paid for: does it take again?
            served.store = Working()
            self._tell()
        if (is_anew or not served.ahead) and await self._look(served):
            return True  # what came out of the cache may have been all of what was read
        if not served.ahead or not self._may_send(served):
            return False
        if len(served.lanes) >= UNSTORED * self._provider.limits.concurrency:
            return False
        if await self._hand_over(served):
            return True
        return await self._send(served, quick=is_anew)

    def _may_send(self, served: _Served) -> bool:
        if self._wishes.of(served.agent).paused or isinstance(self._state, Stopped):
            return False
        return served.unconfirmed is None or self._wishes.of(served.agent).confirmed

    # --- what there is to do

    async def _look(self, served: _Served) -> bool:
        """Read what is wanted most; whether some of it was settled out of the cache."""
        customer = served.customer
        if customer.index.space not in {None, self.known.space}:
            # Another index is in its place, with the vectors of another model.
            served.ahead, served.open = [], 0
            return False
        served.held = await self.bulk.held(customer.index)
        passed_over = served.held.union(served.out, served.deferred)
        waiting = await customer.index.waiting(LOOK_AHEAD, passed_over)
        if not waiting and served.deferred:
            served.deferred.clear()
            waiting = await customer.index.waiting(LOOK_AHEAD, served.held.union(served.out))
        settled = await self._from_cache(served, waiting) if customer.use_cache and waiting else frozenset()
        served.ahead = [chunk for chunk in waiting if chunk.hash not in settled]
        if not served.ahead:
            served.open = 0
        else:
            counts = await customer.index.counts()
            served.open = max(len(served.ahead), counts.waiting - len(served.held) - len(served.out))
            before, served.unconfirmed = served.unconfirmed, await self._asks_first(served, counts.waiting)
            if served.unconfirmed != before:
                self._tell()
        return bool(settled)

    async def _asks_first(self, served: _Served, waiting: int) -> WaitingForConfirmation | None:
        """What a person has to confirm before more is sent; None: nothing."""
        if not self.asks_before(served.sent + waiting) or self._wishes.of(served.agent).confirmed:
            return None
        index = served.customer.index
        hashes = set(await index.waiting_hashes()).difference(served.held, served.out)
        if served.customer.use_cache:
            nothing: frozenset[TextHash] = frozenset()
            some = list(hashes)
            hashes -= await self._unless_broken(self.known.held(some), nothing)
            hashes -= await self._unless_broken(self.known.refused(some), nothing)
        if not self.asks_before(served.sent + len(hashes)):
            return None
        before = served.unconfirmed
        if before is not None and before.chunks == len(hashes):
            return before
        sample = await index.waiting(SAMPLE, served.held.union(served.out))
        mean = sum(estimate_tokens(chunk.text) for chunk in sample) / max(1, len(sample))
        asked = WaitingForConfirmation(len(hashes), round(mean * len(hashes)))
        if before is None:
            log.info("embed.confirmation_wanted", agent=served.agent, texts=asked.chunks, tokens=asked.tokens)
        return asked

    async def _from_cache(self, served: _Served, waiting: Sequence[WaitingChunk]) -> frozenset[TextHash]:
        """Settle what is known of the texts of some chunks; which those are."""
        hashes = [chunk.hash for chunk in waiting]
        refused = await self._unless_broken(self.known.refused(hashes), frozenset())
        for text_hash in refused:
            await served.customer.index.set_aside(text_hash, self.known.space)
        found = await self._look_up(hashes)
        if found:
            await self._store(served, _rows(waiting, found))
        if found or refused:
            self._tell()
        return refused.union(found)

    async def _look_up(self, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
        nothing: dict[TextHash, bytes] = {}
        return await self._unless_broken(self.known.get(hashes), nothing)

    async def _hand_over(self, served: _Served) -> bool:
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
            taken = await self.bulk.submit([(one.customer.index, one.out) for one in sources], self._asking)
            for one in sources:
                one.open = 0  # until the next look: to gather all that waits takes its time
                if taken:
                    one.wake(anew=True)
            served.sent += taken
            return bool(taken)

    def _open_for_bulk(self) -> int:
        return sum(
            one.open for one in self._served.values() if one.customer.use_cache and self._may_send(one)
        )

    # --- one request

    async def _send(self, served: _Served, *, quick: bool) -> bool:
        """Send one request when it is the agent's turn; False: others have asked for all it wants."""
        await self._turns.take(served.agent, quick=quick)
        request: _Request | None = None
        try:
            # Overtaken by something newer in the long queue, it goes to the quick one. From there it never goes
            # back: an agent that is written to all the time would have no turn at all.
            if (served.anew.is_set() and not quick) or not self._may_send(served):
                return True
            if isinstance(self._state, BackingOff):
                await self._probe(served)
                return True
            request = self._chosen(served, self._provider.limits)
            if request is None:
                served.awaits_others = bool(served.ahead)
                return not served.ahead
            if await self._known_meanwhile(served, request):
                return True
            request.has_place = True
            self._begin(served, self._lane(served, request), request)
            return True
        finally:
            if request is None or not request.has_place:
                self._turns.give_back()

    def _chosen(self, served: _Served, limits: Limits) -> _Request | None:
        """The next texts, which nobody else asks for from here on; None: all are asked for already, or in a job."""
        customer = served.customer
        served.ahead = self.bulk.without_held(served.ahead)
        texts = _batch(served.ahead, limits, self._asking if customer.use_cache else ())
        if not texts:
            return None
        chunks = [chunk for chunk in served.ahead if chunk.hash in texts]
        served.ahead = [chunk for chunk in served.ahead if chunk.hash not in texts]
        served.out.update(texts)
        served.open -= len(chunks)
        if customer.use_cache:
            self._asking.update(texts)
        return _Request(customer, chunks, texts)

    async def _known_meanwhile(self, served: _Served, request: _Request) -> bool:
        """Whether another agent had some of the texts, and was first: these are stored, the others put back."""
        if not request.customer.use_cache or len(self._served) < 2:
            return False
        try:
            found = await self._look_up(list(request.texts))
        except BaseException:
            self._release(served, request)
            raise
        if not found:
            return False
        self._put_back(served, request, found)
        self._begin(served, self._keep(served, request, found), request)
        return True

    async def _probe(self, served: _Served) -> None:
        """Ask a provider that did not answer for one text, when it is time, nobody else asking anything."""
        async with self._probing:
            while isinstance(self._state, BackingOff) and (left_s := self._state.until - self._clock()) > 0:
                moved = self._moved
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await moved.wait()
            if served.anew.is_set() or not self._may_send(served):
                return  # what was read before the wait is not what is wanted most
            if not isinstance(self._state, BackingOff):
                return
            request = self._chosen(served, Limits(1, 1, 1))
            if request is None:
                return
            try:
                outcome = await self._ask(served, request, probing=True)
            except BaseException:
                self._release(served, request)
                raise
        self._begin(served, self._settle(served, request, outcome), request)

    def _begin(self, served: _Served, work: Coroutine[Any, Any, None], request: _Request) -> None:
        lane = asyncio.create_task(work)
        served.lanes.add(lane)

        def end(ended: asyncio.Task[None]) -> None:
            served.lanes.discard(ended)
            if not ended.cancelled() and (failure := ended.exception()) is not None:
                served.failure = failure
            self._release(served, request)

        lane.add_done_callback(end)

    def _release(self, served: _Served, request: _Request) -> None:
        """Nothing of a request is under way any more."""
        if request.has_place:
            request.has_place = False
            self._turns.give_back()
        served.out.difference_update(request.texts)
        if request.customer.use_cache:
            self._asking.difference_update(request.texts)
        served.wake()
        for one in self._served.values():
            if one.awaits_others:
                one.awaits_others, one.ahead = False, []
                one.wake()
        self._tell()

    async def _lane(self, served: _Served, request: _Request) -> None:
        outcome = await self._ask(served, request)
        # The next request need not wait until this one is stored.
        request.has_place = False
        self._turns.give_back()
        await self._settle(served, request, outcome)

    async def _ask(
        self, served: _Served, request: _Request, *, probing: bool = False
    ) -> dict[TextHash, bytes] | EmbedRejected | None:
        """The vectors of a request's texts; None: there was no answer."""
        texts = list(request.texts.values())
        served.sent += len(texts)
        began, got = self._clock(), 0
        # One text alone, to a provider that is down, tells nothing of how fast the others will come.
        rate = Rate() if probing else self._rate
        rate.asked(began)
        try:
            vectors = _checked(await self._provider.embed_passages(texts), len(texts))
            got = len(texts)
        except EmbedRejected as refusal:
            self._answered(began)
            return refusal
        except EmbedUnavailable as failure:
            self._failed(began, failure)
            return None
        except EmbedTerminal as refusal:
            log.error("embed.stopped", provider=self._provider.identity.provider, reason=str(refusal))
            self._enter(Stopped(self._clock(), str(refusal)))
            return None
        finally:
            served.sent -= len(texts) - got
            rate.answered(got, self._clock())
        self._answered(began)
        return {text_hash: row.tobytes() for text_hash, row in zip(request.texts, vectors, strict=True)}

    def _answered(self, began: float) -> None:
        self._answers += 1
        # An answer to what was asked before the last failure is no sign that the provider is well again.
        if isinstance(self._state, BackingOff) and began >= self._state.at:
            self._enter(Working())

    def _failed(self, began: float, failure: EmbedUnavailable) -> None:
        wait_s = delay_s(failures_after(self._state), self._rng, first_s=self._first_wait_s)
        state = failed(
            self._state,
            str(failure),
            began=began,
            now=self._clock(),
            wait_s=wait_s,
            retry_after_s=failure.retry_after_s,
        )
        if isinstance(state, BackingOff):
            log.warning(
                "embed.retry_scheduled",
                provider=self._provider.identity.provider,
                reason=str(failure),
                wait_s=round(state.until - self._clock(), 1),
            )
        self._enter(state)

    async def _settle(
        self,
        served: _Served,
        request: _Request,
        outcome: dict[TextHash, bytes] | EmbedRejected | None,
    ) -> None:
        """Have what came of a request in the cache and in the index."""
        customer = request.customer
        match outcome:
            case None:
                self._strike(served, request)
                self._put_back(served, request, served.deferred)
            case EmbedRejected():
                refused = list(request.texts)[outcome.index]
                await self._refuse(customer, refused, str(outcome))
                self._put_back(served, request, {refused})
            case _:
                if customer.use_cache:
                    await self._unless_broken(self.known.put(outcome), None)
                await self._keep(served, request, outcome)

    async def _keep(self, served: _Served, request: _Request, vectors: Mapping[TextHash, bytes]) -> None:
        done = await self._store(served, _rows(request.chunks, vectors))
        for text_hash in vectors:
            served.struck.pop(text_hash, None)
        log.debug("embed.stored", agent=served.agent, chunks=done)

    def _strike(self, served: _Served, request: _Request) -> None:
        """Texts whose request failed again, though others were answered in between, go behind all others.

        One of them may be what the provider fails at, and must not keep the others from their vectors.
        """
        for text_hash in request.texts:
            if self._answers > served.struck.setdefault(text_hash, self._answers):
                served.struck[text_hash] = self._answers
                served.deferred.add(text_hash)

    def _put_back(self, served: _Served, request: _Request, but: Collection[TextHash]) -> None:
        # Putting all that waits in order for each batch would take longer than the batch itself. Once the agent was
        # served anew, though, something else may be wanted more.
        if served.customer is request.customer:
            back = [chunk for chunk in request.chunks if chunk.hash not in but]
            served.ahead = [*back, *served.ahead]

    async def _store(self, served: _Served, rows: Sequence[tuple[ChunkId, TextHash, bytes]]) -> int:
        # Nobody may count what waits between the commit and the moment when searches see the vectors.
        async with served.storing:
            return await served.customer.index.add_vectors(rows, self.known.space)

    async def _refuse(self, customer: Customer, text_hash: TextHash, reason: str) -> None:
        # Other agents that have the text meet the refusal in the cache.
        log.warning("embed.text_set_aside", reason=reason, hash=text_hash.hex()[:12])
        await self._unless_broken(self.known.refuse(text_hash, reason), None)
        await customer.index.set_aside(text_hash, self.known.space)

    # --- whoever waits

    async def wait_for(self, index: Index) -> tuple[int, str | None]:
        """Wait until nothing of an index waits, or nothing moves.

        Returns:
            (chunks that still wait, why), or (0, None).
        """
        while True:
            moved = self._moved
            served = next((one for one in self._served.values() if one.customer.index is index), None)
            async with contextlib.nullcontext() if served is None else served.storing:
                counts = await index.counts()
            if not counts.waiting:
                return 0, None
            trouble = self.trouble if served is None else self.trouble_of(served.agent)
            if trouble is not None:
                return counts.waiting, trouble
            is_in_jobs = served is not None and _only_jobs_left(served)
            if is_in_jobs and not self.bulk.is_waited_for:
                return counts.waiting, self.bulk.note
            try:
                async with asyncio.timeout(None if is_in_jobs else STALLED_S):
                    await moved.wait()
            except TimeoutError:
                return counts.waiting, f"no chunk was embedded in the last {STALLED_S:.0f} s"


def _only_jobs_left(served: _Served) -> bool:
    is_busy = served.ahead or served.lanes or served.anew.is_set()
    return bool(served.held) and not is_busy


async def _ended(lanes: Collection[asyncio.Task[None]]) -> None:
    """Cancel what is under way, and wait until it is over."""
    under_way = list(lanes)
    for lane in under_way:
        lane.cancel()
    if under_way:
        await asyncio.wait(under_way)


def _batch(
    waiting: Sequence[WaitingChunk], limits: Limits, passed_over: Collection[TextHash]
) -> dict[TextHash, str]:
    """The first texts that fit into one request, each once; at least one, if there is any."""
    texts: dict[TextHash, str] = {}
    tokens = limits.tokens
    for chunk in waiting:
        if chunk.hash in texts or chunk.hash in passed_over:
            continue
        cost = estimate_tokens(chunk.text)
        if texts and (cost > tokens or len(texts) >= limits.texts):
            break
        texts[chunk.hash] = chunk.text
        tokens -= cost
    return texts


def _rows(
    waiting: Sequence[WaitingChunk], vectors: Mapping[TextHash, bytes]
) -> list[tuple[ChunkId, TextHash, bytes]]:
    return [(chunk.id, chunk.hash, vectors[chunk.hash]) for chunk in waiting if chunk.hash in vectors]


def _checked(vectors: Vectors, count: int) -> Vectors:
    """Little-endian float32 rows, as the store keeps them.

    Raises:
        EmbedUnavailable: the provider gave another number of vectors than it was asked for.
    """
    if len(vectors) != count:
        raise EmbedUnavailable(f"{count} texts were sent and {len(vectors)} vectors came back")
    return np.ascontiguousarray(vectors, "<f4")
