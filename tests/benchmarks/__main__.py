"""Measures memd and, in the same run, the plain way of doing the same; see baseline.py for what that is.

    python -m tests.benchmarks [--chunks N ...] [--only NAME ...] [--json FILE]

The vectors come from a hashing embedder, so that what is measured is memd: the time of the bundled model is a line of
its own. Compare ratios, not times: these are of this machine, with whatever else it did meanwhile.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from tests.benchmarks import (
    editing,
    idle,
    indexing,
    memory,
    model,
    page,
    reading,
    redaction,
    remote,
    rescanning,
    searching,
    stage,
    starting,
)
from tests.benchmarks.figures import Figure, table

SIZES = (1_000, 20_000)

# In this order: what changes the notes or restarts the daemon comes last.
OF_A_STAGE: dict[str, Callable[[stage.Stage], Iterator[Figure]]] = {
    "index": indexing.measure,
    "search": searching.measure,
    "get": reading.measure,
    "start": starting.measure,
    "page": page.measure,
    "edit": editing.measure,
    "memory": memory.measure,
}
NAMES = (*OF_A_STAGE, "rescan", "model", "remote", "redaction", "idle")


def main(arguments: Sequence[str]) -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Measure memd against a baseline."
    )
    parser.add_argument(
        "--chunks", type=int, nargs="+", default=SIZES, metavar="N", help="sizes of the index"
    )
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    chosen = parser.parse_args(arguments)
    measured: dict[str, list[Figure]] = {}
    for title, figures in _measured(chosen.chunks, chosen.only):
        measured[title] = figures
        sys.stdout.write(f"\n{title}\n{table(figures)}\n")
        sys.stdout.flush()
    if chosen.json is not None:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")


def _measured(sizes: Sequence[int], names: Sequence[str]) -> Iterator[tuple[str, list[Figure]]]:
    of_a_stage = [measure for name, measure in OF_A_STAGE.items() if name in names]
    for chunks in sizes if of_a_stage else ():
        with tempfile.TemporaryDirectory(prefix="memd-") as home, stage.built(Path(home), chunks) as built:
            figures = [figure for measure in of_a_stage for figure in measure(built)]
            yield f"{built.corpus.chunks:,} chunks in {built.corpus.files:,} notes", figures
    apart: list[Figure] = []
    if "rescan" in names:
        with tempfile.TemporaryDirectory(prefix="memd-") as home:
            apart += rescanning.measure(Path(home))
    if "model" in names:
        apart += model.measure()
    if "remote" in names:
        apart += remote.measure()
    if "redaction" in names:
        apart += redaction.measure()
    if "idle" in names:
        with tempfile.TemporaryDirectory(prefix="memd-") as home:
            apart += idle.measure(Path(home))
    if apart:
        yield "whatever the size of the index", apart


if __name__ == "__main__":
    main(sys.argv[1:])
