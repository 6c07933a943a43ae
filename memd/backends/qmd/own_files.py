"""Files below one directory of memd's own: written whole or not at all, following no symlink."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from memd.backends.qmd.process import QmdFailed

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO in its place hangs nobody
_TEMPORARY = ".memd-"


def put(base: Path, file: str, data: bytes) -> None:
    """Write a file (0600) in place of what has its name, making its directories (0700).

    Args:
        base: A directory that is there.
        file: Below it, POSIX.
        data: All of it.

    Raises:
        QmdFailed: it cannot be written; what was there still is.
    """
    *parts, name = file.split("/")
    with _mapped(base / file), _opened(base, parts, make=True) as directory:
        temporary = f"{_TEMPORARY}{secrets.token_hex(8)}"
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=directory)
        try:
            with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor has no Path
                stream.write(data)
                stream.flush()
                os.fsync(descriptor)  # else a power cut may leave the new name with nothing in it
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            _sync(directory)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise


def remove(base: Path, file: str) -> None:
    """Delete a file, if it is there; nothing else has its name then.

    Raises:
        QmdFailed: it cannot be deleted.
    """
    *parts, name = file.split("/")
    with (
        _mapped(base / file),
        contextlib.suppress(FileNotFoundError),
        _opened(base, parts, make=False) as directory,
    ):
        os.unlink(name, dir_fd=directory)
        _sync(directory)


def markdown(base: Path, top: str) -> dict[str, int]:
    """The bytes of each Markdown file below one of its directories, by its name below the base.

    What an interrupted put has left behind is deleted.

    Raises:
        QmdFailed: it cannot be listed.
    """
    found: dict[str, int] = {}
    waiting: list[tuple[str, ...]] = [(top,)]
    with _mapped(base / top):
        while waiting:
            parts = waiting.pop()
            try:
                with _opened(base, parts, make=False) as directory:
                    _look(directory, parts, found, waiting)
            except FileNotFoundError:
                continue
    return found


def _look(
    directory: int, parts: tuple[str, ...], found: dict[str, int], waiting: list[tuple[str, ...]]
) -> None:
    with os.scandir(directory) as listed:
        for each in listed:
            if each.is_dir(follow_symlinks=False):
                waiting.append((*parts, each.name))
            elif each.name.startswith(_TEMPORARY):
                os.unlink(each.name, dir_fd=directory)
            elif each.name.endswith(".md"):
                status = each.stat(follow_symlinks=False)
                found["/".join((*parts, each.name))] = status.st_size if stat.S_ISREG(status.st_mode) else -1


def _sync(directory: int) -> None:
    """Make the names in it last, where the file system can: a manifest must not know less than is there."""
    with contextlib.suppress(OSError):
        os.fsync(directory)


def make(directory: Path) -> None:
    """Make a directory (0700), where there is none.

    Raises:
        QmdFailed: something else is in its place.
    """
    with _mapped(directory):
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        os.close(os.open(directory, _DIRECTORY))


def get(base: Path, file: str) -> bytes:
    """What is in a file; nothing where it is not there.

    Raises:
        QmdFailed: it cannot be read.
    """
    *parts, name = file.split("/")
    with _mapped(base / file):
        try:
            with _opened(base, parts, make=False) as directory:
                descriptor = os.open(name, _OLD, dir_fd=directory)
        except FileNotFoundError:
            return b""
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor has no Path
            return stream.read()


@contextlib.contextmanager
def _opened(base: Path, parts: Sequence[str], *, make: bool) -> Iterator[int]:
    """A descriptor of the directory at some parts below the base."""
    descriptor = os.open(base, _DIRECTORY)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=descriptor)
            below = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _mapped(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise QmdFailed(f"{file}: {error.strerror}; is something else in its place?") from error
