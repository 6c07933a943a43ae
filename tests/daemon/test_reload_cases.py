"""What each change of the configuration does to agents that run."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from memd_client import AsyncClient
from memd_client.messages import AgentStatus
from tests.daemon.inprocess import configure, reload, running, write
from tests.daemon.process import Daemon
from tests.fakes import HashingProvider
from tests.wait import until, until_async, until_awaited

RED = "The lighthouse was painted red.\n"
BLUE = "The chapel was painted blue.\n"


def started(logs: Sequence[Any]) -> list[str]:
    """The agents that were started."""
    return [event["agent"] for event in logs if event["event"] == "agent.started"]


async def main_status(client: AsyncClient) -> AgentStatus:
    return (await client.status()).agents["main"]


async def paths(client: AsyncClient, question: str, **asked: Any) -> list[str]:
    return [hit.path for hit in (await client.search(question, **asked)).results]


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[agents.main", "is not valid TOML"),
        ('[agents.main]\nworkspce = "x"', "config.toml:2: agents.main.workspce is not a key memd knows"),
        ("[agents.main]\nmax_file_mb = 0", "config.toml:2: agents.main.max_file_mb must be a number above 0"),
        ("[agents.work]", "agents.work needs a workspace"),
        (None, "config.toml does not exist"),
        ("\0", "save the file as UTF-8"),
    ],
    ids=["syntax", "key", "value", "workspace", "deleted", "binary"],
)
async def test_a_bad_file_changes_nothing(home: Path, text: str | None, complaint: str) -> None:
    """The old configuration stays in force and status tells why, until the file is right again."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        before = await main_status(client)
        if text is None:
            (home / "config.toml").unlink()
        else:
            (home / "config.toml").write_text(text, encoding="utf-8")
        assert started(await reload(client)) == []
        status = await client.status()
        assert status.config_error is not None
        assert complaint in status.config_error
        assert status.config == str(home / "config.toml")
        assert status.agents["main"].workspace == before.workspace
        assert await paths(client, "lighthouse red") == ["memory/a.md"]
        configure(home)
        assert started(await reload(client)) == []
        assert (await client.status()).config_error is None


async def test_an_agent_that_does_not_change_is_not_disturbed(home: Path) -> None:
    """Its pass goes on, its passes are not repeated, and only agents that are new or changed are started."""
    provider = HashingProvider(delay_s=30)
    write(home, "memory/a.md", RED)
    write(home, "memory/gone.md", "The mill is gone.\n")
    (home / "work/memory").mkdir(parents=True)
    (home / "work/memory/b.md").write_text(BLUE, encoding="utf-8")
    async with running(home, provider) as client:

        async def gone() -> bool:
            return (await main_status(client)).files == 1

        await client.sync(vectors=False)
        # When watching begins, which may be late, everything is looked at once more; only then is this noticed unasked.
        (home / "workspace/memory/gone.md").unlink()
        await until_awaited(gone)
        waiting = asyncio.create_task(client.sync(agent="main"))
        await until_async(lambda: provider.requests)
        await client.sync(agent="main", vectors=False)
        before = await main_status(client)
        configure(home, f'[agents.work]\nworkspace = "{home}/work"')
        assert started(await reload(client)) == ["work"]
        await client.sync(agent="work", vectors=False)
        assert await paths(client, "chapel", agent="work") == ["memory/b.md"]
        configure(home, f'[agents.work]\nworkspace = "{home}/work"\nmax_file_mb = 1')
        assert started(await reload(client)) == ["work"]
        configure(home)
        logs = await reload(client)
        assert [event["agent"] for event in logs if event["event"] == "agent.stopped"] == ["work"]
        after = await main_status(client)
        assert (after.last_pass, after.files) == (before.last_pass, 1)
        assert len(provider.requests) == 1
        assert not waiting.done()
        waiting.cancel()


async def test_another_workspace_is_searched_in_place_of_the_old(home: Path) -> None:
    """Nothing of the old one is found, be it under the same name; what both hold is not embedded again."""
    provider = HashingProvider()
    write(home, "memory/a.md", RED)
    write(home, "memory/old.md", "An anchor of the old days.\n")
    (home / "other/memory").mkdir(parents=True)
    (home / "other/memory/a.md").write_text(BLUE, encoding="utf-8")
    (home / "other/memory/moved.md").write_text(RED, encoding="utf-8")
    async with running(home, provider) as client:
        await client.sync()
        config = home / "config.toml"
        config.write_text(f'[agents.main]\nworkspace = "{home}/other"\n', encoding="utf-8")
        await reload(client)
        await client.sync()
        assert (await main_status(client)).workspace == f"{home}/other"
        assert await paths(client, "lighthouse red") == ["memory/moved.md"]
        assert (await client.get("memory/a.md")).text == BLUE.strip()
        assert (await client.get("memory/old.md")).missing
        assert "old days" not in str(await client.search("anchor of the old days", min_score=0.0))
        assert len(provider.requests) == 2


