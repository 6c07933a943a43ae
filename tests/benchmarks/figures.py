"""Samples as figures that can be compared, and figures as a table."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: smaller is better."""

    name: str
    unit: str  # ms | s | MB
    memd: float  # the median
    p95: float | None = None
    # The median of the same work done by the baseline; None: it has nothing like it.
    baseline: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """What memd takes as a share of what the baseline takes; below 1 memd takes less."""
        return self.memd / self.baseline if self.baseline else None


class Samples(list[float]):
    """Seconds, taken one by one."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time that the block takes."""
        began = time.perf_counter()
        yield
        self.append(time.perf_counter() - began)

    @property
    def median(self) -> float:
        """The one in the middle, in seconds."""
        return statistics.median(self)

    def percentile(self, share: float) -> float:
        """The smallest sample that so many of all do not exceed (nearest rank), in seconds."""
        return sorted(self)[max(0, math.ceil(share * len(self)) - 1)]


def repeated(work: Callable[[], object], times: int) -> Samples:
    """How long some work takes, each time."""
    samples = Samples()
    for _ in range(times):
        with samples.timed():
            work()
    return samples


def milliseconds(name: str, memd: Samples, baseline: Samples | None = None, note: str = "") -> Figure:
    """A figure of many short samples."""
    return Figure(
        name=name,
        unit="ms",
        memd=1000 * memd.median,
        p95=1000 * memd.percentile(0.95),
        baseline=None if baseline is None else 1000 * baseline.median,
        note=note,
    )


_COLUMNS = ("measurement", "memd", "p95", "baseline", "memd/baseline", "")


def table(figures: Sequence[Figure]) -> str:
    """Figures as lines of text: medians, and how they compare."""
    rows = [_COLUMNS, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS) - 1)]
    return "\n".join(
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)),
                row[-1],
            ]
        ).rstrip()
        for row in rows
    )


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        _amount(figure.memd, figure.unit),
        _amount(figure.p95, figure.unit),
        _amount(figure.baseline, figure.unit),
        "-" if figure.ratio is None else f"{figure.ratio:.2g}",
        figure.note,
    )


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
