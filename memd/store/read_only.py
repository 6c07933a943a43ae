"""Inspects a database of memd without changing anything, neither the file nor its directory."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

from memd.errors import MemdError
from memd.store import database_files, integrity, keywords, meta, migrations, provider_records, vectors
from memd.store.errors import StoreDamaged, StoreUnavailable, mapped_errors

T = TypeVar("T")

_LOOKS = 3  # at a file that is changed during each
_STEPS = 1000  # instructions of SQLite between two looks at the clock


class LookImpossible(MemdError):
    """The file cannot be looked at without changing something, or not in time."""


class DatabaseCondition(msgspec.Struct, frozen=True, kw_only=True):
    """How a database is."""

    schema: int
    known_schema: int
    faults: tuple[str, ...] = ()  # what SQLite finds wrong, the keyword index included; () where it is sound

    @property
    def is_newer(self) -> bool:
        """Whether a newer memd wrote it; then nothing else is known of it."""
        return self.schema > self.known_schema


class IndexCondition(DatabaseCondition, frozen=True, kw_only=True):
    """How the index of an agent is."""

    files: int = 0
    chunks: int = 0
    fingerprint: meta.Fingerprint | None = None


class CacheCondition(DatabaseCondition, frozen=True, kw_only=True):
    """How the cache of vectors is."""

    rows: int = 0
    files: tuple[str, ...] = ()  # of batch jobs that have ended, at their providers: "openai file-1"


def look_at_index(file: Path, patience_s: float) -> IndexCondition:
    """Check an index, also while a daemon writes to it.

    Args:
        file: Must exist.
        patience_s: How long it may take, in seconds.

    Raises:
        LookImpossible: it has to be left alone, or takes longer.
        StoreDamaged, StoreUnavailable: it cannot be opened or read.
    """
    return _looked(file, patience_s, _condition_of_index)


def look_at_cache(file: Path, patience_s: float) -> CacheCondition:
    """Check embeddings.sqlite; like look_at_index."""
    return _looked(file, patience_s, _condition_of_cache)


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
    )


def _condition_of_cache(connection: apsw.Connection) -> CacheCondition:
    schema, known = _schema(connection, "embeddings")
    if schema > known or not schema:
        return CacheCondition(schema=schema, known_schema=known)
    faults = integrity.faults(connection, "embeddings")
    rows: int = 0 if faults else connection.execute("SELECT count(*) FROM cache").get
    files = () if faults else provider_records.files_left(connection)
    return CacheCondition(schema=schema, known_schema=known, faults=faults, rows=rows, files=files)


def _looked(file: Path, patience_s: float, look: Callable[[apsw.Connection], T]) -> T:
    """The result of a look at a file. A file that was changed meanwhile is looked at again, with its log."""
    if patience_s <= 0:
        raise LookImpossible("no time was left for it")
    deadline = time.monotonic() + patience_s
    for _ in range(_LOOKS):
        log = Path(f"{file}-wal")
        before = _state(file), _state(log)
        # The shared memory of a log is only read (https://www.sqlite.org/wal.html#readonly). A file without a log is opened
        # as one that no process changes: SQLite would leave an empty log beside it otherwise.
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
            raise LookImpossible(f"that takes longer than {patience_s:g} s") from None
        except (StoreDamaged, StoreUnavailable) as failure:
            trouble = failure
        # SQLite takes an immutable file at its word: pages of before and after would be seen as one state.
        if has_log or (_state(file), _state(log)) == before:
            if trouble is not None:
                raise trouble
            assert result is not None
            return result
    raise LookImpossible("a daemon writes to it")


class InterruptedLook(Exception):
    """It takes too long."""


@contextlib.contextmanager
def _looking(file: Path, how: str, deadline: float) -> Iterator[apsw.Connection]:
    """A connection in one read transaction, that ends what takes too long."""
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
    """Of a file, what changes when it is written or replaced; None where there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _prepare(connection: apsw.Connection) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    extension, _ = vectors.find_extension()
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
    """(number found, newest number known)."""
    found: int = connection.pragma("user_version")
    return found, migrations.newest(schema)
