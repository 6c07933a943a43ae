"""`memd run` on a system that gives it no thread while a file exists."""

import os
import sys
import threading
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

from memd import daemon
from memd.runtime.process import exit_now
from memd.runtime.threads import Threads

REFUSED = "MEMD_TEST_REFUSED"  # the file


def main() -> NoReturn:
    """``threadless.py CONFIG STATE SOCKET``."""
    start, refused = threading.Thread.start, Path(os.environ[REFUSED])

    def starting(thread: threading.Thread) -> None:
        if refused.exists():
            raise RuntimeError("can't start new thread")
        start(thread)

    # A thread that is there would do the work of the next one.
    with (
        patch.dict(Threads.__init__.__kwdefaults__ or {}, idle_s=0.01),
        patch.object(threading.Thread, "start", starting),
    ):
        config, state, socket = (Path(argument) for argument in sys.argv[1:])
        exit_now(daemon.main(config=config, state_dir=state, socket=socket))


if __name__ == "__main__":
    main()
