"""How much room the cache of vectors takes on disk, and how its vectors are packed when it is brought up to date."""

import itertools
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import apsw
import numpy as np
import pytest

from memd.domain_types import TextHash
from memd.store import database_files, int16_vectors, migrations, recovery
from memd.store.embedding_cache import EmbeddingStore
from memd.store.int16_vectors import rounded
from tests.bounds import shipped
from tests.faults.vfs import Act, Operation, Truncate, Write, between
from tests.store.older import made, run, schema_of

SPACE = ("local", "multilingual-e5-small", "1a2b3c4d5e6f")
COUNT = 4 * int(shipped("memd.store.migrations._ROWS"))
VECTORS = {
    TextHash(number.to_bytes(32, "big")): vector.tobytes()
    for number, vector in enumerate(np.random.default_rng(1).normal(size=(COUNT, 384)).astype("<f4"))
}
PACKED = 2 * 384 * COUNT  # bytes of the vectors alone
WHOLE = 2 * PACKED
SNAPSHOT_EVERY = 200  # writes to a disk


async def file_with_vectors(file: Path) -> int:
    """The size of a cache with vectors of the bundled model, which all come back."""
    store = EmbeddingStore(file)
    await store.open()
    await store.put(SPACE, VECTORS, 1.0)
    found = await store.look_up(SPACE, list(VECTORS), 2.0)
    assert found.vectors == rounded(VECTORS)
    await store.close()
    return database_files.size(file)


async def test_vectors_of_the_bundled_model_fill_their_pages(tmp_path: Path) -> None:
    """One of before keeps the pages that it has, of which some stays empty."""
    size = await file_with_vectors(tmp_path / "embeddings.sqlite")
    assert size < 1.45 * PACKED
    before = tmp_path / "before.sqlite"
    connection = apsw.Connection(str(before))
    connection.pragma("page_size", 4096)
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (x); DROP TABLE t")
    connection.close()
    assert await file_with_vectors(before) > size


def older(file: Path, schema: int) -> Path:
    """A cache as a program left it that wrote vectors as they are."""
    made(file, "embeddings", schema)
    connection = apsw.Connection(str(file))
    connection.executemany(
        "INSERT INTO cache VALUES (?, ?, ?, ?, ?, ?)",
        [(*SPACE, text_hash, vector, 1.0) for text_hash, vector in VECTORS.items()],
    )
    connection.close()
    return file


@pytest.mark.parametrize("schema", [1, 2, 3])
async def test_an_older_cache_is_packed_and_becomes_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: int
) -> None:
    """All its vectors are there; so many are in memory at a time."""
    file = older(tmp_path / "embeddings.sqlite", schema)
    store = EmbeddingStore(file)
    packed: list[int] = []

    def pack(vectors: list[bytes]) -> list[tuple[bytes, int | None]]:
        packed.append(len(vectors))
        return int16_vectors.pack(vectors)

    monkeypatch.setattr(migrations, "int16_vectors", SimpleNamespace(pack=pack))
    await store.open()
    monkeypatch.undo()
    assert packed == [shipped("memd.store.migrations._ROWS")] * 4
    assert (await store.look_up(SPACE, list(VECTORS), 2.0)).vectors == rounded(VECTORS)
    await store.close()
    assert schema_of(file) == migrations.newest("embeddings")
    assert database_files.size(file) < 0.8 * WHOLE
    unpacked = "SELECT count(*) FROM cache WHERE exponent IS NULL OR length(vector) != 768"
    connection = apsw.Connection(str(file))
    assert connection.execute(unpacked).get == 0
    connection.close()


