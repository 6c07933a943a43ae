"""The qmd of one agent on this machine: which program it is, what it finds in its environment, and its own directories."""

import contextlib
import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from memd.backends.qmd.process import WORKING_DIRECTORY, QmdUnavailable

REMEDY = "Install it with `npm install -g @tobilu/qmd`, or name it by its whole path in qmd.command."

# What a program needs to run, to reach its models, and to use this machine's hardware. No key is among them.
_PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "QMD_EMBED_MODEL",
    "QMD_GENERATE_MODEL",
    "QMD_RERANK_MODEL",
    "QMD_EMBED_PARALLELISM",
    "QMD_EMBED_CONTEXT_SIZE",
    "QMD_EXPAND_CONTEXT_SIZE",
    "QMD_RERANK_CONTEXT_SIZE",
    "QMD_FORCE_CPU",
    "QMD_LLAMA_GPU",
    "QMD_SQLITE_BUSY_TIMEOUT",
)


class QmdPlaces(msgspec.Struct, frozen=True):
    """The directories of one agent's qmd."""

    base: Path  # <state>/agents/<id>.qmd

    @classmethod
    def of(cls, index: Path) -> Self:
        """Those of the agent whose index is this file."""
        return cls(index.with_suffix(".qmd"))

    @property
    def config(self) -> Path:
        """Where qmd keeps its collections."""
        return self.base / "config"

    @property
    def cache(self) -> Path:
        """Where qmd keeps its index."""
        return self.base / "cache"

    @property
    def index(self) -> Path:
        """What qmd has made of the files; with -wal and -shm beside it."""
        return self.cache / "qmd" / "index.sqlite"

    @property
    def models(self) -> Path:
        """Where qmd looks for its models."""
        return self.cache / "qmd" / "models"

    @property
    def record(self) -> Path:
        """Which collections memd has added."""
        return self.base / "collections.json"

    @property
    def manifest(self) -> Path:
        """Which files memd has exported."""
        return self.base / "exported.json"


def qmd_environ(
    environ: Mapping[str, str], places: QmdPlaces, program: Path, working_directory: str = WORKING_DIRECTORY
) -> dict[str, str]:
    """The environment of every qmd of one agent.

    The directory of the program comes first on PATH: what interprets it is often beside it, and a service's PATH is short.
    """
    passed = {name: environ[name] for name in _PASSED if name in environ}
    path = [str(program.parent), *passed.get("PATH", os.defpath).split(os.pathsep)]
    return passed | {
        "PATH": os.pathsep.join(dict.fromkeys(path)),
        "PWD": working_directory,
        "XDG_CONFIG_HOME": str(places.config),
        "QMD_CONFIG_DIR": str(places.config),
        "XDG_CACHE_HOME": str(places.cache),
        "NO_COLOR": "1",
    }


def prepare(places: QmdPlaces, environ: Mapping[str, str], home: Path) -> None:
    """Make the directories, and have the models that the user has already be those of the agent.

    Blocks.

    Raises:
        QmdUnavailable: the directories cannot be made.
    """
    try:
        for directory in (places.base, places.config, places.cache, places.cache / "qmd"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise QmdUnavailable(f"{error.filename} cannot be made: {error.strerror}") from error
    cache = environ.get("XDG_CACHE_HOME", "")
    models = (Path(cache) if cache.startswith("/") else home / ".cache") / "qmd" / "models"
    # Whatever is there stays; without the link the models are downloaded once more, which is no failure.
    with contextlib.suppress(OSError):
        if models.is_dir() and not os.path.lexists(places.models):
            places.models.symlink_to(models, target_is_directory=True)


def find_program(command: str, *, workspace: Path, environ: Mapping[str, str], home: Path) -> Path:
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
