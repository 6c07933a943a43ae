import sys
from pathlib import Path

import apsw
import pytest

from memd.store import migrations
from memd.store.database import Database
from memd.store.errors import StoreNewer
from tests.descriptors import open_descriptors
from tests.store.older import made, names, run, schema_of


async def refusal(file: Path, schema: str) -> str:
    database = Database(file, schema)
    with pytest.raises(StoreNewer) as refused:
        await database.open()
    await database.close()
    return str(refused.value)


def parts(file: Path) -> tuple[bytes, bytes]:
    """The bytes of a database and of its log."""
    return file.read_bytes(), Path(f"{file}-wal").read_bytes()


def put(file: Path, left: tuple[bytes, bytes]) -> None:
    file.write_bytes(left[0])
    Path(f"{file}-wal").write_bytes(left[1])


def left_by_a_later_one(file: Path) -> tuple[bytes, bytes]:
    """What a daemon of a later version leaves that is killed: the file itself does not tell yet."""
    connection = apsw.Connection(str(file))
    connection.pragma("wal_autocheckpoint", 0)
    connection.execute("CREATE TABLE of_later (x); PRAGMA user_version = 98")
    left = parts(file)
    connection.close()
    return left


@pytest.mark.parametrize("schema", ["index", "embeddings"])
async def test_what_a_newer_memd_wrote_is_not_touched(tmp_path: Path, schema: str) -> None:
    """Not even where only its log tells that it is newer: both are as they were, to the last byte."""
    file = made(tmp_path / "main.sqlite", schema, migrations.newest(schema))
    left = left_by_a_later_one(file)
    assert schema_of(file) == 98
    put(file, left)
    told = await refusal(file, schema)
    assert "schema 98" in told
    assert parts(file) == left


@pytest.mark.skipif(sys.platform != "linux", reason="looks at what the process has open")
async def test_what_is_refused_is_not_kept_open(tmp_path: Path) -> None:
    """A daemon tries again and again, for as long as it runs."""
    file = made(tmp_path / "main.sqlite", "index", migrations.newest("index") + 1)
    database = Database(file, "index")
    with pytest.raises(StoreNewer):
        await database.open()
    assert str(file) not in open_descriptors().values()
    await database.close()


async def test_the_refusal_tells_the_way_back(tmp_path: Path) -> None:
    """By the copy that can be read here, word for word as a shell takes it; without one, by doing without the file."""
    directory = tmp_path / "state dir"
    directory.mkdir()
    file = made(directory / "main.sqlite", "index", migrations.newest("index"))
    known = migrations.newest("index")
    connection = apsw.Connection(str(file))
    kept_as = migrations.make_copy(connection, file, known + 1)
    connection.pragma("user_version", known + 1)
    migrations.make_copy(connection, file, known + 2)
    connection.pragma("user_version", known + 2)
    connection.close()
    before = names(directory)
    told = await refusal(file, "index")
    for said in (f"rm -f '{file}-wal' '{file}-shm'", f"mv '{kept_as}' '{file}'", "Update memd"):
        assert said in told
    assert names(directory) == before
    kept_as.replace(file)
    database = Database(file, "index")
    await database.open()
    await database.close()
    run(file, f"PRAGMA user_version = {known + 3}")
    assert "made anew from your notes" in await refusal(file, "index")
