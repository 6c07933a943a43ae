"""One run of qmd or another program, bounded in time and output; nothing of it is left behind.

The errors of qmd are here, too, and what of its own words they may repeat.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from memd.errors import TransientError


class QmdFailed(TransientError):
    """qmd did not do what it was asked for; the message is for people and holds no memory."""


class QmdUnavailable(QmdFailed):
    """qmd cannot be used here just now: it is not found, does not start, or refuses to prepare its collections.

    Args:
        reason: What is wrong, and how to mend it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QmdTimedOut(QmdFailed):
    """It was killed because it did not end in time."""


class UnknownOption(QmdFailed):
    """This qmd does not know an option or a command that it was given."""


class CollectionMissing(QmdFailed):
    """This qmd does not know a collection that it was asked for."""


class AlreadyExists(QmdFailed):
    """A collection of that name, or of that directory and pattern, is there."""


class QmdBroken(QmdFailed):
    """Its database is not what it should be."""


class Locked(QmdFailed):
    """Its database is busy; the same may go well in a moment."""


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
_TROUBLE = re.compile(
    r"error|fail|cannot|can't|unable|not found|no such|denied|locked|busy|missing|invalid", re.IGNORECASE
)
# Where in its own code a program stumbled tells a user nothing.
_PLACE = re.compile(r"at |file://|throw |\^+$|node\.js v\d", re.IGNORECASE)
_MOST_LINES = 200
_MOST_CHARS = 200


def last_words(said: str, unsaid: Iterable[str] = ()) -> str:
    """The line that tells best what went wrong: the last that speaks of trouble, or else the last one.

    Args:
        said: What the program wrote to stderr.
        unsaid: Words that are memory. A line that holds one is passed over: programs quote what they were asked.

    Returns:
        At most 200 characters, without control characters; empty where nothing can be repeated.
    """
    secret = [word.lower() for word in unsaid]
    lines = [
        line
        for line in map(plain, said.split("\n")[-_MOST_LINES:])
        if line and not _PLACE.match(line) and not any(word in line.lower() for word in secret)
    ]
    telling = [line for line in lines if _TROUBLE.search(line)] or lines
    return telling[-1][:_MOST_CHARS] if telling else ""


def plain(line: str) -> str:
    """A line as it would look on paper: without colours, cursor movements and other control characters."""
    return " ".join(_CONTROL.sub(" ", _ESCAPE.sub("", line)).split())


# Qmd looks for a configuration of the project in and above it, and runs what that tells.
WORKING_DIRECTORY = "/"
MAX_OUTPUT = 200_000  # bytes of stdout
_KEPT_ERRORS = 16_384  # bytes of stderr, the last ones
_LINGER_S = 0.5  # for what a program that has ended wrote, while others hold its stdout
_GONE_S = 5.0  # a killed process is gone long before, unless the disk it waits for is


class ProcessEnded(msgspec.Struct, frozen=True):
    """How a program ended."""

    status: int  # negative: the signal that ended it
    stdout: str
    stderr: str  # its end


async def run(
    arguments: Sequence[str],
    *,
    what: str,
    environ: Mapping[str, str],
    timeout_s: float,
    max_output: int | None = MAX_OUTPUT,
) -> ProcessEnded:
    """Run a program to its end, in a process group of its own that is killed whole, whatever happens.

    Args:
        arguments: The program and what it is given; no shell reads them.
        what: How messages call this, such as ``qmd search``.
        environ: All of its environment.
        timeout_s: After so many seconds it is killed.
        max_output: After so many bytes of output it is killed; None: output is not wanted, its end is kept.

    Raises:
        TimedOut: it did not end in time.
        QmdFailed: it could not be started, or said too much.
    """
    loop = asyncio.get_running_loop()
    starting = loop.create_task(_start(arguments, environ, max_output))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # It takes milliseconds, and what is not there yet cannot be killed.
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _end(starting.result())
        raise
    except (OSError, ValueError) as error:
        raise QmdFailed(f"{what} could not be started: {error}") from error
    try:
        async with asyncio.timeout(timeout_s):
            await process.exited.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LINGER_S):
                    await process.closed.wait()
    except TimeoutError:
        raise QmdTimedOut(f"{what} did not end within {round(timeout_s, 1):g} s, and was killed") from None
    finally:
        await _end(process)
    if process.is_over:
        raise QmdFailed(f"{what} produced too much output, over {max_output:,} bytes, and was killed")
    return ProcessEnded(process.status, process.output(), process.errors())


async def _start(arguments: Sequence[str], environ: Mapping[str, str], max_output: int | None) -> "_Process":
    _, process = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Process(max_output),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        env=dict(environ),
        cwd=WORKING_DIRECTORY,
        start_new_session=True,
    )
    return process


async def _end(process: "_Process") -> None:
    """Kill a process with all that belongs to it, and wait until it is gone."""
    process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GONE_S):
            await process.exited.wait()
    process.close()


class _Process(asyncio.SubprocessProtocol):
    """A process from its start to its end."""

    def __init__(self, max_output: int | None) -> None:
        self._max_output = max_output
        self._output = bytearray()
        self._errors = bytearray()
        self.is_over = False  # it said too much
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()  # and all that it wrote is read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._group = self._transport.get_pid()  # it leads a session, and so a group, of its own

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Some output came in."""
        if fd == 2:
            _keep_end(self._errors, data, _KEPT_ERRORS)
        elif self._max_output is None:
            _keep_end(self._output, data, _KEPT_ERRORS)
        elif not self.is_over:
            self._output += data
            if len(self._output) > self._max_output:
                self.is_over = True
                self._output.clear()
                self.kill()

    def process_exited(self) -> None:
        """The process is gone; what it wrote may still be on its way."""
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The process is gone, and all it wrote is read."""
        self.exited.set()
        self.closed.set()

    @property
    def status(self) -> int:
        """Its exit status; negative: the signal that ended it."""
        status = self._transport.get_returncode()
        return -signal.SIGKILL if status is None else status

    def output(self) -> str:
        """What it wrote to stdout."""
        return self._output.decode(errors="replace")

    def errors(self) -> str:
        """The end of what it wrote to stderr."""
        return self._errors.decode(errors="replace")

    def kill(self) -> None:
        """Kill it with all that it has started and that has not left its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, signal.SIGKILL)

    def close(self) -> None:
        """Read nothing more of it: somebody who has left its group may hold on to its output."""
        self._transport.close()


def _keep_end(kept: bytearray, data: bytes, most: int) -> None:
    kept += data
    if len(kept) > 2 * most:
        del kept[:-most]
