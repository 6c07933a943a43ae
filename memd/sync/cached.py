"""What is known of texts already. It only saves work: where it fails, work goes on as if nothing were known."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

import structlog

from memd.errors import TransientError
from memd.model import TextHash
from memd.store.embeddings import KnownVectors
from memd.store.trouble import StoreDamaged

T = TypeVar("T")

log = structlog.get_logger()


class Cached:
    """The cache of one space, for whoever can do without it."""

    def __init__(self, known: KnownVectors, max_entries: int) -> None:
        """Nothing has failed yet.

        Args:
            known: The cache.
            max_entries: How many vectors stay, the least recently used going first.
        """
        self._known = known
        self._max_entries = max_entries
        self._trouble: str | None = None

    async def get(self, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
        """The vectors that are cached."""
        nothing: dict[TextHash, bytes] = {}
        return await self.unless_broken(self._known.get(hashes), nothing)

    async def refused(self, hashes: Sequence[TextHash]) -> frozenset[TextHash]:
        """Those of the texts that are set aside."""
        return await self.unless_broken(self._known.refused(hashes), frozenset())

    async def unknown(self, hashes: set[TextHash]) -> set[TextHash]:
        """Those of the texts that have no vector in the cache, and are not set aside."""
        some, nothing = list(hashes), frozenset[TextHash]()
        left = hashes - await self.unless_broken(self._known.held(some), nothing)
        return left - await self.unless_broken(self._known.refused(some), nothing)

    async def put(self, vectors: Mapping[TextHash, bytes]) -> None:
        """Cache vectors."""
        await self.unless_broken(self._known.put(vectors), None)

    async def refuse(self, text_hash: TextHash, reason: str) -> None:
        """Set a text aside."""
        await self.unless_broken(self._known.refuse(text_hash, reason), None)

    async def prune(self) -> None:
        """Drop what is too much."""
        await self.unless_broken(self._known.prune(self._max_entries), 0)

    async def unless_broken(self, work: Awaitable[T], otherwise: T) -> T:
        """What comes of some work on its file, or, where that fails, something in its place."""
        try:
            done = await work
        except (TransientError, StoreDamaged) as failure:
            if self._trouble is None:
                log.warning("embed.cache_failed", reason=str(failure))
            self._trouble = str(failure)
            return otherwise
        self._trouble = None
        return done
