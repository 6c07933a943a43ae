"""Measures how what memd costs grows with the memory, and draws it.

    python -m tests.benchmarks.growth [--chunks N ...] [--large] [--write] [--json FILE]

Of each size one daemon is measured on notes of its own, made with the hashing embedder, so that no model is part of it. A
search is asked over the socket, in turn with one float32 product of as many vectors on one thread of this process: on a
machine that does other work compare the CPU and its ratios, not the times.
"""

import argparse
import math
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from memd_client import Client
from tests.benchmarks import notes
from tests.benchmarks.figures import Samples
from tests.benchmarks.idle import spent_by
from tests.benchmarks.memory import anonymous_bytes, resident_bytes
from tests.benchmarks.searching import at_rest
from tests.daemon.process import ROOT, Daemon
from tests.wait import until

SIZES, LARGE = (200, 2_000, 20_000), (100_000, 270_000)
DIMENSIONS = 384
CLIENTS = 8
WARMING, ASKED, EACH = 20, 200, 30  # natural questions: before the others, by one client, by each of several
EDITS = 9


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What one size costs."""

    chunks: int
    text_s: float  # from nothing until all text is searchable
    complete_s: float  # and until all vectors are there
    text_cpu_s: float  # CPU of the daemon until then, its start included
    complete_cpu_s: float
    search_p50_ms: float
    search_p95_ms: float
    search_cpu_ms: float  # of the daemon, a search
    product_ms: float  # CPU of a float32 product of as many vectors
    answers_s: float  # to several clients at once
    edit_ms: float  # an edited note is found by who searches at once
    edit_vector_ms: float  # and has its vectors
    first_answer_ms: float  # of a daemon that is started on the index
    first_answer_cpu_ms: float
    resident_mb: float
    anonymous_mb: float  # of these; the rest are pages of programs
    disk_times_text: float  # all that memd keeps

    @property
    def ratio(self) -> float:
        """A search beside the product, in CPU."""
        return self.search_cpu_ms / self.product_ms


ROWS: tuple[tuple[str, Callable[[Cost], str]], ...] = (
    ("search, p50 / p95, ms", lambda one: f"{one.search_p50_ms:.1f} / {one.search_p95_ms:.1f}"),
    ("search, CPU of the daemon, ms", lambda one: f"{one.search_cpu_ms:.1f}"),
    ("float32 product of as many vectors, CPU, ms", lambda one: f"{one.product_ms:.2f}"),
    ("search / product, CPU", lambda one: f"{one.ratio:.1f}"),
    (f"{CLIENTS} clients at once, answers/s", lambda one: f"{one.answers_s:.0f}"),
    ("from nothing to text / all vectors, s", lambda one: f"{one.text_s:.1f} / {one.complete_s:.1f}"),
    (
        "the same, CPU of the daemon (the embedder's included), s",
        lambda one: f"{one.text_cpu_s:.1f} / {one.complete_cpu_s:.1f}",
    ),
    (
        "start of the daemon to its first answer / CPU, ms",
        lambda one: f"{one.first_answer_ms:.0f} / {one.first_answer_cpu_ms:.0f}",
    ),
    (
        "an edited note: found / has its vectors, ms",
        lambda one: f"{one.edit_ms:.0f} / {one.edit_vector_ms:.0f}",
    ),
    ("resident / of these anonymous, MB", lambda one: f"{one.resident_mb:.0f} / {one.anonymous_mb:.0f}"),
    ("state on disk / text", lambda one: f"{one.disk_times_text:.1f}"),
)


def measured(home: Path, chunks: int) -> Cost:
    """The cost of one size, in an empty directory."""
    daemon = Daemon(home, forked=False)
    # Modules are compiled once, as where memd is installed, also where the environment says that nothing is kept of it.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(home / "compiled")}
    corpus = notes.generate(daemon.workspace, chunks=chunks)
    text_bytes = sum(file.stat().st_size for file in daemon.workspace.rglob("*.md"))
    began = time.perf_counter()
    with daemon.start(environ=compiled), daemon.client(timeout=None) as client:
        client.sync(vectors=False)
        text_s = time.perf_counter() - began
        text_cpu_s = spent_by(daemon.process.pid).cpu_s
        report = client.sync()
        assert report.vectors == "complete", report
        complete_s = time.perf_counter() - began
        complete_cpu_s = spent_by(daemon.process.pid).cpu_s
    disk = sum(file.stat().st_size for file in daemon.state.rglob("*") if file.is_file())
    asked = iter(notes.natural_questions(WARMING + ASKED + CLIENTS * EACH + 1))
    began = time.perf_counter()
    with daemon.start(environ=compiled), daemon.client(timeout=None) as client:
        client.search(next(asked))
        first_answer_s = time.perf_counter() - began
        first_answer_cpu_s = spent_by(daemon.process.pid).cpu_s
        for _ in range(WARMING):
            client.search(next(asked))
        at_rest(daemon.process.pid)
        search, product, cpu_ms = _searches(
            daemon, client, [next(asked) for _ in range(ASKED)], corpus.chunks
        )
        answers_s = _at_once(daemon, list(asked))
        found, embedded = _edits(daemon, client)
        return Cost(
            chunks=corpus.chunks,
            text_s=text_s,
            complete_s=complete_s,
            text_cpu_s=text_cpu_s,
            complete_cpu_s=complete_cpu_s,
            search_p50_ms=1000 * search.median,
            search_p95_ms=1000 * search.percentile(0.95),
            search_cpu_ms=cpu_ms,
            product_ms=1000 * product.median,
            answers_s=answers_s,
            edit_ms=1000 * found.median,
            edit_vector_ms=1000 * embedded.median,
            first_answer_ms=1000 * first_answer_s,
            first_answer_cpu_ms=1000 * first_answer_cpu_s,
            resident_mb=resident_bytes(daemon.process.pid) / 1e6,
            anonymous_mb=(anonymous_bytes(daemon.process.pid) or math.nan) / 1e6,
            disk_times_text=disk / text_bytes,
        )


def _searches(
    daemon: Daemon, client: Client, asked: Sequence[str], chunks: int
) -> tuple[Samples, Samples, float]:
    """How long searches take, the CPU of products in turn with them, and that of a search in milliseconds."""
    vectors = np.random.default_rng(1).standard_normal((chunks, DIMENSIONS), np.float32)
    search, product = Samples(), Samples()
    before = spent_by(daemon.process.pid).cpu_s
    for text in asked:
        with search.timed():
            client.search(text)
        began = time.thread_time()
        np.vecdot(vectors, vectors[0])
        product.append(time.thread_time() - began)
    return search, product, 1000 * (spent_by(daemon.process.pid).cpu_s - before) / len(asked)


def _at_once(daemon: Daemon, asked: Sequence[str]) -> float:
    """Answers a second, to clients that each ask their next question as soon as they have an answer."""

    def ask(texts: Sequence[str]) -> None:
        with daemon.client() as client:
            for text in texts:
                client.search(text)

    threads = [threading.Thread(target=ask, args=(asked[n::CLIENTS],)) for n in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(asked) / (time.perf_counter() - began)


def _edits(daemon: Daemon, client: Client) -> tuple[Samples, Samples]:
    """How long it takes until an edited line is found, and until its vectors are there."""
    found, embedded = Samples(), Samples()
    lines = [f"Line {number} of a note about the weather of day {number}." for number in range(40)]
    for number in range(EDITS + 1):
        lines[20] = f"The word of the moment is momentword{number}."
        daemon.write("memory/edited.md", "\n\n".join(lines) + "\n")
        with embedded.timed():
            with found.timed():
                until(lambda number=number: _finds(client, f"momentword{number}"), 60)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            assert client.sync().vectors == "complete"
    return Samples(found[1:]), Samples(embedded[1:])


def _finds(client: Client, word: str) -> bool:
    return any(word in hit.snippet for hit in client.search(word).results)


def table(costs: Sequence[Cost]) -> str:
    """The costs as a table in Markdown."""
    head = ["", *(f"{one.chunks:,}" for one in costs)]
    lines = [head, ["---"] * len(head), *([name, *map(show, costs)] for name, show in ROWS)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PAGE, DRAWING = ROOT / "memd/docs/development.md", ROOT / "tests/benchmarks/growth.svg"
_TABLE = re.compile(r"^_Measured [^\n]*_\n\n(?:\|[^\n]*\n)+", re.MULTILINE)


def written(page: str, costs: Sequence[Cost], circumstances: str) -> str:
    """The page about benchmarks with these costs in the place of those that it has.

    Raises:
        ValueError: it has none.
    """
    found = _TABLE.search(page)
    if found is None:
        raise ValueError("the page has no table of costs")
    return f"{page[: found.start()]}_{circumstances}_\n\n{table(costs)}\n{page[found.end() :]}"


def _circumstances() -> str:
    """On what, and beside how much else, it was measured."""
    busy = os.getloadavg()[2]
    return f"Measured on {os.cpu_count()} processors; in the last 15 minutes {busy:.1f} programs ran or waited at a time."


# --- the drawing

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 420, 60, 190, 20, 50
CURVES: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
    ("search p50, ms", "#1f5fa8", lambda one: one.search_p50_ms),
    ("search p95, ms", "#7fb0e0", lambda one: one.search_p95_ms),
    ("search, CPU, ms", "#2b8a4b", lambda one: one.search_cpu_ms),
    ("float32 product, CPU, ms", "#888888", lambda one: one.product_ms),
    ("edit found, ms", "#c2571a", lambda one: one.edit_ms),
    ("resident, MB", "#8a4bb0", lambda one: one.resident_mb),
)


def drawing(costs: Sequence[Cost]) -> str:
    """The costs against the number of chunks, both logarithmic, as SVG."""
    sizes = [one.chunks for one in costs]
    values = [show(one) for one in costs for _, _, show in CURVES]
    across = _Axis(min(sizes), max(sizes), _LEFT, _WIDTH - _RIGHT)
    up = _Axis(min(values), max(values), _HEIGHT - _BOTTOM, _TOP)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for power in range(-3, 6):
        if up.least <= 10**power <= up.most:
            y = up.at(10**power)
            drawn += [
                f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>',
                f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>',
            ]
    for size in sizes:
        x = across.at(size)
        drawn += [
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#eeeeee"/>',
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{size:,}</text>',
        ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    drawn.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">chunks</text>')
    labels: list[float] = []
    for name, colour, show in sorted(CURVES, key=lambda curve: -curve[2](costs[-1])):
        points = [(across.at(one.chunks), up.at(show(one))) for one in costs]
        drawn.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
            + " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            + '"/>'
        )
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        labels.append(max([points[-1][1] + 4, *(one + 14 for one in labels[-1:])]))
        drawn.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{labels[-1]:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*drawn, "</svg>", ""])


class _Axis:
    """Places of numbers on a logarithmic axis."""

    def __init__(self, least: float, most: float, begin: float, end: float) -> None:
        self.least, self.most = 0.8 * max(least, 1e-3), 1.25 * most
        self._begin, self._end = begin, end

    def at(self, number: float) -> float:
        whole = np.log(self.most / self.least)
        share = np.log(max(number, self.least) / self.least) / whole
        return float(self._begin + (self._end - self._begin) * share)


def main(arguments: Sequence[str]) -> None:
    """Measure each size, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.growth", description="Measure how costs grow with the memory."
    )
    parser.add_argument("--chunks", type=int, nargs="+", metavar="N", help="sizes of the memory")
    parser.add_argument(
        "--large", action="store_true", help=f"also {LARGE[0]:,} and {LARGE[1]:,} chunks: half an hour"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"put the table into {PAGE.name}, and the drawing beside this file",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    chosen = parser.parse_args(arguments)
    sizes = chosen.chunks or (SIZES + LARGE if chosen.large else SIZES)
    costs: list[Cost] = []
    for chunks in sizes:
        with tempfile.TemporaryDirectory(prefix="memd-") as home:
            costs.append(measured(Path(home), chunks))
        sys.stdout.write(f"\n{table(costs)}\n")
        sys.stdout.flush()
        if chosen.write:
            page = PAGE.read_text("utf-8")
            PAGE.write_text(written(page, costs, _circumstances()), encoding="utf-8")
            DRAWING.write_text(drawing(costs), encoding="utf-8")
        if chosen.json is not None:
            chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(costs)) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
