import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memd.errors import FatalError
from memd.server.lock import AlreadyRunning, Lock, LockUnusable, sole_daemon
from tests.bounds import shipped
from tests.descriptors import open_descriptors
from tests.otheruser import NOBODY, as_other_user, shared_directory

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


def test_a_lock_is_looked_at_now_and_then_while_it_may_only_be_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes second waits for a moment, and does not compute all that time."""
    held = Lock(tmp_path / "memd.lock", tmp_path)
    tries: list[int] = []
    flock = fcntl.flock

    def counted(descriptor: int, operation: int) -> None:
        tries.append(operation)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", counted)
    with pytest.raises(AlreadyRunning):
        Lock(tmp_path / "memd.lock", tmp_path)
    assert len(tries) <= 25
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
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        held.release()
        Lock(file, tmp_path).release()
        child.kill()


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
    """The message names the file and how to fix it."""
    with pytest.raises(LockUnusable, match=r"memd\.lock: No such file.* MEMD_STATE_DIR"):
        Lock(tmp_path / "none" / "memd.lock", tmp_path)


def test_a_file_system_without_locks_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network mounts have none; nothing is left open."""

    def refuse(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = open_descriptors()
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(LockUnusable, match=r"memd\.lock: it cannot be locked \(No locks available\)"):
        Lock(tmp_path / "memd.lock", tmp_path)
    assert open_descriptors() == before


@pytest.mark.parametrize("held", [True, False])
def test_what_is_no_lock_file_is_left_alone(tmp_path: Path, *, held: bool) -> None:
    """A file of another kind under that name, another name of somebody's letter: nothing is written over it."""
    precious, file = tmp_path / "precious", tmp_path / "memd.lock"
    precious.write_text("Dear diary, today the lighthouse was painted.\n")
    os.link(precious, file)
    if not held:
        precious.unlink()
    with pytest.raises(LockUnusable, match=r"memd\.lock: another file is there"):
        Lock(file, tmp_path)
    assert file.read_text() == "Dear diary, today the lighthouse was painted.\n"


def test_a_fifo_in_its_place_hangs_nobody(tmp_path: Path) -> None:
    """It is told, at once."""
    os.mkfifo(tmp_path / "memd.lock")
    with pytest.raises(LockUnusable, match="something that is not a file is there"):
        Lock(tmp_path / "memd.lock", tmp_path)


def test_only_a_pid_is_repeated_of_a_lock_file(tmp_path: Path) -> None:
    """Whoever holds it may have written anything, for the terminal of whoever comes second."""
    file = tmp_path / "memd.lock"
    held = Lock(file, tmp_path)
    file.write_bytes(b"\x1b]0;gotcha\x07 12")
    with pytest.raises(AlreadyRunning, match="pid unknown"):
        Lock(file, tmp_path)
    held.release()


def lock_here(file: str) -> str:
    """What comes of taking a lock."""
    try:
        Lock(Path(file), Path(file)).release()
    except (LockUnusable, AlreadyRunning) as error:
        return str(error)
    return "taken"


def test_a_lock_file_of_another_user_is_refused() -> None:
    """Where others may write, somebody could make the lock file first, and hold it for ever: that is told. Root's is taken."""
    assert os.getuid() == 0, "only root can become another user"
    with shared_directory() as directory:
        os.chown(directory, 0, 0)
        directory.chmod(0o1777)
        for name, owner, told in (
            (
                "theirs",
                NOBODY - 1,
                f"cannot write {directory}/theirs: it belongs to another user (uid {NOBODY - 1}).",
            ),
            ("roots", 0, "taken"),
        ):
            file = directory / name
            file.touch()
            file.chmod(0o666)
            os.chown(file, owner, owner)
            assert as_other_user("tests.server.test_lock", "lock_here", str(file)).startswith(told)


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_lock_file_holds_no_more_than_a_pid(tmp_path: Path, beyond: int) -> None:
    """What is longer is somebody's text, and is not written over."""
    file = tmp_path / "memd.lock"
    file.write_bytes(b"7" * (shipped("memd.server.lock._PID_BYTES") + beyond))
    if beyond:
        with pytest.raises(LockUnusable, match="another file is there"):
            Lock(file, tmp_path)
    else:
        Lock(file, tmp_path).release()


def test_what_is_missing_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """And both locks are held until the end."""
    state, socket = tmp_path / "far" / "state", tmp_path / "run" / "memd" / "s"
    with sole_daemon(state, socket):
        for made in (state / "agents", socket.parent):
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
        for other_state, other_socket in ((state, tmp_path / "t"), (tmp_path / "other", socket)):
            with pytest.raises(AlreadyRunning), sole_daemon(other_state, other_socket):
                pass
    with sole_daemon(state, socket):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a directory away")
@pytest.mark.parametrize(
    ("user", "owner", "is_refused"),
    [(1000, 1000, False), (0, 1000, False), (1000, 0, False), (1000, 2000, True)],
)
def test_memory_is_not_kept_in_a_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, owner: int, is_refused: bool
) -> None:
    """But in one of root's, and root keeps it wherever it is told to."""
    state = tmp_path / "state"
    (state / "agents").mkdir(parents=True, mode=0o700)
    os.chown(state, owner, owner)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    told = ""
    try:
        sole_daemon(state, tmp_path / "s").__enter__()
    except FatalError as refused:
        told = str(refused)
    assert ("it belongs to another user (uid 2000)" in told) == is_refused


@pytest.mark.parametrize("name", ["state", "state/agents"])
@pytest.mark.parametrize(
    ("mode", "is_refused"), [(0o700, False), (0o755, False), (0o770, False), (0o777, True), (0o1777, True)]
)
def test_memory_is_not_kept_where_any_user_may_write(
    tmp_path: Path, name: str, mode: int, is_refused: bool
) -> None:
    """One of a group is left to the group. Nothing is made in one that is refused."""
    state = tmp_path / "state"
    (state / "agents").mkdir(parents=True, mode=0o700)
    (tmp_path / name).chmod(mode)
    if is_refused:
        with pytest.raises(FatalError, match=f"{tmp_path / name}: any user may write there") as refused:
            sole_daemon(state, tmp_path / "s").__enter__()
        assert refused.value.exit_code == 78
        assert not list(state.rglob("*.lock"))
    else:
        with sole_daemon(state, tmp_path / "s"):
            assert (state / "memd.lock").exists()


@pytest.mark.parametrize("which", ["state", "socket"])
def test_a_directory_that_cannot_be_made_is_told_with_the_remedy(tmp_path: Path, which: str) -> None:
    """By the variable that names another path."""
    (tmp_path / "file").touch()
    places = {"state": tmp_path / "state", "socket": tmp_path / "s"} | {which: tmp_path / "file" / "x"}
    if which == "socket":
        places["socket"] = tmp_path / "file" / "x" / "s"
    variable = {"state": "MEMD_STATE_DIR", "socket": "MEMD_SOCKET"}[which]
    with pytest.raises(
        FatalError, match=f"cannot make {tmp_path / 'file'}.*Set {variable} to another path"
    ) as told:
        sole_daemon(places["state"], places["socket"]).__enter__()
    assert told.value.exit_code == 78
