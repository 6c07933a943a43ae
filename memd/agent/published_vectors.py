"""Takes the vectors that an agent has published back from their server, so that an index which lacks them embeds nothing twice.

A publisher lacks them whose state was lost, or which has taken a memory over from another machine. Only hashes of texts that are
published are sent, and what comes is for the index of this agent alone.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog

from memd.agent.publisher import kinds_of
from memd.config.settings import Publish
from memd.domain_types import ChunkId, TextHash
from memd.postgres.connection import SharedUnavailable
from memd.postgres.snapshots import ServerSnapshot, SharedConnections
from memd.postgres.vectors_by_text import StoredVectors, stored_vectors
from memd.runtime.timers import Clock
from memd.store import published_files
from memd.store.chunk_parts import widened
from memd.store.embedding_cache import Space
from memd.store.index import Index
from memd.store.published_files import LackingChunk

log = structlog.get_logger()

AT_ONCE = 200  # chunks that are asked for in one transaction: 1 MB of 384 dimensions
TIMEOUT_S = 5.0  # of a transaction
LEFT_ALONE_S = 60.0  # a server that did not answer, or has vectors of another model


class ServerVectors:
    """The vectors of one published memory, as its publisher asks for them."""

    def __init__(self, agent: str, settings: Publish, clock: Clock = time.monotonic) -> None:
        """Connect to nothing before the first request.

        Args:
            agent: Its id, for the log.
            settings: Where it publishes, and what.
            clock: Seconds, monotonic.
        """
        self.asked_up_to: int | None = None  # see PublishedVectors
        self.taken = 0  # vectors, of chunks and of parts, that were embedded by nobody again
        self._agent = agent
        self._memory = settings.memory
        self._kinds = kinds_of(settings)
        self._connections = SharedConnections(Path(settings.dsn_file), settings.memory, TIMEOUT_S)
        self._clock = clock
        self._alone_until = clock()
        self._is_left_out = False
        # The space that was asked for last, and up to which chunk: ids only grow, also in an index that is built anew.
        self._asked: tuple[Space | None, int] = (None, 0)

    def leave_out(self) -> None:
        """See PublishedVectors.leave_out."""
        self._is_left_out = True

    async def next_found(
        self, index: Index, space: Space
    ) -> Sequence[tuple[ChunkId, TextHash, bytes]] | None:
        """See PublishedVectors.next_found."""
        self.asked_up_to = None
        if self._is_left_out or self._clock() < self._alone_until:
            return None
        fingerprint = await index.fingerprint()
        if fingerprint is None or fingerprint.space != space or fingerprint.dimensions is None:
            return None
        last_space, after = self._asked
        chunks, up_to = await index.database.read(
            published_files.lacking,
            after if last_space == space else 0,
            AT_ONCE,
            self._kinds,
            with_parts=fingerprint.parts,
        )
        if not chunks:
            self._asked = space, up_to
            self.asked_up_to = up_to
            return None
        there = await self._ask(space, chunks)
        if there is None:
            self._alone_until = self._clock() + LEFT_ALONE_S
            return None
        self._asked = space, up_to
        found = list(_found(chunks, there.usable(fingerprint.dimensions)))
        self.taken += len(found)
        log.debug("publish.vectors_taken", agent=self._agent, chunks=len(chunks), vectors=len(found))
        return found

    async def _ask(self, space: Space, chunks: Sequence[LackingChunk]) -> StoredVectors | None:
        """What the server has of some chunks; None: nothing of that model, or it cannot tell now."""
        hashes = {one.hash for one in chunks}

        def ask(snapshot: ServerSnapshot) -> StoredVectors | None:
            return stored_vectors(snapshot, self._memory, space, hashes, self._connections.vector_schema)

        try:
            return await self._connections.run(ask)
        except SharedUnavailable as failure:
            log.info("publish.vectors_not_taken", agent=self._agent, reason=str(failure))
            return None

    def close(self) -> None:
        """Close the connections to the server."""
        self._connections.close()


def _found(chunks: Sequence[LackingChunk], there: StoredVectors) -> Iterator[tuple[ChunkId, TextHash, bytes]]:
    """Of each chunk and part that waits the vector that is there."""
    for chunk in chunks:
        if chunk.is_waiting and (vector := there.whole.get(chunk.hash)) is not None:
            yield chunk.id, TextHash(chunk.hash), vector
        for part in chunk.parts:
            if (rounded := there.parts.get((chunk.hash, part.first, part.last))) is not None:
                yield ChunkId(part.id), TextHash(part.hash), widened(rounded)
