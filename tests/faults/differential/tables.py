"""What is in every table of an index, by names that do not depend on how it came about: to compare two of them.

Tables are found, not listed: one that is added later is compared from its first day, and named where it differs.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec
import sqlite_vec

from memd.store.meta import miscounted

Rows = Counter[tuple[Any, ...]]
Admits = Callable[[str], bool]

_UNLIKE: Mapping[str, Mapping[str, str]] = {
    # Table -> column -> why it differs between two indexes of the same files.
    "files": {
        "mtime_ns": "is -1 for a file that was read right after it was written",
    },
}
_ELSEWHERE = {
    "vectors": "tests.daemon.contents compares them, with a tolerance",
    "vectors_plain": "likewise",
    "totals": "those of files that take no part are in them: they are compared with the tables that they count",
}
_SHOWN = 3


def _progress(raw: bytes) -> str:
    """How far a transcript was read. What its parser has seen is a set, in any order; the last turn need not be known."""
    progress = msgspec.msgpack.decode(raw)
    progress.pop("last")
    state = msgspec.msgpack.decode(progress["state"]) if progress["state"] else {}
    return repr(progress | {"state": {name: _in_order(value) for name, value in state.items()}})


def _in_order(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, list) else value


_READ: Mapping[tuple[str, str], Callable[[Any], Any]] = {("sessions", "progress"): _progress}


def tables(file: Path, admits: Admits) -> dict[str, Rows]:
    """The rows of each table, with the places of files and chunks instead of their numbers.

    Args:
        file: The index; a daemon may have it open.
        admits: Whether rows about a file of that path take part.
    """
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("BEGIN")  # one state of all tables
        return _tables(connection, admits)
    finally:
        connection.close()


def _tables(connection: apsw.Connection, admits: Admits) -> dict[str, Rows]:
    paths: dict[Any, Any] = {row[0]: row[1] for row in connection.execute("SELECT id, path FROM files")}
    chunks: dict[Any, Any] = {
        chunk: (paths[file], start, end, text)
        for chunk, file, start, end, text in connection.execute(
            "SELECT id, file_id, start_line, end_line, text FROM chunks"
        )
    }
    # Not every module tells SQLite which tables are its own.
    owners = [
        f"{name}_"
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'")
    ]
    found: dict[str, Rows] = {}
    listed = connection.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'").fetchall()
    for name, kind in ((str(name), kind) for name, kind in listed):
        if kind not in {"table", "virtual"} or name.startswith(("sqlite_", *owners)) or name in _ELSEWHERE:
            continue
        sql = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get)
        if "fts5" in sql:
            connection.execute(
                f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, {name}, 'instance')"
            )
            rows = connection.execute("SELECT doc, term, col, offset FROM temp.vocabulary").fetchall()
            connection.execute("DROP TABLE temp.vocabulary")
            columns, meant = ["doc", "term", "col", "offset"], [chunks, None, None, None]
        else:
            columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            meant = _meant(connection, name, columns, paths, chunks)
            read = [_READ.get((name, column)) for column in columns]
            rows = [
                tuple(value if how is None else how(value) for value, how in zip(row, read, strict=True))
                for row in connection.execute(f"SELECT {', '.join(columns)} FROM {name}")
            ]
        numbered = connection.execute(
            "SELECT name FROM pragma_table_info(?) WHERE type = 'INTEGER' AND pk", (name,)
        ).fetchall()
        # A key that is one number, and stands for nothing else, is given in the order in which rows came.
        own = {
            str(row[0])
            for row in numbered
            if len(numbered) == 1 and meant[columns.index(str(row[0]))] is None
        }
        dropped = {columns.index(column) for column in own | _UNLIKE.get(name, {}).keys()}
        found[name] = Counter(
            told
            for row in rows
            if (told := _told(row, meant, dropped, admits, is_files=name == "files")) is not None
        )
    found["totals"] = Counter((wrong,) for wrong in miscounted(connection))
    return found


def _meant(
    connection: apsw.Connection, table: str, columns: list[str], paths: dict[Any, Any], chunks: dict[Any, Any]
) -> list[dict[Any, Any] | None]:
    """For each column, what its numbers stand for: told by its foreign key, else by its name."""
    of = {"files": paths, "chunks": chunks}
    named = {"file_id": paths, "chunk_id": chunks}
    keys = {
        column: of[other]
        for other, column in connection.execute(
            'SELECT "table", "from" FROM pragma_foreign_key_list(?)', (table,)
        )
        if other in of
    }
    return [
        chunks if table == "chunks" and column == "id" else keys.get(column, named.get(column))
        for column in columns
    ]


def _told(
    row: tuple[Any, ...],
    meant: list[dict[Any, Any] | None],
    dropped: set[int],
    admits: Admits,
    *,
    is_files: bool,
) -> tuple[Any, ...] | None:
    """A row as it is compared; None where it is about a file that takes no part."""
    told: list[Any] = []
    for at, (value, stands_for) in enumerate(zip(row, meant, strict=True)):
        if at in dropped:
            continue
        if stands_for is None:
            told.append(value)
            if is_files and isinstance(value, str) and not admits(value):
                return None
            continue
        place = stands_for.get(value, f"nothing: {value}")
        if not admits(place if isinstance(place, str) else place[0]):
            return None
        told.append(place)
    return tuple(told)


def unlike(one: Mapping[str, Rows], other: Mapping[str, Rows]) -> list[str]:
    """The tables that differ, with some of their rows."""
    told = []
    for name in sorted(one.keys() | other.keys()):
        mine, fresh = one.get(name, Counter()), other.get(name, Counter())
        more, less = mine - fresh, fresh - mine
        if more or less:
            some = [f"+ {_shown(row)}" for row in list(more)[:_SHOWN]] + [
                f"- {_shown(row)}" for row in list(less)[:_SHOWN]
            ]
            told.append(
                f"table {name}: {more.total()} rows too many, {less.total()} missing\n  " + "\n  ".join(some)
            )
    return told


def _shown(row: tuple[Any, ...]) -> str:
    return str(row)[:300]
