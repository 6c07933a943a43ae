"""Runs in a process of their own: they fork, and threads do not survive that."""

import subprocess
import sys
from collections.abc import Sequence

from tests.daemon.process import ROOT


def run_apart(arguments: Sequence[str]) -> None:
    """Have Python run with these arguments, to a good end."""
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
