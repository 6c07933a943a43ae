"""The directory that `up` is to make searchable."""

import os
from pathlib import Path

import msgspec

from memd.ctl.failures import UsageError
from memd.ctl.output.humanize import shown, visible
from memd.text.memory_paths import MEMORY_DIRECTORY

_LONG_TERM = "memory.md"  # in any case of letters


class Directory(msgspec.Struct, frozen=True):
    """A directory that can be made searchable."""

    path: Path  # absolute; a symlink is kept as it was named, for it may lead elsewhere tomorrow
    is_workspace: bool  # it holds MEMORY.md or memory/


def checked(typed: str, home: Path) -> Directory:
    """The directory that was typed.

    Raises:
        UsageError: there is none, or it should not be searched.
    """
    path = _absolute(typed, home)
    name = visible(shown(path, home))
    try:
        with os.scandir(path) as entries:
            is_workspace = any(map(_is_mark, entries))
    except FileNotFoundError:
        raise UsageError(f"{name} does not exist.", "Make it first, or name another directory.") from None
    except NotADirectoryError:
        raise UsageError(f"{name} is no directory.", "Name the directory that it is in.") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from error
    if not is_workspace and _holds_home(path, home):
        raise UsageError(
            f"{name} holds your whole home directory: all Markdown below it, of every program, would be searched.",
            "Name the directory of your notes. (A workspace holds MEMORY.md or memory/.)",
        )
    return Directory(path, is_workspace)


def _absolute(typed: str, home: Path) -> Path:
    written = Path(typed)
    expanded = home.joinpath(*written.parts[1:]) if written.parts[:1] == ("~",) else Path.cwd() / written
    # Behind a symlink `..` is the parent of what it leads to, as every program but a shell's cd has it.
    return Path(os.path.realpath(expanded)) if ".." in expanded.parts else Path(os.path.abspath(expanded))  # noqa: PTH100  Path.absolute keeps a trailing dot


def _is_mark(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry makes its directory a workspace. memd follows no symlink inside one."""
    if entry.name == MEMORY_DIRECTORY:
        return entry.is_dir(follow_symlinks=False)
    return entry.name.lower() == _LONG_TERM and entry.is_file(follow_symlinks=False)


def _holds_home(path: Path, home: Path) -> bool:
    return Path(os.path.realpath(home)).is_relative_to(os.path.realpath(path))
