"""`memd run`: the daemon in the foreground."""

import argparse
import gc
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from memd import VERSION
from memd.runtime.startup import (
    end_quietly,
    import_msgspec,
    import_structlog,
    open_streams,
    prepare_environment,
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of memd's command line."""
    top = argparse.ArgumentParser(
        prog="memd",
        description="Long-term memory search for AI agents. To look at it and ask it, use memd-ctl.",
    )
    top.add_argument("--version", action="version", version=f"memd {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="run")
    run = commands.add_parser("run", help="run the daemon in the foreground until SIGTERM")
    run.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file (else MEMD_CONFIG, else the default)"
    )
    run.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="where indexes are kept (else MEMD_STATE_DIR)"
    )
    run.add_argument("--socket", type=Path, metavar="PATH", help="where to listen (else MEMD_SOCKET)")
    return top


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run memd and end the process.

    Exit status: 0 after a clean stop, 70 after a failure of memd, 75 and 78 as in sysexits.
    """
    # Until the daemon handles signals itself: loading its modules takes most of a second.
    end_quietly()
    # Blocked signals are inherited: if the parent blocks SIGTERM, memd would ignore it.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    open_streams()
    arguments = parser().parse_args(argv)
    # There is no configuration to reload yet; by default SIGHUP would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # What is imported stays: the garbage collector would take a fifth of the time of all imports to find nothing. It is
    # enabled by runtime/process.py.
    gc.disable()
    # Before numpy and the model runtime are loaded: they read their thread settings once.
    prepare_environment(os.environ)
    import_structlog()
    import_msgspec()
    from memd import daemon  # noqa: PLC0415 - it imports numpy
    from memd.runtime.process import exit_now  # noqa: PLC0415 - it is loaded by the daemon

    exit_now(daemon.main(config=arguments.config, state_dir=arguments.state_dir, socket=arguments.socket))


if __name__ == "__main__":
    main()
