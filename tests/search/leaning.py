"""An embedder that puts each text where it says, for tests of searches."""

from collections.abc import Sequence

import numpy as np

from memd.domain_types import Kind
from memd.providers.provider import Calibration, Vector, Vectors
from tests.fakes import HashingProvider

KINDS = frozenset(Kind)


class Leaning(HashingProvider):
    """Puts each text where it says."""

    def __init__(self) -> None:
        super().__init__(dimensions=2)

    @property
    def calibration(self) -> Calibration:
        return Calibration(0.77, 0.90)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The first is at 0; a text that ends in a number is at so many thousandths of a radian."""
        angles = [int(text.rpartition(" ")[2]) / 1000 if text[-1].isdigit() else 0.0 for text in texts]
        return np.array([[np.cos(angle), np.sin(angle)] for angle in angles], np.float32)

    async def embed_query(self, text: str) -> Vector:
        row: Vector = self.embed([text])[0]
        return row
