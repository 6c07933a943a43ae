"""Who puts questions into vectors, as a search knows them."""

from typing import Protocol

from memd.model import DegradedPart
from memd.providers.provider import Calibration, Identity, Vector
from memd.store.embeddings import Space


class QueryEmbedder(Protocol):
    """Who embeds questions for the vectors of one space."""

    @property
    def identity(self) -> Identity:
        """What its vectors may be compared with."""
        ...

    @property
    def calibration(self) -> Calibration:
        """The range of its model's cosines."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """Embed a question, in a time that is bounded.

        Raises:
            EmbedUnavailable: answer without it.
        """
        ...


class QueryProviders(Protocol):
    """The providers within an agent's reach, each with the space of its vectors."""

    @property
    def provider_name(self) -> str:
        """Of the provider that is used for what is written now."""
        ...

    @property
    def model_name(self) -> str:
        """Of its model."""
        ...

    def speaker(self, space: Space) -> QueryEmbedder | None:
        """Who can embed a question for the vectors of a space; None: nobody."""
        ...

    def silence(self, space: Space | None) -> DegradedPart | None:
        """Why nobody embeds a question for the vectors of a space; None: somebody does, or nobody is to.

        Args:
            space: Of the vectors in the index; None: it has none.
        """
        ...
