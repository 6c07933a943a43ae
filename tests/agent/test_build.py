"""An agent that is built from real parts."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from memd.agent import build
from memd.agent.agents import RunningAgent
from memd.agent.build import build_agent, keep
from memd.backends.backend import BackendEnvironment, IncludedState
from memd.backends.builtin import Builtin
from memd.backends.fallback import Fallback, ReadingFallback
from memd.backends.included_memories import Including
from memd.config.settings import AgentSettings, Chunking, IncludedMemory, Publish, SyncSettings
from memd.sources.roots import roots_as_written
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.watch.watcher import WatcherHealth
from tests.embedding.supplies import silent
from tests.wait import until_async


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where memd keeps the indexes, beside a workspace with one note."""
    (tmp_path / "state" / "agents").mkdir(parents=True)
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    (tmp_path / "workspace" / "memory" / "a.md").write_text("The kestrel nests here.\n")
    return tmp_path / "state"


@asynccontextmanager
async def built(state: Path, **given: Any) -> AsyncIterator[RunningAgent]:
    """An agent whose tasks do not run."""
    settings = AgentSettings(workspace=state.parent / "workspace", **given)
    agent = await build_agent(state, BackendEnvironment({}, state.parent), "main", settings, silent(settings))
    try:
        yield agent
    finally:
        await agent.close()


@asynccontextmanager
async def kept(agent: RunningAgent) -> AsyncIterator[None]:
    """With its tasks."""
    keeping = asyncio.create_task(keep(agent))
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def indexed(state: Path, **given: Any) -> None:
    """Have an agent take in its notes, and end."""
    async with built(state, **given) as agent, kept(agent):
        await agent.sync.wait_for_pass(agent.sync.request())


@pytest.mark.parametrize("is_other", [False, True])
async def test_an_index_that_was_cut_otherwise_serves_until_another_is_built(
    state: Path, is_other: bool
) -> None:
    """What it has is found meanwhile; one that was cut as it is to be stays. So it is where memd starts again before that."""
    await indexed(state)
    chunking = Chunking(tokens=100 if is_other else Chunking().tokens)
    for _ in range(2):
        async with built(state, chunking=chunking) as agent:
            assert (agent.sync.health.rebuild is not None) is is_other
            assert (await agent.index.counts()).files == 1


