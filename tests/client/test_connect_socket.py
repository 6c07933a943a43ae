"""Who is at the other end of a socket."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd_client import AsyncClient, Client
from memd_client.connect_socket import default_address, dial, peer_uid
from memd_client.errors import ConnectionLost, DaemonNotRunning
from tests.otheruser import NOBODY, as_other_user, shared_directory


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """While this lasts, this process may not enter the directory, even if it is root's."""
    directory.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        directory.chmod(0o700)


def test_connects(address: Path) -> None:
    """Where something listens, there is a connection that never waits."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        connection = dial(str(address))
        assert connection is not None
        with connection, listener.accept()[0] as other:
            assert not connection.getblocking()
            other.sendall(b"hello")
            assert connection.recv(5) == b"hello"


def test_full_queue(address: Path) -> None:
    """Where too many wait to be accepted, there is no connection yet, and no error either."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(0)
        connections = [dial(str(address)) for _ in range(20)]
        assert connections[0] is not None
        assert connections[-1] is None
        for connection in connections:
            if connection:
                connection.close()


@pytest.mark.parametrize("name", ["missing", "file/missing", "missing/missing"])
def test_no_socket(address: Path, name: str) -> None:
    """A path that leads nowhere."""
    (address.parent / "file").touch()
    with pytest.raises(DaemonNotRunning, match="no such socket") as not_running:
        dial(str(address.parent / name))
    assert not_running.value.socket == str(address.parent / name)
    assert not_running.value.hint
    assert "memd run" in not_running.value.hint


def test_left_behind(address: Path) -> None:
    """The socket of a daemon that was killed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
    with pytest.raises(DaemonNotRunning, match="nothing listens there"):
        dial(str(address))


def test_not_ours(address: Path) -> None:
    """A socket of another sort, a file, a directory."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(str(address))
        with pytest.raises(DaemonNotRunning, match="not a socket of memd"):
            dial(str(address))
    (address.parent / "file").touch()
    for path in (address.parent / "file", address.parent):
        with pytest.raises(DaemonNotRunning):
            dial(str(path))


def test_forbidden(address: Path) -> None:
    """A socket that is somebody else's is told from one that is not there."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        with locked(address.parent), pytest.raises(DaemonNotRunning, match="may not connect") as not_running:
            dial(str(address))
    assert not_running.value.hint
    assert "sandbox" in not_running.value.hint


def listening_as(user: int, address: Path) -> socket.socket:
    """A socket that another user listens on, and anybody may connect to."""
    assert os.geteuid() == 0, "only root can become another user"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    os.chown(address, user, user)
    address.chmod(0o666)
    os.seteuid(user)
    try:
        listener.listen()
    finally:
        os.seteuid(0)
    return listener


def ask_blocking(address: Path) -> object:
    """A question of a Client."""
    with Client(socket=address, timeout=60) as memd:
        return memd.search("where is the key?")


def ask_asynchronous(address: Path) -> object:
    """A question of an AsyncClient."""

    async def ask() -> object:
        async with AsyncClient(socket=address, timeout=60) as memd:
            return await memd.search("where is the key?")

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [ask_blocking, ask_asynchronous])
def test_another_user_is_told_nothing(address: Path, ask: Callable[[Path], object]) -> None:
    """Somebody who listens in the place of the daemon hears no word, and is not believed."""
    with listening_as(NOBODY, address) as listener:
        with pytest.raises(
            DaemonNotRunning, match=rf"another user \(uid {NOBODY}\) listens there"
        ) as refused:
            ask(address)
        listener.settimeout(60)
        with listener.accept()[0] as other:
            other.settimeout(60)
            assert other.recv(1) == b""
    assert refused.value.hint
    assert "MEMD_SOCKET" in refused.value.hint


def dialled(address: str) -> str:
    """What comes of connecting."""
    try:
        connection = dial(address)
    except DaemonNotRunning as error:
        return error.reason
    assert connection is not None
    connection.close()
    return "connected"


def test_root_may_listen_for_others() -> None:
    """As a service manager of the system does for its users; any other user may not."""
    with shared_directory() as directory:
        for user, outcome in (
            (0, "connected"),
            (NOBODY, "connected"),
            (NOBODY - 1, f"another user (uid {NOBODY - 1}) listens there"),
        ):
            address = directory / str(user)
            with listening_as(user, address):
                assert as_other_user("tests.client.test_connect_socket", "dialled", str(address)) == outcome


def test_too_long(address: Path) -> None:
    """A path that no socket can have is explained, though something else could be there."""
    with pytest.raises(DaemonNotRunning, match="MEMD_SOCKET to a shorter path"):
        dial(str(address) + "s" * 100)


def test_nul(address: Path) -> None:
    """A path is never cut short, although what stands before the NUL is there."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        with pytest.raises(DaemonNotRunning, match="NUL"):
            dial(f"{address}\0.old")


def test_other_trouble(address: Path) -> None:
    """What the operating system refuses for its own reasons is said in its words."""
    address.symlink_to(address)
    with pytest.raises(ConnectionLost, match="symbolic links"):
        dial(str(address))


def test_default_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the process decides."""
    for name in ("MEMD_SOCKET", "MEMD_STATE_DIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ann")
    assert default_address().startswith("/home/ann/")
    assert default_address().endswith("/memd/memd.sock")
    monkeypatch.setenv("MEMD_STATE_DIR", "~/state")
    assert default_address() == "/home/ann/state/memd.sock"
    monkeypatch.setenv("MEMD_SOCKET", "/run/s")
    assert default_address() == "/run/s"


def test_both_ends_are_known_by_their_user(address: Path) -> None:
    """The system tells the user of the process at the other end, to the one that listens and to the one that connects."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(address))
        listener.listen()
        client.connect(str(address))
        with listener.accept()[0] as accepted:
            assert peer_uid(accepted) == peer_uid(client) == os.getuid()


def test_an_end_that_is_gone_was_still_somebodys(address: Path) -> None:
    """Whoever hung up at once is known all the same."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(address))
        with listener.accept()[0] as accepted:
            assert peer_uid(accepted) == os.getuid()


def test_what_cannot_be_asked_is_an_error() -> None:
    """A socket that is closed belongs to nobody."""
    closed = socket.socket(socket.AF_UNIX)
    closed.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        peer_uid(closed)
