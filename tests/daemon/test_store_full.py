"""A disk that is full or read-only stops writing and nothing else, and heals by itself (invariant 6)."""

import asyncio
import contextlib
import encodings.utf_8_sig  # noqa: F401 - the other user may not read the interpreter's files
import importlib.readers  # noqa: F401 - likewise
import os
import random
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memd.runtime import logs
from memd.store.database import Database
from memd.store.errors import StoreFull
from memd_client import AsyncClient, Client, RequestFailed
from tests.daemon.contents import contents
from tests.daemon.disk import FaultyDisk, SmallDisk, fails
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.daemon.trouble import BLUE, RED, comes_true, finds, is_well, many_notes
from tests.otheruser import as_other_user, shared_directory
from tests.wait import until

FULL = {"BEFORE": 'cat /dev/zero > "$STATE/filler" 2> /dev/null; true'}


@pytest.fixture
def small(home: Path) -> Iterator[SmallDisk]:
    daemon = SmallDisk(home)
    daemon.write("memory/a.md", RED)
    yield daemon
    daemon.__exit__(None, None, None)


def hits(client: Client, query: str) -> list[str]:
    return [hit.path for hit in client.search(query).results]


def test_a_disk_that_fills_up_stops_writing_alone(small: SmallDisk) -> None:
    """Searches and reads go on and say so, sync fails clearly, a rebuild leaves no trace, and no edit is lost."""
    with small.start(environ={"BEFORE": ""}), small.client() as client:
        client.sync()
        small.fill()
        for number in range(3):
            small.write(f"memory/{number}.md", "The chapel was painted blue. " * 2000)
        with pytest.raises(RequestFailed) as failed:
            client.sync()
        assert (failed.value.code, "no room" in str(failed.value)) == ("unavailable", True)
        assert failed.value.hint == "memd-ctl doctor"
        found = client.search("lighthouse")
        assert found.results[0].path == "memory/a.md"
        assert found.stale
        assert any(one.part == "store" and "no room" in one.reason for one in found.degraded)
        assert client.get("memory/a.md").text == RED.strip()
        assert not client.status().agents["main"].store.ok
        client.reindex()
        until(lambda: "rebuild.retry_scheduled" in small.printed(), 20)
        until(lambda: not (small.seen / "agents/main.sqlite.next").exists(), 20)
        assert hits(client, "lighthouse") == ["memory/a.md"]
        small.filler.unlink()
        until(lambda: not client.status().agents["main"].dirty, 40)
        assert client.sync().files == 4
        until(lambda: client.status().agents["main"].rebuild is None, 40)
        status = client.status().agents["main"]
        assert (status.store.ok, status.damaged) == (True, [])
        assert not any(client.get(f"memory/{number}.md").missing for number in range(3))
        assert small.process.poll() is None


@pytest.mark.long
def test_a_disk_that_the_index_filled_is_freed_by_deleting_notes(small: SmallDisk) -> None:
    """Though the notes lie on another disk: what is left is indexed, what comes too, and the disk has room again."""
    rng = random.Random(1)
    words = [f"w{rng.randrange(10**6)}" for _ in range(20_000)]
    small.configure('provider = "none"')
    with small.start(environ={"BEFORE": ""}), small.client() as client:
        for number in range(250):
            sections = (f"## item {n}\n{' '.join(rng.choices(words, k=80))}\n\n" for n in range(40))
            small.write(f"memory/n{number:03}.md", "".join(sections))
        until(lambda: not client.status().agents["main"].store.ok, 60)
        assert hits(client, "lighthouse") == ["memory/a.md"]
        for number in range(200):
            (small.workspace / f"memory/n{number:03}.md").unlink()
        small.write("memory/b.md", BLUE)

        def is_indexed() -> bool:
            try:
                return client.sync().files == 52
            except RequestFailed:
                return False

        until(is_indexed, 60)
        assert hits(client, "chapel blue") == ["memory/b.md"]
        status = client.status().agents["main"]
        assert (status.store.ok, status.damaged) == (True, [])
        assert shutil.disk_usage(small.seen).free > 4_000_000


