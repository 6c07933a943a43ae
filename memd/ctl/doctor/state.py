"""Whether the state directory can hold what memd keeps in it."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import msgspec

from memd.ctl.doctor.finding import DoctorContext, Finding, quoted, right, unchecked, wrong
from memd.ctl.output.humanize import size
from memd.inspection.facts import Disk

_SPARE_BYTES = 64 << 20  # what SQLite's log may grow to between two checkpoints
_LONG_LOG_BYTES = 100 << 20
# Programs that answer for files of this machine.
_LOCAL = frozenset({"bindfs", "cryfs", "ecryptfs", "encfs", "gocryptfs", "mergerfs", "ntfs-3g", "securefs"})


class StateDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """The state directory as it is."""

    path: Path
    exists: bool
    above: Path  # the directory itself, or the nearest one above that exists
    is_directory: bool = True
    is_writable: bool = True  # of the directory above, where it does not exist
    mode: int = 0o700
    owner: int = 0
    free_bytes: int = 0
    largest_bytes: int = 0  # of the largest index, its log included
    log_bytes: int = 0
    temporary: Path | None = None  # where temporary files go; None: nowhere
    temporary_bytes: int = 0  # free there


def look(context: DoctorContext) -> StateDirectory:
    """Look at it without touching it."""
    path = Path(os.path.realpath(context.places.state))
    above = path
    while not os.path.lexists(above) and above != above.parent:
        above = above.parent
    status = above.stat()
    temporary = _find_temporary()
    return StateDirectory(
        path=context.places.state,
        exists=above == path,
        above=above,
        is_directory=stat.S_ISDIR(status.st_mode),
        is_writable=os.access(above, os.W_OK | os.X_OK),
        mode=stat.S_IMODE(status.st_mode),
        owner=status.st_uid,
        free_bytes=shutil.disk_usage(above).free,
        largest_bytes=_largest(path),
        log_bytes=_bytes(context.places.log),
        temporary=temporary,
        temporary_bytes=0 if temporary is None else shutil.disk_usage(temporary).free,
    )


def check(state: StateDirectory, disk: Disk | None, context: DoctorContext) -> list[Finding]:
    """All there is to say of it. Pure.

    Args:
        state: As look found it.
        disk: What it is on; None where the system does not tell.
        context: Places, platform and user.
    """
    if not state.exists:
        return [
            _missing(state, context),
            _file_system(state, disk, context),
            _space(state, context),
            _temporary(state),
        ]
    return [
        _directory(state, context),
        _file_system(state, disk, context),
        _space(state, context),
        _temporary(state),
        _log(state, context),
    ]


def unreachable(reason: str, context: DoctorContext) -> Finding:
    """The directory cannot even be looked at."""
    return wrong(
        "state.directory",
        f"{context.shown(context.places.state)} {reason}",
        "Set MEMD_STATE_DIR to a directory on a local disk that this user may write to.",
    )


def _missing(state: StateDirectory, context: DoctorContext) -> Finding:
    name = context.shown(state.path)
    if state.is_directory and state.is_writable:
        return right("state.directory", f"{name} does not exist yet: the daemon makes it")
    why = "this user may not write there" if state.is_directory else "that is not a directory"
    return wrong(
        "state.directory",
        f"{name} does not exist and cannot be made in {context.shown(state.above)}: {why}",
        "Set MEMD_STATE_DIR to a place that this user may write to.",
    )


def _directory(state: StateDirectory, context: DoctorContext) -> Finding:
    name, shown = "state.directory", context.shown(state.path)
    if not state.is_directory:
        return wrong(name, f"{shown} is not a directory", "Set MEMD_STATE_DIR to a directory.")
    if state.owner != context.uid:
        return wrong(
            name,
            f"{shown} belongs to user {state.owner}, and this is user {context.uid}",
            f"Ask as the user whom the daemon runs for, or give it away: sudo chown -R {context.uid} {quoted(state.path)}",
        )
    if not state.is_writable:
        return wrong(
            name,
            f"{shown} cannot be written to",
            f"Give its owner the right (chmod 700 {quoted(state.path)}), or mount its file system for writing.",
        )
    if state.mode != 0o700:
        return wrong(
            name,
            f"{shown} has mode {state.mode:04o}: others than its owner may look into it",
            f"chmod 700 {quoted(state.path)}",
        )
    return right(name, f"{shown}, mode 0700")


def _file_system(state: StateDirectory, disk: Disk | None, context: DoctorContext) -> Finding:
    name = "state.file_system"
    if disk is None:
        return unchecked(name, "this system does not tell what a directory is on")
    if disk.is_remote and disk.kind.removeprefix("fuse.") not in _LOCAL:
        return wrong(
            name,
            f"{context.shown(state.path)} is on {disk.kind}, a network file system, where SQLite cannot keep its log: "
            "indexes get damaged",
            "Set MEMD_STATE_DIR to a directory on a local disk, then start the daemon again; it indexes anew.",
        )
    gone = ", which is empty after a restart of the machine" if disk.kind in {"tmpfs", "ramfs"} else ""
    return right(name, f"{disk.kind} at {disk.point}{gone}")


def _space(state: StateDirectory, context: DoctorContext) -> Finding:
    # A new index is built beside the old one, then copied over it by way of the log.
    needed = 2 * state.largest_bytes + _SPARE_BYTES
    detail = f"{size(state.free_bytes)} free, {size(needed)} needed to build the largest index anew"
    if state.free_bytes >= needed:
        return right("state.space", detail)
    return wrong(
        "state.space",
        detail,
        f"Make room on the disk of {context.shown(state.above)}, or set MEMD_STATE_DIR to a directory on another one.",
    )


def _temporary(state: StateDirectory) -> Finding:
    name = "state.temporary"
    if state.temporary is None:
        return wrong(
            name,
            "there is no directory for temporary files",
            "Set TMPDIR to a directory that can be written to.",
        )
    # SQLite sorts there what does not fit into memory; that is never more than an index.
    needed = max(state.largest_bytes, 1 << 20)
    detail = f"{size(state.temporary_bytes)} free in {state.temporary}, at most {size(needed)} needed"
    if state.temporary_bytes >= needed:
        return right(name, detail)
    return wrong(name, detail, f"Make room in {quoted(state.temporary)}, or set TMPDIR to another directory.")


def _log(state: StateDirectory, context: DoctorContext) -> Finding:
    file = context.places.log
    if state.log_bytes <= _LONG_LOG_BYTES:
        return right("state.log", f"{size(state.log_bytes)} in {context.shown(file)}")
    # The daemon appends, wherever the end is.
    return wrong(
        "state.log",
        f"{context.shown(file)} has grown to {size(state.log_bytes)}",
        f"Empty it, which may be done while the daemon runs: truncate -s 0 {quoted(file)}",
    )


def _find_temporary() -> Path | None:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return None


def _largest(state: Path) -> int:
    try:
        files = list((state / "agents").glob("*.sqlite"))
    except OSError:  # another user's
        return 0
    return max((_bytes(file) + _bytes(Path(f"{file}-wal")) for file in files), default=0)


def _bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
