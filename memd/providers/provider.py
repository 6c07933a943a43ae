"""The interface of an embedding provider, and the errors that one raises."""

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
"""The meaning from which on a text is worth reading, by itself: a relevance of .35 (memd.search.fuse_scores)."""


class Calibration(msgspec.Struct, frozen=True):
    """Maps a model's cosines to relevance: 0 for the usual cosine of unrelated texts, 1 for close ones; linear above 0."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def where(cls, low: float, readable: float) -> "Calibration":
        """Return the calibration that maps a given cosine to READABLE.

        Args:
            low: The cosine that counts as 0.
            readable: The cosine from which on a text is worth reading.
        """
        return cls(low, low + (readable - low) / READABLE)

    def __call__(self, cosine: float) -> float:
        """Return the relevance of a cosine: 0 at or below low, 1 at high, more above."""
        return max(0.0, (cosine - self.low) / (self.high - self.low))

    def of_all(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the relevance of several cosines, of any shape."""
        return np.maximum(0.0, (cosines - self.low) / (self.high - self.low))


class Identity(msgspec.Struct, frozen=True):
    """Identifies a space of vectors: only vectors of equal identities are comparable."""

    provider: str  # local | openai | ...
    model: str
    key: str  # hash of everything else that shapes the vectors: endpoint, dimensions, prefixes
    dimensions: int


def space_of(identity: Identity) -> tuple[str, str, str]:
    """Return the key of the space of a model's vectors, within which they may be compared."""
    return identity.provider, identity.model, identity.key


class ProviderLimits(msgspec.Struct, frozen=True):
    """Limits of one call of embed_passages, and of concurrent calls."""

    tokens: int  # estimated tokens of all texts of a call
    texts: int
    concurrency: int  # concurrent calls


class EmbedUnavailable(TransientError):
    """The provider cannot answer now: a timeout, a dead worker, a server error."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s  # wait that the provider asked for, if any
        # Vectors of texts that were embedded before the failure, by index.
        self.vectors: Mapping[int, Vector] = {}


class EmbedTerminal(MemdError):
    """No request will succeed until the key, the account or the configuration changes, so none is retried."""

    vectors: Mapping[int, Vector] = MappingProxyType({})  # see EmbedUnavailable


class EmbedRejected(MemdError):
    """The provider will never embed some of the texts.

    Args:
        index: Index of the first of them in the request.
        reason: Why it was refused.
        refused: All of them by index, with reasons; None: only that one.
        vectors: Vectors of other texts, by index; texts in neither were not tried.
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
    """Convert unexpected exceptions within the block to failures of a provider, so that only its users are affected.

    Args:
        provider: The provider's name, for the message.

    Raises:
        EmbedUnavailable: in place of an exception that is no MemdError. Its traceback is logged, without its message.
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
    """A provider with a worker process."""

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker; None if it is not running."""
        ...


class Provider(Protocol):
    """Embeds texts. One instance serves all agents with the same settings."""

    @property
    def identity(self) -> Identity:
        """The space of its vectors."""
        ...

    @property
    def calibration(self) -> Calibration:
        """The calibration of its model's cosines."""
        ...

    @property
    def limits(self) -> ProviderLimits:
        """The largest call of embed_passages, and how many may run concurrently.

        The limits may change when a server turns out to accept less than its provider promises.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents.

        Raises:
            EmbedUnavailable: try again later.
            EmbedTerminal: do not try again.
            EmbedRejected: some texts can never be embedded.

        Each error contains the vectors that were returned before it: they have been paid for.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """Embed a question.

        Raises:
            EmbedUnavailable: the search must answer without it.
        """
        ...

    async def close(self) -> None:
        """Stop the worker, connections and threads."""
        ...


@runtime_checkable
class EmbedsTogether(Protocol):
    """A provider that can embed several questions in one request."""

    async def embed_queries(self, texts: Sequence[str]) -> "Sequence[Vector | EmbedUnavailable]":
        """Return for each question its vector, or why it has none.

        Raises:
            EmbedUnavailable: no question has a vector.
        """
        ...
