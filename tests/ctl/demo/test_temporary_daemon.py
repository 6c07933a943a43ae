"""A daemon of one's own for a minute; the daemons here are stand-ins."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memd.config.load import load
from memd.ctl.daemon.process import find_holder, is_gone
from memd.ctl.demo.temporary_daemon import scratch

_HOLDER = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, b"%d\\n" % os.getpid())
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def tmp(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr("tempfile.tempdir", str(short))
    return short


def test_the_configuration_is_right(short: Path) -> None:
    """It names the workspace beside it."""
    with scratch(short, keep=False) as made:
        config = load(made.places.config, {}, short)
        assert config.agents["main"].workspace == made.workspace
        assert made.workspace.is_dir()


def test_nothing_is_left(short: Path, tmp: Path) -> None:
    """However it ends."""
    with scratch(short, keep=False) as made:
        made.places.state.mkdir()
        (made.workspace / "a.md").touch()
    assert list(tmp.iterdir()) == []
    with pytest.raises(ValueError, match="no"), scratch(short, keep=False):
        raise ValueError("no")
    assert list(tmp.iterdir()) == []


def test_the_workspace_may_be_kept(short: Path) -> None:
    """With its configuration, but without an index."""
    with scratch(short, keep=True) as made:
        made.places.state.mkdir()
    assert sorted(path.name for path in made.workspace.parent.iterdir()) == ["config.toml", "workspace"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_by_the_door(short: Path, tmp: Path, number: signal.Signals) -> None:
    """So that what stands behind is cleared; afterwards the signal means what it meant before."""
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as left, scratch(short, keep=False):
        os.kill(os.getpid(), number)
    assert left.value.code == 128 + number
    assert list(tmp.iterdir()) == []
    assert signal.getsignal(number) is before


def test_a_daemon_that_is_nobodys_is_ended(short: Path, tmp: Path) -> None:
    """One that was started in the moment of the interruption."""
    with scratch(short, keep=False) as made:
        made.places.state.mkdir()
        command = [sys.executable, "-c", _HOLDER, str(made.places.lock)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        assert find_holder(made.places.lock) == child.pid
    assert is_gone(child.pid)
    child.communicate()
    assert list(tmp.iterdir()) == []


def test_a_deep_temporary_directory_leaves_room_for_the_socket(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of the system is taken instead."""
    deep = short / ("x" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with scratch(short, keep=False) as made:
        assert not made.workspace.is_relative_to(deep)
        assert list(deep.iterdir()) == []
    assert not made.workspace.exists()
