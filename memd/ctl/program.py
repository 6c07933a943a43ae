"""Runs one command line, and turns its outcome or error into an exit status."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from memd.ctl import arguments
from memd.ctl.failures import BAD_CONFIG, ERROR, INTERRUPTED, Failed, failure_for
from memd.ctl.invocation import Invocation, places
from memd.ctl.output.terminal import Outcome, Screen, process_screen
from memd.errors import MemdError
from memd.runtime import safe_traceback
from memd.runtime.startup import open_streams
from memd_client.errors import MemdClientError

_MODULES = {
    "get": "search",
    "tags": "search",
    "sync": "indexing",
    "reindex": "indexing",
    "embed": "indexing",
    "reload": "config",
    "eval": "evaluate",
}
"""The modules of commands that are not in a module of their own name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run memd-ctl; return one of the exit statuses of memd.ctl.failures, but always 0 for a hook."""
    typed = sys.argv[1:] if argv is None else list(argv)
    open_streams()
    screen = process_screen(wants_color="--no-color" not in typed, json="--json" in typed)
    try:
        status = _answer(typed, screen)
    except BrokenPipeError:
        # The reader of the pipe has ended, as `head` does.
        screen.give_up()
        return 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as bug:  # noqa: BLE001  the top level: Python would print the message, which may quote memory, into an agent's log
        safe_traceback.print_traceback("memd-ctl", bug)
        status = ERROR
    # An agent's program may treat any other status of a hook as a veto.
    return 0 if arguments.is_hook(typed) else status


def _answer(typed: Sequence[str], screen: Screen) -> int:
    try:
        options = arguments.parse(typed)
        screen = process_screen(wants_color=not options.no_color, json=options.json)
        here = places(
            os.environ,
            sys.platform,
            _home(),
            config=options.config,
            state_dir=options.state_dir,
            socket=options.socket,
        )
        return screen.finish(find_command(options.command)(Invocation(options, here, screen, os.environ)))
    except (MemdError, MemdClientError) as error:
        return screen.fail(failure_for(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk or a missing permission, for which a traceback is no help.
        where = f"{error.filename}: " if error.filename else ""
        failed = Failed("failed", f"{where}{error.strerror or error}", exit_code=ERROR)
        try:
            return screen.fail(failed)
        except OSError:
            # The output itself cannot be written.
            screen.note(f"memd-ctl: {failed.message}")
            screen.give_up()
            return ERROR


def _home() -> Path:
    """Return the home directory of this user.

    Raises:
        Failed: it is unknown.
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  Path.home raises where there is none
    if not home.is_absolute():
        raise Failed(
            "bad_config",
            "The home directory of this user is not known: HOME is not set, and the system has no entry for the user.",
            "Set HOME to a directory.",
            exit_code=BAD_CONFIG,
        )
    return home


def find_command(name: str) -> Callable[[Invocation], Outcome]:
    """Return the function that runs a command. Only its module is imported, as a hook may call memd-ctl before each prompt."""
    module = importlib.import_module(f"memd.ctl.commands.{_MODULES.get(name, name)}")
    run: Callable[[Invocation], Outcome] = getattr(module, f"run_{name}")
    return run
