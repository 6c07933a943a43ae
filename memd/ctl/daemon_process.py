"""Finds, starts, awaits and stops the daemon's process."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.ctl.atomic_write import make_private
from memd.ctl.daemon_log import last_lines, readable
from memd.ctl.failures import BAD_CONFIG, BUSY, ERROR, Failed, failure_for
from memd.ctl.invocation import Places
from memd.ctl.output.humanize import visible
from memd.ctl.output.terminal import uncoloured
from memd_client import paths
from memd_client.blocking import Client
from memd_client.errors import ConnectionLost, DaemonNotRunning, MemdClientError, TimedOut
from memd_client.messages import StatusReport

_LOCKS = Path("/proc/locks")
_PID_APPEARS_S = 1.0  # without /proc/locks: a daemon takes the lock, then writes its pid to the file


def find_holder(lock: Path) -> int | None:
    """Return the pid of the process that holds a lock file; None if there is none, or it is in another pid namespace."""
    if _LOCKS.exists():
        return _holder_of(lock)
    deadline = time.monotonic() + _PID_APPEARS_S
    while is_held(lock):
        text = _read(lock)
        if text.isdigit() and int(text) > 1:
            return int(text)
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return None


def is_held(lock: Path) -> bool:
    """Return whether a process holds a lock file, even in another pid namespace."""
    if _LOCKS.exists() and _holder_of(lock) is not None:
        return True
    try:
        stream = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        # A shared lock is refused while the daemon has its own; it ends with the descriptor.
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(stream)


def _holder_of(lock: Path) -> int | None:
    """Return the holder according to /proc/locks, in the reader's pid namespace.

    Its lines look like ``7: FLOCK ADVISORY WRITE 4711 fe:00:5310732 0 EOF``.
    """
    try:
        status = lock.lstat()
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for words in map(str.split, lines):
        if words[1:2] != ["FLOCK"] or words[3:4] != ["WRITE"] or len(words) < 6 or not words[4].isdigit():
            continue
        on, _, inode = words[5].rpartition(":")
        # Some file systems have another device number for files than for locks; then the file's pid must
        # match, too.
        if inode == str(status.st_ino) and (on == device or words[4] == _read(lock)):
            return int(words[4])
    return None


def _read(lock: Path) -> str:
    try:
        stream = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.pread(stream, 32, 0).decode("ascii", "replace").strip()
    finally:
        os.close(stream)


_STEP_S = 0.02
_ASK_S = 2.0
_TERMINATE_S = 5.0
_TAIL_LINES = 10
_TAIL_CHARS = 300  # longest line shown
_LOSER_WAITS_S = 5.0
# They belong to the service from which memd-ctl was called: a daemon would notify that service's manager.
_NOT_INHERITED = frozenset({"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"})


def require_usable_socket(socket: Path, platform: str) -> None:
    """Check that the path of the socket is not too long.

    Raises:
        Failed: it is too long.
    """
    try:
        paths.checked_socket(socket, platform)
    except paths.SocketPathTooLong as error:
        raise Failed("bad_config", str(error), exit_code=BAD_CONFIG) from error


class Started(msgspec.Struct, frozen=True):
    """A daemon that was started."""

    process: subprocess.Popen[bytes]
    log: Path
    log_at: int  # offset of its first line in the log


def command_for(places: Places) -> list[str]:
    """Return the command that runs a daemon with these paths."""
    # -P: modules must not be imported from the working directory, which is the root directory.
    command = [sys.executable, "-P", "-m", "memd", "run"]
    command += ["--state-dir", str(places.state), "--socket", str(places.socket)]
    return command if places.config is None else [*command, "--config", str(places.config)]


def start(command: Sequence[str], file: Path, environ: Mapping[str, str]) -> Started:
    """Start a daemon that outlives this process and the terminal.

    Args:
        command: The command that runs it.
        file: Its log; missing directories are created.
        environ: Its environment.

    Raises:
        Failed: its log cannot be written.
        OSError: it cannot be started.
    """
    try:
        make_private(file.parent)
        log = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Failed(
            "bad_config",
            f"{visible(error.filename or str(file))} cannot be written: {error.strerror}.",
            f"Give this user the right to write in {visible(str(file.parent))}, or set MEMD_STATE_DIR to another directory.",
            exit_code=BAD_CONFIG,
        ) from error
    try:
        os.fchmod(log, 0o600)
        log_at = os.fstat(log).st_size
        process = subprocess.Popen(  # noqa: S603  the command is our own
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={name: value for name, value in environ.items() if name not in _NOT_INHERITED},
            start_new_session=True,
        )
    finally:
        os.close(log)
    return Started(process, file, log_at)


def await_answer(started: Started, places: Places, timeout_s: float) -> StatusReport:
    """Wait until a daemon answers at the socket: the one that was started, or another that was faster.

    Raises:
        Failed: the started one ended first, or the wait was too long.
    """
    deadline = time.monotonic() + timeout_s
    lost_at: float | None = None  # when it turned out that another daemon was faster
    while True:
        exit_code = started.process.poll()
        report = find_answer(places)
        if report is not None:
            if report.pid != started.process.pid:
                # It might still take the lock when the other one is stopped.
                end(started.process)
            return report
        if exit_code == BUSY and lost_at is None:
            lost_at = time.monotonic()
        elif exit_code not in {None, BUSY}:
            raise _exit_failure(started, exit_code)
        now = time.monotonic()
        if lost_at is not None and now - lost_at > _LOSER_WAITS_S and find_holder(places.lock) is None:
            raise _exit_failure(started, BUSY)
        if now > deadline:
            raise _timeout_failure(started, places, timeout_s)
        time.sleep(_STEP_S)


def find_answer(places: Places, timeout_s: float = 0.0) -> StatusReport | None:
    """Return the status of the daemon at the socket; None if none answers (yet).

    Args:
        places: The paths of the daemon.
        timeout_s: How long one that listens may take; less than _ASK_S counts as that.
    """
    try:
        with Client(places.socket, timeout=max(_ASK_S, timeout_s)) as memd:
            return memd.status()
    except (DaemonNotRunning, ConnectionLost, TimedOut):
        return None


def remark_if_not_running(places: Places, hint: str) -> str | None:
    """Return a remark if no daemon answers, or refuses this memd-ctl; None if one answers.

    Args:
        places: The paths of the daemon.
        hint: The consequence, and what to do.
    """
    try:
        with Client(places.socket, timeout=_ASK_S) as memd:
            memd.status()
    except (DaemonNotRunning, ConnectionLost, TimedOut):
        return f"No memd daemon answers at {visible(str(places.socket))} yet; {hint}"
    except MemdClientError as error:
        reason = failure_for(error)
        return f"The daemon that runs cannot be asked: {reason.message}{f' {reason.hint}' if reason.hint else ''}"
    return None


def end(process: "subprocess.Popen[bytes]", timeout_s: float = _TERMINATE_S) -> None:
    """Stop a daemon that was started here, with its child processes, and wait for it."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        # It is the leader of a process group.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def terminate(lock: Path) -> int | None:
    """Ask the daemon that holds a lock to end; return its pid, or None if there is none in this pid namespace.

    A daemon that is stopped, as by Ctrl-Z, is continued, or it would not see the signal.

    Raises:
        PermissionError: it is another user's.
    """
    pid = find_holder(lock)
    return pid if pid is not None and _signal(lock, pid, signal.SIGTERM, signal.SIGCONT) else None


