"""An agent that is built from real parts."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.agent import build
from memd.agent.agents import RunningAgent
from memd.agent.build import build_agent, keep
from memd.backends.backend import BackendEnvironment, IncludedState
from memd.backends.builtin import Builtin
from memd.backends.circuit_breaker import BreakerTimeouts, CircuitBreaker
from memd.backends.fallback import Fallback, ReadingFallback
from memd.backends.included_memories import Including
from memd.config.settings import (
    AgentSettings,
    Chunking,
    IncludedMemory,
    Publish,
    QmdSettings,
    Rerank,
    SyncSettings,
)
from memd.embedding.registry import AgentProviders
from memd.index_service import IndexParts, index_parts
from memd.indexing.debounced_changes import TakenChanges
from memd.providers.provider import Identity, space_of
from memd.providers.remote.rerank import RemoteReranker
from memd.providers.reranker import NoReranker
from memd.runtime.timers import Debouncer
from memd.search.searcher import Searcher
from memd.sources.roots import roots_as_written
from memd.store.embedding_cache import Space
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.watch.watcher import Event, RescanNeeded, WatcherHealth, watch
from tests.bounds import shipped
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
    """With its tasks; one that fails ends the test."""
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(keep(agent))
        yield
        keeping.cancel()


async def indexed(state: Path, **given: Any) -> None:
    """Have an agent take in its notes, and end."""
    async with built(state, **given) as agent, kept(agent):
        await agent.index_service.wait_for_pass(agent.index_service.request())


async def test_one_pass_looks_at_everything_at_a_start(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins when the watches are set: what changed before is found by it, and what changes then is seen."""
    monkeypatch.setattr(build, "WATCHED_S", 60.0)
    handled: list[Event] = []
    before_pass: list[list[Event]] = []  # what was handled when a pass over everything began

    async def noted_watch(*roots: Any, **given: Any) -> AsyncIterator[Event]:
        async with aclosing(watch(*roots, **given)) as events:
            async for event in events:
                yield event
                handled.append(event)

    monkeypatch.setattr(build, "watch", noted_watch)
    async with built(state) as agent:
        take = agent.pending.take

        async def take_noted() -> TakenChanges:
            taken = await take()
            if taken.everything:
                before_pass.append(list(handled))
            return taken

        monkeypatch.setattr(agent.pending, "take", take_noted)
        async with kept(agent):
            await until_async(lambda: before_pass)
            await until_async(lambda: not agent.pending.unfinished)
            assert [type(event) for event in before_pass[0]] == [WatcherHealth, RescanNeeded]
            assert (await agent.index.counts()).files == 1


