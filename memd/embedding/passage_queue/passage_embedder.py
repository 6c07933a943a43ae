"""Sends passage requests to one provider, and measures the throughput."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from memd.domain_types import TextHash
from memd.embedding.provider_health import ProviderHealth
from memd.providers.provider import (
    EmbedRejected,
    EmbedTerminal,
    EmbedUnavailable,
    Provider,
    Vector,
    Vectors,
    failures_of,
)

MEMORY_S = 30.0  # seconds after which a measurement has decayed to 1/e


class Throughput:
    """The rate of embedded texts over the time in which requests were in flight."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._since = 0.0  # time of the last answer, or of the request that ended an idle time
        self._texts = 0.0
        self._seconds = 0.0

    @property
    def per_s(self) -> float | None:
        """Recent texts per second; None: nothing was answered yet."""
        return self._texts / self._seconds if self._seconds > 0 else None

    def asked(self, now: float) -> None:
        """Record that a request was sent."""
        if not self._in_flight:
            self._since = now
        self._in_flight += 1

    def answered(self, texts: int, now: float) -> None:
        """Record that a request ended with this number of embedded texts; 0 if it failed."""
        self._in_flight -= 1
        passed_s = max(1e-6, now - self._since)
        kept = math.exp(-passed_s / MEMORY_S)
        # A request decays by its age from its beginning to its end, so that one that hung for long is forgotten as fast as any
        # other.
        counted_s = MEMORY_S * (1 - kept)
        self._texts = kept * self._texts + texts * counted_s / passed_s
        self._seconds = kept * self._seconds + counted_s
        self._since = now


class PartialResult(msgspec.Struct, frozen=True):
    """The outcome of a request that did not embed all texts."""

    vectors: Mapping[TextHash, bytes]
    refused: Mapping[TextHash, str] = {}  # by hash: why a text will never be embedded
    has_failed: bool = False  # the remaining texts failed; otherwise they were not tried


Outcome = dict[TextHash, bytes] | PartialResult | None
"""The outcome of a request: a vector for each text, for some of them, or a failure."""


class PassageEmbedder:
    """Sends texts to a provider, and reports the end of each request to its health."""

    def __init__(self, provider: Provider, health: ProviderHealth) -> None:
        self.provider = provider
        self.rate = Throughput()
        self.answers = 0  # answered requests
        self._health = health

    async def ask(self, texts: Mapping[TextHash, str], *, probing: bool = False) -> Outcome:
        """Send texts in one request, and return the outcome.

        Args:
            texts: Texts by hash that fit into one request.
            probing: Whether the last request failed. The throughput of the single text is not recorded then.
        """
        began, hashes = self._health.clock(), list(texts)
        rate = Throughput() if probing else self.rate
        rate.asked(began)
        outcome: Outcome = None
        try:
            with failures_of(self.provider.identity.provider):
                vectors = _checked(await self.provider.embed_passages(list(texts.values())), len(texts))
            outcome = {text_hash: _stored(row) for text_hash, row in zip(hashes, vectors, strict=True)}
        except EmbedRejected as refusal:
            refused = {hashes[place]: reason for place, reason in refusal.refused.items()}
            outcome = PartialResult(_by_hash(hashes, refusal.vectors), refused)
        except (EmbedUnavailable, EmbedTerminal) as failure:
            outcome = (
                PartialResult(_by_hash(hashes, failure.vectors), has_failed=True) if failure.vectors else None
            )
            self._health.passages_failed(failure, began)
            return outcome
        finally:
            rate.answered(embedded(outcome), self._health.clock())
        self.answers += 1
        self._health.passages_answered(began)
        return outcome


def _checked(vectors: Vectors, count: int) -> Vectors:
    """Return the vectors if there is one per text.

    Raises:
        EmbedUnavailable: their number differs.
    """
    if len(vectors) != count:
        raise EmbedUnavailable(f"{count} texts were sent and {len(vectors)} vectors came back")
    return vectors


def embedded(outcome: Outcome) -> int:
    """Return the number of embedded texts."""
    return len(outcome.vectors if isinstance(outcome, PartialResult) else outcome or ())


def _by_hash(hashes: Sequence[TextHash], vectors: Mapping[int, Vector]) -> dict[TextHash, bytes]:
    return {hashes[place]: _stored(row) for place, row in vectors.items()}


def _stored(row: Vector) -> bytes:
    return np.ascontiguousarray(row, "<f4").tobytes()
