"""How long an index takes from nothing."""

from collections.abc import Iterator

from tests.benchmarks.figures import Figure
from tests.benchmarks.stage import Stage


def measure(stage: Stage) -> Iterator[Figure]:
    """Until text is searchable, and until all vectors are there; of memd with the start of its process."""
    files, chunks, took = stage.corpus.files, stage.corpus.chunks, stage.took
    for name, seconds in (("text is searchable", took.text), ("vectors are complete", took.vectors)):
        yield Figure(
            name=f"index from nothing until {name}",
            unit="s",
            memd=seconds,
            baseline=took.baseline,
            note=f"{files / seconds:.0f} files/s, {chunks / seconds:.0f} chunks/s",
        )