async def test_packing_that_is_killed_is_begun_again(tmp_path: Path) -> None:
    """Whatever of it had reached the files: all vectors are there after the next start, packed, in a smaller file."""
    file = older(tmp_path / "embeddings.sqlite", 3)
    left: list[Path] = []
    written = itertools.count()

    def leave(operation: Operation, act: Act) -> bytes:
        if isinstance(operation, Write | Truncate) and next(written) % SNAPSHOT_EVERY == 0:
            left.append(tmp_path / f"killed-{len(left)}")
            left[-1].mkdir()
            for one in tmp_path.glob("embeddings.sqlite*"):
                if not one.name.endswith("-shm"):
                    shutil.copy(one, left[-1])
        return act(operation)

    with between(leave):
        store = EmbeddingStore(file)
        await store.open()
        await store.close()
    assert len(left) > 5
    schemas = set()
    for directory in left:
        schemas.add(schema_of(directory / file.name))
        again = EmbeddingStore(directory / file.name)
        await again.open()
        assert (await again.look_up(SPACE, list(VECTORS), 2.0)).vectors == rounded(VECTORS)
        await again.close()
        assert database_files.size(directory / file.name) < 0.8 * WHOLE
        shutil.rmtree(directory)
    assert schemas == {3, 4}  # before it was kept, and after


@pytest.mark.parametrize(
    "damage",
    ["exponent = 'x'", "vector = x'000102'", "vector = 'text', exponent = NULL"],
    ids=["exponent", "length", "type"],
)
async def test_a_vector_that_is_none_is_damage(tmp_path: Path, damage: str) -> None:
    """The file gives way to a new one, which indexes refill."""
    file = tmp_path / "embeddings.sqlite"
    store = EmbeddingStore(file)
    await store.open()
    some = dict(list(VECTORS.items())[:3])
    await store.put(SPACE, some, 1.0)
    run(file, f"UPDATE cache SET {damage}")
    assert (await store.look_up(SPACE, list(some), 2.0)).vectors == {}
    assert len(store.damaged_files()) == 1
    await store.close()


class Refuses:
    """A connection to a file that cannot be made smaller."""

    def __init__(self, connection: apsw.Connection, why: type[apsw.Error]) -> None:
        self.pragma = connection.pragma
        self._why = why
        self.asked: list[str] = []

    def execute(self, sql: str) -> None:
        self.asked.append(sql)
        raise self._why


@pytest.mark.parametrize("why", [apsw.FullError, apsw.IOError, apsw.BusyError, apsw.CantOpenError])
def test_a_file_that_cannot_be_made_smaller_stays_as_large_as_it_is(
    why: type[apsw.Error], tmp_path: Path
) -> None:
    """It is tried again at the next start, but not with a file that has no copy of before, or whose rows stay as they are."""
    file = older(tmp_path / "embeddings.sqlite", 3)
    connection = apsw.Connection(str(file))
    refuses = Refuses(connection, why)

    def give_back(schema: str) -> list[str]:
        refuses.asked.clear()
        migrations.give_back_pages(cast("apsw.Connection", refuses), file, schema)
        return list(refuses.asked)

    assert give_back("embeddings") == []
    migrations.make_copy(connection, file, migrations.newest("embeddings"))
    migrations.migrate(connection, "embeddings")
    assert give_back("index") == []
    assert give_back("embeddings") == give_back("embeddings") == ["VACUUM"]
    migrations.give_back_pages(connection, file, "embeddings")
    assert connection.pragma("page_count") * connection.pragma("page_size") < 0.8 * WHOLE
    assert give_back("embeddings") == []
    connection.close()


async def test_vectors_that_come_back_from_a_copy_are_read_as_they_are(tmp_path: Path) -> None:
    """They were not packed in it."""
    file = older(tmp_path / "embeddings.sqlite", 3)
    connection = apsw.Connection(str(file))
    migrations.make_copy(connection, file, migrations.newest("embeddings"))
    connection.close()
    file.unlink()
    recovery.bring_back(file, "embeddings")
    store = EmbeddingStore(file)
    await store.open()
    assert (await store.look_up(SPACE, list(VECTORS), 2.0)).vectors == VECTORS
    await store.close()
