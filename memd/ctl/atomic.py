"""Replacing a file so that a reader, or a machine that stops, finds the old text or the new one."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from memd.errors import MemdError


class NotWritten(MemdError):
    """A file could not be written; what stood there before still does."""


def write_text(file: Path, text: str) -> None:
    """Put a text, in UTF-8 and with its line ends as they are, in place of a file.

    A file that is there keeps its mode and owner; a new one is for its owner alone (0600), as is a directory made
    for it (0700). A symbolic link stays, and what it leads to is replaced.

    Raises:
        NotWritten: it cannot be done.
    """
    # Text first: what cannot be encoded must not leave a temporary file.
    data = text.encode()
    target = Path(os.path.realpath(file))
    try:
        _make_directory(target.parent)
        old = _find_status(target)
        if old is not None and not stat.S_ISREG(old.st_mode):
            raise NotWritten(f"{file} is not a regular file; it was left alone")
        _replace(target, data, old)
    except OSError as error:
        raise NotWritten(f"{file} cannot be written: {error.strerror}") from error


def _make_directory(directory: Path) -> None:
    if not directory.exists():
        # One by one: mkdir with parents gives its mode to the last alone.
        _make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


def _find_status(target: Path) -> os.stat_result | None:
    try:
        return target.lstat()
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes, old: os.stat_result | None) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # 0600
    try:
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor has no Path
            if old is not None:
                # Only root may give a file away; anybody else becomes the owner of what he replaces.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    """Make the new name last, where the file system can."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
