"""What is known of texts already. It only saves work: where it fails, work goes on as if nothing were known."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import structlog

from memd.errors import TransientError
from memd.model import TextHash
from memd.store.embedding_cache import KnownVectors
from memd.store.errors import StoreDamaged, StoreNewer

T = TypeVar("T")

log = structlog.get_logger()


class CacheBound:
    """How many vectors the cache of all agents keeps.

    Never fewer than the indexes hold twice: what was paid for is there after an index was deleted, and after another model
    was used for a while and left again.
    """

    def __init__(self, configured: int = 0) -> None:
        """Count no index before `entries` is called.

        Args:
            configured: The largest number that any agent asks for.
        """
        self.configured = configured
        self._held: WeakKeyDictionary[SpaceCache, int] = WeakKeyDictionary()

    def entries(self, cached: "SpaceCache", held: int) -> int:
        """The number.

        Args:
            cached: Of a queue.
            held: How many texts the indexes hold that the queue serves: chunks, and parts where these are embedded.
        """
        self._held[cached] = held
        return max(self.configured, 2 * sum(self._held.values()))


class SpaceCache:
    """The cache of one space; a failure of it is logged, and work goes on without."""

    def __init__(self, known: KnownVectors, bound: CacheBound) -> None:
        """Make the view of one queue.

        Args:
            known: The cache.
            bound: How many vectors stay, the least recently used going first.
        """
        self._known = known
        self._bound = bound
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

    async def prune(self, held: int) -> int:
        """Drop some of what is too much, where the indexes hold so many texts; how many vectors went, 0 once it is done."""
        return await self.unless_broken(self._known.prune(self._bound.entries(self, held)), 0)

    async def unless_broken(self, work: Awaitable[T], otherwise: T) -> T:
        """What comes of some work on its file, or, where that fails, something in its place."""
        try:
            done = await work
        except (TransientError, StoreDamaged, StoreNewer) as failure:
            if self._trouble is None:
                log.warning("embed.cache_failed", reason=str(failure))
            self._trouble = str(failure)
            return otherwise
        self._trouble = None
        return done
