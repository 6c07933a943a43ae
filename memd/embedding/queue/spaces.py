"""What passes, rebuilds and searches know of those who embed for an agent: who has which space."""

from typing import Protocol

from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.providers.provider import Identity
from memd.store.embeddings import EmbeddingStore, Space


class Spaces(Protocol):
    """The embedding spaces within an agent's reach."""

    @property
    def wanted(self) -> Identity | None:
        """What vectors its index is to have; None: nothing embeds, or it is not known yet what it is like."""
        ...

    @property
    def embeds(self) -> bool:
        """Whether anything is to embed, be it known yet or not."""
        ...

    @property
    def is_being_found_out(self) -> bool:
        """Whether a model is being asked what it is like, so that what is wanted is known soon."""
        ...

    @property
    def cache(self) -> EmbeddingStore | None:
        """Where vectors are kept by text hash; None: the agent has no cache."""
        ...

    @property
    def version(self) -> int:
        """Grows with each change of any of this."""
        ...

    async def changed_since(self, version: int) -> int:
        """Wait for another version than the one that is known; which it is."""
        ...

    def queue(self, space: Space | None) -> EmbeddingQueue | None:
        """What embeds in a space; None: nobody does just now."""
        ...

    def is_answering(self, space: Space | None) -> bool:
        """Whether somebody embeds questions for the vectors of a space, as far as is known."""
        ...

    def hold(self, spaces: frozenset[Space]) -> None:
        """Keep whoever has these spaces, and nobody else's for this agent."""
        ...
