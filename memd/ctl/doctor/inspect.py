"""Asks an inspection, in a process of its own that can crash or be ended."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from memd.inspection.facts import AnyFact, InspectionBegun, InspectionEnd, InspectionRequest

STARTS_S = 10.0  # on a machine that is busy with other things
_ENDS_S = 0.5
_BLOCK = 1 << 16  # as much as a pipe holds
_ERROR = re.compile(r"([\w.]*(?:Error|Exception))\b")

F = TypeVar("F")


class InspectionAnswer(msgspec.Struct, frozen=True):
    """What it found, and what ended it early."""

    facts: tuple[AnyFact, ...]
    trouble: str | None = None  # None: it came to its end

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """The facts of one kind."""
        return tuple(fact for fact in self.facts if isinstance(fact, kind))


def command_for(aspect: str) -> list[str]:
    """What runs an inspection of one aspect, a key of memd.inspection.__main__.ASPECTS."""
    # -P: a directory named memd where somebody happens to stand is not what is meant.
    return [sys.executable, "-P", "-m", "memd.inspection", aspect]


def ask(
    command: Sequence[str], question: InspectionRequest, environ: Mapping[str, str], patience_s: float
) -> InspectionAnswer:
    """Have something looked at.

    Args:
        command: As command_for gives it.
        question: What to look at.
        environ: Of the process.
        patience_s: When it is killed, in seconds from when it looks.
    """
    # Pipes, since a temporary file is one of the things that may be impossible here.
    process = subprocess.Popen(  # noqa: S603 - the command is our own
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environ)
    )
    assert process.stdin is not None
    assert process.stderr is not None
    with process.stderr as errors:
        with suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(msgspec.json.encode(question))
        facts, is_late = _heard(process, patience_s)
        if facts and isinstance(facts[-1], InspectionEnd):
            _end(process)
            return InspectionAnswer(facts)
        if is_late:
            process.kill()
            _end(process)
            return InspectionAnswer(facts, f"gave no answer within {patience_s:g} s")
        return InspectionAnswer(facts, _why(_end(process), os.read(errors.fileno(), _BLOCK)))


def _heard(process: "subprocess.Popen[bytes]", patience_s: float) -> tuple[tuple[AnyFact, ...], bool]:
    """(what it said until it told that this was all, or could say no more; whether the time was over first)."""
    assert process.stdout is not None
    facts: list[AnyFact] = []
    rest = b""
    has_begun, deadline = False, time.monotonic() + STARTS_S
    with process.stdout as stream:
        while not facts or not isinstance(facts[-1], InspectionEnd):
            ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return tuple(facts), True
            block = os.read(stream.fileno(), _BLOCK)
            if not block:
                break
            *lines, rest = (rest + block).split(b"\n")
            facts += [msgspec.json.decode(line, type=AnyFact) for line in lines]
            if not has_begun and any(isinstance(fact, InspectionBegun) for fact in facts):
                has_begun, deadline = True, time.monotonic() + patience_s
    return tuple(facts), False


def _end(process: "subprocess.Popen[bytes]") -> int | None:
    """The exit status of a process that has no more to say; None where it stays for all that.

    Not even SIGKILL ends what waits for a dead disk.
    """
    for _ in range(2):
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_ENDS_S)
        process.kill()
    return None


def _why(returncode: int | None, err: bytes) -> str:
    if returncode is not None and returncode < 0:
        return f"was ended by {signal.Signals(-returncode).name}"
    last = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if last.startswith(("ImportError", "ModuleNotFoundError")):
        return f"cannot be tried: {last.partition(': ')[2]}"
    # The message of another error may hold anything.
    named = _ERROR.match(last)
    return f"failed with {named[1]}" if named else f"ended with exit status {returncode}"
