"""The processes of a user, read from /proc."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

PROC = Path("/proc")


class Watching(msgspec.Struct, frozen=True):
    """What a process uses of inotify."""

    instances: int
    watches: int


def watching(uid: int, proc: Path = PROC) -> dict[int, Watching]:
    """The processes of a user that watch files, by pid; those that may not be looked at are left out."""
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


def daemons(uid: int, proc: Path = PROC) -> list[int]:
    """The pids of the memd daemons of a user."""
    return sorted(int(process.name) for process in _of_user(uid, proc) if _is_daemon(process))


def name(pid: int, proc: Path = PROC) -> str | None:
    """What a process is called, without its arguments, which may hold secrets."""
    try:
        return (proc / str(pid) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return None


def interpreter(pid: int, proc: Path = PROC) -> str | None:
    """The program that a process was started as."""
    try:
        first = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return None
    return os.fsdecode(first) if first.startswith(b"/") else None


def open_files_limit(pid: int, proc: Path = PROC) -> int | None:
    """How many files a process may have open; None where that is not known."""
    try:
        lines = (proc / str(pid) / "limits").read_text("utf-8").splitlines()
    except OSError:
        return None
    soft = next((line.split()[3] for line in lines if line.startswith("Max open files")), "")
    return int(soft) if soft.isdigit() else None


def number(file: str, proc: Path = PROC) -> int | None:
    """A setting of the kernel; None where it has none of that name."""
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
    # python [-P] -m memd run, or python .../bin/memd run
    if b"run" not in words:
        return False
    before = words[: words.index(b"run")]
    return before[-2:] == [b"-m", b"memd"] or (
        len(before) <= 2 and before[-1:] != [] and before[-1].endswith(b"/memd")
    )
