"""`memd run`, telling at its end which of some libraries it has loaded."""

import sys
from pathlib import Path

from memd import daemon
from tests.modules import existing

WATCHED = existing(
    "httpx",
    "onnxruntime",
    "rich",
    "memd.backends.qmd.backend",
    "memd.redact.redactor",
    "memd.sources.transcripts.boilerplate",
    "numpy.ma",
    "psycopg",
    "watchfiles",
)

if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    status = daemon.main(config=config, state_dir=state, socket=socket)
    sys.stdout.write(f"loaded: {', '.join(name for name in WATCHED if name in sys.modules)}\n")
    sys.exit(status)
