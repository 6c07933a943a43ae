"""One invocation of memd-ctl: its options, paths, output and environment."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from memd.ctl.failures import BAD_CONFIG, Failed
from memd.ctl.output.terminal import Screen
from memd_client import paths
from memd_client.blocking import Client


class Places(msgspec.Struct, frozen=True):
    """The paths in use; all are absolute."""

    home: Path
    # Given by a flag or MEMD_CONFIG; None: the usual path, where the file is optional.
    config: Path | None
    state: Path
    socket: Path

    @property
    def log(self) -> Path:
        """The log of a daemon that `up` started."""
        return self.state / "memd.log"

    @property
    def lock(self) -> Path:
        """The lock file that the daemon of this state directory holds."""
        return self.state / "memd.lock"

    @property
    def socket_lock(self) -> Path:
        """The lock file that the daemon at this socket holds."""
        return self.socket.with_name(f"{self.socket.name}.lock")


def places(
    environ: Mapping[str, str],
    platform: str,
    home: Path,
    *,
    config: str | None,
    state_dir: str | None,
    socket: str | None,
) -> Places:
    """Return the paths: from flags, else from the environment, else the platform's usual ones.

    Args:
        environ: The environment of the process.
        platform: As in sys.platform.
        home: The home directory of the user.
        config: --config.
        state_dir: --state-dir.
        socket: --socket.

    Raises:
        Failed: the socket would be the root directory.
    """
    flags = {"MEMD_CONFIG": config, "MEMD_STATE_DIR": state_dir, "MEMD_SOCKET": socket}
    said = {**environ, **{name: value for name, value in flags.items() if value}}
    state = paths.state_dir(said, platform, home)
    at = _absolute(paths.socket_file(said, platform, home, state=state))
    if not at.name:
        raise Failed(
            "bad_config",
            f"{at} cannot be a socket: it is the root directory.",
            "Set MEMD_SOCKET, or --socket, to the path of a file.",
            exit_code=BAD_CONFIG,
        )
    return Places(
        home=home,
        config=_absolute(paths.config_file(said, platform, home)) if said.get("MEMD_CONFIG") else None,
        state=_absolute(state),
        socket=at,
    )


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100  Path.absolute keeps `..`, which would show in every message


_TIMEOUT_S = 10.0


class Invocation(msgspec.Struct, frozen=True):
    """The options of a command, its paths, its screen and its environment."""

    options: argparse.Namespace
    places: Places
    screen: Screen
    environ: Mapping[str, str]

    def client(self, timeout: float | None = _TIMEOUT_S) -> Client:
        """Create a client of the daemon; --timeout overrides the command's own timeout, in seconds."""
        given: Any = self.options.timeout
        return Client(self.places.socket, timeout if given is None else given)
