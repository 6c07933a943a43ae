"""A new configuration under clients that do not wait for it."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import apsw
import pytest

from memd import daemon
from memd.agent.agents import RunningAgent
from memd.agent.build import build_agent
from memd.indexing.debounced_changes import TakenChanges
from memd.indexing.run_pass import PassResult, PassRunner
from memd.server.connection import Connection
from memd_client import AsyncClient, RequestFailed
from tests.daemon.inprocess import configure, reloaded, running, write
from tests.descriptors import open_descriptors
from tests.fakes import HashingProvider
from tests.wait import until_async, until_awaited

RED = "The lighthouse was painted red.\n"


async def test_no_request_fails_because_of_a_reload(home: Path) -> None:
    """While settings change again and again, searches, reads and status are answered as ever."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        ended = asyncio.Event()

        async def ask_on() -> int:
            count = 0
            async with AsyncClient(socket=home / "s", timeout=60) as own:
                while not ended.is_set():
                    found, note, status = await asyncio.gather(
                        own.search("lighthouse red"), own.get("memory/a.md"), own.status()
                    )
                    assert found.results[0].path == "memory/a.md"
                    assert note.text == RED.strip()
                    assert status.agents["main"].files == 1
                    count += 1
            return count

        asking = [asyncio.create_task(ask_on()) for _ in range(4)]
        for number in range(10):
            await reloaded(home, f"max_file_mb = {number + 1}", client)
        ended.set()
        counts = await asyncio.gather(*asking)
    assert min(counts) > 0


def is_watching() -> bool:
    """Whether any agent of this process is told of changes."""
    return any("inotify" in leads_to for leads_to in open_descriptors().values())


def held(file: Path) -> apsw.Connection:
    """Keeps everybody else from writing to a database."""
    blocker = apsw.Connection(str(file))
    blocker.set_busy_timeout(5000)
    blocker.execute("BEGIN IMMEDIATE")
    return blocker


