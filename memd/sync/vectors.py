"""The embedding scheduler: chunks that wait for a vector get one, newest first, turn by turn between agents."""

import asyncio
import time
from collections.abc import Callable, Container, Sequence
from random import Random

import msgspec
import numpy as np
import structlog

from memd.backoff import delay_s
from memd.embed.provider import EmbedRejected, EmbedUnavailable, Provider, Vectors
from memd.errors import TransientError
from memd.model import ChunkId, TextHash
from memd.store.chunks import WaitingChunk
from memd.store.database import StoreClosed, StoreDamaged
from memd.store.embeddings import EmbeddingStore, KnownVectors
from memd.store.index import Index
from memd.text import estimate_tokens

log = structlog.get_logger()

LOOK_AHEAD = 400  # chunks that are looked up in the cache at once
STALLED_S = 60.0  # no vector for so long: whoever waits for the rest is told


class Customer(msgspec.Struct, frozen=True):
    """An agent's index, as the scheduler serves it."""

    agent: str
    index: Index
    use_cache: bool
    damaged: Callable[[str], None] | None = None  # told when the index turns out to be damaged


class _Ahead(msgspec.Struct, frozen=True):
    """Chunks of a customer that were read and are not embedded yet, the most wanted first."""

    customer: Customer  # as it was then: each time an agent is served it is another
    chunks: list[WaitingChunk]


class Working(msgspec.Struct, frozen=True):
    """All is well, whether or not anything waits."""


class BackingOff(msgspec.Struct, frozen=True):
    """The provider does not answer; it is asked again later."""

    until: float  # of the clock
    failures: int
    reason: str


