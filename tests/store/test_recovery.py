from pathlib import Path

import apsw
import pytest
import structlog

from memd.domain_types import TextHash
from memd.store import database_files, migrations, recovery
from memd.store.embedding_cache import EmbeddingStore, Space
from memd.store.migrations import newest
from tests.store.conftest import vector_of
from tests.store.older import made, names, run, schema_of


def test_the_newest_two_are_kept_with_their_logs(tmp_path: Path) -> None:
    """Each gets the next number; the oldest goes, log and all, and nothing else beside them."""
    file = tmp_path / "main.sqlite"
    (tmp_path / "main.sqlite.damaged-x").touch()
    for number in range(4):
        file.write_text(str(number))
        Path(f"{file}-wal").write_text(f"log {number}")
        Path(f"{file}-shm").touch()
        recovery.quarantine(file, "a test wants it")
    assert [path.name for path in recovery.kept_damaged(file)] == [
        "main.sqlite.damaged-4",
        "main.sqlite.damaged-3",
    ]
    assert [path.read_text() for path in recovery.kept_damaged(file)] == ["3", "2"]
    assert len(recovery.kept_damaged(file)) == recovery.KEPT
    assert Path(f"{recovery.kept_damaged(file)[0]}-wal").read_text() == "log 3"
    assert names(tmp_path) == [
        *(f"main.sqlite.damaged-{number}{log}" for number in (3, 4) for log in ("", "-shm", "-wal")),
        "main.sqlite.damaged-x",
    ]


def test_the_log_of_a_file_that_is_gone_goes_too(tmp_path: Path) -> None:
    """It would be applied to whatever comes in its place."""
    file = tmp_path / "main.sqlite"
    Path(f"{file}-wal").write_text("frames")
    recovery.quarantine(file, "it was deleted")
    assert names(tmp_path) == []
    assert recovery.kept_damaged(file) == []


def test_a_directory_in_the_place_of_a_file_is_never_emptied(tmp_path: Path) -> None:
    """However many damaged files follow, what somebody put into it stays."""
    file = tmp_path / "main.sqlite"
    file.mkdir()
    (file / "precious").write_text("yes")
    recovery.quarantine(file, "it is no file")
    for _ in range(3):
        file.touch()
        recovery.quarantine(file, "a test wants it")
    assert (tmp_path / "main.sqlite.damaged-1" / "precious").read_text() == "yes"


SPACE: Space = ("remote", "m", "k")
HASHES = [TextHash(bytes([n]) * 32) for n in range(20)]


def paid_for(directory: Path) -> Path:
    """A cache of the first schema, with vectors and a text that was refused."""
    file = made(directory / "embeddings.sqlite", "embeddings", 1)
    connection = apsw.Connection(str(file))
    connection.executemany(
        "INSERT INTO cache VALUES (?, ?, ?, ?, ?, 1.5)",
        [(*SPACE, text_hash, vector_of(n)) for n, text_hash in enumerate(HASHES)],
    )
    connection.execute("INSERT INTO set_aside VALUES (?, ?, ?, ?, 'too long', 1.5)", (*SPACE, b"refused"))
    connection.close()
    return file


def spoil_next_step(file: Path) -> None:
    """Let the second step fail, on a database that is sound."""
    run(file, "CREATE TABLE documents (somebody TEXT)")


async def known(store: EmbeddingStore) -> tuple[int, int]:
    """How many vectors, and how many refusals, are there."""
    found = (await store.look_up(SPACE, HASHES, 2.0)).vectors
    assert all(found[text_hash] == vector_of(n) for n, text_hash in enumerate(HASHES) if text_hash in found)
    return len(found), len(await store.refused(SPACE, [TextHash(b"refused")]))


async def test_a_cache_that_cannot_be_brought_up_to_date_loses_nothing(tmp_path: Path) -> None:
    """It is set aside, and all that was in it is in the new one, which is of the newest schema and can be written."""
    file = paid_for(tmp_path)
    spoil_next_step(file)
    store = EmbeddingStore(file)
    with structlog.testing.capture_logs() as logs:
        await store.open()
    assert store.failure is None
    assert await known(store) == (20, 1)
    await store.put(SPACE, {TextHash(b"new"): vector_of(99)}, 3.0)
    assert store.failure is None
    assert [path.name for path in store.damaged_files()] == ["embeddings.sqlite.damaged-1"]
    assert [copy.schema for copy in store.copies] == [1]
    assert store.renewed.version == 1  # indexes put back what they have beyond it
    await store.close()
    assert schema_of(file) == migrations.newest("embeddings")
    told = [event["event"] for event in logs]
    assert told == ["store.copied", "store.set_aside", "store.brought_back"]