async def test_a_first_pass_waits_only_so_long_for_the_watches(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that does not answer the watcher may answer the pass."""

    async def silent_watch(*_: object, **__: object) -> AsyncIterator[object]:
        await asyncio.Event().wait()
        yield None

    monkeypatch.setattr(build, "watch", silent_watch)
    async with built(state) as agent:
        began = time.monotonic()
        async with kept(agent):
            await until_async(lambda: agent.pending.unfinished)
            await until_async(lambda: not agent.pending.unfinished)
            assert time.monotonic() - began > 0.9 * shipped("memd.agent.build.WATCHED_S")
            assert (await agent.index.counts()).files == 1


@pytest.mark.parametrize("is_other", [False, True])
async def test_an_index_that_was_cut_otherwise_serves_until_another_is_built(
    state: Path, is_other: bool
) -> None:
    """What it has is found meanwhile; one that was cut as it is to be stays. So it is where memd starts again before that."""
    await indexed(state)
    chunking = Chunking(tokens=100 if is_other else Chunking().tokens)
    for _ in range(2):
        async with built(state, chunking=chunking) as agent:
            assert (agent.index_service.health.rebuild is not None) is is_other
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
        assert agent.index_service.health.rebuild == "the index was damaged and is filled anew"
        async with kept(agent):
            await agent.index_service.wait_for_pass(agent.index_service.request())
        assert (await agent.index.counts()).files == 1
        assert agent.index_service.health.rebuild is None


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
    monkeypatch.setattr(build, "configured_roots", lambda *_, **__: answers.wait(60))
    with capture_logs() as logs:
        agent = await build_agent(state, around, "main", settings, silent(settings))
    answers.set()
    assert agent.roots == roots_as_written(settings, state=state).roots
    assert [root.directory for root in agent.roots] == [link]
    assert [one["agent"] for one in logs if one["event"] == "agent.disk_silent"] == ["main"]
    await agent.close()


async def test_marks_wait_for_as_long_as_the_settings_say(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For quiet, and for the most that it may take: 1.5 s and 20 s."""
    debouncers: list[Debouncer] = []

    def made(**seconds: float) -> Debouncer:
        debouncers.append(Debouncer(**seconds))
        return debouncers[-1]

    monkeypatch.setattr(build, "Debouncer", made)
    async with built(state, sync=SyncSettings(watch_debounce_ms=1500, watch_max_wait_ms=20_000)):
        (debouncer,) = debouncers
        debouncer.mark(100.0)
        assert debouncer.due_at() == 101.5
        debouncer.mark(119.0)
        assert debouncer.due_at() == 120.0


_OLD, _NEW = ("openai", "old", "old-2"), Identity("openai", "new", "new-2", 2)


@pytest.mark.parametrize(
    ("has_vectors", "wanted", "space"),
    [(False, None, None), (True, None, _OLD), (True, _NEW, space_of(_NEW)), (False, _NEW, space_of(_NEW))],
)
async def test_vectors_are_kept_until_it_is_known_that_others_are_wanted(
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_vectors: bool,
    wanted: Identity | None,
    space: Space | None,
) -> None:
    """What an index is built for anew is those that it has, where the provider has not told its model yet."""
    await indexed(state)
    if has_vectors:
        index = Index(state / "agents" / "main.sqlite")
        await index.open()
        stored = await index.fingerprint()
        assert stored is not None
        provider, model, key = _OLD
        await index.adopt(
            msgspec.structs.replace(stored, provider=provider, model=model, key=key, dimensions=2)
        )
        await index.close()
    monkeypatch.setattr(AgentProviders, "embeds", True)
    monkeypatch.setattr(AgentProviders, "wanted", wanted)
    asked: list[Fingerprint] = []

    def parts(*given: Any, **named: Any) -> IndexParts:
        asked.append(given[4])
        return index_parts(*given, **named)

    monkeypatch.setattr(build, "index_parts", parts)
    async with built(state) as agent:
        assert [one.space for one in asked] == [space]
        assert agent.index.space == (_OLD if has_vectors else space)
        assert agent.providers.held == frozenset({agent.index.space} - {None})


async def test_each_agent_has_the_backend_of_its_settings(state: Path) -> None:
    """Vectors of the built-in index rest where another backend answers, and are made as soon as that fails."""
    async with built(state) as agent:
        assert not agent.index.vectors.is_shelved
        assert type(agent.backend) is Builtin
        assert not agent.index_service.vectors_suspended
        assert agent.publisher is None
    for name, kind in (("qmd", Fallback), ("postgres", ReadingFallback)):
        async with built(state, backend=name) as agent:
            assert type(agent.backend) is kind
            assert agent.backend.status().backend == name
            assert agent.index_service.vectors_suspended
            await agent.backend.warm()  # neither is there
            assert agent.backend.status().backend == "builtin"
            assert not agent.index_service.vectors_suspended
    include = (IncludedMemory(server="team", memory="alice/main", dsn_file=str(state / "none")),)
    async with built(state, include=include) as agent:
        assert type(agent.backend) is Including
        assert agent.backend.status().included == (IncludedState("team:alice/main", None),)
        assert not agent.index_service.vectors_suspended


async def test_other_backends_are_waited_for_as_long_as_the_settings_say(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings have milliseconds."""
    waits_s: dict[object, float] = {}
    timeouts: list[BreakerTimeouts] = []

    def noted(kind: Callable[..., Any]) -> Callable[..., Any]:
        def made(first: Any, second: Any, wait_s: float) -> Any:
            waits_s[kind] = wait_s
            return kind(first, second, wait_s)

        return made

    create_breaker = CircuitBreaker.__init__

    def breaker(*given: Any, **named: Any) -> None:
        timeouts.append(given[4])
        create_breaker(*given, **named)

    for kind in (ReadingFallback, Including):
        monkeypatch.setattr(build, kind.__name__, noted(kind))
    monkeypatch.setattr(CircuitBreaker, "__init__", breaker)
    include = (IncludedMemory(server="team", memory="alice/main", dsn_file=str(state / "none")),)
    async with built(state, backend="postgres", sync=SyncSettings(wait_ms=1700)):
        pass
    async with built(state, include=include, sync=SyncSettings(wait_ms=2300)):
        pass
    async with built(state, backend="qmd", qmd=QmdSettings(timeout_ms=2500, cooldown_seconds=7)):
        pass
    assert waits_s == {ReadingFallback: 1.7, Including: 2.3}
    assert timeouts[2] == BreakerTimeouts(2.5, 7)


@pytest.mark.parametrize(
    ("provider", "kind"), [("none", type(None)), ("onnx", NoReranker), ("cohere", RemoteReranker)]
)
async def test_an_agent_has_the_reranker_of_its_settings(
    state: Path, monkeypatch: pytest.MonkeyPatch, provider: str, kind: type
) -> None:
    """Of this machine or of a server; one whose model is not there says so."""
    rerankers: list[object] = []

    def searcher(*given: Any) -> Searcher:
        rerankers.append(given[3])
        return Searcher(*given)

    monkeypatch.setattr(build, "Searcher", searcher)
    async with built(state, rerank=Rerank(provider=provider, model=str(state / "none"), api_key="key")):  # type: ignore[arg-type]  # one of them
        assert [type(one) for one in rerankers] == [kind]


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
            told.append((agent.index_service.watcher_trouble, agent.index_service.watcher_note))
        assert pending is agent.pending
        await asyncio.Event().wait()

    async def scan_periodically(pending: object, interval_s: float) -> None:
        assert pending is agent.pending
        scans.append(interval_s)
        await asyncio.Event().wait()

    sizes: list[int] = []
    monkeypatch.setattr(build, "look_by_scan", lambda _, max_bytes: sizes.append(max_bytes))
    monkeypatch.setattr(build, "follow", follow)
    monkeypatch.setattr(build, "scan_periodically", scan_periodically)
    async with built(state, max_file_mb=2.5, sync=SyncSettings(interval_minutes=7)) as agent, kept(agent):
        await until_async(lambda: len(told) == 3 and scans, 30)
    assert told == [(None, None), ("too many", None), (None, "by looks")]
    assert scans == [7 * 60]
    assert sizes == [2_500_000]


async def test_a_backend_is_prepared_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tasks run for as long as the agent does: for those it would be a failure to have ended."""
    prepared, times = asyncio.Event(), 0

    async def warm() -> None:
        nonlocal times
        times += 1
        prepared.set()
        await asyncio.sleep(0)  # so that others run even if this is done for ever

    async with built(state) as agent:
        monkeypatch.setattr(agent.backend, "warm", warm)
        async with kept(agent):
            await prepared.wait()
            await agent.index_service.wait_for_pass(agent.index_service.request())
            assert agent.index_service.health.maintenance is None
            assert times == 1


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
    told = await until_async(lambda: agent.index_service.health.maintenance)
    assert told is not None
    assert told.startswith("preparing the backend failed")
    assert "ValueError" in told
    (settings.workspace / "MEMORY.md").write_text("Still here.\n")
    await agent.index_service.wait_for_pass(agent.index_service.request())
    assert (await agent.index.counts()).files == 1
    assert not keeping.done()
    keeping.cancel()
    await asyncio.wait([keeping])
    await agent.close()
