"""The roots of an agent, from its settings, with the symlinks of the configuration resolved."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from memd.config import AgentSettings
from memd.paths import Exclude, Root, SingleFile, Tree, Workspace, exclude_of, is_markdown


def roots_of(settings: AgentSettings) -> tuple[Root, ...]:
    """The workspace first, then the extra paths, each once.

    A path that a person configured may be a symlink, or lie behind one: it is resolved here, once. A root that does
    not exist yet is a root all the same: it may be mounted or written later. Whether an extra path that does not
    exist, or cannot be looked at, means a file or a directory is told by its name.
    """
    exclude = exclude_of(map(_resolved_glob, settings.exclude))
    return _roots(settings, exclude, _resolved, _is_file)


def roots_as_written(settings: AgentSettings) -> tuple[Root, ...]:
    """The same without a look at the disk, for one that does not answer: symlinks are not resolved, names tell files."""
    return _roots(settings, exclude_of(settings.exclude), _normal, lambda path: is_markdown(path.name))


def _roots(
    settings: AgentSettings,
    exclude: Exclude,
    place: Callable[[Path], Path],
    is_file: Callable[[Path], bool],
) -> tuple[Root, ...]:
    extra = (
        SingleFile(path.parent, path.name, exclude) if is_file(path) else Tree(path, exclude)
        for path in map(place, settings.extra_paths)
    )
    return tuple(dict.fromkeys([Workspace(place(settings.workspace), exclude), *extra]))


def _is_file(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # not there, or behind a directory that is closed, or on a disk that fails
        return is_markdown(path.name)
    return stat.S_ISREG(mode) or (is_markdown(path.name) and not stat.S_ISDIR(mode))


def _normal(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - Path.absolute keeps `..`


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))


def _resolved_glob(glob: str) -> str:
    """A glob against absolute paths sees them resolved, so what it says literally is resolved as well."""
    expanded = os.path.expanduser(glob) if glob.startswith("~") else glob  # noqa: PTH111 - a glob is no path
    if not expanded.startswith("/"):
        return expanded
    parts = expanded.split("/")
    literal = next((at for at, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    head = os.path.realpath("/".join(parts[:literal]) or "/").rstrip("/")
    tail = "/".join(parts[literal:])
    if tail:
        return f"{head}/{tail}"
    return f"{head}/" if expanded.endswith("/") else head
