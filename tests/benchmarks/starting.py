"""How long a process that has just started takes to its first answer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks.figures import Figure, Samples, milliseconds, repeated
from tests.benchmarks.notes import QUESTIONS
from tests.benchmarks.stage import Stage
from tests.daemon.process import ROOT

TIMES = 11

_SEARCH = "import sys; from memd_client import Client; Client(socket=sys.argv[1]).search(sys.argv[2])"
_IMPORT = (
    "import time; t = time.perf_counter(); from memd_client import Client; print(time.perf_counter() - t)"
)


def measure(stage: Stage) -> Iterator[Figure]:
    """Whole processes, from their start to their end; then how much of that is the import of the client."""
    question = QUESTIONS[0].text
    vector = stage.database.with_name("vector")
    vector.write_bytes(stage.embedder.embed([question])[0].tobytes())
    # Modules are compiled once, as where memd is installed, also where the environment says that nothing is kept of it.
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(stage.database.with_name("compiled"))}

    def repeated_run(
        arguments: Sequence[str], environ: dict[str, str] | None = None, stdin: bytes = b""
    ) -> Samples:
        once = partial(run, arguments, kept | (environ or {}), stdin)
        once()
        return repeated(once, TIMES)

    bare = repeated_run(["-c", ""])
    client = repeated_run(["-c", _SEARCH, str(stage.daemon.socket), question])
    other = repeated_run(["-m", "tests.benchmarks.baseline", str(stage.database), str(vector), question])
    yield milliseconds(
        "first search of a process", client, other, f"an empty process takes {1000 * bare.median:.0f} ms"
    )
    command = [str(Path(sys.executable).with_name("memd-ctl")), "search", question, "--json"]
    environ = {"MEMD_SOCKET": str(stage.daemon.socket)}
    yield milliseconds("memd-ctl search", repeated_run(command, environ), other)
    asked = json.dumps({"prompt": question, "session_id": "benchmark"}).encode()
    for event in ("user-prompt", "session-start"):
        hook = [command[0], "hook", event]
        yield milliseconds(f"memd-ctl hook {event}", repeated_run(hook, environ, asked))
    yield milliseconds("import memd_client", Samples(float(run(["-c", _IMPORT], kept)) for _ in range(TIMES)))


def run(arguments: Sequence[str], environ: dict[str, str] | None = None, stdin: bytes = b"") -> bytes:
    """What a Python process of its own prints, given this input."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | (environ or {}),
        check=True,
        input=stdin,
        stdout=subprocess.PIPE,
    ).stdout
