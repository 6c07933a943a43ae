"""A disk that gives errors, or is read-only, under a daemon that is otherwise well."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memd_client import Client, RequestFailed
from tests.daemon.contents import contents
from tests.daemon.fresh import QUICK
from tests.daemon.inprocess import running, write
from tests.daemon.namespaced import Namespaced
from tests.daemon.observed import rests, warnings
from tests.daemon.process import Daemon
from tests.daemon.trouble import BLUE, RED, comes_true, finds, is_well, many_notes
from tests.faults.vfs import Act, Operation, Sync, between
from tests.wait import until


class OwnDisk(Namespaced):
    """A daemon whose state is on a small disk of its own, which can be read and not be written when it starts."""

    @property
    def command(self) -> list[str]:
        self.state.mkdir(exist_ok=True)
        before = (
            f'mount -t tmpfs -o size=16m own "{self.state}" && cp -a "{self.kept}/." "{self.state}"'
            f' && mount -o remount,ro "{self.state}" && exec "$@"'
        )
        apart = ["unshare", "--user", "--map-root-user", "--mount"]
        return [*apart, "sh", "-c", before, "sh", *super().command]

    @property
    def kept(self) -> Path:
        """What is on the disk."""
        return self.home / "kept"


@pytest.fixture
def disk(home: Path) -> Iterator[OwnDisk]:
    daemon = OwnDisk(home)
    yield daemon
    daemon.__exit__(None, None, None)


def hits(client: Client, question: str) -> list[str]:
    return [hit.path for hit in client.search(question).results]


def test_a_disk_that_is_read_only_is_read_and_followed_when_it_is_not(disk: OwnDisk) -> None:
    """What was indexed is found, what is new is said to be missing, without haste; after a remount nothing is."""
    disk.write("memory/a.md", RED)
    with Daemon(disk.home) as before, before.client() as client:
        client.sync()
    before.state.rename(disk.kept)
    disk.write("memory/b.md", BLUE)
    with disk.start(), disk.client() as client:
        for _ in range(20):
            found = client.search("lighthouse")
            assert ([hit.path for hit in found.results], found.stale) == (["memory/a.md"], True)
        assert client.get("memory/a.md").text == RED.strip()
        with pytest.raises(RequestFailed, match="read-only"):
            client.sync()
        status = client.status()
        assert (status.agents["main"].store.ok, status.cache.ok) == (False, False)
        assert rests(disk)
        assert len(warnings(disk)) < 15
        disk.inside("mount", "-o", "remount,rw", disk.state)
        until(lambda: hits(client, "chapel novelty")[:1] == ["memory/b.md"], 60)
        until(lambda: client.status().cache.ok and client.status().agents["main"].store.ok, 60)
        assert client.sync().vectors == "complete"
    assert disk.stop() == 0


def test_a_note_that_the_disk_cannot_read_keeps_what_it_said(home: Path) -> None:
    """It is counted, it is found as it was, others go on, and what it says by then is found once it can be read."""
    daemon = Namespaced(home, settings=QUICK)
    note = daemon.write("memory/a.md", RED)
    with daemon.start(), daemon.client() as client:
        client.sync()
        # The first page of a process's memory: a regular file as far as anybody can see, and reading it is an I/O error.
        daemon.inside("mount", "--bind", f"/proc/{daemon.process.pid}/mem", note)
        daemon.write("memory/b.md", BLUE)
        client.sync()
        assert client.status().agents["main"].skipped == {"unreadable": 1}
        assert hits(client, "lighthouse") == ["memory/a.md"]
        assert hits(client, "chapel novelty")[:1] == ["memory/b.md"]
        with pytest.raises(RequestFailed, match="Input/output error"):
            client.get("memory/a.md")
        daemon.unmount(note)
        note.write_text("The lighthouse was painted green.\n", encoding="utf-8")
        until(
            lambda: client.search("painted green").results[0].snippet == "The lighthouse was painted green.",
            30,
        )
        client.sync()
        assert client.status().agents["main"].skipped == {}


class Forgetful:
    """A disk that does not keep what one database is given, while it is told so."""

    def __init__(self) -> None:
        self.fails = False

    def __call__(self, operation: Operation, act: Act) -> bytes:
        if self.fails and isinstance(operation, Sync) and "main.sqlite" in operation.file:
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        return act(operation)


async def test_an_index_that_the_disk_did_not_keep_is_built_anew(home: Path) -> None:
    """It serves until the disk keeps what it is given; then another one takes its place, and nothing is missing in it."""
    disk = Forgetful()
    many_notes(home / "workspace", 5)
    write(home, "memory/a.md", RED)
    with between(disk):
        async with running(home) as client:
            await client.sync()
            await client.reindex()
            await comes_true(lambda: is_well(client))
            disk.fails = True
            await client.reindex()

            async def is_told() -> bool:
                store = (await client.status()).agents["main"].store
                return "did not keep" in str(store.reason)

            await comes_true(is_told)
            write(home, "memory/b.md", BLUE)
            for _ in range(10):
                assert await finds(client, "lighthouse painted red", "memory/a.md")
            disk.fails = False

            async def is_over() -> bool:
                with contextlib.suppress(RequestFailed):  # as long as the damage is known, and not mended
                    await client.sync()
                agent = (await client.status()).agents["main"]
                return agent.store.ok and agent.rebuild is None and await is_well(client)

            await comes_true(is_over)
            assert await finds(client, "chapel novelty", "memory/b.md")
            assert (await client.status()).agents["main"].damaged
        assert len(contents(home / "state/agents/main.sqlite")) == 7
