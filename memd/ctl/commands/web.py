"""memd-ctl web: serves a page that shows the memory to everyone who has its address."""

import contextlib
import shutil
import signal
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memd.ctl.failures import BAD_CONFIG, Failed, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output.terminal import Outcome

if TYPE_CHECKING:
    from memd_client.web.server import EditorName


def run_web(invocation: Invocation) -> Outcome:
    """Serve the page until Ctrl-C, or until it has not been used for half an hour.

    Raises:
        UsageError: --json was given.
        Failed: a package is missing.
    """
    if invocation.screen.json:
        raise UsageError("--json has no meaning for `memd-ctl web`: it serves a page, and ends with it")
    try:
        from memd_client.web.server import WebServer  # noqa: PLC0415 - of an extra
    except ImportError as missing:
        raise Failed(
            "failed",
            f"The page needs {missing.name}, which is not installed.",
            "pip install 'memd-client[web]', from a clone: pip install './client[web]'",
            exit_code=BAD_CONFIG,
        ) from missing
    with invocation.client() as client:
        client.status()  # fails without a daemon, with advice
    # However the process ends, the file that opens the page is deleted.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    server = WebServer(
        invocation.places.socket,
        doctor=_doctor(invocation),
        editor=invocation.options.editor or installed_editor(invocation.environ),
    )
    with server.opener() as file, contextlib.suppress(KeyboardInterrupt):
        if not invocation.options.no_browser and _has_desktop(invocation):
            _open(file)
        screen = invocation.screen
        screen.note(f"The page opens once, within a minute: {server.address}")
        screen.note("It ends with Ctrl-C, or when it has not been used for half an hour.")
        server.run()
    return Outcome(None)


def _doctor(invocation: Invocation) -> list[str]:
    """Return the command line of memd-ctl doctor for the same daemon."""
    options = invocation.options
    named = (("--config", options.config), ("--state-dir", options.state_dir))
    given = [word for flag, value in named if value for word in (flag, value)]
    socket = str(invocation.places.socket)
    return [sys.executable, "-m", "memd.ctl", "doctor", "--json", "--socket", socket, *given]


# The command of each editor that has one.
_EDITOR_COMMANDS: "Mapping[str, EditorName]" = {
    "code": "vscode",
    "cursor": "cursor",
    "zed": "zed",
    "idea": "idea",
}


def installed_editor(environ: Mapping[str, str]) -> "EditorName":
    """Return the first editor on the PATH; else VS Code, which is often installed without a command."""
    path = environ.get("PATH")
    return next(
        (name for command, name in _EDITOR_COMMANDS.items() if shutil.which(command, path=path)), "vscode"
    )


def _has_desktop(invocation: Invocation) -> bool:
    """Return whether a graphical browser can be opened; a text browser would take over this terminal."""
    environ = invocation.environ
    return sys.platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _open(file: Path) -> None:
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(file.as_uri())
