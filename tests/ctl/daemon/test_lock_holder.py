"""Who holds the lock."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.ctl.daemon.lock_holder import find_holder, is_held


@pytest.mark.parametrize("text", [None, "", "1234\n"])
def test_a_lock_that_nobody_holds_has_no_holder(tmp_path: Path, text: str | None) -> None:
    """Whatever an ended daemon left in it; there need not even be a file."""
    lock = tmp_path / "memd.lock"
    if text is not None:
        lock.write_text(text, encoding="utf-8")
    assert find_holder(lock) is None


def test_the_holder_is_named_as_long_as_it_lives(tmp_path: Path) -> None:
    """And looking does not take the lock from it."""
    lock = tmp_path / "memd.lock"
    held = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    # The number of a process that had the lock once, or as it was in another pid namespace.
    os.write(held, b"4711\n")
    kernel_tells = sys.platform == "linux"
    for _ in range(2):
        assert find_holder(lock) == (os.getpid() if kernel_tells else 4711)
        assert is_held(lock)
    os.close(held)
    assert find_holder(lock) is None
    assert not is_held(lock)


def test_without_the_kernels_list_the_file_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a Mac."""
    monkeypatch.setattr("memd.ctl.daemon.lock_holder._LOCKS", tmp_path / "none")
    lock = tmp_path / "memd.lock"
    held = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    os.write(held, b"4711\n")
    assert find_holder(lock) == 4711
    os.close(held)
    assert find_holder(lock) is None


def test_a_holder_that_cannot_be_seen_holds_it_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lists no process of another pid namespace."""
    (tmp_path / "locks").write_text(
        "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 8 fe:00:12 0 EOF\n"
    )
    monkeypatch.setattr("memd.ctl.daemon.lock_holder._LOCKS", tmp_path / "locks")
    lock = tmp_path / "memd.lock"
    held = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    os.write(held, b"1\n")
    assert find_holder(lock) is None
    assert is_held(lock)
    os.close(held)


def test_a_holder_that_is_about_to_write_its_pid_is_waited_for(tmp_path: Path) -> None:
    """A daemon takes the lock first."""
    lock = tmp_path / "memd.lock"
    code = (
        "import fcntl, os, sys, time\n"
        f"lock = os.open({str(lock)!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print(flush=True)\n"
        "time.sleep(0.1)\n"
        "os.write(lock, b'%d\\n' % os.getpid())\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        assert find_holder(lock) == daemon.pid
        assert daemon.stdin is not None
        daemon.stdin.close()


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """The daemon would not take it either."""
    (tmp_path / "there").touch()
    (tmp_path / "memd.lock").symlink_to(tmp_path / "there")
    assert find_holder(tmp_path / "memd.lock") is None
