"""Moves damaged databases aside, keeps the newest, and deletes the others."""

import contextlib
import re
from pathlib import Path

import structlog

from memd.store import database_files

log = structlog.get_logger()

KEPT = 2  # of the damaged files of one database, the newest; each may be as large as the database
_LOGS = ("-wal", "-shm", "-journal")  # the last of one that was killed while it was made


def set_aside(file: Path, reason: str) -> None:
    """Move a damaged database out of the way, its log with it; the oldest of those that are kept goes.

    The names are on the disk itself when this returns: else a power cut could leave the old log beside a new file.

    Args:
        file: Of the database, if there still is one. Nothing has it open.
        reason: What is wrong with it, for the log.

    Raises:
        OSError: it cannot be moved.
    """
    before = _numbered(file)
    aside = Path(f"{file}.damaged-{max(before, default=0) + 1}")
    for number in sorted(before, reverse=True)[KEPT - 1 :]:
        _drop(before[number])
    try:
        file.rename(aside)
    except FileNotFoundError:
        remove(file)
        log.warning("store.lost", file=str(file), reason=reason)
        return
    # The log belongs to that file, and would be applied to whatever comes in its place.
    for suffix in _LOGS:
        with contextlib.suppress(FileNotFoundError):
            Path(f"{file}{suffix}").rename(f"{aside}{suffix}")
    database_files.sync_directory(file.parent)
    log.warning("store.set_aside", file=str(file), kept_as=str(aside), reason=reason)


def kept(file: Path) -> list[Path]:
    """What of a database was damaged and is kept, the newest first."""
    found = _numbered(file)
    return [found[number] for number in sorted(found, reverse=True)]


def remove(file: Path) -> None:
    """Delete a database that nothing has open, with its log, so that neither is back after a power cut.

    Raises:
        OSError: they may be there.
    """
    is_changed = False
    for path in (file, *(Path(f"{file}{suffix}") for suffix in _LOGS)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            is_changed = True
    if is_changed:
        database_files.sync_directory(file.parent)


def _numbered(file: Path) -> dict[int, Path]:
    name = re.compile(re.escape(file.name) + r"\.damaged-([0-9]{1,9})")
    found: dict[int, Path] = {}
    with contextlib.suppress(OSError):
        for path in file.parent.iterdir():
            if match := name.fullmatch(path.name):
                found[int(match[1])] = path
    return found


def _drop(damaged: Path) -> None:
    # What stood in the place of a file may be a directory with files of the user in it: those are not memd's to delete.
    for path in (damaged, *(Path(f"{damaged}{suffix}") for suffix in _LOGS)):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
