"""One running embedding worker, seen from the daemon."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Self, cast

import msgspec
import numpy as np

from memd.errors import TransientError
from memd.providers.local.protocol import BrokenFrame, Embedded, Passages, Ready, WorkerFrameReader, encode
from memd.providers.provider import Vectors

# Sent by the kernel when memory runs out, by a service manager or by a user; never caused by the worker itself.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})

STEPS = 10  # in which the timeout of a worker is counted
KILLED_S = 5.0  # a killed process is gone long before, unless it waits for a dead disk


class WorkerDied(TransientError):
    """The worker ended, or was killed, before it answered."""

    def __init__(self, how: str, *, by_itself: bool) -> None:
        super().__init__(how)
        self.by_itself = by_itself  # False: it was killed from outside, so the text is not the cause


class WorkerProcess(asyncio.SubprocessProtocol):
    """A worker process, which handles one request at a time."""

    def __init__(self) -> None:
        """Use `start` instead."""
        self._decode = msgspec.msgpack.Decoder(Ready | Embedded).decode
        self._frames = WorkerFrameReader()
        self._inbox: asyncio.Queue[Ready | Embedded | None] = asyncio.Queue()  # None: the end of output
        self._ended = asyncio.Event()
        self._is_lost = False
        self._ready: Ready | None = None
        self._asked = 0
        self._broken = False

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start a process in its own session; it inherits stderr.

        Raises:
            OSError: the program does not exist, or no process can be created.
        """
        loop = asyncio.get_running_loop()
        _, worker = await loop.subprocess_exec(cls, *command, stderr=None, start_new_session=True)
        return worker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record that the process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002  # asyncio's signature; it is stdout
        """Parse a part of an answer."""
        try:
            for body in self._frames.feed(data):
                self._inbox.put_nowait(self._decode(body))
        except (BrokenFrame, msgspec.DecodeError):
            self._broken = True
            self._kill()

    def process_exited(self) -> None:
        """Record that the process has ended; its output may not be read yet."""
        if pipe := self._transport.get_pipe_transport(0):
            pipe.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Record that the process has ended and its output is read."""
        self._transport.close()
        self._ended.set()
        self._inbox.put_nowait(None)

    @property
    def ended(self) -> bool:
        """Whether there is no more output: the process has ended, or hangs in the kernel and cannot be killed."""
        return self._ended.is_set() or self._is_lost

    async def greeting(self, timeout_s: float) -> Ready:
        """Return the first message of the worker; later calls return it again.

        Raises:
            WorkerDied: there was none.
        """
        if self._ready is None:
            match await self._receive(timeout_s):
                case Ready() as ready:
                    self._ready = ready
                case Embedded():
                    raise await self._expelled()
        return self._ready

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Vectors:
        """Embed texts; return vectors of the dimensions in the greeting, shape (texts, dimensions).

        Raises:
            WorkerDied: the worker ended, or was killed after the timeout.
        """
        dimensions = (await self.greeting(timeout_s)).dimensions
        self._asked += 1
        pipe = self._transport.get_pipe_transport(0)
        if pipe is not None and not pipe.is_closing():
            cast("asyncio.WriteTransport", pipe).write(encode(Passages(self._asked, texts)))
        while True:
            match await self._receive(timeout_s):
                case Embedded(id=self._asked, vectors=data) if len(data) == 4 * dimensions * len(texts):
                    return np.frombuffer(data, np.float32).reshape(len(texts), dimensions)
                case Embedded(id=earlier) if earlier < self._asked:
                    continue  # the answer to a cancelled request
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
        """Return the next message; None at the end of output.

        If a container or machine is paused, the worker is too: afterwards the event loop may run an overdue timer before it reads an
        available answer, or the worker has had no time. So the timeout is counted in steps, and a step that took far too long is
        ignored.

        Raises:
            TimeoutError: there was no message within the timeout, while the daemon ran.
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
        """End the process: by SIGTERM, and by SIGKILL after `grace_s`; return when it is gone, or after `killed_s`."""
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
    """Return whether a process is stopped (SIGSTOP, a debugger), if the system reports it; see proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False
