"""Where things are when nobody says otherwise: the configuration, the state, the socket.

The daemon and its clients must come to the same answer, so both ask here. Everything is computed from what is
passed; nothing is looked up on the disk. An empty variable counts as unset, ``~`` and ``~/`` mean the home
directory, and an XDG variable that is not absolute is ignored, as the XDG Base Directory specification asks.
"""

import os
from collections.abc import Mapping
from pathlib import Path


class SocketPathTooLong(ValueError):
    """The operating system has no room for the path of this socket.

    Attributes:
        path: The path.
        length: Its length in bytes.
        limit: The most bytes a path may have here.
        hint: How to mend it.
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
    """The configuration file: MEMD_CONFIG, else config.toml where the platform keeps configuration."""
    named = _named(environ, "MEMD_CONFIG", home)
    return named or _base(environ, "XDG_CONFIG_HOME", platform, home, ".config") / "memd" / "config.toml"


def state_dir(environ: Mapping[str, str], platform: str, home: Path) -> Path:
    """The directory of everything the daemon keeps: MEMD_STATE_DIR, else where the platform keeps state."""
    named = _named(environ, "MEMD_STATE_DIR", home)
    return named or _base(environ, "XDG_STATE_HOME", platform, home, ".local/state") / "memd"


def socket_file(environ: Mapping[str, str], platform: str, home: Path, *, state: Path | None = None) -> Path:
    """The socket: MEMD_SOCKET, else in the runtime directory of the session, else in the state directory.

    Args:
        environ: The environment of the process.
        platform: As in sys.platform.
        home: The home directory of the user.
        state: The state directory, where a flag named another one than state_dir gives.
    """
    if named := _named(environ, "MEMD_SOCKET", home):
        return named
    # A Mac has no such directory, and what a shell there exports does not reach a service of launchd.
    if platform != "darwin" and (runtime := absolute(environ, "XDG_RUNTIME_DIR", home)):
        return runtime / "memd" / "memd.sock"
    return (state or state_dir(environ, platform, home)) / "memd.sock"


def checked_socket(path: Path, platform: str) -> Path:
    """The same path, if an address of a Unix socket can hold it.

    The address has 108 bytes on Linux, 104 on macOS and the BSDs; the last one is a NUL.

    Raises:
        SocketPathTooLong: it cannot.
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
    """The directory that a variable names; None where it is not set, empty or relative, which says nothing to a daemon."""
    path = _named(environ, variable, home)
    return path if path and path.is_absolute() else None


def _named(environ: Mapping[str, str], variable: str, home: Path) -> Path | None:
    value = environ.get(variable)
    if not value:
        return None
    if value == "~" or value.startswith("~/"):
        return home / value[2:].lstrip("/")
    return Path(value)
