"""A hook, run as the programs of agents run it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE_S = 60.0


class Hooked(NamedTuple):
    """What a hook came to."""

    code: int
    out: str
    err: str

    @property
    def context(self) -> str:
        """What it brings."""
        told: dict[str, Any] = json.loads(self.out)["hookSpecificOutput"]
        context: str = told["additionalContext"]
        return context


SILENT = Hooked(0, "", "")


def hook(
    event: str, socket: Path, told: object, *argv: str, environ: Mapping[str, str] | None = None
) -> Hooked:
    """Run a hook as a process."""
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "memd.ctl", "hook", event, "--socket", str(socket), *argv],
        input=data,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        cwd="/",
        env=os.environ | (environ or {}),
    )
    return Hooked(ran.returncode, ran.stdout.decode(), ran.stderr.decode())
