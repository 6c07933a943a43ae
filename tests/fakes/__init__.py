"""Stand-ins for what is slow or far away, faithful at the boundary where they stand."""

import asyncio
import re
import zlib
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from memd.providers.provider import (
    Calibration,
    EmbedRejected,
    EmbedUnavailable,
    Identity,
    ProviderLimits,
    Vector,
    Vectors,
)

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_FEATURE = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


class HashingProvider:
    """Embeds by hashing words and pairs of CJK characters into signed buckets: fast, deterministic, without a model.

    The cosine of two texts grows with the words they share; texts without a common word are near 0. Source:
    Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
    """

    def __init__(self, *, dimensions: int = 384, delay_s: float = 0.0, rejects: Sequence[str] = ()) -> None:
        """Ready to be asked.

        Args:
            dimensions: Of the vectors.
            delay_s: How long each request for passages takes.
            rejects: A text that contains one of these is rejected.
        """
        self.delay_s = delay_s
        self.rejects = tuple(rejects)
        self.requests: list[list[str]] = []  # of passages, in order, failed ones included
        self.questions: list[str] = []
        self.closed = False
        self._dimensions = dimensions
        self._failing = 0
        self._buckets: dict[str, int] = {}  # twice the bucket of a feature, and 1 more if it adds to it

    def fail_next(self, n: int) -> None:
        """Let the next n requests, for passages or a question, end in EmbedUnavailable."""
        self._failing = n

    @property
    def identity(self) -> Identity:
        return Identity("hashing", "words-and-pairs", "1", self._dimensions)

    @property
    def calibration(self) -> Calibration:
        return Calibration(0.0, 1.0)

    @property
    def limits(self) -> ProviderLimits:
        return ProviderLimits(tokens=8000, texts=2000, concurrency=1)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.requests.append(list(texts))
        await asyncio.sleep(self.delay_s)
        self._fail_if_told()
        for index, text in enumerate(texts):
            if any(marker in text for marker in self.rejects):
                raise EmbedRejected(index, "this text is rejected by the test")
        return self.embed(texts)

    async def embed_query(self, text: str) -> Vector:
        self.questions.append(text)
        self._fail_if_told()
        row: Vector = self.embed([text])[0]
        return row

    async def close(self) -> None:
        self.closed = True

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors of some texts, shape (n, dimensions), at once."""
        features = [_features(text) for text in texts]
        sizes = [len(each) for each in features]
        every = list(chain.from_iterable(features))
        # The difference of two sets would go through all features that were ever seen.
        new = {feature for feature in every if feature not in self._buckets}
        self._buckets |= {feature: self._bucket(feature) for feature in new}
        found = np.fromiter(map(self._buckets.__getitem__, every), np.int64, len(every))
        cells = (found >> 1) + np.repeat(np.arange(len(texts)) * self._dimensions, sizes)
        sums = np.bincount(cells, 2.0 * (found & 1) - 1.0, minlength=len(texts) * self._dimensions)
        rows = sums.reshape(len(texts), self._dimensions).astype(np.float32)
        # A text without words, or whose words cancel out, still has a direction.
        rows[~rows.any(axis=1), 0] = 1.0
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def _bucket(self, feature: str) -> int:
        # crc32 and not hash(), which differs from process to process.
        code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
        return 2 * ((code >> 1) % self._dimensions) | code & 1

    def _fail_if_told(self) -> None:
        if self._failing:
            self._failing -= 1
            raise EmbedUnavailable("the test lets this request fail")


def _features(text: str) -> list[str]:
    features: list[str] = []
    for run in _FEATURE.findall(text.lower()):
        if "\u3040" <= run[0] <= "\ufaff" and len(run) > 1:
            features += map("".join, pairwise(run))
        else:
            features.append(run)
    return features
