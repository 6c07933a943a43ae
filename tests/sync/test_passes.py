"""One pass after the other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from memd.store.files import Replaced
from memd.store.index import Index
from memd.store.trouble import StoreClosed
from memd.sync.passes import PassFailed
from tests.clock import Clock, Ticking
from tests.sync.looping import FINGERPRINT, Bench, running


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    async with running(made):
        yield made


async def test_unchanged_files_are_not_read_again(bench: Bench) -> None:
    """A pass over unchanged files takes in none of them, unless it is forced to look, and then changes nothing."""
    await bench.settle()
    for number in range(5):
        bench.write(f"memory/{number}.md", f"note{number}")
    assert await bench.settle() == 5
    assert await bench.settle() == 0
    assert await bench.settle(force=True) == 0


async def test_a_pass_that_fails_is_tried_again_and_loses_nothing(bench: Bench) -> None:
    """A store that cannot be written fails the pass; when it can, what was marked is taken in."""
    await bench.settle()
    blocker = apsw.Connection(str(bench.index.file))
    bench.index._database._writer.set_busy_timeout(1)  # type: ignore[union-attr]
    blocker.execute("BEGIN IMMEDIATE")
    bench.write("memory/a.md", "apples")
    with pytest.raises(PassFailed):
        await bench.settle()
    assert bench.loop.last_pass is not None
    assert bench.loop.last_pass.failed
    assert bench.loop.pending
    blocker.execute("ROLLBACK")
    blocker.close()
    async with asyncio.timeout(10):
        while not await bench.paths("apples"):
            pass


class HeldIndex(Index):
    """Writes when it is let."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.is_asked = asyncio.Event()
        self.may = asyncio.Event()

    async def replace_all(self, *args: Any, **kwargs: Any) -> list[Replaced]:
        self.is_asked.set()
        await self.may.wait()
        return await super().replace_all(*args, **kwargs)


@pytest.mark.parametrize(
    "wait", [lambda bench: bench.loop.catch_up(), lambda bench: bench.settle()], ids=["search", "sync"]
)
async def test_a_pass_that_is_broken_off_is_no_success(
    tmp_path: Path, wait: Callable[[Bench], Coroutine[None, None, object]]
) -> None:
    """Who waits for one when the agent is stopped is not told that the index is up to date, but sent away."""
    index = HeldIndex(tmp_path / "main.sqlite")
    bench = Bench(tmp_path, index=index)
    await index.open()
    await index.adopt(FINGERPRINT)
    keeping = asyncio.create_task(bench.loop.run())
    await bench.settle()
    bench.write("memory/a.md", "apples")
    waiting = asyncio.create_task(wait(bench))
    await index.is_asked.wait()
    keeping.cancel()
    await asyncio.wait([keeping])
    await bench.loop.stop()
    with pytest.raises(StoreClosed):
        await waiting
    assert not await bench.paths("apples")
    await index.close()


class SlowIndex(Index):
    """Takes five seconds to write, by the clock of the test."""

    def __init__(self, file: Path, clock: Clock) -> None:
        super().__init__(file)
        self._clock = clock

    async def replace_all(self, *args: Any, **kwargs: Any) -> list[Replaced]:
        self._clock.run(5)
        return await super().replace_all(*args, **kwargs)


async def test_a_pass_that_a_blocked_store_held_up_is_told(tmp_path: Path) -> None:
    """Once, with the part that took so long; one that finds nothing to write is not."""
    clock = Clock()
    made = Bench(tmp_path, index=SlowIndex(tmp_path / "main.sqlite", clock), clock=clock)
    made.write("memory/a.md", "apples")
    async with running(made):
        with capture_logs() as logs:
            await made.settle()
            await made.settle()
        told = [one for one in logs if one["event"] == "sync.was_slow"]
        assert [(one["parts"], one["took_ms"], one["read"]) for one in told] == [({"writing": 5000}, 5000, 1)]
        assert made.loop.last_pass is not None
        assert made.loop.last_pass.took_s == 0
    assert "apples" not in str(logs)


async def test_all_that_a_pass_does_has_a_name(tmp_path: Path) -> None:
    """From the look at the files to what is written, and the file that took longest."""
    made = Bench(tmp_path, clock=Ticking())
    made.write("memory/a.md", "apples")
    made.write("memory/b.md", "pears")
    async with running(made):
        with capture_logs() as logs:
            await made.settle()
    [told] = [one for one in logs if one["event"] == "sync.was_slow" and one["read"]]
    assert {"looking", "looking, queued", "reading", "reading, queued", "cutting", "writing"} <= set(
        told["parts"]
    )
    assert told["slowest"] in {"memory/a.md", "memory/b.md"}
    assert sum(told["parts"].values()) == told["took_ms"]
