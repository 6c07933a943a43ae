"""A daemon whose socket a service manager has opened, as sd_listen_fds(3) has it."""

import os
import shutil
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.server import sock_diag
from tests.daemon.manager import Given, managed
from tests.daemon.process import Daemon
from tests.server.given import listening
from tests.wait import until


class Activated(Daemon):
    """A daemon that systemd's own tool starts as soon as somebody connects."""

    environ: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """What starts it. Of the environment only what is named is passed on."""
        named = [f"--setenv={name}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", *self.environ)]
        return ["systemd-socket-activate", f"--listen={self.socket}", *named, *super().command]


@pytest.fixture
def given(home: Path) -> Iterator[Given]:
    """A daemon that is not started yet."""
    one = Given(home)
    try:
        yield one
    finally:
        one.__exit__(None, None, None)


def _searched(daemon: Daemon) -> list[str]:
    with daemon.client() as client:
        client.sync(vectors=False)
        return [hit.path for hit in client.search("postgresql").results]


def test_systemds_own_tool_starts_it_for_the_first_client(home: Path) -> None:
    """The client that connects before memd runs is answered; the manager hears of it; the socket outlives the daemon."""
    assert shutil.which("systemd-socket-activate"), "it comes with systemd"
    daemon = Activated(home)
    daemon.environ = ("NOTIFY_SOCKET", "WATCHDOG_USEC")
    daemon.write("MEMORY.md", "# We picked PostgreSQL\n")
    with managed(daemon) as manager:
        environ = {"NOTIFY_SOCKET": str(manager.address), "WATCHDOG_USEC": "100000"}
        with daemon.start(wait=False, environ=environ):
            # It is there before anybody listens.
            until(lambda: sock_diag.is_listened_on(daemon.socket), 20)
            before = daemon.socket.lstat()
            assert manager.heard == []
            assert _searched(daemon) == ["MEMORY.md"]
            until(lambda: manager.states("WATCHDOG"), 20)
            assert "READY" in manager.heard[0]
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda: manager.states("RELOADING") and len(manager.states("READY")) == 2, 20)
            assert daemon.stop() == 0
            until(lambda: manager.states("STOPPING"))
            assert os.path.samestat(before, daemon.socket.lstat())


@pytest.mark.long
def test_what_the_manager_has_opened_stays_its_own(given: Given) -> None:
    """Nothing else appears beside it, it keeps its mode, and it takes clients for the next daemon after a stop and a kill."""
    given.write("MEMORY.md", "# We picked PostgreSQL\n")
    with listening(given.socket) as manager:
        given.socket.chmod(0o640)
        before = given.socket.lstat()
        for end in (given.stop, given.kill, given.stop):
            given.begin(manager)
            assert _searched(given) == ["MEMORY.md"]
            end()
            assert os.path.samestat(before, given.socket.lstat())
        assert stat.S_IMODE(given.socket.lstat().st_mode) == 0o640
        assert sorted(path.name for path in given.home.glob("*s*") if path.name[0] in ".s") == [
            "s",
            "s.lock",
            "state",
        ]


def _refused(given: Given) -> str:
    """What it says before it ends with the exit status of a wrong configuration."""
    assert given.process.wait(60) == 78
    assert not (given.state / "memd.lock").exists()
    return given.printed()


def test_another_path_is_a_clear_error(given: Given) -> None:
    """Clients would look for it in vain: both paths are told, and how to fix it."""
    with listening(given.home / "other") as manager:
        given.begin(manager)
        told = _refused(given)
        assert f"was to listen on {given.socket} for memd, but it listens on {given.home}/other." in told
        assert "memd-ctl service install" in told
        assert "MEMD_SOCKET" in told


def test_a_socket_that_a_manager_holds_open_is_not_taken_over(daemon: Daemon) -> None:
    """Started by hand beside it, memd says whose the path is, and the manager's socket works on."""
    with listening(daemon.socket) as manager, socket.socket(socket.AF_UNIX) as client:
        daemon.start(wait=False)
        assert daemon.process.wait(60) == 78
        told = daemon.printed()
        assert f"cannot listen on {daemon.socket}: another process listens there" in told
        assert "memd-ctl service start" in told
        client.connect(str(daemon.socket))
        manager.accept()[0].close()


def test_no_child_process_takes_the_socket_for_its_own(given: Given) -> None:
    """The descriptor is not inherited."""
    with listening(given.socket) as manager:
        given.begin(manager, LISTEN_FDNAMES="memd.socket")
        assert _searched(given) == []
        until(lambda: "daemon.started" in given.printed())
        process = Path(f"/proc/{given.process.pid}")
        assert str((process / "fd/3").readlink()) == f"socket:[{os.fstat(manager.fileno()).st_ino}]"
        flags = (process / "fdinfo/3").read_text(encoding="ascii").split("flags:")[1].split()[0]
        assert int(flags, 8) & os.O_CLOEXEC
