"""One embedding provider as whoever asks it knows it: how it stands, and how fast it answers."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from random import Random

import msgspec
import numpy as np
import structlog

from memd.embedding.queue.states import BackingOff, Provided, Stopped, Working, failed, failures_after
from memd.embedding.queue.throughput import Throughput
from memd.model import TextHash
from memd.providers.provider import EmbedRejected, EmbedTerminal, EmbedUnavailable, Provider, Vector, Vectors
from memd.runtime.backoff import delay_s
from memd.runtime.changed import ChangeNotifier

log = structlog.get_logger()


class PartialResult(msgspec.Struct, frozen=True):
    """What came of a request of which not all texts were embedded."""

    vectors: Mapping[TextHash, bytes]
    refused: Mapping[TextHash, str] = {}  # with the reason: they will never be embedded
    has_failed: bool = False  # the others had no answer; else they were not tried


Outcome = dict[TextHash, bytes] | PartialResult | None
"""What came of a request: a vector for each text, not all of them, or no answer."""


class ProviderHealth:
    """Asks a provider; one that does not answer is to be left alone for longer and longer, until it does."""

    def __init__(
        self,
        provider: Provider,
        moves: ChangeNotifier,
        rng: Random,
        clock: Callable[[], float],
        first_wait_s: float,
    ) -> None:
        """Nothing was asked yet.

        Args:
            provider: Whom to ask.
            moves: Told whenever it stands otherwise.
            rng: Source of the jitter of a backoff.
            clock: Seconds, monotonic.
            first_wait_s: The full wait after the first failure; it doubles from there.
        """
        self.provider = provider
        self.state: Provided = Working()
        self.rate = Throughput()
        self.answers = 0  # requests that were answered
        self._moves = moves
        self._rng = rng
        self._clock = clock
        self._first_wait_s = first_wait_s

    @property
    def trouble(self) -> str | None:
        """Why it embeds nothing just now, for anybody."""
        return None if isinstance(self.state, Working) else self.state.reason

    async def changed(self, seen: Provided) -> Provided:
        """Wait until it stands otherwise than it did; how it stands then."""
        while self.state == seen:
            await self._moves.next()
        return self.state

    async def due(self) -> None:
        """Wait until it may be asked again."""
        while isinstance(self.state, BackingOff) and (left_s := self.state.until - self._clock()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._moves.next()

    def hurry(self) -> None:
        """It may be asked once now, though it is backed off: what it failed at is not what is asked for next."""
        if isinstance(self.state, BackingOff):
            self._enter(msgspec.structs.replace(self.state, until=self._clock()))

    def ask_again(self) -> None:
        """It may be asked again now, whatever was."""
        self._enter(Working())

    async def ask(self, texts: Mapping[TextHash, str], *, probing: bool = False) -> Outcome:
        """What comes of some texts.

        Args:
            texts: As many as go into one request.
            probing: Whether it did not answer last time. One text alone tells nothing then of how fast others will come.
        """
        began, hashes = self._clock(), list(texts)
        rate = Throughput() if probing else self.rate
        rate.asked(began)
        outcome: Outcome = None
        try:
            vectors = _checked(await self.provider.embed_passages(list(texts.values())), len(texts))
            outcome = {text_hash: _stored(row) for text_hash, row in zip(hashes, vectors, strict=True)}
        except EmbedRejected as refusal:
            refused = {hashes[place]: reason for place, reason in refusal.refused.items()}
            outcome = PartialResult(_by_hash(hashes, refusal.vectors), refused)
        except EmbedUnavailable as failure:
            outcome = (
                PartialResult(_by_hash(hashes, failure.vectors), has_failed=True) if failure.vectors else None
            )
            self._failed(began, failure)
            return outcome
        except EmbedTerminal as refusal:
            log.error("embed.stopped", provider=self.provider.identity.provider, reason=str(refusal))
            outcome = (
                PartialResult(_by_hash(hashes, refusal.vectors), has_failed=True) if refusal.vectors else None
            )
            self._enter(Stopped(self._clock(), str(refusal)))
            return outcome
        finally:
            rate.answered(embedded(outcome), self._clock())
        self._answered(began)
        return outcome

    def _answered(self, began: float) -> None:
        self.answers += 1
        # An answer to what was asked before the last failure is no sign that the provider is well again.
        if isinstance(self.state, BackingOff) and began >= self.state.at:
            self._enter(Working())

    def _failed(self, began: float, failure: EmbedUnavailable) -> None:
        wait_s = delay_s(failures_after(self.state), self._rng, first_s=self._first_wait_s)
        state = failed(
            self.state,
            str(failure),
            began=began,
            now=self._clock(),
            wait_s=wait_s,
            retry_after_s=failure.retry_after_s,
        )
        if isinstance(state, BackingOff):
            log.warning(
                "embed.retry_scheduled",
                provider=self.provider.identity.provider,
                reason=str(failure),
                wait_s=round(state.until - self._clock(), 1),
            )
        self._enter(state)

    def _enter(self, state: Provided) -> None:
        self.state = state
        self._moves.notify()


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
