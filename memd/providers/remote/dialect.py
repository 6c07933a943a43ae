"""What differs from one provider's embedding API to another's."""

from collections.abc import Sequence
from typing import Protocol

from memd.errors import MemdError
from memd.providers.provider import ProviderLimits
from memd.providers.remote.request import HttpAnswer, HttpRequest, TextRole


class Dialect(Protocol):
    """One provider's way of putting a request, and of answering; pure."""

    @property
    def provider(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def model(self) -> str:
        """As requests name it."""
        ...

    @property
    def shape(self) -> tuple[str, ...]:
        """Whatever else than the model and the endpoint decides about a vector: dimensions, prefixes, input types."""
        ...

    @property
    def dimensions(self) -> int | None:
        """How long vectors are, where that is known without asking."""
        ...

    @property
    def limits(self) -> ProviderLimits:
        """What one request may hold."""
        ...

    @property
    def input_tokens(self) -> int:
        """How many estimated tokens one text may have; a longer one is cut into pieces."""
        ...

    def embed(self, texts: Sequence[str], side: TextRole) -> HttpRequest:
        """The request for the vectors of some texts."""
        ...

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """The vectors of an answer with status 2xx, in the order of the texts.

        Raises:
            BadReply: it does not hold one vector a text.
        """
        ...

    def failure(self, answer: HttpAnswer, key: str | None, texts: Sequence[str] = ()) -> MemdError:
        """What an answer with another status means: one of the errors of memd.providers.remote.request.

        Args:
            answer: The whole answer.
            key: What the message must not tell.
            texts: What was sent, and whatever else must not be quoted.
        """
        ...
