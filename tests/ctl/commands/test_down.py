"""memd-ctl down; the processes here are stand-ins."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client.messages import Failure
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.ctl.conftest import Run

_HOLDER = """
import fcntl, os, signal, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, b"%d\\n" % os.getpid())
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(flush=True)
sys.stdin.read()
"""


class _Stand:
    """Processes that hold the lock of the state directory, as a daemon does."""

    def __init__(self, state: Path) -> None:
        self._lock = state / "memd.lock"
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> int:
        command = [sys.executable, "-c", _HOLDER, str(self._lock), *words]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child.pid

    def end(self) -> None:
        for child in self._children:
            child.kill()
            child.communicate()


@pytest.fixture
def stand(home: Path) -> Iterator[_Stand]:
    """Starts stand-ins, and ends them."""
    state = home / ".local" / "state" / "memd"
    state.mkdir(parents=True)
    stand = _Stand(state)
    yield stand
    stand.end()


def test_what_does_not_run_need_not_be_stopped(run: Run) -> None:
    """That is no error: it is as it was wished."""
    assert run("down") == (0, "memd is not running.\n", "")
    assert json.loads(run("down", "--json").out)["data"] == {"was_running": False, "pid": None}


def test_the_daemon_that_answers_is_stopped(run: Run, address: Path, stand: _Stand) -> None:
    """The status tells its pid."""
    pid = stand.start()
    with serving(address, answering(status(agent(), pid=pid))):
        code, out, err = run("down")
    assert (code, err) == (0, "")
    assert out.startswith(f"Stopped memd (pid {pid}) in ")


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


def test_a_daemon_that_does_not_end_is_told_of(run: Run, stand: _Stand) -> None:
    """With what is left to do."""
    pid = stand.start("stubborn")
    code, out, err = run("down", "--timeout", "0.1")
    assert (code, out) == (75, "")
    assert f"memd (pid {pid}) was asked to stop, but still runs after 0.1 s." in err
    assert f"kill -9 {pid}" in err
