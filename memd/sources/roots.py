"""The roots of an agent, from its settings, with the symlinks of the configuration resolved."""

import os
from pathlib import Path

from memd.config import AgentSettings
from memd.paths import Root, SingleFile, Tree, Workspace, exclude_of, is_markdown


def roots_of(settings: AgentSettings) -> tuple[Root, ...]:
    """The workspace first, then the extra paths, each once.

    A path that a person configured may be a symlink, or lie behind one: it is resolved here, once. A root that does
    not exist yet is a root all the same: it may be mounted or written later. Whether an extra path that does not
    exist means a file or a directory is told by its name.
    """
    exclude = exclude_of(map(_resolved_glob, settings.exclude))
    roots: list[Root] = [Workspace(_resolved(settings.workspace), exclude)]
    for path in map(_resolved, settings.extra_paths):
        is_file = path.is_file() or (is_markdown(path.name) and not path.is_dir())
        roots.append(SingleFile(path.parent, path.name, exclude) if is_file else Tree(path, exclude))
    return tuple(dict.fromkeys(roots))


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
