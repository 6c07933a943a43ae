import asyncio
import mmap
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psutil
import pytest
from structlog.testing import capture_logs

from memd.errors import MemdError
from memd.memory_limit.enforce import MB, MemoryLimit, MemoryStatus, ProcessMemory, resident_bytes
from memd.runtime import malloc
from tests.bounds import shipped
from tests.clock import hastily, now_s, run_hastily
from tests.wait import until_async


class Vectors:
    """Those of an agent: so many MB, in memory or on disk."""

    def __init__(self, mb: int, *, asked_at: float | None = None) -> None:
        self.whole_bytes = mb * MB
        self.asked_at = asked_at
        self.is_shelved = False
        self.unreadable = False
        self.hangs = False
        self.released = 0
        self.tried = 0

    @property
    def resident_bytes(self) -> int:
        return 0 if self.is_shelved else self.whole_bytes

    async def shelve(self) -> None:
        await self._answer()
        self.is_shelved = True

    async def unshelve(self) -> None:
        self.tried += 1
        await self._answer()
        if self.unreadable:
            raise MemdError("the disk does not answer")
        self.is_shelved = False

    async def release_pages(self) -> None:
        await self._answer()
        self.released += 1

    async def _answer(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()


class Machine:
    """A daemon with so much beside its vectors, and a worker."""

    def __init__(self, rest_mb: int, worker_mb: int = 0, **agents: Vectors) -> None:
        self.rest_mb = rest_mb
        self.worker_mb = worker_mb
        self.agents = agents
        self.now = 0.0
        self.looks = 0
        self.limit = MemoryLimit(
            self,
            self,
            clock=lambda: self.now,
            look_s=0.001,
            timeout_s=0.01,
        )

    def held(self) -> tuple[int, int] | None:
        own = self.rest_mb * MB + sum(one.resident_bytes for one in self.agents.values())
        return own, self.worker_mb * MB

    def vectors(self) -> dict[str, Vectors]:
        self.looks += 1
        return self.agents

    def on_disk(self) -> set[str]:
        return {name for name, one in self.agents.items() if one.is_shelved}

    async def some_looks(self) -> None:
        """A look that began after this was asked has ended."""
        looks = self.looks
        # Each asks for them a few times.
        await soon(lambda: self.looks >= looks + 20)


class Unmeasured:
    """A system that does not tell what a process holds."""

    def held(self) -> None:
        return None


@asynccontextmanager
async def kept(machine: Machine, limit_mb: int) -> AsyncIterator[MemoryLimit]:
    machine.limit.follow(limit_mb)
    keeping = asyncio.create_task(machine.limit.run())
    yield machine.limit
    keeping.cancel()
    await asyncio.wait([keeping])


def trouble(machine: Machine) -> str | None:
    status = machine.limit.status()
    assert status is not None
    return status.reason


@pytest.fixture(autouse=True)
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is returned to the system, which takes a thread: a loop on which waits take no time does not wait for one."""

    async def give_back_beside() -> None:
        pass

    monkeypatch.setattr(malloc, "give_back_beside", give_back_beside)


async def soon(condition: Callable[[], object], within_s: float = 0.25) -> None:
    """Wait for a thousand looks at most, in the time of the loop, which does not depend on the machine."""
    await until_async(condition, within_s, clock=asyncio.get_running_loop().time)


@run_hastily
async def test_without_a_limit_nobody_looks() -> None:
    """What is on disk comes into memory, and then nothing runs at all."""
    machine = Machine(100, a=Vectors(50), b=Vectors(50))
    await machine.agents["a"].shelve()
    async with kept(machine, 0):
        await soon(lambda: not machine.on_disk())
        looks = machine.looks
        other = Machine(100)
        async with kept(other, 1000):
            await other.some_looks()
        assert machine.looks == looks
        assert machine.limit.status() == MemoryStatus(200 * MB, 0, 0, None)


@run_hastily
async def test_vectors_are_given_up_and_come_back_when_the_limit_goes() -> None:
    """The least recently searched first; a limit that goes, or rises, takes effect at once."""
    machine = Machine(100, 50, a=Vectors(50, asked_at=2.0), b=Vectors(50, asked_at=1.0))
    async with kept(machine, 240) as limit:
        await soon(lambda: machine.on_disk() == {"b"})
        await machine.some_looks()
        assert machine.on_disk() == {"b"}
        assert limit.status() == MemoryStatus(150 * MB, 50 * MB, 240 * MB, None)
        limit.follow(170)
        await soon(lambda: machine.on_disk() == {"a", "b"})
        limit.follow(1000)
        await soon(lambda: not machine.on_disk())
        limit.follow(150)
        await soon(lambda: machine.on_disk() == {"a", "b"})
        limit.follow(0)
        await soon(lambda: not machine.on_disk())
        assert not limit.is_set


@run_hastily
async def test_memory_goes_back_to_the_system_when_vectors_were_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And once more afterwards, as a search may have used them until then; not at every look, for it takes milliseconds."""
    returned: list[set[str]] = []

    async def give_back_beside() -> None:
        returned.append(machine.on_disk())

    monkeypatch.setattr(malloc, "give_back_beside", give_back_beside)
    machine = Machine(100, a=Vectors(50))
    async with kept(machine, 200) as limit:
        await machine.some_looks()
        assert returned == []
        limit.follow(140)
        await soon(lambda: len(returned) == 2)
        await machine.some_looks()
        assert returned == [{"a"}] * 2


@run_hastily
async def test_what_sqlite_held_goes_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no vectors are left to be given up; again after a while."""
    returned: list[None] = []

    async def give_back_beside() -> None:
        returned.append(None)

    monkeypatch.setattr(malloc, "give_back_beside", give_back_beside)
    machine = Machine(300)
    async with kept(machine, 200):
        await soon(lambda: trouble(machine))
        await machine.some_looks()
        assert len(returned) == 1
        machine.now = shipped("memd.memory_limit.enforce.SQUEEZED_S")
        await soon(lambda: len(returned) == 2)


@pytest.mark.parametrize(("limit_mb", "times"), [(0, 0), (100, 1)])
def test_under_a_limit_large_blocks_go_back_as_soon_as_they_are_free(
    monkeypatch: pytest.MonkeyPatch, limit_mb: int, times: int
) -> None:
    """That costs each search a little, so that nobody without a limit pays for it."""
    asked: list[None] = []
    monkeypatch.setattr(malloc, "return_large_blocks", lambda: asked.append(None))
    limit = Machine(100).limit
    assert not limit.is_set
    for _ in range(2):
        limit.follow(limit_mb)
    assert len(asked) == times


@run_hastily
async def test_a_worker_that_comes_and_goes_does_not_send_them_to_and_fro() -> None:
    """They come back when there was room for ten minutes."""
    machine = Machine(100, a=Vectors(50))
    async with kept(machine, 200):
        machine.worker_mb = 100
        await soon(lambda: machine.on_disk() == {"a"})
        machine.worker_mb = 0
        for machine.now in (100.0, 300.0, 590.0):
            await machine.some_looks()
            assert machine.on_disk() == {"a"}
        machine.now = 1300.0
        await soon(lambda: not machine.on_disk())


@run_hastily
async def test_a_limit_that_cannot_be_kept_is_said_once() -> None:
    """With what to do about it, in the log and in what status says, until it is kept."""
    machine = Machine(200, a=Vectors(50))
    with capture_logs() as logged:
        async with kept(machine, 200):
            await soon(machine.on_disk)
            await machine.some_looks()
            assert (trouble(machine), machine.agents["a"].released) == (None, 0)  # at the limit, it is kept
            machine.rest_mb = 300
            await soon(lambda: trouble(machine) is not None)
            await machine.some_looks()
            said = trouble(machine)
            assert said is not None
            assert "300 MB" in said
            assert "limit is 200 MB" in said
            assert "memory_limit_mb to 340" in said
            assert machine.agents["a"].released == 1
            machine.rest_mb = 195  # below it, but not by much
            await machine.some_looks()
            assert trouble(machine) is not None
            machine.rest_mb = 180
            await soon(lambda: trouble(machine) is None)
            squeezed_s = shipped("memd.memory_limit.enforce.SQUEEZED_S")
            machine.rest_mb, machine.now = 300, squeezed_s - 1
            await soon(lambda: trouble(machine) is not None)
            assert machine.agents["a"].released == 1
            machine.now = squeezed_s
            await soon(lambda: machine.agents["a"].released == 2)
    events = [entry["event"] for entry in logged]
    assert events == ["memory.vectors_given_up", "memory.limit_exceeded", "memory.limit_kept"]


@pytest.mark.parametrize("limit_mb", [0, 1000])
@run_hastily
async def test_a_limit_that_changes_during_a_look_is_judged_by_the_next(limit_mb: int) -> None:
    """What was found out about the one before says nothing about it."""

    class Reloading(Vectors):
        async def release_pages(self) -> None:
            machine.limit.follow(limit_mb)

    machine = Machine(300, a=Reloading(50))
    with capture_logs() as logged:
        async with kept(machine, 200):
            await soon(lambda: machine.limit.status() == MemoryStatus(350 * MB, 0, limit_mb * MB, None))
            await soon(lambda: not machine.on_disk())
    assert "memory.limit_exceeded" not in [entry["event"] for entry in logged]


@run_hastily
async def test_the_limit_that_is_advised_has_room_for_what_embeds() -> None:
    """Also when that has ended: it comes again."""
    machine = Machine(100, worker_mb=60)
    async with kept(machine, 80):
        await soon(lambda: "to 180 or more" in (trouble(machine) or ""))
        machine.worker_mb = 0
        await soon(lambda: "holds 100 MB" in (trouble(machine) or ""))
        assert "to 180 or more" in (trouble(machine) or "")


@run_hastily
async def test_vectors_that_cannot_be_read_stay_on_disk_and_are_asked_for_again() -> None:
    """Not at every look; the others come back meanwhile."""
    machine = Machine(100, a=Vectors(50), b=Vectors(50))
    sick = machine.agents["a"]
    sick.is_shelved = sick.unreadable = machine.agents["b"].is_shelved = True
    async with kept(machine, 0):
        await soon(lambda: machine.on_disk() == {"a"})
        refused_s = shipped("memd.memory_limit.enforce.REFUSED_S")
        for now in (0.0, refused_s - 1):
            machine.now = now
            await machine.some_looks()
            assert sick.tried == 1
        sick.unreadable = False
        machine.now = refused_s
        await soon(lambda: not machine.on_disk())


@run_hastily
async def test_an_agent_whose_disk_is_dead_keeps_no_other_waiting() -> None:
    """Neither when vectors go nor when they come back; it is tried again."""
    machine = Machine(100, a=Vectors(50), b=Vectors(50))
    dead, other = machine.agents["a"], machine.agents["b"]
    dead.hangs = True
    async with kept(machine, 120) as limit:
        await soon(lambda: other.is_shelved)
        assert trouble(machine) is None
        dead.hangs = False
        await soon(lambda: dead.is_shelved)
        dead.hangs = True
        limit.follow(0)
        await soon(lambda: not other.is_shelved)
        assert dead.is_shelved
        dead.hangs, machine.now = False, 100.0
        await soon(lambda: not dead.is_shelved)


def test_an_agent_whose_disk_is_dead_is_waited_for_so_long() -> None:
    """The next one has its turn then."""
    seconds = shipped("memd.memory_limit.enforce.TIMEOUT_S")

    async def waited_s() -> float:
        dead = Vectors(50)
        dead.hangs = True
        machine = Machine(100, a=dead, b=Vectors(50))
        machine.limit = MemoryLimit(machine, machine, look_s=0.001)
        async with kept(machine, 120):
            await soon(lambda: machine.on_disk() == {"b"}, seconds)
            return now_s()

    assert seconds <= hastily(waited_s()) < seconds + 1


@pytest.mark.parametrize("limit_mb", [0, 100])
@run_hastily
async def test_where_the_system_does_not_tell_there_is_no_limit(limit_mb: int) -> None:
    """Vectors are in memory."""
    agents = {"a": Vectors(50), "b": Vectors(50)}
    agents["b"].is_shelved = True
    limit = MemoryLimit(Machine(0, 0, **agents), Unmeasured(), look_s=0.001)
    limit.follow(limit_mb)
    keeping = asyncio.create_task(limit.run())
    await soon(lambda: not agents["b"].is_shelved)
    assert limit.status() is None
    assert not agents["a"].is_shelved
    assert not keeping.done()
    keeping.cancel()


class Workers:
    """Processes that work for this one."""

    def __init__(self, *pids: int) -> None:
        self.worker_pids = pids


def test_what_workers_hold_counts_and_one_that_is_gone_does_not() -> None:
    """A worker may end between the list of them and the look at it."""
    with subprocess.Popen(["sleep", "60"]) as worker, subprocess.Popen(["true"]) as gone:
        gone.wait()
        held = ProcessMemory(Workers(worker.pid, gone.pid)).held()
        alone = ProcessMemory(Workers(gone.pid)).held()
        worker.kill()
    assert held is not None
    assert alone is not None
    assert held[0] > 10 * MB
    assert held[1] > 0
    assert alone[1] == 0


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_it_is_told_how_much_a_process_holds(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own process and another; by the kernel itself, and by the library that other systems need."""
    assert sys.platform == "linux"
    asked: list[int] = []
    process = psutil.Process

    def noted(pid: int) -> psutil.Process:
        asked.append(pid)
        return process(pid)

    monkeypatch.setattr(psutil, "Process", noted)
    held = resident_bytes(os.getpid(), platform=platform)
    assert bool(asked) is (platform != "linux")
    assert held is not None
    assert 10 * MB < held < 4000 * MB
    # Mapped, since malloc may have as much left of earlier tests.
    with mmap.mmap(-1, 100 * MB) as ballast:
        ballast.write(b"x" * len(ballast))
        with_ballast = resident_bytes(os.getpid(), platform=platform)
    assert with_ballast is not None
    assert with_ballast - held > 50 * MB
    with subprocess.Popen(["sleep", "60"]) as other:
        assert 0 < (resident_bytes(other.pid, platform=platform) or 0) < 100 * MB
        other.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need the library")
def test_on_linux_no_library_is_loaded_to_tell_how_much_a_process_holds() -> None:
    """It would take 3 MB itself."""
    look = (
        "import os, sys; from memd.memory_limit.enforce import resident_bytes;"
        " print(resident_bytes(os.getpid()) > 0, 'psutil' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_process_that_is_gone_holds_nothing_that_can_be_told(platform: str) -> None:
    """It may end between two looks."""
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert resident_bytes(gone.pid, platform=platform) is None


@pytest.mark.parametrize(("before_s", "times"), [(1.0, 1), (0.0, 2)])
@run_hastily
async def test_a_limit_that_is_not_kept_now_and_then_is_logged_once_an_hour(
    before_s: float, times: int
) -> None:
    """Status says it each time."""
    machine = Machine(300)
    with capture_logs() as logged:
        async with kept(machine, 200):
            await soon(lambda: trouble(machine) is not None)
            machine.rest_mb = 100
            await soon(lambda: trouble(machine) is None)
            machine.rest_mb, machine.now = 300, shipped("memd.memory_limit.enforce.LOG_AGAIN_S") - before_s
            await soon(lambda: trouble(machine) is not None)
    assert [entry["event"] for entry in logged].count("memory.limit_exceeded") == times
