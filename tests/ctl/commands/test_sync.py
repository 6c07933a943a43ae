"""memd-ctl sync."""

import json
from pathlib import Path

import msgspec
import pytest

from memd.ctl.commands.sync import text
from memd_client.messages import Failure, Request, Status, Sync, SyncReport
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.conftest import Run

_DONE = SyncReport(files=214, chunks=1830, changed=3, removed=1, took_s=0.42)
_WAITING = msgspec.structs.replace(_DONE, vectors="waiting", waiting_chunks=5, reason="the provider is down")


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (_DONE, "Vectors are complete."),
        (_WAITING, "Vectors: 5 chunks waiting: the provider is down."),
        (msgspec.structs.replace(_DONE, reason="provider = none"), "No vectors: provider = none."),
        (msgspec.structs.replace(_WAITING, reason=None, waiting_chunks=1), "Vectors: 1 chunk waiting."),
    ],
)
def test_the_outcome_tells_what_is_searchable(report: SyncReport, said: str) -> None:
    """And why vectors wait, where they do."""
    assert text(report) == (
        f"214 files, 1,830 chunks searchable (3 indexed again, 1 removed, 0.42 s).\n{said}"
    )


def test_text_is_waited_for_and_then_vectors(run: Run, address: Path) -> None:
    """A pass that is asked for twice is forced once; what both did is told together."""
    asked: list[Request] = []
    for_text: list[Request] = []
    for_vectors: list[Request] = []
    with serving(
        address,
        answering(status(agent()), heard=asked),
        answering(_WAITING, heard=for_text),
        answering(msgspec.structs.replace(_DONE, changed=1, removed=0), heard=for_vectors),
    ):
        code, out, err = run("sync", "--agent", "main", "--force")
    assert (code, err) == (0, "")
    assert (
        out
        == "214 files, 1,830 chunks searchable (4 indexed again, 1 removed, 0.42 s).\nVectors are complete.\n"
    )
    assert asked == [Status(agent="main")]
    assert for_text == [Sync(agent="main", force=True, vectors=False)]
    assert for_vectors == [Sync(agent="main")]


@pytest.mark.parametrize("report", [_DONE, _WAITING])
def test_vectors_need_not_be_waited_for(run: Run, address: Path, report: SyncReport) -> None:
    """With --no-vectors, or where none wait."""
    flags = ["--no-vectors"] if report is _WAITING else []
    with serving(address, answering(status(agent())), answering(report)):
        code, out, _ = run("sync", "--json", *flags)
    assert code == 0
    assert json.loads(out)["data"]["waiting_chunks"] == report.waiting_chunks


def test_nothing_need_be_waited_for(run: Run, address: Path) -> None:
    """The numbers are those of before."""
    heard: list[Request] = []
    with serving(address, answering(_DONE, heard=heard)):
        assert run("sync", "--no-wait").out == "Asked for. Until then: 214 files, 1,830 chunks searchable.\n"
    assert isinstance(heard[0], Sync)
    assert heard[0].wait is False


def test_a_sync_that_takes_too_long_is_busy(run: Run, address: Path) -> None:
    """The work goes on, so it is no error of the index."""
    late = Failure(code="timed_out", message="not all text is searchable yet; indexing goes on")
    with serving(address, answering(status(agent())), answering(late)):
        assert run("sync", "--timeout", "5") == (
            75,
            "",
            "memd-ctl: not all text is searchable yet; indexing goes on\n",
        )
