"""The path of the socket, and who answers there."""

import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.ctl.doctor import socket as listening
from memd.ctl.doctor.socket import Peer, SocketAnswer, SocketPlace, ask
from memd_client.errors import ConnectionLost, DaemonNotRunning, ProtocolMismatch, TimedOut
from tests.client.scripted_server import Peer as Script
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.doctor.context import CONTEXT, STATE, by_name


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


_GOOD = SocketPlace(kind="socket", owner=1000, directory=STATE, directory_owner=1000)
_WELL = SocketAnswer(report=status(agent()), peer=Peer(4711, 1000))


@pytest.mark.parametrize(
    ("changed", "bad"),
    [
        ({}, set()),
        ({"directory_mode": 0o755}, set()),
        ({"directory_mode": 0o775}, {"directory"}),
        ({"directory_mode": 0o1777, "directory_owner": 0}, set()),
        ({"directory_owner": 33}, {"directory"}),
        ({"kind": "something that is not a socket"}, {"listener"}),
    ],
)
def test_a_directory_where_others_could_put_a_socket_is_told(changed: dict[str, Any], bad: set[str]) -> None:
    """Not one where only owners may remove what is theirs, as /tmp is."""
    place = msgspec.structs.replace(_GOOD, **changed)
    found = by_name(listening.check(place, _WELL, CONTEXT))
    assert {name.removeprefix("socket.") for name, one in found.items() if not one.ok} == bad


@pytest.mark.parametrize(
    ("answer", "place", "ok", "says"),
    [
        (_WELL, {}, True, "our daemon listens (pid 4711)"),
        (
            SocketAnswer(error=DaemonNotRunning("/s")),
            {"kind": None, "owner": None},
            True,
            "not checked: there is no socket",
        ),
        (SocketAnswer(error=DaemonNotRunning("/s")), {}, False, "a dead socket"),
        (
            SocketAnswer(error=DaemonNotRunning("/s", "no permission")),
            {"owner": 0},
            False,
            "the socket of user 0: no permission",
        ),
        (SocketAnswer(error=TimedOut(5.0), peer=Peer(4711, 1000)), {}, False, "never answers"),
        (
            SocketAnswer(error=ConnectionLost("x"), peer=Peer(4711, 1000)),
            {},
            False,
            "does not speak the protocol",
        ),
        (SocketAnswer(error=ProtocolMismatch(1, 2), peer=Peer(4711, 1000)), {}, True, "our daemon"),
        (SocketAnswer(error=TimedOut(5.0), peer=Peer(4711, 33)), {}, False, "a process of user 33"),
        (None, {}, False, "does not end"),
    ],
)
def test_who_listens_is_told(
    answer: SocketAnswer | None, place: dict[str, Any], says: str, *, ok: bool
) -> None:
    """Our daemon, nobody, another program, or somebody else's."""
    found = by_name(listening.check(msgspec.structs.replace(_GOOD, **place), answer, CONTEXT))
    assert found["socket.listener"].ok is ok
    assert says in found["socket.listener"].detail


def test_a_path_that_no_socket_can_have_is_told() -> None:
    """With its length, and what to set."""
    places = msgspec.structs.replace(CONTEXT.places, socket=Path("/" + "x" * 120))
    context = msgspec.structs.replace(CONTEXT, places=places)
    found = by_name(listening.check("cannot be looked at: File name too long", None, context))
    assert "121 bytes, 107 are possible" in found["socket.path"].detail
    assert "MEMD_SOCKET" in found["socket.path"].fix


def test_the_place_is_looked_at_without_connecting(short: Path) -> None:
    """Nothing, a file, a socket; a directory that is not there."""
    path = short / "s"
    assert listening.look(path).kind is None
    path.touch()
    assert listening.look(path).kind == "something that is not a socket"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        place = listening.look(path)
    assert (place.kind, place.owner, place.directory) == ("socket", os.getuid(), short)
    assert not listening.look(short / "no" / "s").directory_exists
    assert not listening.look(path / "below" / "s").directory_exists
