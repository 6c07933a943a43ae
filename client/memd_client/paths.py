"""Default paths of the configuration, the state and the socket.

The daemon and its clients must arrive at the same paths, so both use this module. Everything is computed from
the arguments; the disk is not accessed. An empty variable counts as unset, ``~`` and ``~/`` mean the home
directory, and an XDG variable that is not absolute is ignored, as the XDG Base Directory specification asks.
"""

import os
from collections.abc import Mapping
from pathlib import Path


class SocketPathTooLong(ValueError):
    """The path is too long for the address of a Unix socket.

    Attributes:
        path: The path.
        length: Its length in bytes.
        limit: The most bytes that a path may have here.
        hint: How to fix it.
    """

    hint = "Set MEMD_SOCKET to a shorter path."

    def __init__(self, path: Path, length: int, limit: int) -> None:
        super().__init__(path, length, limit)
        self.path = path
        self.length = length
        self.limit = limit

    def __str__(self) -> str:
        return f"The socket path {self.path} has {self.length} bytes, {self.limit} are possible. {self.hint}"


def config_file(environ: Mapping[str, str], platform: str, home: Path) -> Path:
    """Return the path of the configuration file: MEMD_CONFIG, else config.toml in the platform's configuration directory."""
    named = _named(environ, "MEMD_CONFIG", home)
    return named or _base(environ, "XDG_CONFIG_HOME", platform, home, ".config") / "memd" / "config.toml"


def state_dir(environ: Mapping[str, str], platform: str, home: Path) -> Path:
    """Return the state directory: MEMD_STATE_DIR, else below the platform's state directory."""
    named = _named(environ, "MEMD_STATE_DIR", home)
    return named or _base(environ, "XDG_STATE_HOME", platform, home, ".local/state") / "memd"


def socket_file(environ: Mapping[str, str], platform: str, home: Path, *, state: Path | None = None) -> Path:
    """Return the path of the socket: MEMD_SOCKET, else in the session's runtime directory, else in the state directory.

    Args:
        environ: The process's environment.
        platform: A value of sys.platform.
        home: The user's home directory.
        state: The state directory, if a flag gives another one than state_dir returns.
    """
    if named := _named(environ, "MEMD_SOCKET", home):
        return named
    # macOS has no such directory, and variables exported in a shell there do not reach a launchd service.
    if platform != "darwin" and (runtime := absolute(environ, "XDG_RUNTIME_DIR", home)):
        return runtime / "memd" / "memd.sock"
    return (state or state_dir(environ, platform, home)) / "memd.sock"


def checked_socket(path: Path, platform: str) -> Path:
    """Return the path if it fits into the address of a Unix socket.

    The address has 108 bytes on Linux, 104 on macOS and the BSDs; the last one is a NUL.

    Raises:
        SocketPathTooLong: it does not fit.
    """
    limit = (108 if platform == "linux" else 104) - 1
    length = len(os.fsencode(path))
    if length > limit:
        raise SocketPathTooLong(path, length, limit)
    return path


def _base(environ: Mapping[str, str], variable: str, platform: str, home: Path, default: str) -> Path:
    if platform == "darwin":
        return home / "Library" / "Application Support"
    return absolute(environ, variable, home) or home / default


def absolute(environ: Mapping[str, str], variable: str, home: Path) -> Path | None:
    """Return the directory that a variable names; None if it is unset, empty or relative."""
    path = _named(environ, variable, home)
    return path if path and path.is_absolute() else None


def _named(environ: Mapping[str, str], variable: str, home: Path) -> Path | None:
    value = environ.get(variable)
    if not value:
        return None
    if value == "~" or value.startswith("~/"):
        return home / value[2:].lstrip("/")
    return Path(value)
