from pathlib import Path

import apsw
import pytest

from memd.store import migrations
from memd.store.errors import StoreDamaged
from tests.store.golden.read import DIRECTORY, unpack
from tests.store.older import made, run, schema_of


def tables(file: Path) -> set[str]:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    finally:
        connection.close()


@pytest.mark.parametrize("schema", ["index", "embeddings"])
def test_no_step_ends_the_transaction_that_holds_them_all(schema: str) -> None:
    """Steps are numbered from 1 without a gap, and none says what only a whole migration may say."""
    steps = migrations.steps(schema)
    assert [number for number, _ in steps] == list(range(1, migrations.newest(schema) + 1))
    for _, sql in steps:
        said = {
            line.split("--")[0].split()[0].upper() for line in sql.splitlines() if line.split("--")[0].split()
        }
        assert not said & {"BEGIN", "COMMIT", "ROLLBACK", "VACUUM", "PRAGMA", "SAVEPOINT", "RELEASE"}


def test_steps_are_taken_all_or_none(tmp_path: Path) -> None:
    """Where the second fails, nothing of the first is there either."""
    file = made(tmp_path / "embeddings.sqlite", "embeddings", 0)
    run(file, "CREATE TABLE documents (somebody TEXT)")
    before = tables(file)
    connection = apsw.Connection(str(file))
    with pytest.raises(StoreDamaged, match="already exists"):
        migrations.migrate(connection, "embeddings")
    assert not connection.in_transaction
    connection.close()
    assert (schema_of(file), tables(file)) == (0, before)


def test_what_is_not_sound_afterwards_is_not_kept(tmp_path: Path) -> None:
    """A database that was damaged before stays at its schema, as it is."""
    unpack(DIRECTORY / "schema-1-2", tmp_path)
    file = tmp_path / "agents" / "main.sqlite"
    run(file, "UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")
    connection = apsw.Connection(str(file))
    with pytest.raises(StoreDamaged, match="fts5"):
        migrations.migrate(connection, "index")
    connection.close()
    assert schema_of(file) == 1
    assert "turns" not in tables(file)
