"""What a search knows of those who embed its question."""

from typing import Protocol

from memd.model import DegradedPart
from memd.providers.provider import Calibration, Vector
from memd.store.embedding_cache import Space


class QueryEmbedder(Protocol):
    """Embeds questions for the vectors of an agent's index."""

    @property
    def provider_name(self) -> str:
        """Of the provider that is used for what is written now."""
        ...

    @property
    def model_name(self) -> str:
        """Of its model."""
        ...

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """The vector of a question among those of a space, with the calibration of its model; or why there is none.

        It takes a bounded time.
        """
        ...

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """Why no provider embeds questions for the vectors of a space; None: one does, or none is to.

        Args:
            space: Of the vectors in the index; None: it has none.
        """
        ...
