"""memd-ctl sync, reindex and embed, and the progress that they show."""

import io
import json
import os
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from memd.ctl.commands import indexing
from memd.ctl.commands.indexing import embed_text, reindex_text, sync_text_of
from memd.ctl.output.terminal import Screen, Stage
from memd_client.blocking import Client
from memd_client.errors import TimedOut
from memd_client.messages import (
    AgentStatus,
    Embed,
    Embedding,
    EmbedReport,
    Failure,
    Progress,
    Reindex,
    ReindexReport,
    Request,
    Status,
    Sync,
    SyncReport,
    Vectors,
)
from tests.client.scripted_server import Peer, serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.conftest import Run
from tests.ctl.pages import check_page
from tests.wait import until

_WAITING = SyncReport(files=1, chunks=2, vectors="waiting", waiting_chunks=2, reason="embedding is under way")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("left", [None, 300.0])
def test_vectors_get_the_time_that_text_left(address: Path, left: float | None) -> None:
    """A timeout is that of both waits together."""
    screen = Screen(io.StringIO(), io.StringIO(), {}, wants_color=False, json=False)
    times = iter([100.0, 102.0])
    timeout_s = None if left is None else 2.0 + left
    heard: list[Request] = []
    with serving(
        address, answering(status(agent())), answering(_WAITING), answering(SyncReport(), heard=heard)
    ):
        indexing.sync_all(
            lambda timeout: Client(address, timeout),
            screen,
            agent=None,
            force=False,
            vectors=True,
            timeout_s=timeout_s,
            clock=lambda: next(times),
        )
    assert isinstance(heard[0], Sync)
    patience_ms = heard[0].patience_ms
    # The client keeps a part for the way back.
    assert (
        patience_ms is None if left is None else patience_ms is not None and 250_000 < patience_ms < 300_000
    )


def test_no_time_may_be_left_for_vectors(address: Path) -> None:
    """Then they are not asked for."""
    screen = Screen(io.StringIO(), io.StringIO(), {}, wants_color=False, json=False)
    times = iter([100.0, 105.0])
    with serving(address, answering(status(agent())), answering(_WAITING)), pytest.raises(TimedOut):
        indexing.sync_all(
            lambda timeout: Client(address, timeout),
            screen,
            agent=None,
            force=False,
            vectors=True,
            timeout_s=5.0,
            clock=lambda: next(times),
        )


def test_a_terminal_sees_how_far_vectors_are(address: Path) -> None:
    """The status is asked on a connection of its own, for the other one waits."""
    err = _Terminal()
    screen = Screen(io.StringIO(), err, {}, wants_color=False, json=False)
    half = status(agent(vectors=Vectors(done=600, waiting=1200, eta_s=300.0)))

    def busy(peer: Peer) -> None:
        peer.greet()
        with suppress(EOFError, OSError):
            while isinstance((asked := peer.hear())[1], Status):
                peer.answer(asked[0], half)
            until(lambda: "600 of 1,800, about 5 minutes to go" in err.getvalue())
            peer.answer(asked[0], SyncReport(files=1, chunks=2))
            peer.wait_for_end()

    with serving(address, busy, busy):
        report = indexing.sync_vectors(lambda timeout: Client(address, timeout), screen, agent=None)
    assert report == SyncReport(files=1, chunks=2)
    assert "Computing vectors" in err.getvalue()


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        ([agent(files=3)], Stage("Reading notes", remark="3 files searchable")),
        ([agent(progress=Progress(done=0, total=1))], Stage("Reading notes", 0, 1, "0 of 1 file")),
        (
            [
                agent(progress=Progress(done=20, total=1000)),
                agent(),
                agent(progress=Progress(done=1, total=2000)),
            ],
            Stage("Reading notes", 21, 3000, "21 of 3,000 files"),
        ),
    ],
)
def test_a_pass_that_reads_gives_a_bar(agents: list[AgentStatus], expected: Stage) -> None:
    """All agents together; without any there is nothing to measure."""
    assert indexing.text_stage(status(*agents)) == expected


_REPORT = EmbedReport(agents={"work": Embedding(), "main": Embedding(state="paused", reason="one\nline")})
_DONE = SyncReport(files=214, chunks=1830, changed=3, removed=1, took_s=0.42)
_VECTORS_WAIT = msgspec.structs.replace(
    _DONE, vectors="waiting", waiting_chunks=5, reason="the provider is down"
)


def test_the_reports_are_pages() -> None:
    """What is searchable and why vectors wait; what a rebuild does, and in chunks and tokens what it would cost."""
    synced = (
        _DONE,
        _VECTORS_WAIT,
        msgspec.structs.replace(_DONE, reason="provider = none"),
        msgspec.structs.replace(_VECTORS_WAIT, reason=None, waiting_chunks=1),
        msgspec.structs.replace(_DONE, missing=["/home/ann/notes", "/srv/wiki"]),
    )
    dry = ReindexReport(agents=["main"], dry_run=True, files=2, chunks=9, cached=8, to_embed=1, tokens=380)
    costs = (
        dry,
        msgspec.structs.replace(dry, agents=["a", "b"], chunks=1, cached=1, to_embed=0, tokens=0),
        msgspec.structs.replace(dry, cached=0, to_embed=30_000, tokens=12_000_000, asks=["main"]),
    )
    begun = ReindexReport(agents=["main"])
    check_page(
        "indexing",
        "\n\n".join(
            [
                *map(sync_text_of, synced),
                *(reindex_text(report, force=False) for report in (begun, *costs)),
                reindex_text(begun, force=True),
                embed_text(_REPORT),
            ]
        ),
    )


