"""A hook, run as the programs of agents run it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from memd.ctl.__main__ import main
from tests.daemon.forked import Files, ForkedProcess
from tests.wait import until

TIMEOUT_S = 60.0


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
    """Run a hook in a process of its own."""
    with TemporaryDirectory() as directory:
        stdin, out, err = (Path(directory, name) for name in ("stdin", "out", "err"))
        stdin.write_bytes(told if isinstance(told, bytes) else json.dumps(told).encode())
        program = ForkedProcess(
            main,
            ["memd-ctl", "hook", event, "--socket", str(socket), *argv],
            os.environ | (environ or {}),
            Files(out, err, Path("/"), stdin),
        )
        return Hooked(program.wait(TIMEOUT_S), out.read_text("utf-8"), err.read_text("utf-8"))


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
