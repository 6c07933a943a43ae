"""Runs one command line, and turns its outcome or error into an exit status."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from memd.ctl import arguments
from memd.ctl.failures import BAD_CONFIG, ERROR, INTERRUPTED, Failed, failure_for
from memd.ctl.invocation import Invocation, places
from memd.ctl.output.terminal import Outcome, OutputLost, Screen, process_screen
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
    is_closed = sys.stdout is None
    open_streams()
    if is_closed:
        _let_writes_fail()
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
        options = _parse(typed, screen)
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
        return _fail(screen, failure_for(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk or a missing permission, for which a traceback is no help.
        return _fail(screen, _system_failure(error))


def _parse(typed: Sequence[str], screen: Screen) -> argparse.Namespace:
    """Parse a command line; exit after the help or the version.

    Raises:
        UsageError: it is invalid.
        OutputLost: the help or the version cannot be written.
    """
    try:
        return arguments.parse(typed)
    except SystemExit:
        screen.draw("")  # writes what is buffered
        raise


def _fail(screen: Screen, failed: Failed) -> int:
    """Print a failure; return the exit status."""
    try:
        status = screen.fail(failed)
    except OutputLost:
        screen.note(f"memd-ctl: {failed.message}")
        screen.give_up()
        return ERROR
    if isinstance(failed, OutputLost):
        screen.give_up()
    return status


def _system_failure(error: OSError) -> Failed:
    """Return the failure for an error of the system."""
    if isinstance(error, FileNotFoundError) and not error.filename and not _has_directory():
        return Failed(
            "failed",
            "The directory in which memd-ctl was called does not exist any more.",
            "Go to another one (cd), or name files and directories by paths that begin with /.",
        )
    where = f"{error.filename}: " if error.filename else ""
    return Failed("failed", f"{where}{error.strerror or error}", exit_code=ERROR)


def _has_directory() -> bool:
    """Return whether the working directory exists."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _let_writes_fail() -> None:
    """Open standard output, which was closed, such that what is written to it is not lost without a word."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


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
