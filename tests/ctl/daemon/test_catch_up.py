"""Bringing the index up to date while somebody watches."""

import io
from contextlib import suppress
from pathlib import Path

import pytest

from memd.ctl.daemon import catch_up
from memd.ctl.output.terminal import Screen, Stage
from memd_client.blocking import Client
from memd_client.errors import TimedOut
from memd_client.messages import AgentStatus, Progress, Request, Status, Sync, SyncReport, Vectors
from tests.client.scripted_server import Peer, serving
from tests.ctl.answers import agent, answering, status
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
        catch_up.sync(
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
        catch_up.sync(
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
        report = catch_up.sync_vectors(lambda timeout: Client(address, timeout), screen, agent=None)
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
    assert catch_up.text_stage(status(*agents)) == expected
