import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.server.lock import AlreadyRunning, Lock, LockUnusable

_HOLDER = """
import sys
from pathlib import Path
from memd.server.lock import Lock
Lock(Path(sys.argv[1]), Path("/somewhere"))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_refused_and_told_the_first(tmp_path: Path) -> None:
    """Who comes second hears what is locked, and the pid of who holds it."""
    file = tmp_path / "memd.lock"
    held = Lock(file, tmp_path)
    with pytest.raises(AlreadyRunning, match=rf"{tmp_path} \(pid {os.getpid()}\)") as refused:
        Lock(file, tmp_path)
    assert refused.value.exit_code == 75
    held.release()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    """Release leaves the file, without a pid in it, and the next one takes it."""
    file = tmp_path / "memd.lock"
    Lock(file, tmp_path).release()
    assert file.read_bytes() == b""
    Lock(file, tmp_path).release()


def test_the_lock_goes_with_the_process(tmp_path: Path) -> None:
    """A holder that is killed leaves a lock file with its pid, which holds nobody up."""
    file = tmp_path / "memd.lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunning, match=f"pid {holder.pid}"):
            Lock(file, tmp_path)
        holder.kill()
    assert file.read_text() == f"{holder.pid}\n"
    Lock(file, tmp_path).release()


def test_a_shorter_pid_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    """The file holds one pid, whatever stood in it."""
    file = tmp_path / "memd.lock"
    file.write_text("4194304444444\n")
    held = Lock(file, tmp_path)
    assert file.read_text() == f"{os.getpid()}\n"
    held.release()


def test_a_holder_that_wrote_no_pid_is_unknown(tmp_path: Path) -> None:
    """Between taking the lock and writing the pid, whoever else comes is refused all the same."""
    file = tmp_path / "memd.lock"
    held = Lock(file, tmp_path)
    file.write_bytes(b"")
    with pytest.raises(AlreadyRunning, match="pid unknown"):
        Lock(file, tmp_path)
    held.release()


def test_the_lock_is_private_and_not_inherited(tmp_path: Path) -> None:
    """Only its user reads the file, and a child process does not hold the lock."""
    file = tmp_path / "memd.lock"
    held = Lock(file, tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert not os.get_inheritable(held._fd)
    held.release()


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    """A link in the place of the lock file is a clear error: the file it points to is left alone."""
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    (tmp_path / "memd.lock").symlink_to(precious)
    with pytest.raises(LockUnusable, match=r"memd\.lock") as refused:
        Lock(tmp_path / "memd.lock", tmp_path)
    assert refused.value.exit_code == 78
    assert precious.read_text() == "keep me"


def test_a_directory_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """The message names the file and how to mend it."""
    with pytest.raises(LockUnusable, match=r"memd\.lock: No such file.* MEMD_STATE_DIR"):
        Lock(tmp_path / "none" / "memd.lock", tmp_path)
