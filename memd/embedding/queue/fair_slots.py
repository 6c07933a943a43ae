"""The requests that are under way to one provider, for all agents that it embeds for, and the order in which they are sent."""

import asyncio
from collections import deque
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any
from weakref import WeakSet

from memd.domain_types import TextHash
from memd.embedding.health_transitions import Refusing, Retrying
from memd.embedding.provider_health import ProviderHealth
from memd.embedding.queue.agent_backlog import AgentBacklog, EmbedRequest, batch
from memd.embedding.queue.batch_submitter import BatchSubmitter
from memd.embedding.queue.passage_embedder import Outcome, PartialResult, PassageEmbedder, embedded
from memd.embedding.queue.results import ResultWriter
from memd.embedding.queue.user_controls import UserSwitches
from memd.providers.provider import ProviderLimits
from memd.store.embedding_cache import KnownVectors

Place = tuple[str, asyncio.Future[None]]


class FairSlots:
    """Two queues for some places: after somebody from the quick one it is the turn of the long one, if anybody is there."""

    def __init__(self) -> None:
        self.places = 1  # may be changed at any time; when they become fewer, nobody is sent away
        self._quick: deque[Place] = deque()
        self._long: deque[Place] = deque()
        self._taken = 0
        self._was_quick = False  # whoever got a place last came from the quick queue

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(not given.done() for _, given in [*self._quick, *self._long])

    async def take(self, who: str, *, quick: bool) -> None:
        """Wait for a place and have it, until it is given back.

        Args:
            who: By which hurry finds whoever waits.
            quick: Wait in the quick queue.
        """
        if self._taken >= self.places or self.waiting:
            await self._wait(who, self._quick if quick else self._long)
        else:
            self._taken, self._was_quick = self._taken + 1, quick

    def give_back(self) -> None:
        """Leave a place to the next."""
        self._taken -= 1
        self._fill()

    def hurry(self, who: str) -> None:
        """Let somebody who waits in the long queue wait in the quick one instead."""
        hurried = [place for place in self._long if place[0] == who]
        for place in hurried:
            self._long.remove(place)
        self._quick.extend(hurried)

    async def _wait(self, who: str, queue: deque[Place]) -> None:
        place = who, asyncio.get_running_loop().create_future()
        queue.append(place)
        self._fill()  # there may be more places than there were
        try:
            await place[1]
        except asyncio.CancelledError:
            if not place[1].cancelled():
                self.give_back()  # it was given the place and cannot take it
            raise

    def _fill(self) -> None:
        # Whoever was cancelled while waiting still stands in a queue.
        while (self._quick or self._long) and self._taken < self.places:
            queue = self._long if not self._quick or (self._was_quick and self._long) else self._quick
            _, given = queue.popleft()
            if not given.cancelled():
                self._was_quick = queue is self._quick
                self._taken += 1
                given.set_result(None)


class InFlight:
    """What is requested in one space by all queues that embed in it: what one requests, no other one does."""

    def __init__(self) -> None:
        self.asking: set[TextHash] = set()  # texts under way for agents that use the cache
        self.requests: WeakSet[RequestSlots] = WeakSet()

    def ended(self, texts: Iterable[TextHash]) -> None:
        """Requests for some texts are over: other agents that wait for them may find them in the cache."""
        self.asking.difference_update(texts)
        for one in self.requests:
            one.look_again()