async def test_room_that_could_not_be_given_back_is_given_back_by_a_later_pass(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notes are taken out of the index by then, so none that is deleted reminds of it."""
    many_notes(home / "workspace", 5)
    shrink, tries = Database.shrink, 0

    async def fails_at_first(database: Database) -> bool:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StoreFull("no room is left")
        return await shrink(database)

    monkeypatch.setattr(Database, "shrink", fails_at_first)
    with FaultyDisk.inserted() as disk:
        async with running(home) as client:
            before = (await client.sync()).files
            disk.faults["main.sqlite-wal", "write"] = fails(apsw.SQLITE_FULL)
            write(home, "memory/a.md", RED)
            with pytest.raises(RequestFailed, match="no room"):
                await client.sync()
            disk.faults.clear()
            (home / "workspace/memory/003.md").unlink()
            with contextlib.suppress(
                RequestFailed
            ):  # unless the pass that the daemon tries by itself was first
                await client.sync()
            assert (await client.sync()).files == before
    assert tries == 2


def test_a_disk_that_is_full_at_the_first_start_is_named(small: SmallDisk) -> None:
    """The daemon runs, says why it can do nothing, and does it after a sync once there is room."""
    with small.start(environ={**FULL, "STATE": str(small.state)}), small.client() as client:
        agent = client.status().agents["main"]
        assert not agent.store.ok
        with pytest.raises(RequestFailed) as failed:
            client.search("lighthouse")
        assert failed.value.code == "unavailable"
        small.filler.unlink()
        assert client.sync().vectors == "complete"
        assert hits(client, "lighthouse") == ["memory/a.md"]


def test_a_disk_that_is_full_at_a_start_lets_what_is_there_be_found(small: SmallDisk) -> None:
    """An index that was written in better days is searched; what is new follows when there is room."""
    with Daemon(small.home) as before, before.client() as client:
        client.sync()
    before.state.rename(small.kept)
    small.write("memory/b.md", BLUE)
    with small.start(environ={**FULL, "STATE": str(small.state)}), small.client() as client:
        found = client.search("lighthouse")
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        assert found.stale
        assert not client.status().agents["main"].store.ok
        small.filler.unlink()
        assert client.sync().files == 2
        assert "memory/b.md" in hits(client, "chapel")
        assert client.status().agents["main"].store.ok


# --- read-only


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("main.sqlite-wal", apsw.SQLITE_READONLY),
        ("main.sqlite-wal", apsw.SQLITE_IOERR_WRITE),
        ("main.sqlite", apsw.SQLITE_IOERR_WRITE),
        ("main.sqlite.next-wal", apsw.SQLITE_FULL),
        ("main.sqlite.next", apsw.SQLITE_FULL),
    ],
)
async def test_a_disk_that_takes_nothing_any_more_is_still_read(home: Path, file: str, code: int) -> None:
    """Whatever write fails, of an edit, a checkpoint or a rebuild: the old is found, and the new when it goes again."""
    many_notes(home / "workspace", 5)
    write(home, "memory/a.md", RED)
    with FaultyDisk.inserted() as disk:
        async with running(home) as client:
            await client.sync()
            disk.faults[file, "write"] = fails(code)
            write(home, "memory/b.md", BLUE)
            await client.reindex()
            for _ in range(20):
                assert await finds(client, "lighthouse painted red", "memory/a.md")
                assert (await client.get("memory/a.md")).text == RED.strip()

            async def is_told() -> bool:
                status = (await client.status()).agents["main"]
                return not status.store.ok or status.rebuild is None

            await comes_true(is_told)
            disk.faults.clear()
            await client.sync()
            await comes_true(lambda: finds(client, "chapel blue", "memory/b.md"))
            await comes_true(lambda: is_well(client))
            assert (await client.status()).agents["main"].store.ok
        assert len(contents(home / "state/agents/main.sqlite")) == 7


def _modes(directory: Path, directories: int, files: int) -> None:
    for path in [*directory.rglob("*"), directory]:
        path.chmod(directories if path.is_dir() else files)


async def live_read_only(home: str) -> list[str]:
    """What the daemon says of a state directory that its user may not write, before and after that is mended."""
    place, told = Path(home), []
    write(place, "memory/a.md", RED)
    async with running(place) as client:
        await client.sync()
    _modes(place / "state", 0o500, 0o400)
    write(place, "memory/b.md", BLUE)
    async with running(place) as client:
        found = await client.search("lighthouse")
        told += [*(hit.path for hit in found.results), f"stale {found.stale}"]
        status = await client.status()
        told += [f"store {status.agents['main'].store.ok}", f"cache {status.cache.ok}"]
        told.append(f"read-only {'read-only' in (status.agents['main'].store.reason or '')}")
        _modes(place / "state", 0o700, 0o600)
        told += [f"files {(await client.sync()).files}", f"found {await _finds_both(client)}"]
        told.append(f"store {(await client.status()).agents['main'].store.ok}")
    return told


async def _finds_both(client: AsyncClient) -> bool:
    return await finds(client, "lighthouse chapel", "memory/a.md", "memory/b.md")


def read_only(home: str) -> list[str]:
    """As live_read_only, for another user."""
    logs.configure("info", sys.stderr, terminal=False, color=False)
    return asyncio.run(live_read_only(home))


def test_a_state_directory_that_may_not_be_written_is_read() -> None:
    """Another daemon's index is searched as it is, status says why it does not follow, and after a chmod it does."""
    with shared_directory() as home:
        told = as_other_user("tests.daemon.test_store_full", "read_only", str(home))
    assert told == [
        "memory/a.md",
        "stale True",
        "store False",
        "cache False",
        "read-only True",
        "files 2",
        "found True",
        "store True",
    ]


def test_whatever_memd_writes_is_its_users_alone(daemon: Daemon) -> None:
    """Directories 0700 and files 0600 under a lax umask, what was damaged and what is built beside included."""
    daemon.write("memory/a.md", RED)
    umask = os.umask(0o022)
    try:
        for _ in range(2):
            with daemon.start(), daemon.client() as client:
                client.sync()
                modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in daemon.state.rglob("*")}
                assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700
                directories = {name for name, mode in modes.items() if mode == 0o700}
                assert directories == {"agents"}
                assert {mode for name, mode in modes.items() if name != "agents"} == {0o600}
            (daemon.state / "agents/main.sqlite").write_bytes(b"noise" * 1000)
    finally:
        os.umask(umask)
    assert "main.sqlite.damaged-1" in modes
