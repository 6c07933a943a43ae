"""Reads the processes of a user from /proc, and checks the limits of file watches and open files."""

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.ctl.doctor.finding import Finding, failed, passed, unchecked

PROC = Path("/proc")


class Watching(msgspec.Struct, frozen=True):
    """The inotify resources of a process."""

    instances: int
    watches: int


def find_watching(uid: int, proc: Path = PROC) -> dict[int, Watching]:
    """Return by pid the processes of a user that use inotify; inaccessible ones are left out."""
    found = {}
    for process in _of_user(uid, proc):
        instances = watches = 0
        with suppress(OSError):
            for descriptor in os.scandir(process / "fd"):
                with suppress(OSError):
                    if str(Path(descriptor).readlink()) == "anon_inode:inotify":
                        instances += 1
                        info = (process / "fdinfo" / descriptor.name).read_bytes()
                        watches += info.count(b"inotify wd:")
        if instances:
            found[int(process.name)] = Watching(instances, watches)
    return found


def find_daemons(uid: int, proc: Path = PROC) -> list[int]:
    """Return the pids of a user's memd daemons."""
    return sorted(int(process.name) for process in _of_user(uid, proc) if _is_daemon(process))


def process_name(pid: int, proc: Path = PROC) -> str | None:
    """Return the name of a process without its arguments, which may be secret."""
    try:
        return (proc / str(pid) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return None


def interpreter_of(pid: int, proc: Path = PROC) -> str | None:
    """Return the program that a process was started as."""
    try:
        first = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return None
    return os.fsdecode(first) if first.startswith(b"/") else None


def open_files_limit(pid: int, proc: Path = PROC) -> int | None:
    """Return the limit of open files of a process; None: unknown."""
    try:
        lines = (proc / str(pid) / "limits").read_text("utf-8").splitlines()
    except OSError:
        return None
    soft = next((line.split()[3] for line in lines if line.startswith("Max open files")), "")
    return int(soft) if soft.isdigit() else None


def kernel_setting(file: str, proc: Path = PROC) -> int | None:
    """Return a kernel setting; None: it does not exist."""
    try:
        return int((proc / "sys" / file).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _of_user(uid: int, proc: Path) -> Iterator[Path]:
    with suppress(OSError):
        for entry in os.scandir(proc):
            with suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    yield Path(entry.path)


def _is_daemon(process: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # The command is "python [-P] -m memd run" or "python .../bin/memd run".
    if b"run" not in words:
        return False
    before = words[: words.index(b"run")]
    return before[-2:] == [b"-m", b"memd"] or (
        len(before) <= 2 and before[-1:] != [] and before[-1].endswith(b"/memd")
    )


# A writer and three readers, each with the file, its WAL and shared memory; a deep scan; spare ones.
_FILES_AN_AGENT = 32
_FILES_ANYWAY = 128  # for the cache, the model, the watcher, and some dozen clients
_WATCHES_WANTED = 524_288
_INSTANCES_WANTED = 1024


class SystemLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the system, and their use."""

    open_files: int | None  # of this process; None: unlimited
    of_daemons: Mapping[int, int] = {}  # by pid: the number of open files
    watches: int | None = None  # of this user; None: the system has no such limit
    instances: int | None = None
    used: Mapping[int, Watching] = {}  # by pid


def look_at_limits(uid: int) -> SystemLimits:
    """Read the limits for this process and its user."""
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    watches = kernel_setting("fs/inotify/max_user_watches")
    return SystemLimits(
        open_files=None if own == resource.RLIM_INFINITY else own,
        of_daemons={pid: limit for pid in find_daemons(uid) if (limit := open_files_limit(pid))},
        watches=watches,
        instances=kernel_setting("fs/inotify/max_user_instances"),
        used={} if watches is None else find_watching(uid),
    )


def check_limits(
    limits: SystemLimits, *, agents: int, directories: int | None, daemon: int | None
) -> list[Finding]:
    """Check the limits of open files, inotify watches and inotify instances.

    Args:
        limits: The limits and their use; see look_at_limits.
        agents: The number of agents.
        directories: The number of directories to watch; None: unknown.
        daemon: The daemon's pid, whose own use does not count.
    """
    return [
        _open_files(limits, agents, daemon),
        _watches(limits, directories, daemon),
        _instances(limits, agents, daemon),
    ]


def _open_files(limits: SystemLimits, agents: int, daemon: int | None) -> Finding:
    name, needed = "limits.open_files", _FILES_ANYWAY + _FILES_AN_AGENT * agents
    allowed = limits.open_files if daemon is None else limits.of_daemons.get(daemon, limits.open_files)
    if allowed is None:
        return passed(name, "no limit")
    detail = f"{allowed:,} may be open, {needed:,} may be needed"
    if allowed >= needed:
        return passed(name, detail)
    return failed(
        name,
        detail,
        f"Raise it before the daemon starts: ulimit -n {max(1024, needed)} "
        "(a service: LimitNOFILE= in its unit).",
    )


def _watches(limits: SystemLimits, directories: int | None, daemon: int | None) -> Finding:
    name = "limits.watches"
    if limits.watches is None:
        return unchecked(name, "this system has no such limit")
    if directories is None:
        return unchecked(name, "it is not known how many directories there are")
    others = sum(each.watches for pid, each in limits.used.items() if pid != daemon)
    detail = f"{directories:,} directories to watch, {others:,} of {limits.watches:,} watches used by others"
    fits = others + directories <= limits.watches
    return _inotify(
        name, detail, fits=fits, setting="max_user_watches", wanted=max(_WATCHES_WANTED, 2 * directories)
    )


def _instances(limits: SystemLimits, agents: int, daemon: int | None) -> Finding:
    name = "limits.instances"
    if limits.instances is None:
        return unchecked(name, "this system has no such limit")
    others = sum(each.instances for pid, each in limits.used.items() if pid != daemon)
    # One for each agent, and one while a watcher is replaced.
    needed = agents + 1
    detail = f"{needed} watchers needed, {others} of {limits.instances} used by others"
    fits = others + needed <= limits.instances
    wanted = max(_INSTANCES_WANTED, 2 * (others + needed))
    return _inotify(name, detail, fits=fits, setting="max_user_instances", wanted=wanted)


def _inotify(name: str, detail: str, *, fits: bool, setting: str, wanted: int) -> Finding:
    if fits:
        return passed(name, detail)
    return failed(
        name,
        f"{detail}: changes would be looked for every few seconds, not seen as they happen",
        f"sudo sysctl fs.inotify.{setting}={wanted} (and a line of that in /etc/sysctl.d/memd.conf)",
    )