async def test_extra_paths_come_and_go(home: Path) -> None:
    """What is no source any more is not found and not readable."""
    extra = home / "extra/b.md"
    extra.parent.mkdir()
    extra.write_text(BLUE, encoding="utf-8")
    write(home, "memory/a.md", RED)
    async with running(home, settings=f'extra_paths = ["{extra.parent}"]') as client:
        await client.sync()
        assert await paths(client, "chapel blue") == [str(extra)]
        configure(home)
        await reload(client)
        await client.sync()
        assert await paths(client, "chapel blue", min_score=0.0) == ["memory/a.md"]
        assert (await client.get(str(extra))).missing
        configure(home, f'extra_paths = ["{extra}"]')
        await reload(client)
        await client.sync()
        assert await paths(client, "chapel blue") == [str(extra)]


async def test_other_chunks_are_built_beside_the_old(home: Path) -> None:
    """The old index answers until the new one is there; status says what goes on."""
    write(home, "memory/a.md", "".join(f"Line {number} of the lighthouse.\n" for number in range(40)))
    async with running(home) as client:
        await client.sync()
        before = await main_status(client)
        configure(home, "chunking = { tokens = 20, overlap = 0 }")
        await reload(client)
        assert await paths(client, "lighthouse") != []
        async with asyncio.timeout(60):
            while (await main_status(client)).rebuild is not None:
                assert (await client.search("lighthouse")).results
        await client.sync()
        assert (await main_status(client)).chunks > 2 * before.chunks


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("settings", "session_key", "expected"),
    [
        ("", "agent:main:telegram:group:1", True),
        ('scope = { default = "allow", rules = [] }', "agent:main:telegram:group:1", False),
        ('scope = { default = "deny", rules = [] }', "agent:main:telegram:direct:1", True),
    ],
)
async def test_another_scope_holds_from_the_next_request_on(
    home: Path, settings: str, session_key: str, *, expected: bool
) -> None:
    """Who was denied may search, and the other way round."""
    write(home, "memory/a.md", RED)
    first = 'scope = { default = "allow", rules = [] }' if expected else ""
    async with running(home, settings=first) as client:
        await client.sync()
        assert (await client.search("lighthouse", session_key=session_key)).scope_denied is not expected
        configure(home, settings)
        await reload(client)
        assert (await client.search("lighthouse", session_key=session_key)).scope_denied is expected


async def test_other_defaults_of_queries_hold_from_the_next_request_on(home: Path) -> None:
    """How many hits, how near, how long, and with which weights."""
    for number in range(5):
        write(home, f"memory/{number}.md", f"The lighthouse number {number} was painted. {'x ' * number}\n")
    async with running(home) as client:
        await client.sync()
        assert len((await client.search("lighthouse painted")).results) == 5
        configure(
            home,
            "query = { max_results = 2, min_score = 0.1, hybrid = { vector_weight = 0.0 } }\n"
            "limits = { max_snippet_chars = 80 }",
        )
        await reload(client)
        found = (await client.explain("lighthouse painted")).found
        told = await client.explain("lighthouse painted")
        assert len(found.results) == 2
        assert (told.min_score, told.vector_weight, told.text_weight) == (0.1, 0.0, 1.0)
        assert (await main_status(client)).files == 5


async def test_other_times_of_syncing_hold_from_then_on(home: Path) -> None:
    """A debounce of an hour leaves a change to the next search; of nothing, the index follows by itself."""
    write(home, "memory/a.md", RED)
    slow = (
        "sync = { watch_debounce_ms = 60000, watch_max_wait_ms = 600000, wait_ms = 0, interval_minutes = 0 }"
    )
    async with running(home, settings=slow) as client:
        await client.sync()
        configure(home, "sync = { watch_debounce_ms = 0, watch_max_wait_ms = 0 }")
        await reload(client)
        await client.sync()
        write(home, "memory/b.md", BLUE)
        async with asyncio.timeout(60):
            while (await main_status(client)).files < 2:
                await client.get("memory/a.md")