class RequestSlots:
    """Sends as many requests as the provider's limits allow, agent by agent; a provider that did not answer gets one text alone.

    What an answer brought is stored while the next requests are under way.
    """

    def __init__(
        self,
        backlogs: Mapping[str, AgentBacklog],
        embedder: PassageEmbedder,
        health: ProviderHealth,
        *,
        batch_submitter: BatchSubmitter,
        known: KnownVectors,
        storing: ResultWriter,
        switches: UserSwitches,
        in_flight: InFlight,
    ) -> None:
        """Send nothing before `send` is called.

        Args:
            backlogs: Of the agents, by their ids; agents come and go.
            embedder: Sends the requests.
            health: Of the provider; its progress is notified when a request is over.
            batch_submitter: Knows what is in batch jobs.
            known: The cache, with what others have asked for meanwhile.
            storing: Takes what came.
            switches: What the user lets be sent.
            in_flight: What is requested in the space, also by other queues.
        """
        self._turns = FairSlots()
        self._in_flight = in_flight
        in_flight.requests.add(self)
        self._backlogs = backlogs
        self._embedder = embedder
        self._health = health
        self._batch_submitter = batch_submitter
        self._known = known
        self._results = storing
        self._switches = switches
        self._probing = asyncio.Lock()

    @property
    def turns(self) -> FairSlots:
        """As many slots as the provider allows just now."""
        self._turns.places = self._embedder.provider.limits.concurrency
        return self._turns

    @property
    def asking(self) -> set[TextHash]:
        """Texts in flight for agents that use the cache."""
        return self._in_flight.asking

    def look_again(self) -> None:
        """Wake the agents all of whose texts were in flight for others."""
        for one in self._backlogs.values():
            if one.awaits_others:
                one.awaits_others, one.ahead = False, []
                one.wake()

    @property
    def _is_shared(self) -> bool:
        """Whether another agent may have asked for the same texts."""
        return sum(len(requests._backlogs) for requests in self._in_flight.requests) > 1  # noqa: SLF001 - of its own class

    def may_send(self, backlog: AgentBacklog) -> bool:
        """Whether anything of an agent may be sent: the user lets it, and the provider does not refuse."""
        return self._switches.let_send(backlog) and not isinstance(self._health.now.passages, Refusing)

    async def send(self, backlog: AgentBacklog, *, quick: bool) -> bool:
        """Send one request when it is the agent's turn; False: all that it wants is in flight for others."""
        await self.turns.take(backlog.agent, quick=quick)
        request: EmbedRequest | None = None
        try:
            # Overtaken by something newer in the long queue, it goes to the quick one. From there it never goes
            # back: an agent that is written to all the time would have no turn at all.
            if (backlog.anew.is_set() and not quick) or not self.may_send(backlog):
                return True
            if isinstance(self._health.now.passages, Retrying):
                return await self._probe(backlog)
            request = self._chosen(backlog, self._embedder.provider.limits)
            if request is None:
                return not backlog.waits_for_others()
            if await self._known_meanwhile(backlog, request):
                return True
            request.has_place = True
            self._begin(backlog, self._lane(backlog, request), request)
            return True
        finally:
            if request is None or not request.has_place:
                self.turns.give_back()

    def _chosen(self, backlog: AgentBacklog, limits: ProviderLimits) -> EmbedRequest | None:
        """The next texts, which nobody else asks for from here on; None: all are asked for already, or in a job."""
        source = backlog.source
        backlog.ahead = self._batch_submitter.without_held(backlog.ahead)
        texts = batch(backlog.ahead, limits, self.asking if source.use_cache else (), backlog.most)
        if not texts:
            return None
        chunks = [chunk for chunk in backlog.ahead if chunk.hash in texts]
        backlog.ahead = [chunk for chunk in backlog.ahead if chunk.hash not in texts]
        backlog.out.update(texts)
        backlog.open -= len(chunks)
        if source.use_cache:
            self.asking.update(texts)
        return EmbedRequest(source, chunks, texts)

    async def _known_meanwhile(self, backlog: AgentBacklog, request: EmbedRequest) -> bool:
        """Whether another agent had some of the texts, and was first: these are stored, the others put back."""
        if not request.source.use_cache or not self._is_shared:
            return False
        try:
            found = (await self._known.look_up(list(request.texts))).vectors
        except BaseException:
            self._release(backlog, request)
            raise
        if not found:
            return False
        backlog.put_back(request, found)
        self._begin(backlog, self._results.keep(backlog, request, found), request)
        return True

    async def _probe(self, backlog: AgentBacklog) -> bool:
        """Ask a provider that did not answer for one text, when it is time, nobody else asking anything.

        Returns:
            False: others have asked for all that the agent wants. To ask once more would be a loop without an end.
        """
        async with self._probing:
            await self._health.passages_due()
            if backlog.anew.is_set() or not self.may_send(backlog):
                return True  # what was read before the wait is not what is wanted most
            if not isinstance(self._health.now.passages, Retrying):
                return True
            request = self._chosen(backlog, ProviderLimits(1, 1, 1))
            if request is None:
                return not backlog.waits_for_others()
            try:
                outcome = await self._ask(backlog, request, probing=True)
            except BaseException:
                self._release(backlog, request)
                raise
        self._begin(backlog, self._end_request(backlog, request, outcome), request)
        return True

    def _begin(self, backlog: AgentBacklog, work: Coroutine[Any, Any, None], request: EmbedRequest) -> None:
        task = asyncio.create_task(work)
        backlog.requests.add(task)

        def end(ended: asyncio.Task[None]) -> None:
            backlog.requests.discard(ended)
            if not ended.cancelled() and (failure := ended.exception()) is not None:
                backlog.failure = failure
            self._release(backlog, request)

        task.add_done_callback(end)

    def _release(self, backlog: AgentBacklog, request: EmbedRequest) -> None:
        """Free what a request has taken: its place, and its texts."""
        if request.has_place:
            request.has_place = False
            self.turns.give_back()
        backlog.out.difference_update(request.texts)
        backlog.wake()
        self._in_flight.ended(request.texts if request.source.use_cache else ())
        self._health.progress.notify()

    async def _lane(self, backlog: AgentBacklog, request: EmbedRequest) -> None:
        outcome = await self._ask(backlog, request)
        # The next request need not wait until this one is stored.
        request.has_place = False
        self.turns.give_back()
        await self._end_request(backlog, request, outcome)

    async def _ask(self, backlog: AgentBacklog, request: EmbedRequest, *, probing: bool = False) -> Outcome:
        """Send a request; returns its outcome."""
        backlog.asked += len(request.texts)
        outcome: Outcome = None
        try:
            outcome = await self._embedder.ask(request.texts, probing=probing)
        finally:
            backlog.asked -= len(request.texts)
            backlog.answered += embedded(outcome)
        return outcome

    async def _end_request(self, backlog: AgentBacklog, request: EmbedRequest, outcome: Outcome) -> None:
        has_failed = outcome is None or (isinstance(outcome, PartialResult) and outcome.has_failed)
        if has_failed:
            there = outcome.vectors if isinstance(outcome, PartialResult) else ()
            backlog.note_failure(request.without(there), self._embedder.answers)
        else:
            for one in self._backlogs.values():
                one.trust_again()
        if outcome is None:
            backlog.put_back(request)
        else:
            await self._results.write_outcome(backlog, request, outcome)


async def end_all(requests: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    in_flight = list(requests)
    for task in in_flight:
        task.cancel()
    if in_flight:
        await asyncio.wait(in_flight)
