"""Runs qmd commands for one agent, with a limit on concurrent searches, until it is closed."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memd.backends.qmd import parse, process
from memd.backends.qmd.process import QmdFailed
from memd.runtime.asyncio_helpers import is_cancelled
from memd.runtime.profiling import QUEUED, timed_part

SEARCHES = 4  # concurrent searches: each is a process that takes 0.15 s of a processor


class Runner:
    """The qmd processes of one agent."""

    def __init__(self, program: Path, environ: Mapping[str, str]) -> None:
        """Create a runner.

        Args:
            program: The path of qmd.
            environ: The environment of each process.
        """
        self.program = program
        self._environ = environ
        self._running: set[asyncio.Task[process.ProcessEnded]] = set()
        self._searches = asyncio.Semaphore(SEARCHES)
        self._is_closed = False
        # Monotonic time at which the last search ended, or of the creation of this object.
        self.searched_at = time.monotonic()

    async def search(self, arguments: Sequence[str], *, timeout_s: float, unsaid: tuple[str, ...]) -> str:
        """Return the output of a search.

        Args:
            arguments: Arguments of qmd.
            timeout_s: Timeout of the process; waiting for a slot does not count.
            unsaid: Words that no message may quote.

        Raises:
            QmdFailed.
        """
        with timed_part(f"qmd, {QUEUED}"):
            await self._searches.acquire()
        try:
            with timed_part("qmd"):
                return await self.ask(arguments, timeout_s=timeout_s, unsaid=unsaid)
        finally:
            self.searched_at = time.monotonic()
            self._searches.release()

    async def alone(self, arguments: Sequence[str], *, timeout_s: float) -> None:
        """Run a command while no search runs; searches that arrive meanwhile wait.

        Raises:
            QmdFailed.
        """
        async with contextlib.AsyncExitStack() as held:
            for _ in range(SEARCHES):
                await held.enter_async_context(self._searches)
            await self.ask(arguments, timeout_s=timeout_s, quiet=True)

    async def ask(
        self,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        unsaid: tuple[str, ...] | None = None,
        quiet: bool = False,
    ) -> str:
        """Return the output of a command.

        Args:
            arguments: Arguments of qmd.
            timeout_s: Seconds until it is killed.
            unsaid: Words that no message may quote; None: the command is no search.
            quiet: Whether only the end of the output is kept, whose length is then unlimited.

        Raises:
            QmdFailed.
        """
        what = _called(arguments)
        if self._is_closed:
            raise QmdFailed(f"{what} was not begun: memd has closed this qmd")
        task = asyncio.create_task(
            process.run(
                (str(self.program), *arguments),
                what=what,
                environ=self._environ,
                timeout_s=timeout_s,
                max_output=None if quiet else process.MAX_OUTPUT,
            )
        )
        self._running.add(task)
        try:
            ended = await task
        except asyncio.CancelledError:
            if self._was_closed() and not is_cancelled():
                raise QmdFailed(f"{what} was ended: memd has closed this qmd") from None
            raise
        finally:
            self._running.discard(task)
        return parse.checked(ended, what, unsaid)

    def _was_closed(self) -> bool:
        return self._is_closed  # may have changed during an await

    async def close(self) -> None:
        """Kill running processes, and refuse new ones."""
        self._is_closed = True
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def _called(arguments: Sequence[str]) -> str:
    """Return a command's name for messages, without its arguments."""
    first = arguments[:2] if arguments[0] == "collection" else arguments[:1]
    return " ".join(("qmd", *first))
