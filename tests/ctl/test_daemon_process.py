"""The daemon's process: its lock, its start and its end."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from memd.ctl.daemon_process import (
    Started,
    await_answer,
    command_for,
    end,
    find_holder,
    is_gone,
    is_held,
    start,
    stop,
    terminate,
)
from memd.ctl.failures import Failed
from memd.ctl.invocation import Places
from tests.bounds import shipped
from tests.client.scripted_server import serving
from tests.ctl.answers import agent, answering, status
from tests.wait import until


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
    monkeypatch.setattr("memd.ctl.daemon_process._LOCKS", tmp_path / "none")
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
    monkeypatch.setattr("memd.ctl.daemon_process._LOCKS", tmp_path / "locks")
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


_WAITS = "import sys; print(flush=True); sys.stdin.read()"
_HOLDS = """
import fcntl, os, signal, sys
lock = os.open({lock!r}, os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, b"%d\\n" % os.getpid())
{more}
print(flush=True)
sys.stdin.read()
"""
_STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); sys.stdin.read()"
)


@pytest.fixture
def here(home: Path, address: Path) -> Places:
    """Places of a daemon that nobody started yet."""
    return Places(home, None, home / "deep" / "state", address)


def _python(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.kill()
    child.communicate()


def test_a_process_that_ended_is_gone(tmp_path: Path) -> None:
    """Although its parent has not asked for its exit status."""
    lock = tmp_path / "lock"
    child = _python(_HOLDS.format(lock=str(lock), more=""))
    assert child.stdout is not None
    child.stdout.readline()
    assert not is_gone(child.pid)
    assert stop(lock, 10)
    assert child.returncode is None
    assert is_gone(child.pid)
    child.communicate()
    assert is_gone(child.pid)
    assert stop(lock, 0)


def test_a_process_that_does_not_end_is_told_of(tmp_path: Path) -> None:
    """After the patience there was."""
    lock = tmp_path / "lock"
    child = _python(_HOLDS.format(lock=str(lock), more="signal.signal(signal.SIGTERM, signal.SIG_IGN)"))
    assert child.stdout is not None
    child.stdout.readline()
    try:
        assert not stop(lock, 0.05)
    finally:
        _end(child)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody but the file tells")
def test_who_only_stands_in_the_lock_is_left_alone(tmp_path: Path) -> None:
    """The number of a daemon that is gone, or of one in another pid namespace, is another process by now."""
    lock = tmp_path / "lock"
    innocent, holder = _python(_WAITS), _python(_HOLDS.format(lock=str(lock), more=""))
    for child in (innocent, holder):
        assert child.stdout is not None
        child.stdout.readline()
    lock.write_text(f"{innocent.pid}\n", encoding="utf-8")
    assert terminate(lock) == holder.pid
    holder.communicate()
    assert terminate(lock) is None
    assert innocent.poll() is None
    _end(innocent)


def test_a_daemon_is_started_apart_from_the_terminal(here: Places) -> None:
    """A session of its own, a log for its owner alone, no stdin, no cwd of ours, no service manager to talk to."""
    report = (
        "import os, sys; print(os.getsid(0) == os.getpid(), os.getcwd(), os.environ.get('NOTIFY_SOCKET'),"
        " os.environ.get('SEEN'), repr(sys.stdin.read())); sys.exit(3)"
    )
    here.state.mkdir(parents=True)
    here.log.write_text("old\n", encoding="utf-8")
    here.log.chmod(0o644)
    started = start(
        [sys.executable, "-c", report], here.log, {**os.environ, "NOTIFY_SOCKET": "/n", "SEEN": "yes"}
    )
    assert started.process.wait(60) == 3
    assert here.log.read_text(encoding="utf-8") == "old\nTrue / None yes ''\n"
    assert stat.S_IMODE(here.log.stat().st_mode) == 0o600
    assert started.log_at == 4


def test_a_daemon_gets_its_places_named(here: Places) -> None:
    """All absolute, for it runs elsewhere; a configuration only where somebody named it: the usual one may be missing."""
    command = command_for(here)
    assert command[0] == sys.executable
    assert command[1:] == [
        "-P",
        "-m",
        "memd",
        "run",
        "--state-dir",
        str(here.state),
        "--socket",
        str(here.socket),
    ]
    named = msgspec.structs.replace(here, config=Path("/c.toml"))
    assert command_for(named) == [*command, "--config", "/c.toml"]


def _started(here: Places, code: str) -> Started:
    here.state.mkdir(parents=True, exist_ok=True)
    with here.log.open("ab") as log:
        return Started(
            subprocess.Popen([sys.executable, "-c", code], stdout=log), here.log, here.log.stat().st_size
        )


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"), [(78, "bad_config", 78), (70, "not_started", 1), (0, "not_started", 1)]
)
def test_a_daemon_that_ends_first_is_told_of(here: Places, code: int, kind: str, exit_code: int) -> None:
    """With its exit status and its last words, and none of those before."""
    here.state.mkdir(parents=True)
    here.log.write_text("of another day\n", encoding="utf-8")
    started = _started(here, f"print('no such agent'); print('x' * 999); raise SystemExit({code})")
    with pytest.raises(Failed) as failed:
        await_answer(started, here, 60)
    assert (failed.value.kind, failed.value.exit_code) == (kind, exit_code)
    assert f"exit status {code} " in failed.value.message
    assert "\n  no such agent\n  xxx" in failed.value.message
    assert "of another day" not in failed.value.message
    assert len(failed.value.message) < 500


def test_what_a_daemon_died_of_is_told(here: Places) -> None:
    """Its events as a person reads them, and the end of a traceback, where the reason stands."""
    trace = "Traceback:\\n" + "  somewhere\\n" * 50 + "OSError: the disk is on fire"
    event = f'{{"timestamp":"2026-02-09T10:00:00.1Z","level":"critical","event":"daemon.failed","exception":"{trace}"}}'
    started = _started(here, f"print({event!r}); raise SystemExit(70)")
    with pytest.raises(Failed) as failed:
        await_answer(started, here, 60)
    assert failed.value.message.endswith("somewhere\n    OSError: the disk is on fire")
    assert len(failed.value.message.splitlines()) <= 11


def test_of_the_log_of_a_daemon_that_ended_the_last_lines_are_told(here: Places) -> None:
    """So many, and of a long one so many characters."""
    most_lines = shipped("memd.ctl.daemon_process._TAIL_LINES")
    most_chars = shipped("memd.ctl.daemon_process._TAIL_CHARS")
    said = [*(f"line {number}" for number in range(most_lines - 1)), "x" * most_chars, "y" * (most_chars + 1)]
    started = _started(here, f"print(*{said!r}, sep=chr(10)); raise SystemExit(70)")
    with pytest.raises(Failed) as failed:
        await_answer(started, here, 60)
    _, *told = failed.value.message.splitlines()
    assert told == [f"  {line}" for line in (*said[1:-1], f"{'y' * most_chars}...")]


def test_a_daemon_that_was_slower_than_another_leaves_the_answer_to_it(here: Places) -> None:
    """It ends with 75; the socket answers all the same."""
    started = _started(here, "raise SystemExit(75)")
    started.process.wait(60)
    with serving(here.socket, answering(status(agent(), pid=42))):
        assert await_answer(started, here, 60).pid == 42


def test_a_daemon_that_is_still_on_its_way_is_called_back(here: Places) -> None:
    """Else it would take over when the other is stopped, a moment after `down` has said that none runs."""
    started = _started(here, "import time; time.sleep(60)")
    with serving(here.socket, answering(status(agent(), pid=42))):
        assert await_answer(started, here, 60).pid == 42
    assert started.process.returncode is not None


def test_a_daemon_that_does_not_want_to_end_is_ended(here: Places) -> None:
    """With whatever it started: it leads a group of its own."""
    here.state.mkdir(parents=True)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    started = start([sys.executable, "-c", code], here.log, os.environ)
    until(lambda: here.log.stat().st_size)
    end(started.process, timeout_s=0.05)
    assert started.process.returncode == -signal.SIGKILL


def test_a_daemon_that_never_answers_is_given_up(here: Places) -> None:
    """It is left running, for it may yet come up."""
    started = _started(here, "import time; print('thinking', flush=True); time.sleep(60)")
    try:
        with pytest.raises(Failed, match="did not answer within") as failed:
            await_answer(started, here, 0.5)
        assert failed.value.exit_code == 75
        assert started.process.poll() is None
    finally:
        started.process.kill()
        started.process.wait()


def test_a_daemon_elsewhere_is_named(here: Places) -> None:
    """One that holds the state directory, but listens at another socket."""
    here.state.mkdir(parents=True)
    code = (
        "import fcntl, os, sys\n"
        f"lock = os.open({str(here.lock)!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "os.write(lock, b'%d\\n' % os.getpid())\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = _python(code)
    assert other.stdout is not None
    other.stdout.readline()
    started = _started(here, "raise SystemExit(75)")
    started.process.wait(60)
    try:
        with pytest.raises(Failed, match=f"pid {other.pid}") as failed:
            await_answer(started, here, 0.3)
        assert (failed.value.kind, failed.value.exit_code) == ("busy", 75)
    finally:
        _end(other)


def test_a_log_is_not_written_through_a_link(here: Places, home: Path) -> None:
    """Who can write to the state directory must not choose what else is written."""
    here.state.mkdir(parents=True)
    here.log.symlink_to(home / "elsewhere")
    with pytest.raises(Failed, match=r"memd\.log cannot be written"):
        start([sys.executable, "-c", ""], here.log, os.environ)
    assert not (home / "elsewhere").exists()


def test_another_users_process_is_not_gone() -> None:
    """It may not be signalled, but it is there."""
    assert not is_gone(1)
