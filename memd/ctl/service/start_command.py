"""What a service manager is to start: the daemon that the user would start from here. Pure."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.ctl.call import Places
from memd.ctl.failures import BAD_CONFIG, Failed
from memd.sources.agent_homes import VARIABLES
from memd_client.paths import absolute

# They say where this user keeps things. A service does not get them from a shell; keys are not among them.
_PLACES = ("XDG_CONFIG_HOME", *VARIABLES)


class StartCommand(msgspec.Struct, frozen=True):
    """A daemon, as a service manager has to know it; all paths are absolute."""

    command: tuple[str, ...]
    environ: Mapping[str, str]  # beside what the manager gives
    places: Places


def launch(command: tuple[str, ...], environ: Mapping[str, str], places: Places) -> StartCommand:
    """The daemon of this installation at these places.

    Args:
        command: What runs it.
        environ: Of this process.
        places: Configuration, state directory and socket of the daemon.

    Raises:
        Failed: a path holds what cannot stand in a unit.
    """
    passed = {
        name: os.path.normpath(path)
        for name in _PLACES
        if (path := absolute(environ, name, places.home)) is not None
    }
    usual = str(places.home / ".config")
    if passed.get("XDG_CONFIG_HOME") == usual:
        del passed["XDG_CONFIG_HOME"]
    for text in (*command, *passed.values(), str(places.home)):
        if not text.isprintable() or text != text.strip() or text.endswith("\\"):
            raise Failed(
                "bad_config",
                f"A service manager cannot be told of the path {text!r}.",
                "Choose one without control characters, and without a blank or a backslash at its end.",
                exit_code=BAD_CONFIG,
            )
    return StartCommand(command, passed, places)


def config_home(environ: Mapping[str, str], home: Path) -> Path:
    """Where the user's configuration is, as the XDG Base Directory specification has it."""
    return absolute(environ, "XDG_CONFIG_HOME", home) or home / ".config"
