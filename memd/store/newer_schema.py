"""Leaves alone what a newer memd wrote, and says how to go on."""

from pathlib import Path

from memd.store import backups, database_files, migrations
from memd.store.errors import StoreNewer


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
    known = migrations.newest(schema)
    if found > known:
        raise StoreNewer(file, found, known, find_copy(file, known))


def find_copy(file: Path, known: int) -> Path | None:
    """The copy that a newer memd made of a database that a program can read, if one is kept; the newest of them."""
    return next((copy.path for copy in backups.kept(file) if 0 < copy.schema <= known), None)
