"""A look at a database that changes nothing."""

import asyncio
import sqlite3
from pathlib import Path

import apsw
import pytest

from memd.store import integrity, read_only
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index
from tests.bounds import shipped
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, vector_of

_TIMEOUT_S = 60.0


def _files(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in directory.iterdir()}


async def _filled(file: Path) -> Index:
    index = Index(file)
    await index.open()
    await index.adopt(FINGERPRINT)
    for number in range(40):
        chunk = chunk_of(f"word{number} 数据库 " * 50)
        await index.replace(
            found_file(f"memory/{number}.md"), b"h", [chunk], {chunk.hash: vector_of(number)}, frozenset()
        )
    return index


@pytest.fixture
async def closed(tmp_path: Path) -> Path:
    """An index whose daemon ended in peace."""
    index = await _filled(tmp_path / "main.sqlite")
    await index.close()
    return index.file


async def test_an_open_index_is_looked_at_beside_its_writer(tmp_path: Path) -> None:
    """With what is in the log alone, and without a trace in file or log; connections of one process share the memory."""
    index = await _filled(tmp_path / "main.sqlite")
    before = _files(tmp_path)
    seen = await asyncio.to_thread(read_only.look_at_index, index.file, _TIMEOUT_S)
    after = _files(tmp_path)
    assert before.keys() == after.keys()
    assert all(after[name] == before[name] for name in before if not name.endswith("-shm"))
    await index.close()
    assert (seen.faults, seen.files, seen.chunks, seen.fingerprint) == ((), 40, 40, FINGERPRINT)
    assert seen.schema == seen.known_schema


def test_a_closed_index_is_looked_at_without_a_trace(closed: Path) -> None:
    """SQLite would leave an empty log beside a file it opens for reading."""
    before = _files(closed.parent)
    seen = read_only.look_at_index(closed, _TIMEOUT_S)
    assert (seen.faults, seen.files) == ((), 40)
    assert _files(closed.parent) == before


def test_a_file_name_may_hold_what_an_address_does_not(closed: Path) -> None:
    """SQLite is given addresses, in which some letters mean something."""
    odd = closed.with_name("a b?mode=rwc#%41.sqlite")
    closed.rename(odd)
    assert read_only.look_at_index(odd, _TIMEOUT_S).files == 40


def test_overwritten_pages_are_found(closed: Path) -> None:
    """Wherever they lie."""
    with closed.open("r+b") as stream:
        stream.seek(4096 * 10)
        stream.write(b"\xa5" * 4096 * 8)
    try:
        seen = read_only.look_at_index(closed, _TIMEOUT_S)
    except StoreDamaged:
        return
    assert seen.faults


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE keywords_data SET block = randomblob(length(block)) WHERE id > 100",
        "DELETE FROM keywords_data WHERE id > 100",
        "DELETE FROM keywords_docsize WHERE id < 10",
        "DROP TABLE files",
    ],
)
def test_a_broken_keyword_index_is_found(closed: Path, damage: str) -> None:
    """Though every page is sound as such."""
    connection = sqlite3.connect(closed)
    connection.execute("PRAGMA journal_mode = delete")
    connection.execute(damage)
    connection.commit()
    connection.close()
    try:
        seen = read_only.look_at_index(closed, _TIMEOUT_S)
    except StoreDamaged:
        return
    assert seen.faults


def test_what_is_no_database_is_damaged(tmp_path: Path) -> None:
    """Text in its place."""
    file = tmp_path / "main.sqlite"
    file.write_text("not a database, " * 300, encoding="utf-8")
    with pytest.raises(StoreDamaged):
        read_only.look_at_index(file, _TIMEOUT_S)


def test_a_newer_schema_is_told_and_not_looked_into(closed: Path) -> None:
    """Its tables may be others."""
    apsw.Connection(str(closed)).pragma("user_version", 99)
    seen = read_only.look_at_index(closed, _TIMEOUT_S)
    assert seen.is_newer
    assert (seen.schema, seen.files) == (99, 0)


def test_an_empty_file_is_no_fault(tmp_path: Path) -> None:
    """The daemon makes one before it writes."""
    (tmp_path / "main.sqlite").touch()
    assert read_only.look_at_index(tmp_path / "main.sqlite", _TIMEOUT_S).faults == ()


