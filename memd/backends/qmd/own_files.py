"""Reads and writes files below a directory of memd's own: atomically, following no symlink."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from memd.backends.qmd.process import QmdFailed

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a FIFO in its place must not block.
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TEMPORARY = ".memd-"


def put(base: Path, file: str, data: bytes) -> None:
    """Replace a file (mode 0600) atomically, creating its directories (0700).

    Args:
        base: An existing directory.
        file: The path below it, POSIX.
        data: The whole content.

    Raises:
        QmdFailed: it cannot be written; the previous file is unchanged.
    """
    *parts, name = file.split("/")
    with _mapped(base / file), _opened(base, parts, make=True) as directory:
        temporary = f"{_TEMPORARY}{secrets.token_hex(8)}"
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=directory)
        try:
            with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor has no Path
                stream.write(data)
                stream.flush()
                os.fsync(descriptor)  # otherwise a power cut may leave an empty file under the new name
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            _sync(directory)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise


def remove(base: Path, file: str) -> None:
    """Delete a file if it exists.

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
    """Return the size of each Markdown file below a directory, by its path below the base; -1 for other than regular files.

    Remains of an interrupted `put` are deleted.

    Raises:
        QmdFailed: a directory cannot be listed.
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
    """Sync a directory if the file system can, because the manifest must not list less than exists."""
    with contextlib.suppress(OSError):
        os.fsync(directory)


def make(directory: Path) -> None:
    """Create a directory (mode 0700) unless it exists.

    Raises:
        QmdFailed: something else has its name.
    """
    with _mapped(directory):
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        os.close(os.open(directory, _DIRECTORY))


def get(base: Path, file: str) -> bytes:
    """Return the content of a file; empty if there is none.

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
    """Open a directory below the base; yield its descriptor."""
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
