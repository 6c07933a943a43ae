"""A disk that does not keep what it was given is not believed when it says next that it does."""

import os
from pathlib import Path

import apsw
import pytest

from memd.domain_types import TextHash
from memd.store import recovery, write_ahead_log
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.int16_vectors import rounded
from tests.faults.vfs import Act, Operation, Read, between
from tests.store.forgetful import Forgetful, fill, opened

SPACE = ("hashing", "words", "1")


class Stammering:
    """A disk that cannot read the next thing it is asked for, so many times."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, operation: Operation, act: Act) -> bytes:
        if self.left and isinstance(operation, Read):
            self.left -= 1
            raise apsw.exception_for(apsw.SQLITE_IOERR_READ)
        return act(operation)


async def test_only_a_write_that_has_to_last_is_synced_at_once(tmp_path: Path) -> None:
    """The writes after it are as quick as those before it."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        await database.write(fill, 1)
        before = disk.syncs
        await database.write_lasting(fill, 1)
        lasting = disk.syncs
        assert lasting > before
        await database.write(fill, 1)
        assert disk.syncs == lasting


async def test_a_log_that_cannot_be_brought_into_the_file_is_noticed(tmp_path: Path) -> None:
    """What was written counts as written, not each write tries again, and the file is not relied on any more."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        disk.fails = True
        await database.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        assert database.unsynced is not None
        before = disk.syncs
        for _ in range(10):
            await database.write(fill, 10)
        assert disk.syncs == before
        with pytest.raises(StoreUnavailable):
            await database.raise_if_unsynced()
        disk.fails = False
        with pytest.raises(StoreDamaged, match="may be lost"):
            await database.raise_if_unsynced()
        await database.raise_if_unsynced()


async def test_what_was_paid_for_is_written_once_more(tmp_path: Path) -> None:
    """After a sync that failed the cache is copied to another file as soon as the disk keeps it, and nothing is lost."""
    file, disk = tmp_path / "e.sqlite", Forgetful()
    vectors = rounded({TextHash(bytes([number]) * 32): bytes([number]) * 1536 for number in range(50)})
    with between(disk):
        cache = EmbeddingStore(file)
        await cache.open()
        await cache.put(SPACE, vectors, 1.0)
        before = file.stat().st_ino
        disk.fails = True
        await cache.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        await cache.put(SPACE, dict(list(vectors.items())[:1]), 2.0)
        assert "did not keep" in str(cache.failure)
        assert file.stat().st_ino == before
        assert (await cache.look_up(SPACE, list(vectors), 3.0)).vectors == vectors
        disk.fails = False
        await cache.put(SPACE, dict(list(vectors.items())[:1]), 4.0)
        assert str(cache.failure) == "None"
        assert file.stat().st_ino != before
        assert (await cache.look_up(SPACE, list(vectors), 5.0)).vectors == vectors
        await cache.close()
    assert [Path(entry).name for entry in os.scandir(tmp_path)] == ["e.sqlite"]


async def test_another_file_is_relied_on(tmp_path: Path) -> None:
    """What a disk did not keep of one that was set aside is no reason to write its successor anew."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        disk.fails = True
        await database.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        assert database.unsynced is not None
        disk.fails = False
        await database.exchange(lambda: recovery.quarantine(database.file, "damaged"))
        await database.raise_if_unsynced()


@pytest.mark.parametrize(("times", "lost"), [(1, False), (10, True)])
async def test_what_was_paid_for_is_not_given_up_for_a_moment_of_trouble(
    tmp_path: Path, times: int, *, lost: bool
) -> None:
    """What cannot be read is read again before the file counts as damaged."""
    file, disk, text = tmp_path / "e.sqlite", Stammering(), TextHash(bytes(32))
    with between(disk):
        for is_again in (False, True):
            cache = EmbeddingStore(file)
            await cache.open()
            if not is_again:
                await cache.put(SPACE, {text: bytes(200_000)}, 1.0)
                await cache.close()
        disk.left = times
        found = (await cache.look_up(SPACE, [text], 2.0)).vectors
        assert (found == {}, bool(cache.damaged_files())) == (lost, lost)
        await cache.close()
