"""What the service manager hears."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.runtime.sd_notify import Notifier, watchdog_interval_s


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    """A listening service manager, at an abstract address that the system chooses."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("")
        listener.settimeout(60)
        yield listener


def _environ(manager: socket.socket) -> dict[str, str]:
    address: bytes = manager.getsockname()
    return {"NOTIFY_SOCKET": "@" + address[1:].decode()}


def _heard(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().split("\n")


def test_the_daemon_tells_its_states(manager: socket.socket) -> None:
    """Each state is one datagram of assignments."""
    notifier = Notifier(_environ(manager))
    notifier.ready("2 agents")
    assert _heard(manager) == ["READY=1", "STATUS=2 agents"]
    notifier.status("indexing 120/900")
    assert _heard(manager) == ["STATUS=indexing 120/900"]
    notifier.watchdog()
    assert _heard(manager) == ["WATCHDOG=1"]
    notifier.stopping()
    assert _heard(manager) == ["STOPPING=1"]


def test_a_reload_carries_the_time(manager: socket.socket) -> None:
    """The manager compares its own monotonic clock, in microseconds."""
    before = time.monotonic_ns() // 1000
    Notifier(_environ(manager)).reloading()
    state, stamp = _heard(manager)
    name, _, value = stamp.partition("=")
    assert (state, name) == ("RELOADING=1", "MONOTONIC_USEC")
    assert before <= int(value) <= time.monotonic_ns() // 1000


def test_a_status_is_one_line(manager: socket.socket) -> None:
    """What stands in a status cannot pass for another message."""
    Notifier(_environ(manager)).status("a\nWATCHDOG=trigger\r\n b\udcff")
    assert _heard(manager) == ["STATUS=a WATCHDOG=trigger b?"]


def test_a_socket_in_the_file_system_is_spoken_to(tmp_path: Path) -> None:
    """The usual address is a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}).ready()
        assert _heard(listener) == ["READY=1", "STATUS="]


def test_a_child_process_does_not_speak_for_the_daemon(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is gone from the environment that children get; the daemon still speaks."""
    monkeypatch.setenv("NOTIFY_SOCKET", _environ(manager)["NOTIFY_SOCKET"])
    notifier = Notifier(os.environ)
    child = [sys.executable, "-c", "import os; print(os.environ.get('NOTIFY_SOCKET'))"]
    assert subprocess.run(child, capture_output=True, check=True, text=True).stdout == "None\n"
    notifier.watchdog()
    assert _heard(manager) == ["WATCHDOG=1"]


@pytest.mark.parametrize(
    "address", [None, "", "relative", "vsock:2:1234", "/none/there", "/" + "x" * 300, "@none", "@"]
)
def test_nobody_to_tell_is_no_failure(address: str | None) -> None:
    """Without a manager the daemon runs the same."""
    notifier = Notifier({} if address is None else {"NOTIFY_SOCKET": address})
    for tell in (notifier.ready, notifier.reloading, notifier.stopping, notifier.watchdog):
        tell()
    notifier.status("x")


def test_a_manager_that_went_away_is_no_failure(tmp_path: Path) -> None:
    """Its socket is still there, but nobody reads it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}).ready()


def test_a_manager_that_does_not_read_holds_nobody_up(manager: socket.socket) -> None:
    """Once its queue is full, a message is lost after a short wait."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as flood:
        flood.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                flood.sendto(b"x", manager.getsockname())
    Notifier(_environ(manager)).watchdog()


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "its own"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "500000"}, 0.25),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": ""}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_in_its_time(environ: dict[str, str], interval: float | None) -> None:
    """Half the time that the manager waits, if it waits for this process at all."""
    if environ.get("WATCHDOG_PID") == "its own":
        environ = environ | {"WATCHDOG_PID": str(os.getpid())}
    assert watchdog_interval_s(environ) == interval