async def test_what_was_done_half_is_done_again(tmp_path: Path) -> None:
    """After a life that ended between setting the old file aside and putting the new one there."""
    file = paid_for(tmp_path)
    connection = apsw.Connection(str(file))
    migrations.make_copy(connection, file, 2)
    connection.close()
    file.unlink()
    migrations.partial_copy(file).write_bytes(b"half")
    store = EmbeddingStore(file)
    await store.open()
    assert await known(store) == (20, 1)
    await store.close()
    assert names(tmp_path) == ["embeddings.sqlite", "embeddings.sqlite.before-schema-2"]


async def test_later_damage_costs_what_came_since(tmp_path: Path) -> None:
    """As long as the copy is kept."""
    file = paid_for(tmp_path)
    store = EmbeddingStore(file)
    await store.open()
    await store.put(SPACE, {TextHash(b"new"): vector_of(99)}, 3.0)
    run(file, "DROP TABLE cache")
    assert await known(store) == (20, 1)
    assert not (await store.look_up(SPACE, [TextHash(b"new")], 3.0)).vectors
    await store.close()


async def test_a_copy_that_is_damaged_is_not_believed(tmp_path: Path) -> None:
    """The cache begins empty, as it does where there is no copy."""
    file = paid_for(tmp_path)
    connection = apsw.Connection(str(file))
    kept_as = migrations.make_copy(connection, file, 2)
    connection.close()
    whole = bytearray(kept_as.read_bytes())
    whole[2 * 4096 : 4 * 4096] = bytes(2 * 4096)
    kept_as.write_bytes(whole)
    file.unlink()
    store = EmbeddingStore(file)
    with structlog.testing.capture_logs() as logs:
        await store.open()
    assert await known(store) == (0, 0)
    assert store.failure is None
    await store.close()
    assert "store.copy_damaged" in [event["event"] for event in logs]


@pytest.mark.parametrize("schema", [0, newest("embeddings") + 1])
def test_a_copy_that_nobody_here_can_read_is_left_alone(tmp_path: Path, schema: int) -> None:
    """As is one that holds nothing."""
    file = paid_for(tmp_path)
    run(file, f"PRAGMA user_version = {schema}")
    connection = apsw.Connection(str(file))
    migrations.make_copy(connection, file, newest("embeddings") + 2)
    connection.close()
    file.unlink()
    recovery.bring_back(file, "embeddings")
    assert not file.exists()


def test_only_columns_that_both_have_are_taken(tmp_path: Path) -> None:
    """A table of another shape brings what it can, one of which nothing is left brings nothing."""
    file = paid_for(tmp_path)
    run(file, "ALTER TABLE cache ADD COLUMN extra TEXT")
    run(file, "CREATE TABLE documents (somebody TEXT); INSERT INTO documents VALUES ('x')")
    connection = apsw.Connection(str(file))
    migrations.make_copy(connection, file, 2)
    connection.close()
    file.unlink()
    Path(f"{file}-wal").write_text("frames of the file that is gone")
    recovery.bring_back(file, "embeddings")
    assert not Path(f"{file}-wal").exists()
    connection = apsw.Connection(str(file))
    assert connection.execute("SELECT count(*) FROM cache").get == 20
    assert connection.execute("SELECT count(*) FROM documents").get == 0
    connection.close()


@pytest.mark.parametrize(
    ("names", "synced"), [(["a"], 1), (["a-wal"], 1), (["a", "a-wal", "a-shm"], 1), ([], 0)]
)
def test_that_a_database_is_gone_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], synced: int
) -> None:
    """A power cut brings none of it back: its log would be taken for that of the next one."""
    directories: list[Path] = []
    monkeypatch.setattr(database_files, "sync_directory", directories.append)
    for name in names:
        (tmp_path / name).write_text("x")
    recovery.remove_database(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    assert directories == [tmp_path] * synced
