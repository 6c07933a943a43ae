"""The qmd program of one agent: how it is found, its environment, and its directories."""

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

# What a program needs to run, to find its models, and to use the hardware. No variable with a key is passed.
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
        """Return the directories of the agent with this index file."""
        return cls(index.with_suffix(".qmd"))

    @property
    def config(self) -> Path:
        """The directory of qmd's configuration of collections."""
        return self.base / "config"

    @property
    def cache(self) -> Path:
        """The directory of qmd's index."""
        return self.base / "cache"

    @property
    def index(self) -> Path:
        """The database of qmd; -wal and -shm files are beside it."""
        return self.cache / "qmd" / "index.sqlite"

    @property
    def models(self) -> Path:
        """The directory in which qmd looks for models."""
        return self.cache / "qmd" / "models"

    @property
    def record(self) -> Path:
        """The record of the collections that memd has added."""
        return self.base / "collections.json"

    @property
    def manifest(self) -> Path:
        """The manifest of the files that memd has exported."""
        return self.base / "exported.json"


def qmd_environ(
    environ: Mapping[str, str], places: QmdPlaces, program: Path, working_directory: str = WORKING_DIRECTORY
) -> dict[str, str]:
    """Return the environment of an agent's qmd.

    The program's directory is first on PATH: its interpreter is often beside it, and the PATH of a service is
    short.
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
    """Create the directories, and link the models that the user has already downloaded; blocks.

    Raises:
        QmdUnavailable: a directory cannot be created.
    """
    try:
        for directory in (places.base, places.config, places.cache, places.cache / "qmd"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise QmdUnavailable(f"{error.filename} cannot be made: {error.strerror}") from error
    cache = environ.get("XDG_CACHE_HOME", "")
    models = (Path(cache) if cache.startswith("/") else home / ".cache") / "qmd" / "models"
    # Whatever exists stays; without the link the models are downloaded again, which is no failure.
    with contextlib.suppress(OSError):
        if models.is_dir() and not os.path.lexists(places.models):
            places.models.symlink_to(models, target_is_directory=True)


def find_program(command: str, *, workspace: Path, environ: Mapping[str, str], home: Path) -> Path:
    """Return the path of the program; the command is never passed to a shell.

    Args:
        command: A name that is looked for on PATH, or a path: absolute, with ~, or relative to the workspace.
            Text after a space is ignored, unless the whole is the path of a file.
        workspace: The agent's workspace.
        environ: The daemon's environment, for PATH.
        home: Replaces ~ in paths.

    Raises:
        QmdUnavailable: there is no such program, or it cannot be run.
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
    except ValueError:  # an unclosed quotation mark
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
        # A relative directory would depend on the daemon's working directory.
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
