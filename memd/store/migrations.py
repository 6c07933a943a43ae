"""Brings a file up to its schema by numbered SQL files, and leaves alone what a newer memd wrote."""

from importlib import resources
from pathlib import Path

import apsw

from memd.store import backups, database_files
from memd.store.errors import StoreDamaged, StoreNewer


def steps(schema: str) -> list[tuple[int, str]]:
    """(number, SQL) of every migration of a schema, in order."""
    folder = resources.files("memd.store") / "sql" / schema
    found = [
        (int(item.name[:3]), item.read_text("utf-8"))
        for item in folder.iterdir()
        if item.name.endswith(".sql")
    ]
    return sorted(found)


def newest(schema: str) -> int:
    """The newest number of a schema that this program knows."""
    return steps(schema)[-1][0]


def migrate(connection: apsw.Connection, schema: str) -> None:
    """Run what has not run yet, all of it in one transaction: the file is of its old schema, or of the newest.

    Raises:
        StoreDamaged: a step does not go with what is in the file, or what came of it is not sound. The file is as it was.
        apsw.Error: likewise, for what lies outside it.
    """
    found: int = connection.pragma("user_version")
    missing = [(number, sql) for number, sql in steps(schema) if number > found]
    if not missing:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in missing:
            try:
                connection.execute(f"{sql}\n;PRAGMA user_version = {number};")
            except (apsw.SQLError, apsw.ConstraintError) as error:
                # The same at each attempt: its tables are not those that memd made.
                file = connection.db_filename("main")
                raise StoreDamaged(f"{file} cannot be brought up to schema {number}: {error}") from error
        if found:
            _require_sound(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _require_sound(connection: apsw.Connection) -> None:
    found: str = connection.execute("PRAGMA quick_check(1)").get
    if found != "ok":
        file = connection.db_filename("main")
        raise StoreDamaged(f"{file}: {found}")


def require_known(file: Path, schema: str) -> None:
    """Look at the schema number of a file without opening it as a database, which would already touch it.

    Only before this process has the file open: closing it gives up every lock that the process holds on it.

    Raises:
        StoreNewer: a newer memd wrote it.
    """
    found = database_files.schema_of(file)
    if found is not None:
        require_version(file, found, schema)


def require_version(file: Path, found: int, schema: str) -> None:
    """Compare the schema number of a file with the newest that this program knows.

    Raises:
        StoreNewer: it is larger.
    """
    known = newest(schema)
    if found > known:
        raise StoreNewer(file, found, known, find_copy(file, known))


def find_copy(file: Path, known: int) -> Path | None:
    """The copy that a newer memd made of a database that a program can read, if one is kept; the newest of them."""
    return next((copy.path for copy in backups.kept(file) if 0 < copy.schema <= known), None)