def kill(locks: Sequence[Path], pid: int) -> bool:
    """End a daemon at once if it still holds one of these locks; return whether it did.

    Raises:
        PermissionError: it is another user's.
    """
    return any(_signal(lock, pid, signal.SIGKILL) for lock in locks)


def _signal(lock: Path, pid: int, *signals: signal.Signals) -> bool:
    """Send signals to a process that holds a lock; return whether it did."""
    try:
        # The pid may be reused just before it is opened, so the holder is looked up afterwards.
        process = os.pidfd_open(pid) if sys.platform == "linux" else None
    except ProcessLookupError:
        return False
    try:
        if find_holder(lock) != pid:
            return False
        for number in signals:
            if sys.platform == "linux":
                assert process is not None
                signal.pidfd_send_signal(process, number)
            else:
                os.kill(pid, number)
    except ProcessLookupError:
        return False
    finally:
        if process is not None:
            os.close(process)
    return True


def stop(lock: Path, timeout_s: float) -> bool:
    """Stop the daemon that holds a lock; return whether it has ended within that many seconds.

    Raises:
        PermissionError: it is another user's.
    """
    pid = terminate(lock)
    deadline = time.monotonic() + timeout_s
    while pid is not None and not is_gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP_S)
    return True


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; a zombie counts as ended."""
    try:
        os.kill(pid, 0)
        # The state follows the name, which is in brackets and may contain anything.
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except ProcessLookupError:
        return True
    except OSError:  # macOS has no /proc; launchd reaps at once
        return False
    return stat.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])


def _exit_failure(started: Started, exit_code: int | None) -> Failed:
    return Failed(
        "bad_config" if exit_code == BAD_CONFIG else "not_started",
        f"memd ended with exit status {exit_code} before it answered.{_log_tail(started)}",
        f"Its log: {started.log}",
        exit_code=exit_code if exit_code in {BAD_CONFIG, BUSY} else ERROR,
    )


def _timeout_failure(started: Started, places: Places, timeout_s: float) -> Failed:
    holder = find_holder(places.lock)
    if holder is not None and holder != started.process.pid:
        return Failed(
            "busy",
            f"A memd daemon runs for {places.state} already (pid {holder}), but it does not answer at {places.socket}.",
            "It may listen elsewhere: name that with --socket, or stop it with `memd-ctl down`.",
            exit_code=BUSY,
        )
    return Failed(
        "timed_out",
        f"memd was started (pid {started.process.pid}), but did not answer within {timeout_s:g} s."
        f"{_log_tail(started)}",
        f"It may still come up: memd-ctl status. Its log: {started.log}",
        exit_code=BUSY,
    )


def _log_tail(started: Started) -> str:
    """Return the end of what it has logged: the last lines of a traceback say what is wrong."""
    lines = last_lines(started.log, _TAIL_LINES, since=started.log_at)
    tail = "\n".join(readable(line, uncoloured) for line in lines).splitlines()[-_TAIL_LINES:]
    return "".join(f"\n  {line[:_TAIL_CHARS]}{'...' if len(line) > _TAIL_CHARS else ''}" for line in tail)
