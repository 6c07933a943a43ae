"""Requests and replies as values, errors of requests, and the interface of a provider's API."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from memd.errors import MemdError
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, ProviderLimits


class TextRole(StrEnum):
    """Whether a text is a question or a document; many models embed the two differently."""

    QUERY = "query"
    DOCUMENT = "document"


class HttpRequest(msgspec.Struct, frozen=True):
    """One HTTP request."""

    path: str  # below the account's base URL or, with a leading slash, below the root of its server
    body: bytes = b""
    method: str = "POST"
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    more: Sequence[bytes] = ()  # pieces that follow the body, if it is large

    @property
    def size(self) -> int:
        """The number of bytes of the whole body."""
        return len(self.body) + sum(map(len, self.more))


class HttpAnswer(msgspec.Struct, frozen=True):
    """An HTTP answer of any status."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


class NoReply(EmbedUnavailable):
    """There was no answer: the connection failed or timed out."""


class RequestTimedOut(NoReply):
    """The request timed out."""


class RateLimited(EmbedUnavailable):
    """Too many requests; retry_after_s is the wait that the provider asked for, if any."""


class ServerFailed(EmbedUnavailable):
    """The provider failed internally."""


class BadReply(EmbedUnavailable):
    """The answer is invalid."""


class Refused(EmbedTerminal):
    """The provider refuses all such requests: the key, the quota, the model or the endpoint is wrong."""


class KeyRefused(Refused):
    """The key is refused."""


class RequestTooLarge(MemdError):
    """The request is too large; half of it may pass."""


class ContentRefused(MemdError):
    """The request was refused because of its content."""


class NotSupported(MemdError):
    """The provider does not support this endpoint, for this model or at all."""


class Dialect(Protocol):
    """The requests and replies of one provider's API; pure."""

    @property
    def provider(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def model(self) -> str:
        """The name of the model in requests."""
        ...

    @property
    def shape(self) -> tuple[str, ...]:
        """Everything but model and endpoint that shapes a vector: dimensions, prefixes, input types."""
        ...

    @property
    def dimensions(self) -> int | None:
        """The length of vectors if known without a request; None: unknown."""
        ...

    @property
    def limits(self) -> ProviderLimits:
        """The limits of one request."""
        ...

    @property
    def input_tokens(self) -> int:
        """The limit of one text in estimated tokens; longer texts are split."""
        ...

    def embed(self, texts: Sequence[str], role: TextRole) -> HttpRequest:
        """Return the request for the vectors of some texts."""
        ...

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """Parse the vectors of an answer with status 2xx, in the order of the texts.

        Raises:
            BadReply: it does not contain one vector per text.
        """
        ...