def test_what_is_no_directory_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """It is said what it is, and how to fix it."""
    file, pipe, came = tmp_path / "plain.txt", tmp_path / "pipe", tmp_path / "came"
    file.write_text("no Markdown", "utf-8")
    os.mkfifo(pipe)
    came.mkdir()
    fix = "Name a directory in the configuration, or a file that ends in .md (of transcripts: .jsonl)."
    report = msgspec.structs.replace(_DONE, missing=list(map(str, (file, pipe, came, tmp_path / "none"))))
    assert sync_text_of(report).splitlines()[1:-1] == [
        f"{file} is a file and no directory, so nothing of it could be read. {fix}",
        f"{pipe} is neither a file nor a directory, so nothing of it could be read. {fix}",
        f"{came} does not exist, so nothing of it could be read.",
        f"{tmp_path}/none does not exist, so nothing of it could be read.",
    ]


def test_text_is_waited_for_and_then_vectors(run: Run, address: Path) -> None:
    """A pass that is asked for twice is forced once; what both did is told together."""
    asked: list[Request] = []
    for_text: list[Request] = []
    for_vectors: list[Request] = []
    with serving(
        address,
        answering(status(agent()), heard=asked),
        answering(_VECTORS_WAIT, heard=for_text),
        answering(msgspec.structs.replace(_DONE, changed=1, removed=0), heard=for_vectors),
    ):
        code, out, err = run("sync", "--agent", "main", "--force")
    assert (code, err) == (0, "")
    assert "(4 indexed again, 1 removed, 0.42 s)" in out
    assert asked == [Status(agent="main")]
    assert for_text == [Sync(agent="main", force=True, vectors=False)]
    assert for_vectors == [Sync(agent="main")]


@pytest.mark.parametrize("report", [_DONE, _VECTORS_WAIT])
def test_vectors_need_not_be_waited_for(run: Run, address: Path, report: SyncReport) -> None:
    """With --no-vectors, or where none wait."""
    flags = ["--no-vectors"] if report is _VECTORS_WAIT else []
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


@pytest.mark.parametrize("flags", [(), ("--no-wait",)])
def test_a_script_notices_an_agent_that_cannot_run(run: Run, address: Path, flags: tuple[str, ...]) -> None:
    """Its files are not searchable, whatever is to be said of the others."""
    report = msgspec.structs.replace(_DONE, left_out={"work": "its disk\nis away."})
    replies = [answering(report)] if flags else [answering(status(agent())), answering(report)]
    with serving(address, *replies):
        code, out, err = run("sync", *flags)
    assert code == 75
    assert "214 files, 1,830 chunks searchable" in out
    assert err == "Agent work cannot run: its disk; is away. See memd-ctl doctor.\n"


def test_a_sync_that_takes_too_long_is_busy(run: Run, address: Path) -> None:
    """The work goes on, so it is no error of the index."""
    late = Failure(code="timed_out", message="not all text is searchable yet; indexing goes on")
    with serving(address, answering(status(agent())), answering(late)):
        assert run("sync", "--timeout", "5") == (
            75,
            "",
            "memd-ctl: not all text is searchable yet; indexing goes on\n",
        )


def test_a_rebuild_is_only_begun(run: Run, address: Path) -> None:
    """It may take long, and nobody has to wait for it."""
    heard: list[Request] = []
    with serving(address, answering(ReindexReport(agents=["main"]), heard=heard)):
        code, out, _ = run("reindex", "--force", "--agent", "main")
    assert (code, heard) == (0, [Reindex(agent="main", force=True)])
    assert out == f"{reindex_text(ReindexReport(agents=['main']), force=True)}\n"


def test_json_gives_the_report(run: Run, address: Path) -> None:
    """The cost of a dry run, for a script that asks first."""
    report = ReindexReport(agents=["main"], dry_run=True, files=2, chunks=9, cached=8, to_embed=1, tokens=380)
    with serving(address, answering(report)):
        data = json.loads(run("reindex", "--dry-run", "--json").out)["data"]
    assert (data["dry_run"], data["to_embed"], data["tokens"]) == (True, 1, 380)


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        (["pause"], Embed(action="pause")),
        (["resume", "--agent", "main"], Embed(action="resume", agent="main")),
        (["--agent", "main", "confirm"], Embed(action="confirm", agent="main")),
        (["batch", "on"], Embed(action="batch_on")),
    ],
)
def test_it_says_what_was_typed(run: Run, address: Path, typed: list[str], asked: Embed) -> None:
    """And prints how each agent stands now."""
    heard: list[Request] = []
    with serving(address, answering(_REPORT, heard=heard)):
        code, out, _ = run("embed", *typed)
    assert (code, heard) == (0, [asked])
    assert out == f"{embed_text(_REPORT)}\n"


def test_json_gives_the_state_of_embedding(run: Run, address: Path) -> None:
    """Every field named."""
    with serving(address, answering(_REPORT)):
        document = json.loads(run("embed", "pause", "--json").out)
    assert document["data"]["agents"]["main"]["state"] == "paused"
    assert document["data"]["agents"]["work"]["batch"] is None


def test_a_refusal_is_an_error(run: Run, address: Path) -> None:
    """Told as it is."""
    with serving(address, answering(Failure(code="bad_request", message="nothing is embedded"))):
        code, _, err = run("embed", "resume")
    assert code != 0
    assert "nothing is embedded" in err


@pytest.mark.parametrize("typed", [[], ["off"], ["batch"], ["batch", "off"]])
def test_nonsense_is_a_usage_error(run: Run, typed: list[str]) -> None:
    """Batches turn themselves off."""
    assert run("embed", *typed)[0] == 2
