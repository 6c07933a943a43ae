"""One request to a provider as a value, the ways it can fail, and what differs from one provider's API to another's."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from memd.errors import MemdError
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, ProviderLimits


class TextRole(StrEnum):
    """Which end of a search a text stands at; many models embed the two differently."""

    QUERY = "query"
    DOCUMENT = "document"


class HttpRequest(msgspec.Struct, frozen=True):
    """One HTTP request."""

    path: str  # below the account's base URL; one that begins with a slash: below the root of the same server
    body: bytes = b""
    method: str = "POST"
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    more: Sequence[bytes] = ()  # what follows the body, piece by piece; of a large one

    @property
    def size(self) -> int:
        """How many bytes are sent, beside the headers."""
        return len(self.body) + sum(map(len, self.more))


class HttpAnswer(msgspec.Struct, frozen=True):
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether its status is one of the successes."""
        return 200 <= self.status < 300


class NoReply(EmbedUnavailable):
    """No answer came: the connection failed, or it took too long."""


class RequestTimedOut(NoReply):
    """It took too long."""


class RateLimited(EmbedUnavailable):
    """Too many requests of late; retry_after_s says when again, if the provider said so."""


class ServerFailed(EmbedUnavailable):
    """The provider has trouble of its own."""


class BadReply(EmbedUnavailable):
    """An answer came, and it is not what was asked for."""


class Refused(EmbedTerminal):
    """The provider refuses every request like this one: the key, the quota, the model or the endpoint is wrong."""


class KeyRefused(Refused):
    """The key is not accepted: another one is needed."""


class RequestTooLarge(MemdError):
    """The request was refused for its size: half of it may pass."""


class ContentRefused(MemdError):
    """The request was refused for what is in it."""


class NotSupported(MemdError):
    """The provider does not have this endpoint, for this model or at all."""


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
