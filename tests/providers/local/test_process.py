import asyncio
import os
from collections.abc import AsyncIterator

import numpy as np
import pytest

from memd.providers.local import bundled_model
from memd.providers.local.process import STEPS, WorkerDied, WorkerProcess
from memd.providers.local.protocol import Embedded, Ready, encode
from tests.providers import standin
from tests.providers.processes import is_alive


@pytest.fixture
async def worker() -> AsyncIterator[WorkerProcess]:
    """The scripted worker."""
    started = await WorkerProcess.start(standin.COMMAND)
    yield started
    await started.stop()


async def test_the_greeting_is_remembered(worker: WorkerProcess) -> None:
    """Whoever asks later gets the same greeting."""
    expected = Ready(bundled_model.find().version, bundled_model.DIMENSIONS)
    assert await worker.greeting(10) == expected
    assert await worker.greeting(10) == expected


async def test_it_has_a_session_of_its_own(worker: WorkerProcess) -> None:
    """A signal to the daemon's group does not reach it, and its priority is its own where sessions are scheduled."""
    assert os.getsid(worker.pid) == worker.pid


@pytest.mark.parametrize(
    ("text", "how", "by_itself"),
    [
        ("exit", "exit status 3", True),
        ("crash", "SIGSEGV", True),
        ("killed", "SIGKILL", False),
        ("short", "something else than a vector", True),
        ("hang", r"did not answer in 0\.6 s", True),
    ],
)
async def test_a_death_says_how_and_whose_doing(
    text: str, how: str, by_itself: bool, worker: WorkerProcess
) -> None:
    """Crashes and hangs are the worker's own; a signal from outside says nothing about the text."""
    await worker.greeting(10)
    with pytest.raises(WorkerDied, match=how) as died:
        await worker.embed([text], 0.6)
    assert died.value.by_itself is by_itself
    assert worker.ended
    assert not is_alive(worker.pid)


class Pausing(asyncio.SelectorEventLoop):
    """Its time goes on by leaps, as it does for a machine that was paused."""

    leapt_s = 0.0

    def time(self) -> float:
        return super().time() + self.leapt_s

    async def leap(self, seconds: float) -> None:
        """Let time pass in which nothing runs, and then all that is due by then."""
        self.leapt_s += seconds
        for _ in range(10):
            await asyncio.sleep(0)


class Transport(asyncio.SubprocessTransport):
    """Of a process that does nothing until it is killed."""

    def __init__(self, worker: WorkerProcess) -> None:
        super().__init__()
        self._worker = worker

    def get_pid(self) -> int:
        return os.getpid()

    def get_pipe_transport(self, _: int) -> None:
        return None

    def kill(self) -> None:
        self._worker.connection_lost(None)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("pause_s", [1000.0, 2 * 120.0 / STEPS + 0.01, None])
def test_time_in_which_a_machine_was_paused_is_not_held_against_a_worker(pause_s: float | None) -> None:
    """However often, and though the time is up before the answer is read; time in which the daemon runs is."""
    loop = Pausing()

    async def main() -> None:
        worker = WorkerProcess()
        worker.connection_made(Transport(worker))
        worker.pipe_data_received(1, encode(Ready("1", 3)))
        asked = asyncio.create_task(worker.embed(["text"], 120.0))
        await loop.leap(0)
        for _ in range(STEPS):
            assert not asked.done()
            await loop.leap(pause_s or 120.0 / STEPS + 0.01)
        if pause_s:
            worker.pipe_data_received(1, encode(Embedded(1, bytes(12))))
            assert (await asked).shape == (1, 3)
        else:
            with pytest.raises(WorkerDied, match=r"did not answer in 120\.0 s"):
                await asked

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())


async def test_asking_the_dead_is_another_death(worker: WorkerProcess) -> None:
    """A worker that is gone says so again, at once."""
    for _ in range(2):
        with pytest.raises(WorkerDied, match="exit status 3"):
            await worker.embed(["exit"], 10)


async def test_an_answer_nobody_waits_for_is_skipped(worker: WorkerProcess) -> None:
    """After a request that was given up, the next one gets its own answer."""
    await worker.greeting(10)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await worker.embed(["pause"], 10)
    np.testing.assert_array_equal(await worker.embed(["the next"], 10), standin.rows_of(["the next"]))


async def test_a_stranger_on_the_pipe_is_killed() -> None:
    """A program that does not speak the protocol is ended."""
    stranger = await WorkerProcess.start(("sh", "-c", "echo 'hello, this is not msgpack'; exec sleep 60"))
    with pytest.raises(WorkerDied, match="something else"):
        await stranger.greeting(10)
    assert not is_alive(stranger.pid)


async def test_one_that_is_stopped_is_asked_to_end_first(worker: WorkerProcess) -> None:
    """And then it is not killed."""
    await worker.greeting(10)
    await worker.stop(grace_s=60)
    with pytest.raises(WorkerDied, match="SIGTERM") as died:
        await worker.embed(["text"], 10)
    assert not died.value.by_itself


async def test_stopping_twice_is_harmless(worker: WorkerProcess) -> None:
    """A worker that is gone can be stopped again."""
    await worker.greeting(10)
    await worker.stop()
    assert not is_alive(worker.pid)
    await worker.stop()
    assert worker.ended


async def test_one_that_cannot_even_be_killed_is_given_up() -> None:
    """A process that waits for a dead disk dies when that answers; until then it is nobody's worker."""
    worker = await WorkerProcess.start(standin.COMMAND)
    await worker.greeting(10)
    await worker.stop(grace_s=0, killed_s=0)
    assert worker.ended
    await worker.stop()
    assert not is_alive(worker.pid)
