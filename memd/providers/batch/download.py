"""Fetches what a job has brought."""

import contextlib
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import numpy as np

from memd.model import TextHash
from memd.providers.batch.client import BatchClient
from memd.providers.batch.dialect import BatchResult
from memd.providers.centring import BiasLine, centred_at
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, failures_of
from memd.providers.remote import parse_reply
from memd.providers.remote.request import BadReply
from memd.runtime.threads import beside

AT_ONCE = 256  # vectors in memory
SPARE_LINES = 1000  # beyond one a text; a file that has no end is not read to it

Keep = Callable[[Mapping[TextHash, bytes]], Awaitable[None]]


class VectorForm(msgspec.Struct, frozen=True):
    """How a job's vectors are kept: as the provider's plain requests would give them."""

    dimensions: int
    without: BiasLine | None  # what is taken out of each; None: nothing
    shares: Mapping[TextHash, float | None]  # how much of each text is CJK, 0..1; None: nobody knows


class JobResults:
    """The results of one job, as they come."""

    def __init__(
        self, asking: BatchClient, texts: int, missing: set[TextHash], form: VectorForm, keep: Keep
    ) -> None:
        """Nothing is fetched yet.

        Args:
            asking: Whom to ask.
            texts: How many are in the job, those with a vector too: its files have a line for each.
            missing: The texts of the job without a vector; what has been kept is taken out.
            form: Of the vectors.
            keep: Takes some vectors, float32 of length 1, and returns when they are safe.
        """
        self.reasons: Counter[str] = Counter()  # why texts failed
        self._asking = asking
        self._missing = missing
        self._form = form
        self._keep = keep
        self._most_lines = texts + SPARE_LINES

    async def fetch(self, file: str, *, since: float, is_paid_for: bool) -> None:
        """Keep all vectors of one file that can be trusted. One that breaks off is fetched again.

        Args:
            file: As the job named it.
            since: Unix time from which patience counts.
            is_paid_for: Whether vectors are in it: that it is not there is then not believed at once.

        Raises:
            EmbedUnavailable: it breaks off again and again, with nothing new in it.
            JobFailed: it could not be fetched for too long.
            TooMuch, Unacceptable, NotSupported: it is not there.
        """
        fruitless = 0
        while self._missing:
            before = len(self._missing)
            broken = await self._asking.persist(lambda: self._read(file), since=since, exists=is_paid_for)
            if broken is None:
                return
            fruitless = 0 if len(self._missing) < before else fruitless + 1
            if fruitless >= self._asking.retries.attempts:
                raise broken
            await self._asking.wait_after(fruitless + 1, broken)

    async def _read(self, file: str) -> EmbedUnavailable | None:
        """Keep what a file holds, some at a time; what is wrong with it, if it broke off or holds nothing.

        Raises:
            EmbedUnavailable, EmbedTerminal: not a line of it came.
            TooMuch, Unacceptable, NotSupported: it is not there.
        """
        some: dict[TextHash, Sequence[float]] = {}
        count = results = 0
        broken: EmbedUnavailable | None = None
        try:
            async with contextlib.aclosing(self._asking.lines(self._asking.dialect.download(file))) as lines:
                async for line in lines:
                    count += 1
                    results += self._take(line, some)
                    if len(some) >= AT_ONCE:
                        await self._hand_over(some)
                        some = {}
                    if count >= self._most_lines:
                        break
        except (EmbedUnavailable, EmbedTerminal) as failure:
            if not count or isinstance(failure, EmbedTerminal):
                raise
            broken = failure
        await self._hand_over(some)
        if broken is None and not results:
            # An error in the place of a file, whatever its status says.
            return BadReply(f"{self._asking.dialect.provider}: a file with results holds none")
        return broken

    def _take(self, line: bytes, some: dict[TextHash, Sequence[float]]) -> bool:
        """Put the vector of a line to the others, if it is one that is wanted; whether the line is a result at all.

        Of two for a text, the first counts.
        """
        try:
            with failures_of(self._asking.dialect.provider):
                result = self._asking.dialect.result(line)
            text_hash = _hash(result)
        except (EmbedUnavailable, ValueError):
            return False  # whatever text it was of stays missing
        if text_hash in self._missing and text_hash not in some:
            if result.vector is None:
                self.reasons[result.reason] += 1
            else:
                some[text_hash] = array("d", result.vector)  # a quarter of what a list takes
        return True

    async def _hand_over(self, some: Mapping[TextHash, Sequence[float]]) -> None:
        good = await beside(_sound, some, self._form)
        self.reasons["a vector that cannot be used"] += len(some) - len(good)
        if good:
            await self._keep(good)
            self._missing.difference_update(good)


def _hash(result: BatchResult) -> TextHash:
    """The hash of a line's text.

    Raises:
        ValueError: the line is not of ours.
    """
    return TextHash(bytes.fromhex(result.id))


def _sound(some: Mapping[TextHash, Sequence[float]], form: VectorForm) -> dict[TextHash, bytes]:
    """Those vectors that can be trusted, as the store keeps them."""
    good: dict[TextHash, bytes] = {}
    for text_hash, values in some.items():
        try:
            row = parse_reply.matrix([values], count=1, dimensions=form.dimensions)
        except BadReply:
            continue
        if form.without is not None:
            share = form.shares.get(text_hash)
            if share is None:
                continue  # it would stand among centred ones as it came: its text is asked for anew
            row = centred_at(row, [share], form.without)
        good[text_hash] = np.ascontiguousarray(row[0], "<f4").tobytes()
    return good
