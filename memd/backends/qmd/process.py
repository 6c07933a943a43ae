"""Runs a program such as qmd with limits on time and output, and leaves no process behind.

The errors of qmd are defined here, too, and which of its output a message may quote.
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
    """qmd did not do what was requested; the message is for people and contains no memory."""


class QmdUnavailable(QmdFailed):
    """qmd cannot be used now: it is not found, does not start, or fails to prepare its collections; with how to fix it."""


class QmdTimedOut(QmdFailed):
    """The program was killed because it did not end in time."""


class UnknownOption(QmdFailed):
    """This qmd does not know an option or a command."""


class CollectionMissing(QmdFailed):
    """This qmd does not have the requested collection."""


class AlreadyExists(QmdFailed):
    """A collection of that name, or of that directory and pattern, already exists."""


class QmdBroken(QmdFailed):
    """qmd's database is damaged."""


class Locked(QmdFailed):
    """qmd's database is locked; a retry may succeed in a moment."""


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
_TROUBLE = re.compile(
    r"error|fail|cannot|can't|unable|not found|no such|denied|locked|busy|missing|invalid", re.IGNORECASE
)
# Positions in a program's source code do not help a user.
_PLACE = re.compile(r"at |file://|throw |\^+$|node\.js v\d", re.IGNORECASE)
_MOST_LINES = 200
_MOST_CHARS = 200


def last_words(said: str, unsaid: Iterable[str] = ()) -> str:
    """Return the line that best says what went wrong: the last that mentions an error, else the last one.

    Args:
        said: What the program wrote to stderr.
        unsaid: Words from memory. Lines that contain one are skipped, because programs quote their arguments.

    Returns:
        At most 200 characters, without control characters; empty if nothing may be quoted.
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
    """Return a line without colours, cursor movements and other control characters."""
    return " ".join(_CONTROL.sub(" ", _ESCAPE.sub("", line)).split())


# qmd looks for a project's configuration in and above its working directory, and runs commands from it.
WORKING_DIRECTORY = "/"
MAX_OUTPUT = 200_000  # bytes of stdout
_KEPT_ERRORS = 16_384  # last bytes of stderr that are kept
_LINGER_S = 0.5  # wait for output after the exit, while other processes hold stdout open
_GONE_S = 5.0  # a killed process ends much sooner, unless it waits for a dead disk


class ProcessEnded(msgspec.Struct, frozen=True):
    """How a program ended."""

    status: int  # negative: the signal that ended it
    stdout: str
    stderr: str  # its last bytes


async def run(
    arguments: Sequence[str],
    *,
    what: str,
    environ: Mapping[str, str],
    timeout_s: float,
    max_output: int | None = MAX_OUTPUT,
) -> ProcessEnded:
    """Run a program to its end, in a process group that is killed as a whole in any case.

    Args:
        arguments: The program and its arguments, passed without a shell.
        what: The name in messages, such as ``qmd search``.
        environ: The whole environment.
        timeout_s: Seconds until it is killed.
        max_output: Bytes of output after which it is killed; None: only the end of the output is kept.

    Raises:
        QmdTimedOut: it did not end in time.
        QmdFailed: it could not be started, or printed too much.
    """
    loop = asyncio.get_running_loop()
    starting = loop.create_task(_start(arguments, environ, max_output))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The start takes milliseconds, and the process can only be killed once it exists.
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
    """Kill a process group, and wait until the process has ended."""
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
        self.is_over = False  # it printed more than max_output
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()  # set when all its output was read, too

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process was started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._group = self._transport.get_pid()  # it leads a session, and therefore a group, of its own

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Output has arrived."""
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
        """The process has ended; some of its output may not have been read."""
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The process has ended, and all its output was read."""
        self.exited.set()
        self.closed.set()

    @property
    def status(self) -> int:
        """The exit status; negative: the signal that ended it."""
        status = self._transport.get_returncode()
        return -signal.SIGKILL if status is None else status

    def output(self) -> str:
        """Return what it wrote to stdout."""
        return self._output.decode(errors="replace")

    def errors(self) -> str:
        """Return the last bytes that it wrote to stderr."""
        return self._errors.decode(errors="replace")

    def kill(self) -> None:
        """Kill the process group; processes that have left it survive."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes; a process that has left the group may still hold them open."""
        self._transport.close()


def _keep_end(kept: bytearray, data: bytes, most: int) -> None:
    kept += data
    if len(kept) > 2 * most:
        del kept[:-most]
