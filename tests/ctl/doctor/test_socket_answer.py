"""What answers at the socket, if anything does."""

import os
from pathlib import Path

from memd.ctl.doctor.socket_answer import Peer, ask
from memd_client.errors import DaemonNotRunning
from tests.client.scripted_server import Peer as Script
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status


def test_a_daemon_gives_its_report_and_shows_who_it_is(address: Path) -> None:
    """By two connections: the first only looks who listens."""

    def looked_at(peer: Script) -> None:
        peer.wait_for_end()

    with serving(address, looked_at, answering(status(agent()))):
        answer = ask(address, 20.0)
    assert answer.report is not None
    assert answer.peer == Peer(os.getpid(), os.getuid())


def test_nobody_there_is_an_error_and_no_peer(address: Path) -> None:
    """The one that clients get."""
    answer = ask(address, 20.0)
    assert isinstance(answer.error, DaemonNotRunning)
    assert answer.peer is None
