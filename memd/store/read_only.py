"""Inspects a database of memd without changing the file or its directory."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

from memd.domain_types import LONG_FRONT_MATTER, NOT_UTF8
from memd.errors import MemdError
from memd.store import (
    database_files,
    integrity,
    keywords,
    meta,
    migrations,
    provider_records,
    sessions,
    vector_table,
)
from memd.store.errors import StoreDamaged, StoreUnavailable, mapped_errors

T = TypeVar("T")

_LOOKS = 3  # attempts, if the file changes during each of them
_STEPS = 1000  # SQLite instructions between two checks of the deadline


class LookImpossible(MemdError):
    """The file cannot be inspected without changing something, or not in time."""


class DatabaseCondition(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking a database."""

    schema: int
    known_schema: int
    faults: tuple[str, ...] = ()  # found by integrity.faults; () if it is sound

    @property
    def is_newer(self) -> bool:
        """Whether a newer memd wrote it; the other fields are then unknown."""
        return self.schema > self.known_schema


class IndexCondition(DatabaseCondition, frozen=True, kw_only=True):
    """The result of checking an agent's index."""

    files: int = 0
    chunks: int = 0
    fingerprint: meta.Fingerprint | None = None
    not_utf8: tuple[str, ...] = ()  # notes in which bytes had no meaning
    long_front_matter: tuple[str, ...] = ()  # notes with properties that are not read


class CacheCondition(DatabaseCondition, frozen=True, kw_only=True):
    """The result of checking the embedding cache."""

    rows: int = 0
    # Files of ended batch jobs that are still at their providers: "openai file-1".
    files: tuple[str, ...] = ()


def look_at_index(file: Path, timeout_s: float) -> IndexCondition:
    """Check an index, also while a daemon writes to it.

    Args:
        file: An existing file.
        timeout_s: The timeout in seconds.

    Raises:
        LookImpossible: the file must not be opened now, or the timeout expired.
        StoreDamaged, StoreUnavailable: it cannot be opened or read.
    """
    return _looked(file, timeout_s, _condition_of_index)


def look_at_cache(file: Path, timeout_s: float) -> CacheCondition:
    """Check embeddings.sqlite; see look_at_index."""
    return _looked(file, timeout_s, _condition_of_cache)


def _condition_of_index(connection: apsw.Connection) -> IndexCondition:
    schema, known = _schema(connection, "index")
    if schema > known or not schema:
        return IndexCondition(schema=schema, known_schema=known)
    faults = integrity.faults(connection, "index")
    if faults:
        return IndexCondition(schema=schema, known_schema=known, faults=faults)
    return IndexCondition(
        schema=schema,
        known_schema=known,
        files=connection.execute("SELECT count(*) FROM files").get,
        chunks=connection.execute("SELECT count(*) FROM chunks").get,
        fingerprint=meta.get_fingerprint(connection),
        not_utf8=sessions.counted_in(connection, NOT_UTF8) if schema == known else (),
        long_front_matter=sessions.counted_in(connection, LONG_FRONT_MATTER) if schema == known else (),
    )


def _condition_of_cache(connection: apsw.Connection) -> CacheCondition:
    schema, known = _schema(connection, "embeddings")
    if schema > known or not schema:
        return CacheCondition(schema=schema, known_schema=known)
    faults = integrity.faults(connection, "embeddings")
    rows: int = 0 if faults else connection.execute("SELECT count(*) FROM cache").get
    files = () if faults else provider_records.files_left(connection)
    return CacheCondition(schema=schema, known_schema=known, faults=faults, rows=rows, files=files)


def _looked(file: Path, timeout_s: float, look: Callable[[apsw.Connection], T]) -> T:
    """Run `look` on a file; repeat it if the file or its WAL changed meanwhile."""
    if timeout_s <= 0:
        raise LookImpossible("no time was left for it")
    deadline = time.monotonic() + timeout_s
    for _ in range(_LOOKS):
        log = Path(f"{file}-wal")
        before = _state(file), _state(log)
        # With readonly_shm, the shared memory of the WAL is only read (https://www.sqlite.org/wal.html#readonly). A file without
        # a WAL is opened as immutable: otherwise SQLite would create an empty WAL beside it.
        has_log = _holds_something(log)
        if has_log and not Path(f"{file}-shm").exists():
            raise LookImpossible("a daemon was killed and left a log that only the next daemon may take over")
        result, trouble = None, None
        try:
            with _looking(
                file, "mode=ro&readonly_shm=1" if has_log else "immutable=1", deadline
            ) as connection:
                result = look(connection)
        except InterruptedLook:
            raise LookImpossible(f"that takes longer than {timeout_s:g} s") from None
        except (StoreDamaged, StoreUnavailable) as failure:
            trouble = failure
        # SQLite does not check an immutable file for changes: pages of two states could be read as one.
        if has_log or (_state(file), _state(log)) == before:
            if trouble is not None:
                raise trouble
            assert result is not None
            return result
    raise LookImpossible("a daemon writes to it")


class InterruptedLook(Exception):
    """The check exceeded its deadline."""


@contextlib.contextmanager
def _looking(file: Path, how: str, deadline: float) -> Iterator[apsw.Connection]:
    """Open a connection in one read transaction, which is interrupted at the deadline."""
    with mapped_errors(file):
        connection = apsw.Connection(
            f"{database_files.uri(file)}?{how}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            _prepare(connection)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            connection.execute("BEGIN")
            yield connection
        except apsw.InterruptError:
            raise InterruptedLook from None
        finally:
            connection.close()


def _state(file: Path) -> tuple[int, int, int] | None:
    """Return size, mtime and inode of a file, which change with its content; None if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _prepare(connection: apsw.Connection) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    extension, _ = vector_table.find_extension()
    if extension is not None:
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        connection.enable_load_extension(False)
    keywords.prepare(connection)


def _holds_something(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreUnavailable(f"{log}: {error.strerror}") from error


def _schema(connection: apsw.Connection, schema: str) -> tuple[int, int]:
    """Return (schema number of the file, newest number known)."""
    found: int = connection.pragma("user_version")
    return found, migrations.newest(schema)
