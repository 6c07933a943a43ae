"""Runs qmd for one agent: a few searches at a time, and nothing any more once it is closed."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memd.backends.qmd import parse, process
from memd.backends.qmd.process import QmdFailed
from memd.runtime.profiling import QUEUED, spent
from memd.runtime.synchronization import is_cancelled

SEARCHES = 4  # at a time: each is a process of its own that takes a processor for 0.15 s


class Runner:
    """The processes of one agent's qmd."""

    def __init__(self, program: Path, environ: Mapping[str, str]) -> None:
        """Make a runner; each run is a process of its own.

        Args:
            program: What to run.
            environ: Of each run.
        """
        self.program = program
        self._environ = environ
        self._running: set[asyncio.Task[process.ProcessEnded]] = set()
        self._searches = asyncio.Semaphore(SEARCHES)
        self._is_closed = False
        self.searched_at = time.monotonic()  # when the last search ended; none yet: when this was made

    async def search(self, arguments: Sequence[str], *, timeout_s: float, unsaid: tuple[str, ...]) -> str:
        """What a search prints.

        Args:
            arguments: Of qmd.
            timeout_s: For its run; waiting for its turn does not count.
            unsaid: Words that no message may repeat.

        Raises:
            QmdFailed.
        """
        with spent(f"qmd, {QUEUED}"):
            await self._searches.acquire()
        try:
            with spent("qmd"):
                return await self.ask(arguments, timeout_s=timeout_s, unsaid=unsaid)
        finally:
            self.searched_at = time.monotonic()
            self._searches.release()

    async def alone(self, arguments: Sequence[str], *, timeout_s: float) -> None:
        """Run what no search can run beside: those that come meanwhile wait for their turn.

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
        """What a command prints.

        Args:
            arguments: Of qmd.
            timeout_s: After so many seconds it is killed.
            unsaid: Words that no message may repeat; None: it is no search.
            quiet: How much it prints does not matter; the end of that is enough.

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
        return self._is_closed  # which has changed while something was awaited

    async def close(self) -> None:
        """Kill what runs, and begin nothing any more."""
        self._is_closed = True
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def _called(arguments: Sequence[str]) -> str:
    """What a command is called in messages: never by what it is given."""
    first = arguments[:2] if arguments[0] == "collection" else arguments[:1]
    return " ".join(("qmd", *first))
