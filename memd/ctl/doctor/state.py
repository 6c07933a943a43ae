"""Checks the state directory: its disk, its log, and its databases."""

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memd.ctl.doctor.finding import DoctorContext, Finding, failed, name_of, passed, quoted, unchecked
from memd.ctl.output.humanize import counted, one_line, size, visible
from memd.inspection.probe import Cache, Disk, ProbeResult, Store

_SPARE_BYTES = 64 << 20  # the size that a WAL may reach between two checkpoints
_LONG_LOG_BYTES = 100 << 20
# FUSE file systems whose files are on this machine.
_LOCAL = frozenset({"bindfs", "cryfs", "ecryptfs", "encfs", "gocryptfs", "mergerfs", "ntfs-3g", "securefs"})


class StateDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the directory."""

    path: Path
    exists: bool
    above: Path  # the directory or, if it does not exist, the nearest existing one above
    is_directory: bool = True
    is_writable: bool = True  # likewise, of the directory `above`
    mode: int = 0o700
    owner: int = 0
    free_bytes: int = 0
    largest_bytes: int = 0  # size of the largest index with its WAL
    log_bytes: int = 0
    temporary: Path | None = None  # the directory for temporary files; None: there is none
    temporary_bytes: int = 0  # free bytes there


def look_at_state(context: DoctorContext) -> StateDirectory:
    """Inspect the state directory without changing it."""
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


def check_state(state: StateDirectory, disk: Disk | None, context: DoctorContext) -> list[Finding]:
    """Check the directory, its file system and space, temporary files, and the log. Pure.

    Args:
        state: The result of `look_at_state`.
        disk: The disk of the directory; None: unknown.
        context: Paths, platform and user.
    """
    return [
        _directory(state, context) if state.exists else _missing(state, context),
        _file_system(state, disk, context),
        _space(state, context),
        _temporary(state),
        *([_log(state, context)] if state.exists else []),
    ]


def unseen(name: str, result: ProbeResult, context: DoctorContext) -> Finding:
    """Return the finding for something that could not be inspected, since the probe ended early."""
    return failed(
        name,
        f"looking at it {result.reason or 'found nothing'}",
        f"See whether the disk answers (ls {quoted(context.places.state)}) and what keeps the processor busy (top); "
        "or allow more time with --timeout 60.",
    )


def unreachable(reason: str, context: DoctorContext) -> Finding:
    """Report that the directory cannot be accessed."""
    return failed(
        "state.directory",
        f"{context.shown(context.places.state)} {reason}",
        "Set MEMD_STATE_DIR to a directory on a local disk that this user may write to.",
    )


def _missing(state: StateDirectory, context: DoctorContext) -> Finding:
    name = context.shown(state.path)
    if state.is_directory and state.is_writable:
        return passed("state.directory", f"{name} does not exist yet: the daemon makes it")
    why = "this user may not write there" if state.is_directory else "that is not a directory"
    return failed(
        "state.directory",
        f"{name} does not exist and cannot be made in {context.shown(state.above)}: {why}",
        "Set MEMD_STATE_DIR to a place that this user may write to.",
    )


def _directory(state: StateDirectory, context: DoctorContext) -> Finding:
    name, shown = "state.directory", context.shown(state.path)
    if not state.is_directory:
        return failed(name, f"{shown} is not a directory", "Set MEMD_STATE_DIR to a directory.")
    if state.owner != context.uid:
        return failed(
            name,
            f"{shown} belongs to user {state.owner}, and this is user {context.uid}",
            f"Ask as the user whom the daemon runs for, or give it away: sudo chown -R {context.uid} {quoted(state.path)}",
        )
    if not state.is_writable:
        return failed(
            name,
            f"{shown} cannot be written to",
            f"Give its owner the right (chmod 700 {quoted(state.path)}), or mount its file system for writing.",
        )
    if state.mode != 0o700:
        return failed(
            name,
            f"{shown} has mode {state.mode:04o}: others than its owner may look into it",
            f"chmod 700 {quoted(state.path)}",
        )
    return passed(name, f"{shown}, mode 0700")


def _file_system(state: StateDirectory, disk: Disk | None, context: DoctorContext) -> Finding:
    name = "state.file_system"
    if disk is None:
        return unchecked(name, "this system does not report the file system of a directory")
    if disk.is_remote and disk.kind.removeprefix("fuse.") not in _LOCAL:
        return failed(
            name,
            f"{context.shown(state.path)} is on {disk.kind}, a network file system, where SQLite cannot keep its log: "
            "indexes get damaged",
            "Set MEMD_STATE_DIR to a directory on a local disk, then start the daemon again; it indexes anew.",
        )
    gone = ", which is empty after a restart of the machine" if disk.kind in {"tmpfs", "ramfs"} else ""
    return passed(name, f"{disk.kind} at {disk.point}{gone}")


def _space(state: StateDirectory, context: DoctorContext) -> Finding:
    # A new index is built beside the old one, then copied over it through the WAL.
    needed = 2 * state.largest_bytes + _SPARE_BYTES
    detail = f"{size(state.free_bytes)} free, {size(needed)} needed to rebuild the largest index"
    if state.free_bytes >= needed:
        return passed("state.space", detail)
    return failed(
        "state.space",
        detail,
        f"Make room on the disk of {context.shown(state.above)}, or set MEMD_STATE_DIR to a directory on another one.",
    )


def _temporary(state: StateDirectory) -> Finding:
    name = "state.temporary"
    if state.temporary is None:
        return failed(
            name,
            "there is no directory for temporary files",
            "Set TMPDIR to a directory that can be written to.",
        )
    # SQLite sorts there what does not fit into memory, at most the size of an index.
    needed = max(state.largest_bytes, 1 << 20)
    detail = f"{size(state.temporary_bytes)} free in {state.temporary}, at most {size(needed)} needed"
    if state.temporary_bytes >= needed:
        return passed(name, detail)
    return failed(
        name, detail, f"Make room in {quoted(state.temporary)}, or set TMPDIR to another directory."
    )


def _log(state: StateDirectory, context: DoctorContext) -> Finding:
    file = context.places.log
    if state.log_bytes <= _LONG_LOG_BYTES:
        return passed("state.log", f"{size(state.log_bytes)} in {context.shown(file)}")
    # The daemon appends to the log, wherever its end is.
    return failed(
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
    except OSError:  # another user's file
        return 0
    return max((_bytes(file) + _bytes(Path(f"{file}-wal")) for file in files), default=0)


def _bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


_NEVER_LOST = "no note is lost by that"


def check_store(store: Store, context: DoctorContext, *, is_ours: bool, knows_config: bool) -> list[Finding]:
    """Check whether an index is sound, and fits the configuration.

    Args:
        store: The inspected index.
        context: Paths, platform and user.
        is_ours: Whether the state directory belongs to this user.
        knows_config: Whether the configuration could be read.
    """
    name, fit = name_of(store.agent, "index"), name_of(store.agent, "fit")
    findings = [_index(store, name, context, is_ours=is_ours, knows_config=knows_config)]
    if not knows_config:
        findings.append(unchecked(fit, "the configuration is wrong"))
    elif store.configured:
        findings.append(_fit(store, fit))
    return [
        *findings,
        *_not_utf8(store, name_of(store.agent, "encoding")),
        *_long_front_matter(store, name_of(store.agent, "properties")),
        *_copies(store, name_of(store.agent, "copy"), context),
        *_damaged(store, name_of(store.agent, "damaged"), context),
    ]


def _index(store: Store, name: str, context: DoctorContext, *, is_ours: bool, knows_config: bool) -> Finding:
    problem = _trouble(store, name, context, is_ours=is_ours)
    if problem is not None:
        return problem
    if not store.exists:
        return passed(name, "none yet: the daemon makes it")
    detail = f"sound: {counted(store.files, 'file')}, {counted(store.chunks, 'chunk')}, {size(store.bytes)}"
    if knows_config and not store.configured:
        detail += (
            f"; left over, no agent of this name is configured (rm {quoted(store.file)} if it is not needed)"
        )
    return passed(name, detail)


def _not_utf8(store: Store, name: str) -> list[Finding]:
    if not store.not_utf8:
        return []
    names = _named(store.not_utf8, store.not_utf8_count)
    return [
        failed(
            name,
            f"text that is not UTF-8: {counted(store.not_utf8_count, 'file')} ({names}); what could not be read is not found",
            "Save it as UTF-8 in an editor, or convert it from the encoding that it has, such as: "
            f"iconv -f WINDOWS-1252 -t UTF-8 {quoted(store.not_utf8[0])} > new.md",
        )
    ]


def _long_front_matter(store: Store, name: str) -> list[Finding]:
    count = store.long_front_matter_count
    if not count:
        return []
    names = _named(store.long_front_matter, count)
    return [
        failed(
            name,
            f"front matter that is too long: {counted(count, 'file')} ({names}); it is searched as text, and not all of its properties count",
            "Shorten it to 2,000 lines and 200,000 characters, or put what is long below it.",
        )
    ]


def _named(paths: Sequence[str], count: int) -> str:
    """Return the first of some paths, and how many more there are."""
    more = count - len(paths)
    return ", ".join(map(visible, paths)) + (f" and {more} more" if more else "")


def _fit(store: Store, name: str) -> Finding:
    if not store.exists or store.unchecked or store.closed or store.faults or not store.known_schema:
        return unchecked(name, "there is no index to compare with" if not store.exists else "see the index")
    if store.schema > store.known_schema:
        return unchecked(name, "a newer memd wrote the index")
    if store.rebuild is None:
        return passed(name, "the index was built for the configuration as it is")
    return passed(name, f"the index is rebuilt when the daemon reads the configuration: {store.rebuild}")


def check_cache(cache: Cache, context: DoctorContext, *, is_ours: bool) -> list[Finding]:
    """Check the embedding cache."""
    name = "state.embeddings"
    cache_finding = _trouble(cache, name, context, is_ours=is_ours)
    if cache_finding is None and not cache.exists:
        cache_finding = passed(name, "none yet: the daemon makes it")
    if cache_finding is None:
        cache_finding = passed(name, f"sound: {counted(cache.rows, 'vector')}, {size(cache.bytes)}")
    left = [_files_left(cache)] if cache.files else []
    return [
        cache_finding,
        *left,
        *_copies(cache, "state.copy", context),
        *_damaged(cache, "state.damaged", context),
    ]


def _files_left(cache: Cache) -> Finding:
    return failed(
        "state.batch_files",
        "batch jobs that have ended left files at their provider, with text of notes and transcripts: "
        + ", ".join(map(one_line, cache.files)),
        "The daemon tries to delete them again and again, for a month; delete them at the provider's yourself "
        "where its key is not configured any more.",
    )


def _trouble(store: Store | Cache, name: str, context: DoctorContext, *, is_ours: bool) -> Finding | None:
    """Return why a database cannot be used; None: it can."""
    if store.unchecked is not None:
        return unchecked(name, store.unchecked)
    if store.closed is not None:
        if not is_ours:
            return unchecked(name, f"the state directory is another user's ({store.closed})")
        return failed(
            name,
            f"{context.shown(store.file)} cannot be opened: {store.closed}",
            f"Give its owner the right: chmod 600 {quoted(store.file)}",
        )
    file = quoted(store.file)
    if store.faults:
        lost = (
            _NEVER_LOST if isinstance(store, Store) else "vectors are computed again if an index lacks them"
        )
        remove = f"rm -f {file} {file}-wal {file}-shm"
        return failed(
            name,
            f"{context.shown(store.file)} is damaged: {one_line('; '.join(store.faults))}",
            f"Recreate it, {lost}: {context.ctl('down')}; {remove}; {context.ctl('up')}",
        )
    if store.schema > store.known_schema:
        return failed(
            name,
            f"{context.shown(store.file)} was written by a newer memd (schema {store.schema}, "
            f"this one knows {store.known_schema})",
            f"Upgrade this one ({context.pip('install', '--upgrade', 'memd-daemon')}), or {_way_back(store, context)}",
        )
    return None


def _way_back(store: Store | Cache, context: DoctorContext) -> str:
    """Return further advice for a file of a newer memd."""
    file = quoted(store.file)
    for copy in store.copies:
        if 0 < copy.schema <= store.known_schema:
            kept = quoted(Path(store.file).with_name(copy.name))
            return (
                "go back to the copy that the newer one made before: "
                f"{context.ctl('down')}; rm -f {file}-wal {file}-shm; mv {kept} {file}; {context.ctl('up')}"
            )
    return f"move the file away: mv {file} {file}.newer"


def _copies(store: Store | Cache, name: str, context: DoctorContext) -> list[Finding]:
    """Report the backups that an earlier memd made, which are no fault."""
    if not store.copies:
        return []
    names = ", ".join(f"{copy.name} ({size(copy.bytes)})" for copy in store.copies)
    folder = Path(store.file).parent
    remove = " ".join(quoted(folder / copy.name) for copy in store.copies)
    until = (
        "The daemon deletes it once the new one is a day old, sound, and a whole pass has succeeded with it"
        if isinstance(store, Cache) or store.configured
        else f"No agent of this name is configured: rm {remove} if it is not needed"
    )
    return [
        passed(
            name,
            f"kept in {context.shown(folder)}: {names}, as it was before it was brought up to date. {until}",
        )
    ]


def _damaged(store: Store | Cache, name: str, context: DoctorContext) -> list[Finding]:
    if not store.damaged:
        return []
    folder = Path(store.file).parent
    return [
        failed(
            name,
            f"{counted(len(store.damaged), 'file')} set aside as damaged in {context.shown(folder)}: "
            f"{', '.join(store.damaged)}",
            "They are of no use any more, and hold what notes held: rm -f "
            + " ".join(f"{quoted(folder / file)}*" for file in store.damaged),
        )
    ]
