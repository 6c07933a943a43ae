"""Whether a memory on a server answers as its publisher does: each question of some sets is asked of both.

    python -m tests.recall.shared DIRECTORY [SET ...]

takes the sets below a directory, each a workspace with questions.json: a list of objects with `question`, `evidence` (a list of
objects with `text`), and maybe `filters` and `asked_on`. Two daemons with the bundled model: one publishes the set on a server of its
own, the other searches it there. All that a hit says is compared.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from memd_client import Client
from memd_client.messages import Hit
from tests.daemon.process import Daemon
from tests.daemon.sharing import is_published, publisher, reader, whole
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer, running_server
from tests.wait import until

TOP, READ_CHARS = 6, 4_000
WAIT_S = 3_600  # for which a set may be embedded and published


class SetFigures(msgspec.Struct, frozen=True):
    """What came of one set."""

    questions: int
    differing: int  # whose hits are not the same
    score: float  # the largest difference of scores of hits at the same place
    seen: tuple[float, float]  # share of evidence that is read, where it is published and on the server


def asked(client: Client, agent: str, question: dict[str, Any]) -> list[Hit]:
    """The hits of a question, from the backend that is asked: on a busy machine a server may be late."""
    filters = question.get("filters") or {}

    def answered() -> tuple[list[Hit]] | None:
        found = client.search(
            question["question"], agent=agent, max_results=TOP, now=question.get("asked_on"), **filters
        )
        return None if found.fallback else (found.results,)

    return until(answered, WAIT_S)[0]  # type: ignore[index]  # until gives what is true


def seen(hits: list[Hit], question: dict[str, Any]) -> float:
    """The share of the evidence of a question that is in what an agent reads."""
    left, read = READ_CHARS, []
    for hit in hits:
        read.append(_squeezed(hit.snippet[: max(left, 0)]))
        left -= len(hit.snippet)
    evidence = [_squeezed(one["text"]) for one in question["evidence"]]
    return statistics.fmean(any(one in text for text in read) for one in evidence)


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def compared(workspace: Path, server: PostgresServer, scratch: Path) -> SetFigures:
    """Ask all questions of a set of both daemons."""
    admin_dsn = server.dsn(server.database())
    name = workspace.name.replace("-", "_")
    made = publisher(
        scratch / "a",
        member(admin_dsn, f"a_{name}", "alice/main"),
        more=', sources = ["memory", "curated"]',
        before='provider = "local"\n',
    )
    searching = reader(
        scratch / "b",
        member(admin_dsn, f"b_{name}", "alice/main", may_write=False),
        more='provider = "local"\n',
    )
    here, there = (_with_model(one) for one in (made, searching))
    shutil.copytree(workspace, here.workspace, dirs_exist_ok=True)
    questions = json.loads((workspace / "questions.json").read_text("utf-8"))
    rows = []
    with here, there, here.client(timeout=WAIT_S) as local, there.client(timeout=WAIT_S) as remote:
        while local.sync().vectors != "complete":
            pass
        until(lambda: whole(here, admin_dsn) and is_published(here), WAIT_S)
        for question in questions:
            both = asked(local, "main", question), asked(remote, "alice", question)
            scores = [abs(one.score - other.score) for one, other in zip(*both, strict=False)]
            shown = [seen(hits, question) for hits in both] if question["evidence"] else None
            rows.append((both[0] != both[1], max(scores, default=0.0), shown))
    figures = [shown for _, _, shown in rows if shown is not None]
    return SetFigures(
        len(rows),
        sum(differs for differs, _, _ in rows),
        max(score for _, score, _ in rows),
        (statistics.fmean(one[0] for one in figures), statistics.fmean(one[1] for one in figures)),
    )


def _with_model(daemon: Daemon) -> Daemon:
    """The same with the bundled model."""
    settings = daemon.config.read_text("utf-8")
    real = Daemon(daemon.home, real_model=True)
    real.config.write_text(settings, "utf-8")
    return real


def main() -> None:
    """Compare, and print a line for each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("sets", nargs="*")
    options = parser.parse_args()
    found = sorted(file.parent for file in options.directory.resolve().glob("*/questions.json"))
    with running_server() as server:
        for workspace in (one for one in found if not options.sets or one.name in options.sets):
            with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
                told = compared(workspace, server, Path(scratch).resolve())
            sys.stdout.write(
                f"{workspace.name:16} {told.questions:5,} questions, {told.differing} differ, scores by {told.score:.6f} at most;"
                f" seen {told.seen[0]:.3f} where it is published, {told.seen[1]:.3f} on the server\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
