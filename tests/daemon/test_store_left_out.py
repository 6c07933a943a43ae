"""An agent whose store cannot be opened is left out by name, the others serve, and it is tried again."""

import contextlib
import struct
from pathlib import Path

import apsw
import pytest
import structlog

from memd.agent.agents import RunningAgent
from memd.agent.build import build_agent
from memd.backends.backend import BackendEnvironment
from memd.config.settings import AgentSettings
from memd.runtime.threads import NoThread
from memd.store import connections
from memd_client import AsyncClient, RequestFailed
from tests.daemon.inprocess import reloaded, running, write
from tests.daemon.trouble import RED, bugs, comes_true, is_well
from tests.embedding.supplies import silent
from tests.fakes import HashingProvider


def two_agents(home: Path) -> str:
    """The settings of another agent beside main."""
    write(home, "memory/a.md", RED)
    (home / "work" / "memory").mkdir(parents=True, exist_ok=True)
    (home / "work" / "memory" / "b.md").write_text("The chapel was painted blue.\n")
    return f'[agents.work]\nworkspace = "{home}/work"'


def set_schema(file: Path, number: int) -> bytes:
    """Let another memd have written a store; its bytes."""
    whole = bytearray(file.read_bytes())
    struct.pack_into(">i", whole, 60, number)
    file.write_bytes(whole)
    return bytes(whole)


async def refusal(client: AsyncClient, agent: str) -> RequestFailed:
    """What a search of the agent is answered."""
    with pytest.raises(RequestFailed) as failed:
        await client.search("chapel blue", agent=agent)
    return failed.value


async def test_a_newer_store_leaves_out_its_agent_alone(home: Path) -> None:
    """It is not touched, status and the error say what, where and how to fix it; mended, it serves after a sync."""
    both, provider = two_agents(home), HashingProvider()
    async with running(home, settings=both) as client:
        await client.sync()
    file = home / "state/agents/work.sqlite"
    sound = file.read_bytes()
    newer = set_schema(file, 99)
    with structlog.testing.capture_logs() as logs:
        async with running(home, provider, settings=both) as client:
            report = await client.sync()
            assert report.files == 1
            assert "newer memd" in report.left_out["work"]
            assert (await client.search("lighthouse", agent="main")).results
            failed = await refusal(client, "work")
            assert (failed.code, failed.hint) == ("unavailable", "memd-ctl doctor")
            assert all(word in str(failed) for word in ("newer memd", str(file), "Update memd"))
            status = (await client.status()).agents
            assert status["main"].store.ok
            assert not status["work"].store.ok
            assert "schema 99" in (status["work"].store.reason or "")
            assert (await client.status(agent="work")).agents.keys() == {"work"}
            await reloaded(home, both + "\nmax_file_mb = 3", client)
            assert (await refusal(client, "work")).code == "unavailable"
            assert file.read_bytes() == newer
            assert [path.name for path in file.parent.glob("work.sqlite?*")] == []
            file.write_bytes(sound)
            assert (await client.sync()).files == 2
            assert (await client.search("chapel blue", agent="work")).mode == "hybrid"
    assert bugs(logs) == []
    assert provider.requests == []


async def test_an_agent_that_was_left_out_comes_back_by_itself(home: Path) -> None:
    """Without anybody asking for it."""
    both = two_agents(home)
    async with running(home, settings=both) as client:
        await client.sync()
    file = home / "state/agents/work.sqlite"
    sound = file.read_bytes()
    set_schema(file, 99)
    async with running(home, settings=both) as client:
        assert not (await client.status()).agents["work"].store.ok
        file.write_bytes(sound)

        async def is_back() -> bool:
            return (await client.status()).agents["work"].store.ok

        await comes_true(is_back)
        assert (await client.search("chapel blue", agent="work")).results


async def test_a_newer_cache_is_done_without(home: Path) -> None:
    """It is not touched; indexes serve and grow, and status says why what is embedded is not kept beyond them."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
    file = home / "state/embeddings.sqlite"
    newer = set_schema(file, 99)
    async with running(home) as client:
        write(home, "memory/b.md", "The chapel was painted blue.\n")
        assert (await client.sync()).vectors == "complete"
        assert await is_well(client)
        cache = (await client.status()).cache
        assert not cache.ok
        assert "newer memd" in (cache.reason or "")
    assert file.read_bytes() == newer


async def test_while_another_program_writes_searches_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the index locked by somebody's tool: what is known is found, what is written meanwhile is found after."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 200)
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        tool = apsw.Connection(str(home / "state/agents/main.sqlite"))
        tool.set_busy_timeout(10_000)
        tool.execute("BEGIN EXCLUSIVE")
        write(home, "memory/b.md", "The chapel was painted blue.\n")
        found = await client.search("lighthouse")
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        assert found.stale
        assert (await client.get("memory/a.md")).text == RED.strip()

        async def is_told() -> bool:
            return "locked" in ((await client.status()).agents["main"].store.reason or "")

        await comes_true(is_told)
        found = await client.search("lighthouse")
        assert "store" in [one.part for one in found.degraded]
        tool.execute("ROLLBACK")
        tool.close()
        assert (await client.sync()).files == 2
        assert (await client.search("chapel blue")).results[0].path == "memory/b.md"
        assert (await client.status()).agents["main"].store.ok


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "step",
    [
        "Index.open",
        "Index.fingerprint",
        "Index.counts",
        "_roots",
        "rules_of",
        "IndexService",
        "Builtin",
    ],
)
async def test_an_agent_that_cannot_be_built_leaves_nothing_open(
    home: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whatever of it fails: it is tried again and again, and each attempt opens its index."""
    (home / "agents").mkdir()
    wanted = AgentSettings(workspace=home / "workspace")

    async def build() -> RunningAgent:
        around = BackendEnvironment({}, home)
        return await build_agent(home, around, "main", wanted, silent(wanted))

    def refused(*_: object, **__: object) -> None:
        raise NoThread("no thread can be started")

    with monkeypatch.context() as moment:
        moment.setattr(f"memd.agent.build.{step}", refused)
        for _ in range(3):
            with pytest.raises(NoThread):
                await build()
            assert open_below(home) == []
    await (await build()).close()


def open_below(directory: Path) -> list[str]:
    """The files of a directory that this process has open."""
    open_files = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            open_files.append(str(link.readlink()))
    return [file for file in open_files if file.startswith(str(directory))]