async def test_a_search_that_waits_is_answered_by_the_agent_that_comes_after(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever searches while a pass is broken off by other settings is not given what was there before it.

    A rebuild that has to come to its end, too, leaves the index of before open for a while.
    """
    run = PassRunner.run
    passes: list[TakenChanges] = []

    async def noted(runner: PassRunner, taken: TakenChanges, *args: Any, **named: Any) -> PassResult:
        passes.append(taken)
        return await run(runner, taken, *args, **named)

    monkeypatch.setattr(PassRunner, "run", noted)
    patient = 'provider = "none"\nsync = { wait_ms = 10000 }\n'
    index = home / "state/agents/main.sqlite"
    beside = index.with_name("main.sqlite.next")
    note = write(home, "memory/before.md", RED)
    for number in range(300):
        write(home, f"memory/{number:03}.md", f"# Note {number}\n\nThe harbour {number}.\n" * 20)
    async with (
        running(home, settings=patient) as client,
        AsyncClient(socket=home / "s", timeout=60) as other,
    ):

        async def is_marked() -> bool:
            return (await client.status()).agents["main"].dirty > 0

        await client.sync()
        await client.reindex()
        await until_async(lambda: beside.exists() and beside.stat().st_size > 0)
        with contextlib.closing(held(beside)), contextlib.closing(held(index)):
            passes.clear()
            note.rename(note.with_name("after.md"))
            await until_awaited(is_marked)
            waiting = asyncio.create_task(other.search("lighthouse painted red"))
            await until_async(lambda: any(taken.paths for taken in passes))
            assert await is_marked()  # until the pass has ended
            configure(home, f"{patient}max_file_mb = 1")
            os.kill(os.getpid(), signal.SIGHUP)
            await until_async(lambda: not is_watching())
        found = await waiting
    assert ([hit.path for hit in found.results], found.stale) == (["memory/after.md"], False)


@pytest.mark.long
async def test_a_sync_that_waits_is_answered_by_the_agent_that_comes_after(home: Path) -> None:
    """Whoever waits for a pass when the settings change gets the report of a pass under the new ones."""
    for number in range(300):
        write(home, f"memory/{number:03}.md", f"# Note {number}\n\nThe lighthouse {number}.\n" * 20)
    async with running(home) as client, AsyncClient(socket=home / "s", timeout=60) as other:
        waiting = asyncio.create_task(other.sync(vectors=False))
        await until_async(lambda: (home / "state/agents/main.sqlite-wal").stat().st_size > 100_000)
        assert not waiting.done()
        await reloaded(home, "max_file_mb = 1", client)
        assert (await waiting).files == 300


async def test_a_wait_for_vectors_ends_with_the_agent_that_comes_after(home: Path) -> None:
    """Whoever waits for vectors when the provider is taken away is not kept waiting for them."""
    provider = HashingProvider(delay_s=30)
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client, AsyncClient(socket=home / "s", timeout=60) as other:
        waiting = asyncio.create_task(other.sync())
        await until_async(lambda: provider.requests)
        assert not waiting.done()
        await reloaded(home, 'provider = "none"', client)
        report = await waiting
        assert (report.files, report.vectors) == (1, "complete")


async def test_a_reload_comes_to_its_end_though_its_client_goes_away(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted while its agents are stopped and not started yet, it leaves none of them stopped."""
    build, lose = build_agent, Connection.connection_lost
    begun, goes_on, lost = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(*parts: Any, **more: Any) -> RunningAgent:
        begun.set()
        await goes_on.wait()
        return await build(*parts, **more)

    def noted(connection: Connection, exc: Exception | None) -> None:
        lose(connection, exc)
        lost.set()

    write(home, "memory/a.md", RED)
    both = f'[agents.work]\nworkspace = "{home}/work"\nprovider = "none"\n'
    async with running(home, settings=f'provider = "none"\n{both}') as client:
        await client.sync()
        monkeypatch.setattr(daemon, "build_agent", slow)
        monkeypatch.setattr(Connection, "connection_lost", noted)
        configure(home, f'provider = "none"\nmax_file_mb = 3\n{both}max_file_mb = 3')
        async with AsyncClient(socket=home / "s", timeout=60) as other:
            reloading = asyncio.create_task(other.reload())
            await begun.wait()
            reloading.cancel()
            await asyncio.wait([reloading])
        await lost.wait()
        goes_on.set()
        assert [hit.path for hit in (await client.search("lighthouse", agent="main")).results] == [
            "memory/a.md"
        ]
        assert not (await client.search("lighthouse", agent="work")).results
        status = await client.status()
        assert (sorted(status.agents), status.config_waiting) == (["main", "work"], [])


async def test_an_agent_that_is_taken_out_keeps_its_store(home: Path) -> None:
    """Gone from the file it is unknown; back in it, everything is there and nothing is embedded again."""
    provider = HashingProvider()
    write(home, "memory/a.md", RED)
    (home / "work" / "memory").mkdir(parents=True)
    (home / "work" / "memory" / "b.md").write_text("The chapel was painted blue.\n")
    both = f'[agents.work]\nworkspace = "{home}/work"'
    async with running(home, provider, settings=both) as client:
        await client.sync()
        assert (await client.search("chapel blue", agent="work")).results
        embedded = len(provider.requests)
        await reloaded(home, "", client)
        with pytest.raises(RequestFailed) as failed:
            await client.search("chapel blue", agent="work")
        assert failed.value.code == "unknown_agent"
        assert (home / "state/agents/work.sqlite").exists()
        await reloaded(home, both, client)
        assert (await client.search("chapel blue", agent="work")).mode == "hybrid"
        assert (await client.sync()).files == 2
        assert len(provider.requests) == embedded


async def test_a_provider_that_comes_embeds_what_is_there(home: Path) -> None:
    """From provider = none to one: the index stays, its chunks get vectors; and back: keywords answer."""
    write(home, "memory/a.md", RED)
    async with running(home, settings='provider = "none"') as client:
        assert (await client.sync()).vectors == "complete"
        await reloaded(home, "", client)
        report = await client.sync()
        assert (report.vectors, report.changed) == ("complete", 0)
        assert (await client.search("lighthouse red")).mode == "hybrid"
        await reloaded(home, 'provider = "none"', client)
        found = await client.search("lighthouse red")
        assert (found.mode, found.degraded, len(found.results)) == ("keyword", [], 1)
        await reloaded(home, "", client)
        assert (await client.search("lighthouse red")).mode == "hybrid"
