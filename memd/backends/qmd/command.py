"""Which program the configuration means by qmd."""

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from memd.backends.qmd.errors import QmdUnavailable

REMEDY = "Install it with `npm install -g @tobilu/qmd`, or name it by its whole path in qmd.command."


def find(command: str, *, workspace: Path, environ: Mapping[str, str], home: Path) -> Path:
    """The program that is to be run; no shell ever reads the command.

    Args:
        command: A name that is looked for on PATH, or a path: absolute, with ~, or relative to the workspace. What
            follows after a space is no part of it, unless the whole is the path of a file.
        workspace: Of the agent.
        environ: Of the daemon; PATH is looked at.
        home: What ~ stands for.

    Raises:
        QmdUnavailable: there is no such program, or it is none.
    """
    wanted = command.strip()
    if "\0" in wanted:
        raise QmdUnavailable("qmd.command holds a NUL character. " + REMEDY)
    if not wanted:
        raise QmdUnavailable("qmd.command is empty. " + REMEDY)
    if "/" in wanted:
        whole = _path(wanted, workspace, home)
        if os.path.lexists(whole):
            return _checked(whole)
    first = _first(wanted)
    if "/" in first:
        return _checked(_path(first, workspace, home))
    return _on_path(first, environ.get("PATH", os.defpath))


def _first(command: str) -> str:
    try:
        parts = shlex.split(command)
    except ValueError:  # a quotation mark that is never closed
        parts = command.split()
    if not parts or not parts[0]:
        raise QmdUnavailable("qmd.command names no program. " + REMEDY)
    return parts[0]


def _path(text: str, workspace: Path, home: Path) -> Path:
    if text.startswith("~/"):
        return home / text[2:]
    return workspace / text


def _on_path(name: str, path: str) -> Path:
    refused: QmdUnavailable | None = None
    for directory in path.split(os.pathsep):
        # What a relative directory means depends on where the daemon happens to stand.
        if not os.path.isabs(directory):  # noqa: PTH117 - an empty one is no Path
            continue
        file = Path(directory) / name
        if not file.is_file():
            continue
        try:
            return _checked(file)
        except QmdUnavailable as refusal:
            refused = refused or refusal
    raise refused or QmdUnavailable(f"{name} is not on the PATH of the daemon. {REMEDY}")


def _checked(file: Path) -> Path:
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise QmdUnavailable(f"{file} cannot be run: {error.strerror}. {REMEDY}") from error
    if stat.S_ISDIR(mode):
        raise QmdUnavailable(f"{file} is a directory. {REMEDY}")
    if not stat.S_ISREG(mode):
        raise QmdUnavailable(f"{file} is no program. {REMEDY}")
    if not os.access(file, os.X_OK):
        raise QmdUnavailable(f"{file} is not executable; `chmod +x` it. {REMEDY}")
    return Path(os.path.abspath(file))  # noqa: PTH100 - Path.absolute keeps `..`
