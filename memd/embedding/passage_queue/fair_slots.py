"""Sends requests to one provider: limits those in flight, and takes turns between agents."""

import asyncio
from collections import deque
from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any
from weakref import WeakSet

from memd.domain_types import TextHash
from memd.embedding.health_transitions import Refusing, Retrying
from memd.embedding.passage_queue.agent_backlog import AgentBacklog, EmbedRequest, batch
from memd.embedding.passage_queue.batch_submitter import BatchSubmitter
from memd.embedding.passage_queue.passage_embedder import Outcome, PartialResult, PassageEmbedder, embedded
from memd.embedding.passage_queue.results import ResultWriter
from memd.embedding.passage_queue.user_controls import UserSwitches
from memd.embedding.provider_health import ProviderHealth
from memd.providers.provider import ProviderLimits
from memd.store.embedding_cache import KnownVectors

Place = tuple[str, asyncio.Future[None]]


class FairSlots:
    """A semaphore with a short and a long queue, which alternate: after a waiter of the short one, one of the long one is next."""

    def __init__(self) -> None:
        self.capacity = 1  # may change at any time; fewer slots take effect as slots are released
        self._quick: deque[Place] = deque()
        self._long: deque[Place] = deque()
        self._taken = 0
        self._was_quick = False  # whether the last slot went to the short queue

    @property
    def waiting(self) -> int:
        """The number of waiters."""
        return sum(not given.done() for _, given in [*self._quick, *self._long])

    async def take(self, who: str, *, quick: bool) -> None:
        """Wait for a slot, and hold it until `give_back`.

        Args:
            who: The waiter's name, for `hurry`.
            quick: Whether to wait in the short queue.
        """
        if self._taken >= self.capacity or self.waiting:
            await self._wait(who, self._quick if quick else self._long)
        else:
            self._taken, self._was_quick = self._taken + 1, quick

    def give_back(self) -> None:
        """Release a slot to the next waiter."""
        self._taken -= 1
        self._fill()

    def hurry(self, who: str) -> None:
        """Move the waiters of a name from the long queue to the short one."""
        hurried = [place for place in self._long if place[0] == who]
        for place in hurried:
            self._long.remove(place)
        self._quick.extend(hurried)

    async def _wait(self, who: str, queue: deque[Place]) -> None:
        place = who, asyncio.get_running_loop().create_future()
        queue.append(place)
        self._fill()  # the number of slots may have grown
        try:
            await place[1]
        except asyncio.CancelledError:
            if not place[1].cancelled():
                self.give_back()  # the slot was assigned just before the cancellation
            raise

    def _fill(self) -> None:
        # Cancelled waiters are still in the queues.
        while (self._quick or self._long) and self._taken < self.capacity:
            queue = self._long if not self._quick or (self._was_quick and self._long) else self._quick
            _, given = queue.popleft()
            if not given.cancelled():
                self._was_quick = queue is self._quick
                self._taken += 1
                given.set_result(None)


class InFlight:
    """The texts in flight in one space, for all its queues: a text that one has requested is not requested by others."""

    def __init__(self) -> None:
        self.asking: set[TextHash] = set()  # by agents that use the cache
        self.requests: WeakSet[RequestSender] = WeakSet()

    def ended(self, texts: Iterable[TextHash]) -> None:
        """Remove texts whose requests have ended, and wake waiting agents, which may find vectors in the cache."""
        self.asking.difference_update(texts)
        for one in self.requests:
            one.look_again()