class VectorQueue:
    """What one provider has to embed, for all agents that use it."""

    def __init__(
        self,
        provider: Provider,
        cache: EmbeddingStore,
        max_entries: int,
        rng: Random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing runs yet.

        Args:
            provider: Whom to ask.
            cache: Where vectors are kept by text hash.
            max_entries: How many of them stay, the least recently used going first.
            rng: Source of the jitter of a backoff.
            clock: Seconds, monotonic.
        """
        self._provider = provider
        self._cache = cache
        self._max_entries = max_entries
        self._rng = rng
        self._clock = clock
        self._customers: dict[str, Customer] = {}
        self._ahead: dict[str, _Ahead] = {}  # by agent
        self._wake = asyncio.Event()
        self._progress = asyncio.Condition()
        self._state: Working | BackingOff = Working()
        self._chunks_per_s: float | None = None
        identity = provider.identity
        self.known = KnownVectors(cache, (identity.provider, identity.model, identity.key))

    @property
    def provider(self) -> Provider:
        """Whom the queue asks."""
        return self._provider

    @property
    def trouble(self) -> str | None:
        """Why nothing is embedded just now."""
        return self._state.reason if isinstance(self._state, BackingOff) else None

    def eta_s(self, waiting: int) -> float | None:
        """Seconds until so many chunks are done, at the rate of late."""
        if not waiting or not self._chunks_per_s or self.trouble:
            return None
        return waiting / self._chunks_per_s

    def serve(self, customer: Customer) -> None:
        """Take an agent's index on; called again, it wakes the queue."""
        self._customers[customer.agent] = customer
        self._wake.set()

    async def leave(self, agent: str) -> None:
        """Serve an agent no more; whoever waits for its vectors looks again."""
        self._customers.pop(agent, None)
        self._ahead.pop(agent, None)
        await self._enter(self._state)

    def _drop(self, customer: Customer) -> None:
        # The agent may have come back with other settings meanwhile.
        if self._customers.get(customer.agent) is customer:
            del self._customers[customer.agent]
        self._ahead.pop(customer.agent, None)

    async def run(self) -> None:
        """Embed whatever waits, for ever."""
        while True:
            self._wake.clear()
            try:
                worked = False
                while await self._round():
                    worked = True
                if isinstance(self._state, BackingOff):
                    await self._enter(Working())  # what failed is not wanted any more
                if worked:
                    await self._cache.prune(self._max_entries)
            except (EmbedUnavailable, TransientError) as failure:
                await self._back_off(str(failure))
                self._wake.set()
            await self._wake.wait()

    async def _back_off(self, reason: str) -> None:
        failures = self._state.failures + 1 if isinstance(self._state, BackingOff) else 1
        wait_s = delay_s(failures, self._rng)
        log.warning(
            "embed.retry_scheduled",
            provider=self._provider.identity.provider,
            reason=reason,
            wait_s=round(wait_s, 1),
        )
        await self._enter(BackingOff(self._clock() + wait_s, failures, reason))
        await asyncio.sleep(wait_s)

    async def _enter(self, state: Working | BackingOff) -> None:
        async with self._progress:
            self._state = state
            self._progress.notify_all()

    async def _round(self) -> bool:
        """One batch for each agent that has something; whether there was any."""
        worked = False
        for customer in list(self._customers.values()):
            try:
                worked |= await self._one_batch(customer)
            except StoreClosed:
                self._drop(customer)  # the agent was stopped, which is no trouble of the provider's
            except StoreDamaged as damage:
                self._drop(customer)
                if customer.damaged is not None:
                    customer.damaged(str(damage))
        return worked

    async def _one_batch(self, customer: Customer) -> bool:
        waiting = self._still_ahead(customer)
        looked_up = bool(waiting)
        waiting = waiting or await customer.index.waiting(LOOK_AHEAD)
        if not waiting:
            return False
        texts = _batch(waiting, self._provider.batch_tokens)
        # What was looked up before may have been embedded for another agent since.
        asked = [chunk for chunk in waiting if chunk.hash in texts] if looked_up else waiting
        if customer.use_cache and (settled := await self._from_cache(customer, asked)):
            self._keep_ahead(customer, waiting, settled)
            return True
        began = self._clock()
        try:
            vectors = await self._provider.embed_passages(list(texts.values()))
        except EmbedRejected as refusal:
            await self._refuse(list(texts)[refusal.index], str(refusal))
            return True
        stored = {
            text_hash: row.tobytes()
            for text_hash, row in zip(texts, _checked(vectors, len(texts)), strict=True)
        }
        if customer.use_cache:
            await self.known.put(stored)
        self._state = Working()
        done = await self._store(customer, _rows(waiting, stored))
        self._measure(len(texts), self._clock() - began)
        log.debug("embed.stored", agent=customer.agent, chunks=done)
        self._keep_ahead(customer, waiting, texts)
        await self._enter(Working())
        return True

    def _still_ahead(self, customer: Customer) -> list[WaitingChunk]:
        """What is left of the chunks that were read before for this customer; once it is served anew, none."""
        kept = self._ahead.pop(customer.agent, None)
        return kept.chunks if kept is not None and kept.customer is customer else []

    def _keep_ahead(self, customer: Customer, waiting: list[WaitingChunk], done: Container[TextHash]) -> None:
        # Putting all that waits in order for each batch would take longer than the batch itself.
        left = [chunk for chunk in waiting if chunk.hash not in done]
        self._ahead[customer.agent] = _Ahead(customer, left)

    async def _from_cache(self, customer: Customer, waiting: Sequence[WaitingChunk]) -> frozenset[TextHash]:
        """Settle what is known of the texts of some chunks; which those are."""
        hashes = [chunk.hash for chunk in waiting]
        refused = await self.known.refused(hashes)
        for text_hash in refused:
            await customer.index.set_aside(text_hash)
        found = await self.known.get(hashes)
        if found:
            await self._store(customer, _rows(waiting, found))
        if found or refused:
            await self._enter(self._state)
        return refused.union(found)

    async def _store(self, customer: Customer, rows: Sequence[tuple[ChunkId, TextHash, bytes]]) -> int:
        # Nobody may count what waits between the commit and the moment when searches see the vectors.
        async with self._progress:
            return await customer.index.add_vectors(rows)

    async def _refuse(self, text_hash: TextHash, reason: str) -> None:
        log.warning("embed.text_set_aside", reason=reason, hash=text_hash.hex()[:12])
        await self.known.refuse(text_hash, reason)
        for customer in self._customers.values():
            await customer.index.set_aside(text_hash)
        await self._enter(Working())

    def _measure(self, chunks: int, took_s: float) -> None:
        rate = chunks / max(took_s, 1e-6)
        self._chunks_per_s = rate if self._chunks_per_s is None else 0.8 * self._chunks_per_s + 0.2 * rate

    async def wait_for(self, index: Index) -> tuple[int, str | None]:
        """Wait until nothing of an index waits, or nothing moves.

        Returns:
            (chunks that still wait, why), or (0, None).
        """
        while True:
            async with self._progress:
                counts = await index.counts()
                if not counts.waiting:
                    return 0, None
                if self.trouble is not None:
                    return counts.waiting, self.trouble
                try:
                    async with asyncio.timeout(STALLED_S):
                        await self._progress.wait()
                except TimeoutError:
                    return counts.waiting, f"no chunk was embedded in the last {STALLED_S:.0f} s"


def _batch(waiting: Sequence[WaitingChunk], tokens: int) -> dict[TextHash, str]:
    """The first texts that fit into so many estimated tokens, each once; at least one."""
    texts: dict[TextHash, str] = {}
    for chunk in waiting:
        cost = 0 if chunk.hash in texts else estimate_tokens(chunk.text)
        if texts and cost > tokens:
            break
        texts[chunk.hash] = chunk.text
        tokens -= cost
    return texts


def _rows(
    waiting: Sequence[WaitingChunk], vectors: dict[TextHash, bytes]
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