def test_what_takes_too_long_is_given_up(closed: Path) -> None:
    """With the time that it was given."""
    with pytest.raises(read_only.LookImpossible, match="longer than 1e-09 s"):
        read_only.look_at_index(closed, 1e-9)
    with pytest.raises(read_only.LookImpossible, match="no time"):
        read_only.look_at_index(closed, 0.0)


def test_a_log_without_its_shared_memory_is_left_alone(closed: Path) -> None:
    """To make that would be to write."""
    Path(f"{closed}-wal").write_bytes(b"x" * 100)
    before = _files(closed.parent)
    with pytest.raises(read_only.LookImpossible, match="log"):
        read_only.look_at_index(closed, _TIMEOUT_S)
    assert _files(closed.parent) == before


def test_a_log_that_holds_nothing_is_in_nobodys_way(closed: Path) -> None:
    """A power cut may leave its name alone; nothing is made beside it."""
    Path(f"{closed}-wal").touch()
    before = _files(closed.parent)
    assert read_only.look_at_index(closed, _TIMEOUT_S).faults == ()
    assert _files(closed.parent) == before


def test_a_missing_part_of_the_vectors_is_found(closed: Path) -> None:
    """sqlite-vec keeps them in tables of its own, of which the schema knows nothing."""
    connection = apsw.Connection(str(closed))
    connection.pragma("writable_schema", True)
    connection.execute("DELETE FROM sqlite_schema WHERE name = 'vectors_rowids'")
    connection.close()
    assert read_only.look_at_index(closed, _TIMEOUT_S).faults == ("no such table or index: vectors_rowids",)


def test_a_file_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """And is not made."""
    with pytest.raises(StoreUnavailable):
        read_only.look_at_index(tmp_path / "none.sqlite", _TIMEOUT_S)
    assert list(tmp_path.iterdir()) == []


async def test_the_cache_tells_its_rows(tmp_path: Path) -> None:
    """Beside its writer and after it."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    await cache.put(("p", "m", "k"), {chunk_of(str(n)).hash: vector_of(n) for n in range(9)}, 1.0)
    assert (await asyncio.to_thread(read_only.look_at_cache, cache.file, _TIMEOUT_S)).rows == 9
    await cache.close()
    seen = read_only.look_at_cache(cache.file, _TIMEOUT_S)
    assert (seen.rows, seen.faults) == (9, ())


@pytest.mark.parametrize("schema", [0, 99])
async def test_a_cache_that_is_empty_or_newer_is_told_and_not_looked_into(
    tmp_path: Path, schema: int
) -> None:
    """Its tables may be others, or are not there yet."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    await cache.put(("p", "m", "k"), {chunk_of("one").hash: vector_of(1)}, 1.0)
    await cache.close()
    connection = apsw.Connection(str(cache.file))
    connection.pragma("user_version", schema)
    connection.close()
    seen = read_only.look_at_cache(cache.file, _TIMEOUT_S)
    assert (seen.schema, seen.rows, seen.faults) == (schema, 0, ())


_LOOKS = shipped("memd.store.read_only._LOOKS")


@pytest.mark.parametrize("changes", [1, _LOOKS - 1, _LOOKS])
async def test_what_is_written_during_a_look_is_no_damage(
    closed: Path, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    """A mixture of pages of before and after is looked at again; one that never comes to rest is left alone."""
    looks = 0
    faults = integrity.faults

    def written_meanwhile(connection: apsw.Connection, schema: str) -> tuple[str, ...]:
        nonlocal looks
        looks += 1
        if looks > changes:
            return faults(connection, schema)
        writer = sqlite3.connect(closed)  # its log is folded into the file, and gone, when it closes
        writer.execute("UPDATE files SET size = size + 1")
        writer.commit()
        writer.close()
        return ("malformed inverted index",)

    monkeypatch.setattr(integrity, "faults", written_meanwhile)
    if changes < _LOOKS:
        seen = read_only.look_at_index(closed, _TIMEOUT_S)
        assert (seen.faults, seen.files) == ((), 40)
    else:
        with pytest.raises(read_only.LookImpossible):
            read_only.look_at_index(closed, _TIMEOUT_S)
