"""One running embedding worker, as the daemon sees it."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Self, cast

import msgspec
import numpy as np

from memd.errors import TransientError
from memd.providers.local.protocol import BrokenFrame, Embedded, Passage, Ready, WorkerFrameReader, encode
from memd.providers.provider import Vector

# Sent by the kernel when memory is short, by a service manager, or by a person: never by what the worker does itself.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})

STEPS = 10  # in which the timeout of a worker is counted
KILLED_S = 5.0  # a killed process is gone long before, unless the disk it waits for is


class WorkerDied(TransientError):
    """The worker ended, or had to be ended, before it answered."""

    def __init__(self, how: str, *, by_itself: bool) -> None:
        super().__init__(how)
        self.by_itself = by_itself  # False: somebody else ended it, so it says nothing about the text


class WorkerProcess(asyncio.SubprocessProtocol):
    """A process from its start to its end. One request at a time."""

    def __init__(self) -> None:
        """Not to be called: see start."""
        self._decode = msgspec.msgpack.Decoder(Ready | Embedded).decode
        self._frames = WorkerFrameReader()
        self._inbox: asyncio.Queue[Ready | Embedded | None] = asyncio.Queue()  # None: nothing comes any more
        self._ended = asyncio.Event()
        self._is_lost = False
        self._ready: Ready | None = None
        self._asked = 0
        self._broken = False

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start a process in a session of its own; it inherits stderr.

        Raises:
            OSError: there is no such program, or no process to be had.
        """
        loop = asyncio.get_running_loop()
        _, worker = await loop.subprocess_exec(cls, *command, stderr=None, start_new_session=True)
        return worker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002  # asyncio's signature; it is stdout
        """Some of an answer came in."""
        try:
            for body in self._frames.feed(data):
                self._inbox.put_nowait(self._decode(body))
        except (BrokenFrame, msgspec.DecodeError):
            self._broken = True
            self._kill()

    def process_exited(self) -> None:
        """The process is gone; what it wrote may still be on its way."""
        if pipe := self._transport.get_pipe_transport(0):
            pipe.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The process is gone, and all it wrote is read."""
        self._transport.close()
        self._ended.set()
        self._inbox.put_nowait(None)

    @property
    def ended(self) -> bool:
        """Whether nothing comes of it any more: the process is gone, or hangs in the kernel and cannot even die."""
        return self._ended.is_set() or self._is_lost

    async def greeting(self, timeout_s: float) -> Ready:
        """The first message, which comes once; it is remembered.

        Raises:
            WorkerDied: before or instead of it.
        """
        if self._ready is None:
            match await self._receive(timeout_s):
                case Ready() as ready:
                    self._ready = ready
                case Embedded():
                    raise await self._expelled()
        return self._ready

    async def embed(self, text: str, timeout_s: float) -> Vector:
        """The vector of a text, as long as the greeting said.

        Raises:
            WorkerDied: or did not answer in so many seconds, and was killed.
        """
        dimensions = (await self.greeting(timeout_s)).dimensions
        self._asked += 1
        pipe = self._transport.get_pipe_transport(0)
        if pipe is not None and not pipe.is_closing():
            cast("asyncio.WriteTransport", pipe).write(encode(Passage(self._asked, text)))
        while True:
            match await self._receive(timeout_s):
                case Embedded(id=self._asked, vector=data) if len(data) == 4 * dimensions:
                    return np.frombuffer(data, np.float32)
                case Embedded(id=earlier) if earlier < self._asked:
                    continue  # whoever asked that did not wait for it
                case _:
                    raise await self._expelled()

    async def _receive(self, timeout_s: float) -> Ready | Embedded:
        try:
            message = await self._next_message(timeout_s)
        except TimeoutError:
            is_stopped = _is_stopped(self.pid)
            await self.stop(grace_s=0)
            how = f"did not answer in {timeout_s:.1f} s, and was killed"
            if is_stopped:
                how = f"was stopped by a signal, {how}"
            raise WorkerDied(how, by_itself=not is_stopped) from None
        if message is None:
            self._inbox.put_nowait(None)
            raise self._death()
        return message

    async def _next_message(self, timeout_s: float) -> Ready | Embedded | None:
        """What comes next; None: nothing does.

        A container or a machine may be paused, and the worker with it: the loop then runs a timer that is long due before
        it reads an answer that is there, or the worker has had none of the time that has passed. So a step that took
        far too long is not counted.

        Raises:
            TimeoutError: nothing came in so many seconds in which the daemon ran.
        """
        loop, step_s, left = asyncio.get_running_loop(), timeout_s / STEPS, STEPS
        while left:
            began = loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step_s):
                    return await self._inbox.get()
            if loop.time() - began < 2 * step_s:
                left -= 1
        raise TimeoutError

    async def _expelled(self) -> WorkerDied:
        self._broken = True
        await self.stop(grace_s=0)
        return self._death()

    def _death(self) -> WorkerDied:
        if self._broken:
            return WorkerDied("answered with something else than a vector, and was killed", by_itself=True)
        code = self._transport.get_returncode()
        if code is None or code >= 0:
            return WorkerDied(f"ended with exit status {code}", by_itself=True)
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        return WorkerDied(f"was ended by {name}", by_itself=-code not in _FROM_OUTSIDE)

    async def stop(self, grace_s: float = 1.0, *, killed_s: float = KILLED_S) -> None:
        """End the process: asked first, killed after so many seconds. Returns when it is gone, or nobody waits for it."""
        if grace_s > 0:
            with contextlib.suppress(ProcessLookupError):
                self._transport.terminate()
            if await self._gone_within(grace_s):
                return
        self._kill()
        self._is_lost = not await self._gone_within(killed_s)
        self._transport.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    async def _gone_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        return self.ended


def _is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process (SIGSTOP, a debugger), where the system tells; see proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False
