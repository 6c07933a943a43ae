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
"""Of commands whose module has another name, or that of another command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run memd-ctl; the exit statuses are those of memd.ctl.failures, but that of a hook is always 0."""
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
    except Exception as bug:  # noqa: BLE001  the top: Python would print what it quotes, into the log of an agent
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
        # A full disk, a directory without permission: nothing that a traceback would make clearer.
        where = f"{error.filename}: " if error.filename else ""
        failed = Failed("failed", f"{where}{error.strerror or error}", exit_code=ERROR)
        try:
            return screen.fail(failed)
        except OSError:
            # It is the output itself that cannot be written.
            screen.note(f"memd-ctl: {failed.message}")
            screen.give_up()
            return ERROR


def _home() -> Path:
    """The home directory of this user.

    Raises:
        Failed: it is not known, and `~` is no directory to write to.
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
    """What runs a command. Only that one is imported: a hook may call memd-ctl before every prompt."""
    module = importlib.import_module(f"memd.ctl.commands.{_MODULES.get(name, name)}")
    run: Callable[[Invocation], Outcome] = getattr(module, f"run_{name}")
    return run
