"""Are notes found by questions in other words and in the other language: `python -m tests.recall.pairs`, a minute.

With `--mode keyword` by words alone.

480 notes, each with one that is near and does not answer, in a file each. Their four authors saw neither the ranking nor the
thesaurus nor any other measuring set; the model is not trained on them, but on other notes of these authors.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from memd_client import Client
from tests.daemon.process import Daemon
from tests.recall.__main__ import TOP
from tests.training.pairs import NotePair

FILE = Path(__file__).with_name("pairs.jsonl")
KINDS = ("other words", "other language", "some of the same words")  # the order of NotePair.questions


def pairs() -> list[NotePair]:
    """Return all notes with their questions."""
    return msgspec.json.decode(b"[" + b",".join(FILE.read_bytes().splitlines()) + b"]", type=list[NotePair])


def places(client: Client) -> Iterator[tuple[str, int]]:
    """Yield the kind of each question and the place of its note among the hits, from 1; 0: it is not among them."""
    for number, pair in enumerate(pairs()):
        for kind, question in zip(KINDS, pair.questions, strict=True):
            hits = client.search(question, max_results=TOP).results
            at = (place for place, hit in enumerate(hits, 1) if hit.path == f"memory/{number}.md")
            yield kind, next(at, 0)


def main() -> None:
    """Print the figures of each kind of question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=("hybrid", "keyword"), default="hybrid")
    mode = parser.parse_args().mode
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        daemon = Daemon(Path(scratch).resolve(), real_model=True)
        daemon.configure(f'provider = "{"none" if mode == "keyword" else "local"}"')
        for number, pair in enumerate(pairs()):
            daemon.write(f"memory/{number}.md", pair.note)
            daemon.write(f"memory/near-{number}.md", pair.near)
        with daemon, daemon.client(timeout=1800) as client:
            while client.sync().vectors != "complete" and mode == "hybrid":
                pass
            found = list(places(client))
    for kind in KINDS:
        ranks = [place for one, place in found if one == kind]
        shares = [statistics.fmean(0 < place <= most for place in ranks) for most in (1, 3, TOP)]
        mrr = statistics.fmean(1 / place if place else 0.0 for place in ranks)
        figures = "  ".join(
            f"hit@{most} {share:.3f}" for most, share in zip((1, 3, TOP), shares, strict=True)
        )
        sys.stdout.write(f"{kind:22} {len(ranks):4}  {figures}  mrr {mrr:.3f}\n")


if __name__ == "__main__":
    main()