async def test_many_hang_ups_at_once_end_with_what_the_file_says(home: Path) -> None:
    """Each may find another file; the last one counts, and nobody is disturbed where nothing changed."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        for _ in range(50):
            os.kill(os.getpid(), signal.SIGHUP)
        assert started(await reload(client)) == []
        for number in range(1, 20):
            configure(home, f"query = {{ max_results = {number} }}")
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            while (await client.explain("lighthouse")).max_results != 19:
                await client.status()
        assert (await client.status()).config_error is None


async def test_a_hang_up_in_the_middle_of_a_rebuild_ends_it_cleanly(home: Path) -> None:
    """For the agent that changed again the newest settings win, and nothing is left of the attempt."""
    for number in range(120):
        write(home, f"memory/{number}.md", f"The lighthouse {number}.\n" * 20)
    async with running(home, settings='provider = "none"') as client:
        await client.sync()
        configure(home, 'provider = "none"\nchunking = { tokens = 20, overlap = 0 }')
        await reload(client)
        configure(home, 'provider = "none"\nchunking = { tokens = 30, overlap = 0 }')
        await reload(client)
        async with asyncio.timeout(60):
            while (await main_status(client)).rebuild is not None:
                assert (await client.search("lighthouse")).results
        await client.sync()
        chunks = (await main_status(client)).chunks
        await client.sync(force=True)
        assert (await main_status(client)).chunks == chunks
        assert (await main_status(client)).files == 120
    assert not list((home / "state/agents").glob("*.next*"))


async def test_the_rebuild_of_an_agent_that_does_not_change_goes_on(home: Path) -> None:
    """A hang-up for another agent neither ends it nor begins it again."""
    for number in range(120):
        write(home, f"memory/{number}.md", f"The lighthouse {number}.\n" * 20)
    async with running(home, settings='provider = "none"') as client:
        await client.sync()
        with structlog.testing.capture_logs() as logs:
            await client.reindex()
            configure(home, f'provider = "none"\n[agents.work]\nworkspace = "{home}/work"')
            os.kill(os.getpid(), signal.SIGHUP)
            await until_async(lambda: any(event["event"] == "rebuild.finished" for event in logs), 20)
            await until_async(lambda: any(event["event"] == "config.reloaded" for event in logs), 20)
        assert started(logs) == ["work"]
        assert [event["event"] for event in logs if event["event"].startswith("rebuild.")] == [
            "rebuild.started",
            "rebuild.finished",
        ]
        assert (await main_status(client)).files == 120


def test_a_file_that_a_link_leads_to_is_read_anew(daemon: Daemon) -> None:
    """Where the link leads elsewhere, that is what is meant from then on."""
    first, second = daemon.home / "first.toml", daemon.home / "second.toml"
    daemon.config.rename(first)
    (daemon.home / "second/memory").mkdir(parents=True)
    (daemon.home / "second/memory/b.md").write_text(BLUE, encoding="utf-8")
    second.write_text(f'[agents.main]\nworkspace = "{daemon.home}/second"\n', encoding="utf-8")
    daemon.config.symlink_to(first)
    with daemon.start(), daemon.client() as client:
        daemon.config.unlink()
        daemon.config.symlink_to(second)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.status().agents["main"].workspace == f"{daemon.home}/second", 10)
        client.sync()
        assert [hit.path for hit in client.search("chapel blue").results] == ["memory/b.md"]


class Unnamed(Daemon):
    """`memd run` without a configuration that is named."""

    @property
    def command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "memd",
            "run",
            "--state-dir",
            str(self.state),
            "--socket",
            str(self.socket),
        ]


def test_a_file_at_the_usual_place_that_is_gone_changes_nothing(home: Path) -> None:
    """Without a file a start means built-in defaults; a running daemon does not drop its agents for that."""
    daemon = Unnamed(home, settings='provider = "none"')
    daemon.write("memory/a.md", RED)
    usual = home / ".config/memd/config.toml"
    usual.parent.mkdir(parents=True)
    daemon.config.rename(usual)
    usual_environ = {"HOME": str(home), "MEMD_CONFIG": "", "XDG_CONFIG_HOME": ""}
    with daemon.start(environ=usual_environ), daemon.client() as client:
        client.sync()
        usual.rename(daemon.config)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.status().config_error is not None, 10)
        status = client.status()
        assert (
            status.config_error == f"{usual} is gone; what it said stays in force until memd is started again"
        )
        assert status.agents["main"].workspace == str(daemon.workspace)
        assert client.search("lighthouse red").results
        daemon.config.rename(usual)
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.status().config_error is None, 10)


def test_the_environment_of_the_start_names_the_file(home: Path) -> None:
    """What MEMD_CONFIG named is read again, and not what has come to stand at the usual place."""
    daemon = Unnamed(home, settings='provider = "none"')
    usual = home / ".config/memd/config.toml"
    usual.parent.mkdir(parents=True)
    with (
        daemon.start(environ={"HOME": str(home), "MEMD_CONFIG": str(daemon.config)}),
        daemon.client() as client,
    ):
        usual.write_text("nonsense", encoding="utf-8")
        daemon.configure('provider = "none"\nmax_file_mb = 1\nextra_paths = ["~/x"]')
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.status().agents["main"].extra_paths == [str(home / "x")], 10)
        assert client.status().config == str(daemon.config)


def _minds_hang_ups(pid: int) -> bool:
    """Whether SIGHUP would end a process of this pid."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = dict(line.split(":") for line in lines if line.startswith(("SigIgn", "SigCgt")))
    return not any(int(mask, 16) & 1 for mask in masks.values())


def test_a_hang_up_in_the_course_of_the_start_ends_nothing(home: Path) -> None:
    """A daemon that is not ready yet reads the file afterwards anyway."""
    daemon = Daemon(home, settings='provider = "none"', real_model=True)
    daemon.start(wait=False)
    with daemon:
        until(lambda: not _minds_hang_ups(daemon.process.pid), 20)
        while not daemon.socket.exists():
            assert daemon.process.poll() is None, daemon.printed()
            daemon.process.send_signal(signal.SIGHUP)
        with daemon.client() as client:
            assert client.status().config_error is None
