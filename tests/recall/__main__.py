"""Does a search find what a question asks for, by kind of question.

python -m tests.recall                 # a table; starts memd with the bundled model on texts written for it
python -m tests.recall --mode keyword  # by words alone, or vector
python -m tests.recall --missed        # and the questions whose evidence is not read
python -m tests.recall --beside 20000  # among so many chunks of other notes, which take ten minutes and more to embed
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from memd_client import Client
from memd_client.messages import Hit
from tests.daemon.process import Daemon
from tests.recall.texts import Question, distractions, notes, questions, transcript

TOP = 6
Mode = Literal["hybrid", "keyword", "vector"]
Figures = dict[str, float]


def scores(hits: list[Hit], asked: Question) -> Figures:
    """The figures of one question, each 0 to 1."""
    if not asked.evidence:
        return {"weak or none": float(all(hit.weak for hit in hits))}
    place = next((n for n, hit in enumerate(hits, 1) if _has(hit, asked.evidence)), 0)
    figures = {f"hit@{most}": float(0 < place <= most) for most in (1, 3, TOP)}
    figures |= {"mrr": 1 / place if place else 0.0}
    figures |= {"not weak": float(not hits[place - 1].weak)} if place else {}
    if asked.not_first:
        outdated = next((n for n, hit in enumerate(hits, 1) if _has(hit, asked.not_first)), TOP + 1)
        figures["newest first"] = float(0 < place < outdated)
    if asked.once:
        figures["once"] = float(sum(_has(hit, asked.once) for hit in hits) == 1)
    return figures


def _has(hit: Hit, text: str) -> bool:
    return _plain(text) in _plain(hit.snippet)


def _plain(text: str) -> str:
    return "".join(text.split()).lower()


def measured(client: Client, mode: Mode = "hybrid") -> Iterator[tuple[Question, Figures]]:
    """Each question with its figures."""
    for asked in questions():
        found = client.search(
            asked.text,
            max_results=TOP,
            mode=mode,
            now=asked.now,
            tags=asked.tags,
            source="sessions" if asked.source == "sessions" else "memory",
        )
        yield asked, scores(found.results, asked)


def written(daemon: Daemon, beside: int = 0, provider: str = "local") -> None:
    """Write the texts into the workspace of a daemon, with so many others beside them, and its settings."""
    sessions = daemon.home / "talks"
    sessions.mkdir()
    (sessions / "recall.jsonl").write_text(transcript(), "utf-8")
    daemon.configure(
        f'provider = "{provider}"\nextra_paths = ["{daemon.workspace}/copies"]\nsources = ["memory", "sessions"]\n'
        f'[agents.main.sessions]\npaths = ["{sessions}"]'
    )
    for path, text in (notes() | distractions(beside)).items():
        daemon.write(path, text)


def table(rows: list[tuple[Question, Figures]]) -> Mapping[str, Figures]:
    """Means by kind of question, with how many there are."""
    kinds: dict[str, list[Figures]] = {}
    for asked, figures in rows:
        kinds.setdefault(asked.kind, []).append(figures)
    return {
        kind: {"questions": len(some)}
        | {
            name: statistics.fmean(one[name] for one in some if name in one)
            for name in dict.fromkeys(name for one in some for name in one)
        }
        for kind, some in kinds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=("hybrid", "keyword", "vector"), default="hybrid")
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--beside", type=int, default=0, metavar="CHUNKS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        daemon = Daemon(Path(scratch).resolve(), real_model=True)
        written(daemon, options.beside, "none" if options.mode == "keyword" else "local")
        with daemon, daemon.client(timeout=1800) as client:
            while client.sync().vectors != "complete" and options.mode != "keyword":
                pass
            rows = list(measured(client, options.mode))
    for kind, figures in table(rows).items():
        count = int(figures.pop("questions"))
        means = "  ".join(f"{name} {mean:.3f}" for name, mean in figures.items())
        sys.stdout.write(f"{kind:16} {count:4}  {means}\n")
    for asked, figures in rows if options.missed else ():
        if not figures.get(f"hit@{TOP}", 1.0) or not figures.get("weak or none", 1.0):
            sys.stdout.write(f"{asked.kind}: {asked.text}  [{asked.evidence}]\n")


if __name__ == "__main__":
    main()
