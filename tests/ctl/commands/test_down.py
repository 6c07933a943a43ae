"""memd-ctl down; the processes here are stand-ins."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client.messages import Failure, Request, Stop, Stopping
from tests.client.scripted_server import Peer, serving
from tests.ctl.answers import answering
from tests.ctl.conftest import Run

_HOLDER = """
import fcntl, os, signal, sys
for name in sys.argv[1:3] if "bystander" not in sys.argv else ():
    lock = os.open(name, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, b"%d\\n" % os.getpid())
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "frees" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: os.closerange(3, 9))
print(flush=True)
sys.stdin.read()
"""


class _Stand:
    """Processes that hold the locks of the state directory and of the socket, as a daemon does."""

    def __init__(self, state: Path, socket: Path) -> None:
        self._locks = (str(state / "memd.lock"), str(socket.with_name(f"{socket.name}.lock")))
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> int:
        command = [sys.executable, "-c", _HOLDER, *self._locks, *words]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child.pid

    def lives(self, pid: int) -> bool:
        return next(child for child in self._children if child.pid == pid).poll() is None

    def end(self, pid: int | None = None) -> None:
        for child in self._children:
            if pid in {None, child.pid}:
                child.kill()
                child.communicate()


@pytest.fixture
def stand(home: Path, address: Path) -> Iterator[_Stand]:
    """Starts stand-ins, and ends them."""
    state = home / ".local" / "state" / "memd"
    state.mkdir(parents=True)
    stand = _Stand(state, address)
    yield stand
    stand.end()


def test_what_does_not_run_need_not_be_stopped(run: Run) -> None:
    """That is no error: it is as it was wished."""
    assert run("down") == (0, "memd is not running.\n", "")
    assert json.loads(run("down", "--json").out)["data"] == {"was_running": False, "pid": None}


def test_the_daemon_that_answers_is_asked_to_stop(run: Run, address: Path, stand: _Stand) -> None:
    """What it says of its own number is nothing to send a signal to: it may be that of another process here."""
    pid = stand.start()
    innocent = stand.start("bystander")
    heard: list[Request] = []

    def script(peer: Peer) -> None:
        peer.greet()
        heard.append(peer.answer_next(Stopping(pid=innocent)))
        stand.end(pid)

    with serving(address, script):
        code, out, err = run("down")
    assert (code, err, heard) == (0, "", [Stop()])
    assert out.startswith(f"Stopped memd (pid {pid}) in ")
    assert stand.lives(innocent)


def test_a_daemon_that_says_it_ends_and_lives_on_is_killed(run: Run, address: Path, stand: _Stand) -> None:
    """It is the process that holds the lock, whatever number it says."""
    pid, innocent = stand.start(), stand.start("bystander")
    with serving(address, answering(Stopping(pid=innocent))):
        code, out, err = run("down", "--timeout", "0.2")
    assert (code, err) == (0, "")
    assert out.startswith(
        f"memd (pid {pid}) did not end within 0.2 s, and was killed. No note is lost by that."
    )
    assert not stand.lives(pid)
    assert stand.lives(innocent)


def test_a_daemon_that_cannot_be_seen_from_here_is_not_said_to_be_stopped(
    run: Run, stand: _Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the state directory and does not answer; its number means nothing here."""
    pid = stand.start()
    (tmp_path / "locks").write_text("")
    monkeypatch.setattr("memd.ctl.daemon_process._LOCKS", tmp_path / "locks")
    code, out, err = run("down")
    assert (code, out) == (1, "")
    assert "another container or pid namespace" in err
    assert stand.lives(pid)


@pytest.mark.parametrize("answer", ["nothing listens", "a failure", "silence"])
def test_a_daemon_that_cannot_be_asked_is_found_by_its_lock(
    run: Run, address: Path, stand: _Stand, answer: str
) -> None:
    """One that hangs must be stopped all the more."""
    pid = stand.start()
    argv = ("down", "--json", "--timeout", "0.5")
    if answer == "nothing listens":
        ran = run(*argv)
    elif answer == "a failure":
        with serving(address, answering(Failure(code="internal", message="a bug"))):
            ran = run(*argv)
    else:
        with serving(address, lambda peer: peer.wait_for_end()):
            ran = run(*argv)
    data = json.loads(ran.out)["data"]
    assert (ran.code, data["was_running"], data["pid"]) == (0, True, pid)


def test_a_failure_without_a_lock_stays_one(run: Run, address: Path) -> None:
    """It is not known what to stop."""
    with serving(address, answering(Failure(code="internal", message="a bug"))):
        assert run("down") == (1, "", "memd-ctl: a bug\n")


def test_a_daemon_that_does_not_end_is_killed(run: Run, stand: _Stand) -> None:
    """And that is told."""
    pid = stand.start("stubborn")
    ran = run("down", "--timeout", "0.1", "--json")
    data = json.loads(ran.out)["data"]
    assert (ran.code, data["pid"], data["killed"]) == (0, pid, True)
    assert not stand.lives(pid)


def test_a_daemon_that_is_stopped_ends_as_any_other(run: Run, stand: _Stand) -> None:
    """A process that Ctrl-Z or a debugger has stopped would see no SIGTERM."""
    pid = stand.start()
    os.kill(pid, signal.SIGSTOP)
    ran = run("down", "--json")
    data = json.loads(ran.out)["data"]
    assert (ran.code, data["pid"], data["killed"]) == (0, pid, False)
    assert data["took_s"] < 5


def test_a_process_that_does_not_hold_the_lock_any_more_is_not_killed(run: Run, stand: _Stand) -> None:
    """The kernel names none then; what is left to do is told."""
    pid = stand.start("stubborn", "frees")
    code, out, err = run("down", "--timeout", "0.2")
    assert (code, out) == (75, "")
    assert f"memd (pid {pid}) was asked to stop, but still runs after 0.2 s. It was not killed: " in err
    assert f"kill -9 {pid}" in err
    assert stand.lives(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no such list of locks")
def test_a_daemon_that_the_system_keeps_is_told_of(
    run: Run, stand: _Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while it waits for a disk, when no signal ends it."""
    pid = stand.start("stubborn")
    monkeypatch.setattr("memd.ctl.commands.down.kill", lambda *_: True)
    monkeypatch.setattr("memd.ctl.commands.down._DIES_S", 0.1)
    code, out, err = run("down", "--timeout", "0.1")
    assert (code, out) == (75, "")
    assert (
        f"memd (pid {pid}) was asked to stop, but still runs after 0.1 s. It was killed, and has not" in err
    )
