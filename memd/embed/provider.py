"""What the rest of memd knows of an embedding provider, and the ways one can fail."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray

from memd.errors import MemdError, TransientError

log = structlog.get_logger()

Vectors = NDArray[np.float32]  # shape (n, dimensions), each row of length 1
Vector = NDArray[np.float32]  # shape (dimensions,), of length 1
Share = TypeVar("Share", float, NDArray[Any])


class Calibration(msgspec.Struct, frozen=True):
    """How a model's cosines map to 0..1: unrelated text near 0, the closest text near 1. Monotone, piecewise linear.

    Cosines of a multilingual model also tell which languages met: two Chinese texts that have nothing to do with each other
    are nearer than two English ones, and those nearer than a Chinese and an English one. The two further ranges take that
    out.
    """

    low: float = 0.0
    high: float = 1.0
    cjk: tuple[float, float] | None = None  # low and high where both are CJK text; None: as any
    across: tuple[float, float] | None = None  # where one of the two is

    def __call__(self, cosine: float) -> float:
        """The calibrated cosine, of one that level gave: 0 at or below low, 1 at or above high."""
        return min(1.0, max(0.0, (cosine - self.low) / (self.high - self.low)))

    def level(self, cosine: Share, question_cjk: float, text_cjk: Share) -> Share:
        """A cosine as if both texts were written in no CJK script, so that it may be compared whatever languages met.

        Between the languages the range moves in straight lines. A text of which half is in a language is as near to
        questions in it as one that is wholly so; the same holds for questions in a CJK script.

        Args:
            cosine: As the vectors give it; of one text, or of many.
            question_cjk: The share of the question that is CJK, 0..1.
            text_cjk: The same of the text, or of each of the texts.
        """
        if self.cjk is None and self.across is None:
            return cosine
        base = (self.low, self.high)
        across, cjk = self.across or base, self.cjk or base
        question = min(1.0, 2 * question_cjk)
        same_cjk = question * np.minimum(1.0, 2 * text_cjk)
        same_other = (1 - question) * np.minimum(1.0, 2 * (1 - text_cjk))
        low, high = (
            a + same_cjk * (c - a) + same_other * (b - a) for a, b, c in zip(across, base, cjk, strict=True)
        )
        levelled: Share = self.low + (cosine - low) * (self.high - self.low) / (high - low)
        return levelled


class Identity(msgspec.Struct, frozen=True):
    """What makes two vectors comparable: vectors of different identities never meet."""

    provider: str  # local | openai | ...
    model: str
    key: str  # hash of whatever else shapes the vector: endpoint, dimensions, prefixes
    dimensions: int


def space_of(identity: Identity) -> tuple[str, str, str]:
    """Where the vectors of a model belong: only within one such space may they be compared."""
    return identity.provider, identity.model, identity.key


class Limits(msgspec.Struct, frozen=True):
    """What a provider takes in one call of embed_passages, and how many calls at once."""

    tokens: int  # estimated, of all texts of a call
    texts: int
    concurrency: int  # calls


class EmbedUnavailable(TransientError):
    """The provider cannot answer now: a timeout, a dead worker, a server error."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s  # what the provider asked for, if it said


class EmbedTerminal(MemdError):
    """No request will succeed until the key, the account or the configuration changes: it is not tried again."""


class EmbedRejected(MemdError):
    """The provider will never embed this text; the others of the request were not tried."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index  # of the text in the request


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
    def limits(self) -> Limits:
        """What one call of embed_passages should carry at most, and how many there may be at once.

        It may change: a server that takes less than its provider promises is noticed.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents.

        Raises:
            EmbedUnavailable: try again later.
            EmbedTerminal: do not.
            EmbedRejected: one text can never be embedded.
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
