"""A hook, run as the programs of agents run it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.wait import until

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


def brought(
    event: str,
    socket: Path,
    told: object,
    *wanted: str,
    argv: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> str:
    """What a hook brings, as soon as all that is wanted is in it: a busy machine leaves the first ones no time."""

    def context() -> str | None:
        ran = hook(event, socket, told, *argv, environ=environ)
        assert (ran.code, ran.err) == (0, "")
        return ran.context if ran.out and all(text in ran.context for text in wanted) else None

    return until(context, 20) or ""
