"""Candidates written one by one, and what became of them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from memd.domain_types import ChunkId, Kind
from memd.providers.provider import Calibration
from memd.search.fuse_scores import Candidates, Fused, FusionWeights, Scored, fuse


class Row(msgspec.Struct, frozen=True):
    """One candidate."""

    id: ChunkId
    path: str
    start_line: int
    r: float | None
    cosine: float | None
    share: float = 0.0
    part: float | None = None
    foreign: float = 0.0
    closest: tuple[int, int] | None = None
    within: float = 0.0
    expanded: float = 0.0
    alternatives: float = 0.0


def candidates(rows: Sequence[Row]) -> Candidates:
    """As a search has them."""

    def column(values: Iterable[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([np.nan if one is None else one for one in values], np.float64)

    return Candidates(
        ids=np.array([one.id for one in rows], np.int64),
        kinds=np.full(len(rows), int(Kind.NOTE), np.int8),
        times=np.zeros((len(rows), 2), np.int64),
        r=column(one.r for one in rows),
        cosine=column(one.cosine for one in rows),
        share=column(one.share for one in rows),
        within=column(one.within for one in rows),
        part=column(one.part for one in rows),
        foreign=column(one.foreign for one in rows),
        expanded=column(one.expanded for one in rows),
        alternatives=column(one.alternatives for one in rows),
        closest={n: one.closest for n, one in enumerate(rows) if one.closest is not None},
    )


class Ordered(msgspec.Struct, frozen=True):
    """Candidates with their evidence, and where they stand."""

    fused: Fused
    places: Mapping[ChunkId, Row]

    def ids(self, most: int | None = None) -> list[int]:
        """Of the best, at most so many."""
        rows = self.fused.order(lambda _: self.places, most)
        return [int(one) for one in self.fused.candidates.ids[rows]]

    def scored(self, least: float = 0.0) -> list[Scored]:
        """All that have a score, the best first."""
        rows = self.fused.order(lambda _: self.places, least=least)
        return self.fused.scored(rows, lambda _: self.places)


def ordered(
    rows: Iterable[Row], weights: FusionWeights, calibration: Calibration, usual: float = 0.0
) -> Ordered:
    """Fuse candidates."""
    given = list(rows)
    return Ordered(fuse(candidates(given), weights, calibration, usual), {one.id: one for one in given})
