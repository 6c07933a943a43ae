"""A stand-in of the program qmd: an executable that searches plain words in the files of its collections.

It behaves like qmd 2.8.3 as far as memd looks, without models: an index that `update` brings up to date, results of whole
files, JSON with snippets. What it does at a command can be scripted, one act after the other: recorded output, delays,
crashes, floods, children that do not go.
"""

import contextlib
import json
import marshal
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Act = dict[str, Any]

USUAL: Act = {}


def says(stdout: str, *, stderr: str = "", status: int = 0, after_s: float = 0.0) -> Act:
    """Print something and end."""
    return {"stdout": stdout, "stderr": stderr, "status": status, "after_s": after_s}


def answers(*results: Mapping[str, Any], noise: str = "") -> Act:
    """Print results as JSON."""
    return says(noise + json.dumps(results, indent=2))


def delayed(after_s: float) -> Act:
    """Do what is usual, later."""
    return {"after_s": after_s}


def dies(number: signal.Signals = signal.SIGSEGV) -> Act:
    """End by a signal, in the middle of an answer."""
    return {"stdout": '[{"docid": "#', "signal": int(number)}


def hangs() -> Act:
    """Never end, and ignore the polite signals; so does a child that holds on to stdout."""
    return {"hangs": True}


def floods(size: int) -> Act:
    """Print so many bytes."""
    return {"floods": size}


class Standin:
    """One installed stand-in, with the book in which it writes how it was called."""

    def __init__(self, directory: Path) -> None:
        """Install it; nothing is scripted yet."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.program = directory / "qmd"
        source = Path(__file__).with_name("qmd_program.py").read_text(encoding="utf-8")
        self.program.write_text(f"#!{sys.executable} -ISB\n{source}\nmain()\n", encoding="utf-8")
        self.program.chmod(0o755)
        self._script: dict[str, list[Act]] = {}

    def play(self, command: str, *acts: Act) -> None:
        """What it does at a command from now on, such as "search" or "collection add"; the last act is repeated."""
        self._script[command] = list(acts)
        temporary = self.directory / "script.tmp"
        temporary.write_bytes(marshal.dumps({"acts": self._script, "from": self._played()}))
        temporary.rename(self.directory / "script")

    def _played(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for call in self.calls():
            counts[call["command"]] = counts.get(call["command"], 0) + 1
        return counts

    def calls(self, command: str | None = None) -> list[dict[str, Any]]:
        """How it was called: command, arguments, environ, pid, directory."""
        found: list[dict[str, Any]] = []
        book = self.directory / "calls"
        if book.exists():
            with book.open("rb") as stream, contextlib.suppress(EOFError):  # the last one may be half written
                while True:
                    found.append(marshal.load(stream))
        return [call for call in found if command in {None, call["command"]}]

    def children(self) -> list[int]:
        """The processes that its hanging acts have started."""
        book = self.directory / "children"
        return [int(line) for line in book.read_text().split()] if book.exists() else []
