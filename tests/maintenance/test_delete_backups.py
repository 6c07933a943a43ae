import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memd.maintenance.delete_backups import EVERY_S, UpgradedDatabase, delete_backups
from memd.model import TextHash
from memd.store.backups import KEPT_S, BackupCopy
from memd.store.embedding_cache import EmbeddingStore
from memd.store.index import Index
from memd.store.index_damage import IndexDamage
from tests.clock import for_s, hastily, now_s
from tests.faults.vfs import Act, Operation, Sync, between
from tests.maintenance.keeping import keep
from tests.store.conftest import FINGERPRINT, chunk_of, found_file
from tests.store.golden.read import DIRECTORY, unpack
from tests.store.older import made, run
from tests.wait import until_async


@asynccontextmanager
async def brought_up_to_date(tmp_path: Path) -> AsyncIterator[Index]:
    """An index that was of an older schema when it was opened."""
    unpack(DIRECTORY / "schema-1-2", tmp_path)
    index = Index(tmp_path / "agents" / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    assert len(index.database.copies) == 1
    yield index
    await index.close()


@asynccontextmanager
async def proving(
    store: UpgradedDatabase, whole: asyncio.Event, *, later_s: float = KEPT_S
) -> AsyncIterator[IndexDamage]:
    """Somebody who looks all the time, so long after the copy was made; the damage that is reported."""
    damage = IndexDamage("main")
    proof = delete_backups(store, whole, damage, every_s=0.005, clock=lambda: time.time() + later_s)
    task = asyncio.create_task(keep(proof, first_wait_s=0.005))
    try:
        yield damage
    finally:
        task.cancel()
        await asyncio.wait([task])


def is_set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def looked(index: Index) -> None:
    """Give whoever looks time to have looked a few times."""
    for _ in range(10):
        await index.database.check()


async def test_a_copy_goes_when_all_is_proven(tmp_path: Path) -> None:
    """Not before a whole pass; and all that the database holds is on the disk itself by then."""
    whole = asyncio.Event()
    synced: list[str] = []

    def watch(operation: Operation, act: Act) -> bytes:
        if isinstance(operation, Sync):
            synced.append(Path(operation.file).name)
        return act(operation)

    with between(watch):
        async with brought_up_to_date(tmp_path) as index, proving(index.database, whole):
            [copy] = index.database.copies
            await looked(index)
            assert copy.path.exists()
            synced.clear()
            await index.replace(found_file("memory/new.md"), b"1", [chunk_of("words")], {}, frozenset())
            assert synced == []
            whole.set()
            await until_async(lambda: not index.database.copies)
            assert not copy.path.exists()
            assert synced[0] == "main.sqlite-wal"


async def test_a_young_copy_stays(tmp_path: Path) -> None:
    """For a day, in which somebody can go back to the program of before."""
    async with (
        brought_up_to_date(tmp_path) as index,
        proving(index.database, is_set(), later_s=KEPT_S - 600) as told,
    ):
        await looked(index)
        assert index.database.copies[0].path.exists()
        assert told.reason is None


async def test_damage_keeps_the_copy_and_is_told(tmp_path: Path) -> None:
    """What is not sound is not proven, however old the copy is."""
    async with brought_up_to_date(tmp_path) as index:
        run(index.file, "UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")
        async with proving(index.database, is_set()) as told:
            await until_async(lambda: told.reason)
            assert "fts5" in str(told.reason)
            assert index.database.copies[0].path.exists()


async def test_a_copy_that_cannot_be_deleted_is_tried_again(tmp_path: Path) -> None:
    """Somebody has put a directory in its place; when that is gone, so is all that was kept."""
    async with brought_up_to_date(tmp_path) as index:
        [copy] = index.database.copies
        copy.path.unlink()
        copy.path.mkdir()
        async with proving(index.database, is_set()) as told:
            await looked(index)
            assert copy.path.is_dir()
            copy.path.rmdir()
            await until_async(lambda: not index.database.copies)
            assert told.reason is None


@pytest.mark.parametrize("is_damaged", [True, False])
async def test_the_copy_of_a_cache_goes_likewise(tmp_path: Path, *, is_damaged: bool) -> None:
    """One that turns out to be damaged is replaced out of the copy, and that one is proven then."""
    file = made(tmp_path / "embeddings.sqlite", "embeddings", 1)
    run(file, "INSERT INTO cache VALUES ('p', 'm', 'k', x'07', x'0102', 1.0)")
    store = EmbeddingStore(file)
    await store.open()
    [copy] = store.copies
    if is_damaged:
        run(file, "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = 999 WHERE name = 'cache'")
    async with proving(store, is_set()) as told:
        await until_async(lambda: not store.copies)
        assert bool(told.reason) is is_damaged
    assert not copy.path.exists()
    assert await store.get(("p", "m", "k"), [TextHash(b"\x07")], 1.0) == {b"\x07": b"\x01\x02"}
    assert (len(store.damaged_files()) == 1) is is_damaged
    await store.close()


async def test_an_index_that_is_built_anew_needs_no_copy(tmp_path: Path) -> None:
    """It goes at once: it may say what better rules have taken out."""
    async with brought_up_to_date(tmp_path) as index:
        [copy] = index.database.copies
        other = Index(tmp_path / "agents" / "main.sqlite.next")
        await other.open()
        await other.adopt(FINGERPRINT)
        await index.become(other)
        assert index.database.copies == ()
        assert not copy.path.exists()


class Kept:
    """A database with one copy that is never old enough."""

    copies = (BackupCopy(Path("a.sqlite.schema-1"), 2, 1, 100, 0.0),)

    def __init__(self) -> None:
        self.checked: list[float] = []

    async def check(self) -> None:
        self.checked.append(now_s())

    async def drop_copies(self, which: Collection[BackupCopy]) -> None:
        raise AssertionError(which)


def test_copies_are_looked_at_each_hour() -> None:
    """From the first whole pass on."""
    store, whole = Kept(), asyncio.Event()
    whole.set()
    hastily(for_s(3.5 * EVERY_S, keep(delete_backups(store, whole, None, clock=lambda: 0.0))))
    assert store.checked == pytest.approx([EVERY_S * number for number in range(4)])