class RequestSender:
    """Sends requests of all agents within the provider's limits; after a failure, one text at a time.

    Results are stored while the next requests are in flight.
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
        """Create the object; `send` sends requests.

        Args:
            backlogs: The agents' backlogs by id; the mapping changes over time.
            embedder: Sends the requests.
            health: The provider's health; its `progress` is notified when a request has ended.
            batch_submitter: Knows the texts in batch jobs.
            known: The cache, with vectors that other agents have requested meanwhile.
            storing: Writes results.
            switches: The user's switches.
            in_flight: The texts in flight in the space, including those of other queues.
        """
        self._slots = FairSlots()
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
    def slots(self) -> FairSlots:
        """The slots, as many as the provider allows now."""
        self._slots.capacity = self._embedder.provider.limits.concurrency
        return self._slots

    @property
    def asking(self) -> set[TextHash]:
        """The texts in flight, for agents that use the cache."""
        return self._in_flight.asking

    def look_again(self) -> None:
        """Wake the agents whose texts were all in flight for others."""
        for one in self._backlogs.values():
            if one.awaits_others:
                one.awaits_others, one.ahead = False, []
                one.wake()

    @property
    def _is_shared(self) -> bool:
        """Whether another agent may have requested the same texts."""
        return sum(len(requests._backlogs) for requests in self._in_flight.requests) > 1  # noqa: SLF001 - of its own class

    def may_send(self, backlog: AgentBacklog) -> bool:
        """Return whether texts of an agent may be sent: the user allows it, and the provider does not refuse."""
        return self._switches.let_send(backlog) and not isinstance(self._health.now.passages, Refusing)

    async def send(self, backlog: AgentBacklog, *, quick: bool) -> bool:
        """Send one request in the agent's turn; return False if all its texts are in flight for others."""
        await self.slots.take(backlog.agent, quick=quick)
        request: EmbedRequest | None = None
        try:
            # If newer texts were written while it waited in the long queue, the agent moves to the short one. It never moves back from
            # there: an agent with constant writes would have no turn.
            if (backlog.anew.is_set() and not quick) or not self.may_send(backlog):
                return True
            if isinstance(self._health.now.passages, Retrying):
                return await self._probe(backlog)
            request = self._chosen(backlog, self._embedder.provider.limits)
            if request is None:
                return not backlog.waits_for_others()
            if await self._known_meanwhile(backlog, request):
                return True
            request.has_slot = True
            self._begin(backlog, self._lane(backlog, request), request)
            return True
        finally:
            if request is None or not request.has_slot:
                self.slots.give_back()

    def _chosen(self, backlog: AgentBacklog, limits: ProviderLimits) -> EmbedRequest | None:
        """Take the next texts for a request; None: all are in flight already, or in a job."""
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
        """Store the vectors that other agents have requested meanwhile, put the other texts back, and return whether there were any."""
        if not request.source.use_cache or not self._is_shared:
            return False
        try:
            found = (await self._known.look_up(list(request.texts))).vectors
        except BaseException:
            self._release(backlog, request)
            raise
        if not found:
            return False
        others = request.without(found)
        backlog.put_back(others)
        # Before what was found is stored: else those behind them would be next.
        self._release(backlog, others)
        self._begin(backlog, self._results.keep(backlog, request, found), request.without(others.texts))
        return True

    async def _probe(self, backlog: AgentBacklog) -> bool:
        """Send one text to a failing provider when it is due, with no other request in flight.

        Returns:
            False if all texts of the agent are in flight for others: retrying would loop forever.
        """
        async with self._probing:
            await self._health.passages_due()
            if backlog.anew.is_set() or not self.may_send(backlog):
                return True  # newer texts may be more important now
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
        """Release the slot and the texts of a request."""
        if request.has_slot:
            request.has_slot = False
            self.slots.give_back()
        backlog.out.difference_update(request.texts)
        backlog.wake()
        self._in_flight.ended(request.texts if request.source.use_cache else ())
        self._health.progress.notify()

    async def _lane(self, backlog: AgentBacklog, request: EmbedRequest) -> None:
        outcome = await self._ask(backlog, request)
        # The slot is free for the next request while this one is stored.
        request.has_slot = False
        self.slots.give_back()
        await self._end_request(backlog, request, outcome)

    async def _ask(self, backlog: AgentBacklog, request: EmbedRequest, *, probing: bool = False) -> Outcome:
        """Send a request, and return its outcome."""
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