async def test_an_index_that_is_damaged_begins_anew(state: Path) -> None:
    """The agent starts, says so until all has been looked at, and has everything then."""
    await indexed(state)
    file = state / "agents" / "main.sqlite"
    content = bytearray(file.read_bytes())
    content[100:] = b"rubbish" * (len(content) // 7 - 14)  # behind the header
    file.write_bytes(content)
    async with built(state) as agent:
        assert (await agent.index.counts()).files == 0
        assert agent.sync.health.rebuild == "the index was damaged and is filled anew"
        async with kept(agent):
            await agent.sync.wait_for_pass(agent.sync.request())
        assert (await agent.index.counts()).files == 1
        assert agent.sync.health.rebuild is None


async def test_what_was_opened_is_closed_where_the_agent_cannot_be_built(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt opens it again."""
    closed: list[Index] = []
    close = Index.close

    async def noted(index: Index) -> None:
        closed.append(index)
        await close(index)

    def fails(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(Index, "close", noted)
    settings = AgentSettings(workspace=state.parent / "workspace")
    with monkeypatch.context() as patched:
        patched.setattr(build, "rules_of", fails)
        with pytest.raises(StoreUnavailable):
            await build_agent(state, BackendEnvironment({}, state), "main", settings, silent(settings))
    assert len(closed) == 1
    async with built(state) as agent:
        assert agent.index is not closed[0]


async def test_a_disk_that_does_not_answer_keeps_no_agent_from_its_start(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its roots are then as they are written; one that answers resolves links."""
    link = state.parent / "link"
    link.symlink_to(state.parent / "workspace")
    settings = AgentSettings(workspace=link)
    around = BackendEnvironment({}, state.parent)
    answers = threading.Event()
    agent = await build_agent(state, around, "main", settings, silent(settings))
    assert [root.directory for root in agent.roots] == [(state.parent / "workspace").resolve()]
    await agent.close()
    monkeypatch.setattr(build, "ROOTS_S", 0.01)
    monkeypatch.setattr(build, "roots_of", lambda *_, **__: answers.wait(60))
    with capture_logs() as logs:
        agent = await build_agent(state, around, "main", settings, silent(settings))
    answers.set()
    assert agent.roots == roots_as_written(settings, state=state)
    assert [root.directory for root in agent.roots] == [link]
    assert [one["agent"] for one in logs if one["event"] == "agent.disk_silent"] == ["main"]
    await agent.close()


@pytest.mark.parametrize(
    "sync",
    [
        SyncSettings(watch_debounce_ms=1, watch_max_wait_ms=60_000),
        SyncSettings(watch_debounce_ms=10_000, watch_max_wait_ms=100),
    ],
)
async def test_marks_wait_for_as_long_as_the_settings_say(state: Path, sync: SyncSettings) -> None:
    """For quiet, or for the most that it may take."""
    async with built(state, sync=sync) as agent, asyncio.timeout(60):
        agent.pending.mark([state])
        taken = await agent.pending.take()
        assert (taken.paths, taken.everything) == (frozenset({state}), False)


async def test_each_agent_has_the_backend_of_its_settings(state: Path) -> None:
    """Vectors of the built-in index rest where another backend answers, and are made as soon as that fails."""
    async with built(state) as agent:
        assert type(agent.backend) is Builtin
        assert not agent.sync.vectors_suspended
        assert agent.publisher is None
    for name, kind in (("qmd", Fallback), ("postgres", ReadingFallback)):
        async with built(state, backend=name) as agent:
            assert type(agent.backend) is kind
            assert agent.backend.status().backend == name
            assert agent.sync.vectors_suspended
            await agent.backend.warm()  # neither is there
            assert agent.backend.status().backend == "builtin"
            assert not agent.sync.vectors_suspended
    include = (IncludedMemory(server="team", memory="alice/main", dsn_file=str(state / "none")),)
    async with built(state, include=include) as agent:
        assert type(agent.backend) is Including
        assert agent.backend.status().included == (IncludedState("team:alice/main", None),)
        assert not agent.sync.vectors_suspended


async def test_an_agent_is_published_where_its_settings_say_so(state: Path) -> None:
    """Under the name of this installation; that the server cannot be reached shows."""
    publish = Publish(to="team", memory="alice/main", dsn_file=str(state / "none"))
    async with built(state, publish=publish) as agent:
        assert agent.publisher is not None
        assert (state / "installation").exists()
        async with kept(agent):
            publisher = agent.publisher
            await until_async(lambda: "none" in str(publisher.progress.reason), 30)


async def test_what_the_watcher_says_shows_while_it_watches(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps it from seeing is trouble; what it does otherwise than usual is a note."""
    told: list[tuple[str | None, str | None]] = []
    scans: list[float] = []

    async def follow(_: object, pending: object, __: object, on_health: Any) -> None:
        for health in (
            WatcherHealth(ok=True, reason=None),
            WatcherHealth(ok=False, reason="too many"),
            WatcherHealth(ok=True, reason="by looks"),
        ):
            on_health(health)
            told.append((agent.sync.watcher_trouble, agent.sync.watcher_note))
        assert pending is agent.pending
        await asyncio.Event().wait()

    async def scan_periodically(pending: object, interval_s: float) -> None:
        assert pending is agent.pending
        scans.append(interval_s)
        await asyncio.Event().wait()

    monkeypatch.setattr(build, "follow", follow)
    monkeypatch.setattr(build, "scan_periodically", scan_periodically)
    async with built(state, sync=SyncSettings(interval_minutes=7)) as agent, kept(agent):
        await until_async(lambda: len(told) == 3 and scans, 30)
    assert told == [(None, None), ("too many", None), (None, "by looks")]
    assert scans == [7 * 60]


async def test_a_backend_is_prepared_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tasks run for as long as the agent does: for those it would be a failure to have ended."""
    prepared = asyncio.Event()

    async def warm() -> None:
        prepared.set()

    async with built(state) as agent:
        monkeypatch.setattr(agent.backend, "warm", warm)
        async with kept(agent):
            await prepared.wait()
            await agent.sync.wait_for_pass(agent.sync.request())
            assert agent.sync.health.maintenance is None


async def test_a_backend_that_cannot_be_prepared_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure shows in status, and edits are indexed all the same."""
    (tmp_path / "state" / "agents").mkdir(parents=True)
    (tmp_path / "workspace").mkdir()
    settings = AgentSettings(workspace=tmp_path / "workspace")
    around = BackendEnvironment({}, tmp_path)
    agent = await build_agent(tmp_path / "state", around, "main", settings, silent(settings))

    async def fails() -> None:
        raise ValueError("nobody foresaw this")

    monkeypatch.setattr(agent.backend, "warm", fails)
    keeping = asyncio.create_task(keep(agent))
    told = await until_async(lambda: agent.sync.health.maintenance)
    assert told is not None
    assert told.startswith("preparing the backend failed")
    assert "ValueError" in told
    (settings.workspace / "MEMORY.md").write_text("Still here.\n")
    await agent.sync.wait_for_pass(agent.sync.request())
    assert (await agent.index.counts()).files == 1
    assert not keeping.done()
    keeping.cancel()
    await asyncio.wait([keeping])
    await agent.close()
