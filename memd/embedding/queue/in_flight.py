"""The requests that are under way to one provider, for all agents that it embeds for."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any
from weakref import WeakSet

from memd.embedding.health import ProviderHealth
from memd.embedding.health_state import Retrying
from memd.embedding.queue.agent_backlog import AgentBacklog, EmbedRequest, batch
from memd.embedding.queue.batching import Bulk
from memd.embedding.queue.cache import SpaceCache
from memd.embedding.queue.fair_slots import FairSlots
from memd.embedding.queue.passage_embedder import Outcome, PartialResult, PassageEmbedder, embedded
from memd.embedding.queue.results import ResultWriter
from memd.model import TextHash
from memd.providers.provider import ProviderLimits


class InFlight:
    """What is asked for in one space, by all queues that embed in it: what one asks for, none of the others does."""

    def __init__(self) -> None:
        self.asking: set[TextHash] = set()  # texts under way for agents that use the cache
        self.lanes: WeakSet[RequestSlots] = WeakSet()

    def ended(self, texts: Iterable[TextHash]) -> None:
        """Nothing of some texts is under way any more: whoever wanted them may find them in the cache."""
        self.asking.difference_update(texts)
        for one in self.lanes:
            one.look_again()


class RequestSlots:
    """Sends as many as the provider's limits allow, turn by turn; a provider that did not answer gets one text alone.

    What an answer brought is stored while the next requests are under way.
    """

    def __init__(
        self,
        served: Mapping[str, AgentBacklog],
        embedder: PassageEmbedder,
        health: ProviderHealth,
        *,
        bulk: Bulk,
        cached: SpaceCache,
        storing: ResultWriter,
        may_send: Callable[[AgentBacklog], bool],
        under_way: InFlight,
    ) -> None:
        """Nothing is under way yet.

        Args:
            served: The agents, by their ids; they come and go.
            embedder: Sends the requests.
            health: Of the provider; its progress is notified when a request is over.
            bulk: Knows what is in batch jobs.
            cached: Knows what others have asked for meanwhile.
            storing: Takes what came.
            may_send: Whether anything may be asked for an agent.
            under_way: What is asked for in the space, also by others.
        """
        self.turns = FairSlots(lambda: embedder.provider.limits.concurrency)
        self._under_way = under_way
        under_way.lanes.add(self)
        self._served = served
        self._embedder = embedder
        self._health = health
        self._bulk = bulk
        self._cached = cached
        self._storing = storing
        self._may_send = may_send
        self._probing = asyncio.Lock()

    @property
    def asking(self) -> set[TextHash]:
        """Texts under way for agents that use the cache."""
        return self._under_way.asking

    def look_again(self) -> None:
        """Have those agents look again all of whose texts were asked for already."""
        for one in self._served.values():
            if one.awaits_others:
                one.awaits_others, one.ahead = False, []
                one.wake()

    @property
    def _is_shared(self) -> bool:
        """Whether another agent may have asked for the same texts."""
        return sum(len(lanes._served) for lanes in self._under_way.lanes) > 1  # noqa: SLF001 - of its own class

    async def send(self, served: AgentBacklog, *, quick: bool) -> bool:
        """Send one request when it is the agent's turn; False: others have asked for all it wants."""
        await self.turns.take(served.agent, quick=quick)
        request: EmbedRequest | None = None
        try:
            # Overtaken by something newer in the long queue, it goes to the quick one. From there it never goes
            # back: an agent that is written to all the time would have no turn at all.
            if (served.anew.is_set() and not quick) or not self._may_send(served):
                return True
            if isinstance(self._health.now.passages, Retrying):
                return await self._probe(served)
            request = self._chosen(served, self._embedder.provider.limits)
            if request is None:
                return not served.waits_for_others()
            if await self._known_meanwhile(served, request):
                return True
            request.has_place = True
            self._begin(served, self._lane(served, request), request)
            return True
        finally:
            if request is None or not request.has_place:
                self.turns.give_back()

    def _chosen(self, served: AgentBacklog, limits: ProviderLimits) -> EmbedRequest | None:
        """The next texts, which nobody else asks for from here on; None: all are asked for already, or in a job."""
        customer = served.customer
        served.ahead = self._bulk.without_held(served.ahead)
        texts = batch(served.ahead, limits, self.asking if customer.use_cache else (), served.most)
        if not texts:
            return None
        chunks = [chunk for chunk in served.ahead if chunk.hash in texts]
        served.ahead = [chunk for chunk in served.ahead if chunk.hash not in texts]
        served.out.update(texts)
        served.open -= len(chunks)
        if customer.use_cache:
            self.asking.update(texts)
        return EmbedRequest(customer, chunks, texts)

    async def _known_meanwhile(self, served: AgentBacklog, request: EmbedRequest) -> bool:
        """Whether another agent had some of the texts, and was first: these are stored, the others put back."""
        if not request.customer.use_cache or not self._is_shared:
            return False
        try:
            found = await self._cached.get(list(request.texts))
        except BaseException:
            self._release(served, request)
            raise
        if not found:
            return False
        served.put_back(request, found)
        self._begin(served, self._storing.keep(served, request, found), request)
        return True

    async def _probe(self, served: AgentBacklog) -> bool:
        """Ask a provider that did not answer for one text, when it is time, nobody else asking anything.

        Returns:
            False: others have asked for all that the agent wants. To ask once more would be a loop without an end.
        """
        async with self._probing:
            await self._health.passages_due()
            if served.anew.is_set() or not self._may_send(served):
                return True  # what was read before the wait is not what is wanted most
            if not isinstance(self._health.now.passages, Retrying):
                return True
            request = self._chosen(served, ProviderLimits(1, 1, 1))
            if request is None:
                return not served.waits_for_others()
            try:
                outcome = await self._ask(served, request, probing=True)
            except BaseException:
                self._release(served, request)
                raise
        self._begin(served, self._settle(served, request, outcome), request)
        return True

    def _begin(self, served: AgentBacklog, work: Coroutine[Any, Any, None], request: EmbedRequest) -> None:
        lane = asyncio.create_task(work)
        served.lanes.add(lane)

        def end(ended: asyncio.Task[None]) -> None:
            served.lanes.discard(ended)
            if not ended.cancelled() and (failure := ended.exception()) is not None:
                served.failure = failure
            self._release(served, request)

        lane.add_done_callback(end)

    def _release(self, served: AgentBacklog, request: EmbedRequest) -> None:
        """Nothing of a request is under way any more."""
        if request.has_place:
            request.has_place = False
            self.turns.give_back()
        served.out.difference_update(request.texts)
        served.wake()
        self._under_way.ended(request.texts if request.customer.use_cache else ())
        self._health.progress.notify()

    async def _lane(self, served: AgentBacklog, request: EmbedRequest) -> None:
        outcome = await self._ask(served, request)
        # The next request need not wait until this one is stored.
        request.has_place = False
        self.turns.give_back()
        await self._settle(served, request, outcome)

    async def _ask(self, served: AgentBacklog, request: EmbedRequest, *, probing: bool = False) -> Outcome:
        """What came of a request's texts."""
        served.asked += len(request.texts)
        outcome: Outcome = None
        try:
            outcome = await self._embedder.ask(request.texts, probing=probing)
        finally:
            served.asked -= len(request.texts)
            served.answered += embedded(outcome)
        return outcome

    async def _settle(self, served: AgentBacklog, request: EmbedRequest, outcome: Outcome) -> None:
        has_failed = outcome is None or (isinstance(outcome, PartialResult) and outcome.has_failed)
        if has_failed:
            there = outcome.vectors if isinstance(outcome, PartialResult) else ()
            served.strike(request.without(there), self._embedder.answers)
        else:
            for one in self._served.values():
                one.trust_again()
        if outcome is None:
            served.put_back(request)
        else:
            await self._storing.settle(served, request, outcome)


async def end_all(lanes: Collection[asyncio.Task[None]]) -> None:
    """Cancel what is under way, and wait until it is over."""
    under_way = list(lanes)
    for lane in under_way:
        lane.cancel()
    if under_way:
        await asyncio.wait(under_way)
