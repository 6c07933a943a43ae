"""Who puts questions into vectors, as a search knows them."""

from typing import Protocol

from memd.embed.provider import Provider
from memd.model import Degraded
from memd.store.embeddings import Space


class Speakers(Protocol):
    """The providers within an agent's reach, each with the space of its vectors."""

    @property
    def provider_name(self) -> str:
        """Of the provider that is used for what is written now."""
        ...

    @property
    def model_name(self) -> str:
        """Of its model."""
        ...

    def speaker(self, space: Space) -> Provider | None:
        """Who can embed a question for the vectors of a space; None: nobody."""
        ...

    def patience_s(self, space: Space) -> float:
        """How long a search waits for the vector of its question."""
        ...

    def silence(self, space: Space | None) -> Degraded | None:
        """Why nobody embeds a question for the vectors of a space; None: somebody does, or nobody is to.

        Args:
            space: Of the vectors in the index; None: it has none.
        """
        ...
