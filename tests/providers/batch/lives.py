"""Lives of a daemon that only embeds by jobs, one after the other, to be killed at any moment.

Starting an interpreter takes longer than such a life, so one process has everything imported and forks for each of them.
Run as a module, it reads a life's orders from each line of its input, and answers with a line when the life begins and
another when it has ended.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from memd.config.settings import BatchSettings
from tests.providers.batch.rig import Rig, batching, texts_of
from tests.wait import until_async

_HOUSE = Path(__file__).parents[3]


class Orders(msgspec.Struct, frozen=True):
    """What one life has to do: see that so many texts have their vectors."""

    file: str  # embeddings.sqlite
    provider: str
    base_url: str
    texts: int
    most: int  # texts of a job
    dimensions: int


class Lives:
    """The process that forks them, seen from the test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.providers.batch.lives"],
            cwd=_HOUSE,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def begin(self, orders: Orders) -> int:
        """The process id of a life that has begun."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(orders).decode() + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def end(self) -> tuple[int, int]:
        """How the life ended (0, or minus the signal), and by how many KiB its memory grew, if it ended by itself."""
        status, _, grown = self._line().partition(" ")
        return int(status), int(grown or 0)

    def kill(self, pid: int) -> None:
        """End a life at once."""
        os.kill(pid, signal.SIGKILL)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


async def live(orders: Orders) -> None:
    """Submit what has no vector yet and is in no job, until everything has one."""
    texts = texts_of(orders.texts)
    settings = BatchSettings(enabled=True, poll_interval_ms=2)
    async with batching(
        orders.provider,
        orders.base_url,
        Path(orders.file),
        most=orders.most,
        settings=settings,
        dimensions=orders.dimensions,
    ) as rig:
        while True:
            seen = len(rig.changes)
            held = await rig.known.held(list(texts))
            await rig.batches.submit({one: text for one, text in texts.items() if one not in held})
            if len(held) == len(texts) and not rig.batches.jobs and not await rig.ledger.jobs():
                return
            await until_async(partial(_changed, rig, seen), 60)


def _changed(rig: Rig, seen: int) -> bool:
    return len(rig.changes) > seen or not rig.batches.jobs


def main() -> None:
    """Fork a life for each line."""
    for line in sys.stdin:
        orders = msgspec.json.decode(line, type=Orders)
        grown, growing = os.pipe()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.dup2(2, 1)
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                asyncio.run(live(orders))
                after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                os.write(growing, str(after - before).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(growing)
        _tell(str(pid))
        _, status = os.waitpid(pid, 0)
        told = os.read(grown, 100).decode()
        os.close(grown)
        _tell(f"{os.waitstatus_to_exitcode(status)} {told}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
