"""What the rest of memd knows of an embedding provider, and the ways one can fail."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray

from memd.errors import MemdError, TransientError

log = structlog.get_logger()

Vectors = NDArray[np.float32]  # shape (n, dimensions), each row of length 1
Vector = NDArray[np.float32]  # shape (dimensions,), of length 1

READABLE = 0.365
"""The meaning from which on a text is worth reading, by itself: a relevance of .35 (memd.search.fuse)."""


class Calibration(msgspec.Struct, frozen=True):
    """How a model's cosines map to meaning: 0 for what is usual between unrelated texts, 1 for close ones. Linear above 0."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def where(cls, low: float, readable: float) -> "Calibration":
        """The calibration by which a cosine has the meaning READABLE.

        Args:
            low: The cosine that means nothing.
            readable: The one from which on a text is worth reading.
        """
        return cls(low, low + (readable - low) / READABLE)

    def __call__(self, cosine: float) -> float:
        """What a cosine means: 0 at or below low, 1 at high, more above."""
        return max(0.0, (cosine - self.low) / (self.high - self.low))

    def of_all(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same of several."""
        return np.maximum(0.0, (cosines - self.low) / (self.high - self.low))


class Identity(msgspec.Struct, frozen=True):
    """What makes two vectors comparable: vectors of different identities never meet."""

    provider: str  # local | openai | ...
    model: str
    key: str  # hash of whatever else shapes the vector: endpoint, dimensions, prefixes
    dimensions: int


def space_of(identity: Identity) -> tuple[str, str, str]:
    """Where the vectors of a model belong: only within one such space may they be compared."""
    return identity.provider, identity.model, identity.key


class ProviderLimits(msgspec.Struct, frozen=True):
    """What a provider takes in one call of embed_passages, and how many calls at once."""

    tokens: int  # estimated, of all texts of a call
    texts: int
    concurrency: int  # calls


class EmbedUnavailable(TransientError):
    """The provider cannot answer now: a timeout, a dead worker, a server error."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s  # what the provider asked for, if it said
        self.vectors: Mapping[int, Vector] = {}  # of texts that had theirs before, by their places


class EmbedTerminal(MemdError):
    """No request will succeed until the key, the account or the configuration changes: it is not tried again."""

    vectors: Mapping[int, Vector] = MappingProxyType({})  # as of EmbedUnavailable


class EmbedRejected(MemdError):
    """The provider will never embed some texts.

    Args:
        index: The first of them, by its place in the request.
        reason: Why.
        refused: All of them with their reasons, by their places; None: that one.
        vectors: What the others were given, by their places; those without one were not tried.
    """

    def __init__(
        self,
        index: int,
        reason: str,
        *,
        refused: Mapping[int, str] | None = None,
        vectors: Mapping[int, Vector] = MappingProxyType({}),
    ) -> None:
        super().__init__(reason)
        self.index = index
        self.refused = {index: reason} if refused is None else refused
        self.vectors = vectors


@contextlib.contextmanager
def failures_of(provider: str) -> Iterator[None]:
    """Have any exception out of a provider that is no error of memd be a failure of that provider.

    Whatever a server sends, or a library makes of it, concerns those who asked it: the other agents go on.

    Args:
        provider: Its name, for the message.

    Raises:
        EmbedUnavailable: in the place of an exception that nobody foresaw. Its account is logged, without its words.
    """
    try:
        yield
    except MemdError:
        raise
    except Exception as failure:
        log.error("embed.unexpected_failure", provider=provider, exc_info=failure)
        raise EmbedUnavailable(
            f"{provider}: it failed in an unexpected way ({type(failure).__name__}); the log says where"
        ) from failure


@runtime_checkable
class HasWorker(Protocol):
    """A provider that has some of its work done by a process of its own."""

    @property
    def worker_pid(self) -> int | None:
        """That process, while there is one."""
        ...


class Provider(Protocol):
    """Texts to vectors. One instance serves all agents with the same settings."""

    @property
    def identity(self) -> Identity:
        """What its vectors may be compared with."""
        ...

    @property
    def calibration(self) -> Calibration:
        """The range of its model's cosines."""
        ...

    @property
    def limits(self) -> ProviderLimits:
        """What one call of embed_passages should carry at most, and how many there may be at once.

        It may change: a server that takes less than its provider promises is noticed.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents.

        Raises:
            EmbedUnavailable: try again later.
            EmbedTerminal: do not.
            EmbedRejected: some texts can never be embedded.

        Each of them holds the vectors that there are all the same: they have been paid for.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """Embed a question.

        Raises:
            EmbedUnavailable: answer without it.
        """
        ...

    async def close(self) -> None:
        """End worker, connections and threads."""
        ...


@runtime_checkable
class EmbedsTogether(Protocol):
    """A provider that embeds several questions in one request."""

    async def embed_queries(self, texts: Sequence[str]) -> "Sequence[Vector | EmbedUnavailable]":
        """For each question its vector, or why it has none.

        Raises:
            EmbedUnavailable: none has one.
        """
        ...
