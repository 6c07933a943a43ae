"""Databases as earlier programs left them."""

from pathlib import Path

import apsw

from memd.store import migrations


def made(file: Path, schema: str, number: int) -> Path:
    """An empty database of an older schema, in WAL mode."""
    connection = apsw.Connection(str(file))
    connection.pragma("journal_mode", "wal")
    for step, sql in migrations.steps(schema):
        if step <= number:
            connection.execute(sql)
    connection.pragma("user_version", number)
    connection.close()
    return file


def run(file: Path, sql: str) -> None:
    """Change a database past memd."""
    connection = apsw.Connection(str(file))
    connection.execute(sql)
    connection.close()


def schema_of(file: Path) -> int:
    """The schema number of a database, what is in its log included; nothing is left beside it."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found: int = connection.pragma("user_version")
    finally:
        connection.close()
    return found


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return sorted(path.name for path in directory.iterdir())
