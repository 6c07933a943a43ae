"""Requests with passages to one provider: their outcome, and how many texts get vectors in a second."""

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

MEMORY_S = 30.0  # what is longer past counts for less than a third


class Throughput:
    """Texts by the time that passed while anything was asked for; breaks do not count."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._since = 0.0  # of the clock: the last answer, or the request that ended a break
        self._texts = 0.0
        self._seconds = 0.0

    @property
    def per_s(self) -> float | None:
        """Texts in a second, of late; None: nothing was answered yet."""
        return self._texts / self._seconds if self._seconds > 0 else None

    def asked(self, now: float) -> None:
        """A request was sent."""
        if not self._in_flight:
            self._since = now
        self._in_flight += 1

    def answered(self, texts: int, now: float) -> None:
        """A request has ended; with 0 texts if it failed."""
        self._in_flight -= 1
        passed_s = max(1e-6, now - self._since)
        kept = math.exp(-passed_s / MEMORY_S)
        # What passed counts for less the longer ago it is, from its beginning to its end: however long one request
        # hung, it is forgotten as soon as any other.
        counted_s = MEMORY_S * (1 - kept)
        self._texts = kept * self._texts + texts * counted_s / passed_s
        self._seconds = kept * self._seconds + counted_s
        self._since = now


class PartialResult(msgspec.Struct, frozen=True):
    """What came of a request of which not all texts were embedded."""

    vectors: Mapping[TextHash, bytes]
    refused: Mapping[TextHash, str] = {}  # with the reason: they will never be embedded
    has_failed: bool = False  # the others had no answer; else they were not tried


Outcome = dict[TextHash, bytes] | PartialResult | None
"""What came of a request: a vector for each text, not all of them, or no answer."""


class PassageEmbedder:
    """Sends texts to a provider, and reports to its health how that ended."""

    def __init__(self, provider: Provider, health: ProviderHealth) -> None:
        self.provider = provider
        self.rate = Throughput()
        self.answers = 0  # requests that were answered
        self._health = health

    async def ask(self, texts: Mapping[TextHash, str], *, probing: bool = False) -> Outcome:
        """What comes of some texts.

        Args:
            texts: As many as go into one request.
            probing: Whether it did not answer last time. One text alone tells nothing then of how fast others will come.
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
    """The rows, if there is one a text.

    Raises:
        EmbedUnavailable: the provider gave another number of vectors than it was asked for.
    """
    if len(vectors) != count:
        raise EmbedUnavailable(f"{count} texts were sent and {len(vectors)} vectors came back")
    return vectors


def embedded(outcome: Outcome) -> int:
    """How many texts of a request have their vectors."""
    return len(outcome.vectors if isinstance(outcome, PartialResult) else outcome or ())


def _by_hash(hashes: Sequence[TextHash], vectors: Mapping[int, Vector]) -> dict[TextHash, bytes]:
    return {hashes[place]: _stored(row) for place, row in vectors.items()}


def _stored(row: Vector) -> bytes:
    return np.ascontiguousarray(row, "<f4").tobytes()
