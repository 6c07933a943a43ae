"""memd-ctl reindex."""

import json
from pathlib import Path

import pytest

from memd.ctl.commands.reindex import text
from memd_client.messages import Reindex, ReindexReport, Request
from tests.client.scripted_server import serving
from tests.ctl.answers import answering
from tests.ctl.conftest import Run


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            ReindexReport(agents=["main"], dry_run=True, files=2, chunks=9, cached=8, to_embed=1, tokens=380),
            "main: 2 files, 9 chunks; 8 vectors of them are kept, 1 chunk would be embedded, about 380 tokens.",
        ),
        (
            ReindexReport(agents=["a", "b"], dry_run=True, files=1, chunks=1, cached=1),
            "a, b: 1 file, 1 chunk; 1 vector of them is kept, nothing would be embedded.",
        ),
        (
            ReindexReport(
                agents=["a"],
                dry_run=True,
                files=1,
                chunks=30_000,
                to_embed=30_000,
                tokens=12_000_000,
                asks=["a"],
            ),
            (
                "a: 1 file, 30,000 chunks; 0 vectors of them are kept, 30,000 chunks would be embedded, about 12,000,000"
                " tokens.\nThat is more than remote.confirm_above_chunks: the rebuild of a would wait for"
                " `memd-ctl embed confirm`, and the old index answer meanwhile."
            ),
        ),
    ],
)
def test_a_dry_run_tells_the_cost(report: ReindexReport, said: str) -> None:
    """In chunks and tokens to embed."""
    assert text(report, force=False) == said


def test_a_rebuild_is_only_begun(run: Run, address: Path) -> None:
    """It may take long, and nobody has to wait for it."""
    heard: list[Request] = []
    with serving(address, answering(ReindexReport(agents=["main"]), heard=heard)):
        code, out, _ = run("reindex", "--force", "--agent", "main")
    assert (code, heard) == (0, [Reindex(agent="main", force=True)])
    assert out == (
        "Rebuilding main: every file is read and every chunk embedded again; the old index answers meanwhile.\n"
        "memd-ctl status shows when it is done.\n"
    )


def test_json_gives_the_report(run: Run, address: Path) -> None:
    """The cost of a dry run, for a script that asks first."""
    report = ReindexReport(agents=["main"], dry_run=True, files=2, chunks=9, cached=8, to_embed=1, tokens=380)
    with serving(address, answering(report)):
        data = json.loads(run("reindex", "--dry-run", "--json").out)["data"]
    assert (data["dry_run"], data["to_embed"], data["tokens"]) == (True, 1, 380)
