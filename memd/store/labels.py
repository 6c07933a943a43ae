"""Stores tags, links and properties of notes, and applies search filters to files and chunks."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import apsw
import msgspec
import numpy as np

from memd.domain_types import AFTER_ALL_NS, ChunkId, Kind, Label, LabelKind, SearchFilter
from memd.store.chunks import WRITTEN_NS
from memd.store.vector_matrix import Ids
from memd.text.memory_paths import exclude_of
from memd.text.tokens import folded


class LabelCount(msgspec.Struct, frozen=True):
    """A tag or a link, and the number of notes that have it."""

    name: str  # in its first spelling
    notes: int
    is_missing: bool = False  # for a link: no note has that name


class LabelCounts(msgspec.Struct, frozen=True):
    """The tags and links of notes, the most frequent first."""

    tags: tuple[LabelCount, ...]
    links: tuple[LabelCount, ...]
    omitted: int  # the number of tags and links beyond the limit


def put(connection: apsw.Connection, file_id: int, labels: Sequence[Label]) -> None:
    """Replace the labels of a file."""
    before = connection.execute("SELECT kind, name, value FROM labels WHERE file_id = ?", (file_id,))
    stored = {(kind, name, value) for kind, name, value in before}
    wanted = {(int(one.kind), one.name, one.value) for one in labels}
    connection.executemany(
        "DELETE FROM labels WHERE file_id = ? AND kind = ? AND name = ? AND value = ?",
        [(file_id, *one) for one in stored - wanted],
    )
    connection.executemany(
        "INSERT INTO labels (file_id, kind, name, value) VALUES (?, ?, ?, ?)",
        [(file_id, *one) for one in wanted - stored],
    )


def allowed(connection: apsw.Connection, wanted: SearchFilter, kinds: Collection[Kind]) -> Ids:
    """Return the ascending ids of the chunks that pass a filter.

    Args:
        connection: A reader's.
        wanted: The filter.
        kinds: The visible kinds of files.
    """
    condition, values = matching(connection, wanted, kinds)
    return _ids(connection.execute(f"SELECT chunks.id {condition} ORDER BY chunks.id", values))


def files(
    connection: apsw.Connection, wanted: SearchFilter, kinds: Collection[Kind]
) -> tuple[Ids | None, Ids]:
    """Apply a filter to files.

    Returns:
        The ids of the files that pass all conditions but the time (None: all do), and the ids of the files whose mtime passes
        the time.
    """
    among: Ids | None = None
    if wanted.paths or wanted.tags or wanted.properties:
        conditions, values = file_conditions(connection, wanted, kinds)
        among = _ids(
            connection.execute(f"SELECT files.id FROM files WHERE {' AND '.join(conditions)}", values)
        )
    if not wanted.may_be_undated:
        return among, np.empty(0, np.int64)
    written = connection.execute(
        f"SELECT id FROM files WHERE {WRITTEN_NS} BETWEEN ? AND ?",
        (
            -AFTER_ALL_NS if wanted.since_ns is None else wanted.since_ns,
            AFTER_ALL_NS if wanted.until_ns is None else wanted.until_ns,
        ),
    )
    return among, _ids(written)


def _ids(rows: Iterable[tuple[Any, ...]]) -> Ids:
    return np.fromiter((row_id for (row_id,) in rows), np.int64)


def allowed_lines(
    connection: apsw.Connection, wanted: SearchFilter, kinds: Collection[Kind]
) -> dict[str, list[tuple[int, int]]]:
    """Return by path the first and last line of each chunk that passes a filter; see `allowed`."""
    condition, values = matching(connection, wanted, kinds)
    found: dict[str, list[tuple[int, int]]] = {}
    for path, first, last in connection.execute(
        f"SELECT files.path, chunks.start_line, chunks.end_line {condition}", values
    ):
        found.setdefault(path, []).append((first, last))
    return found


def newest(
    connection: apsw.Connection, limit: int, wanted: SearchFilter, kinds: Collection[Kind]
) -> list[ChunkId]:
    """Return at most `limit` chunks that pass a filter, approximately from the newest on."""
    condition, values = matching(connection, wanted, kinds)
    rows = connection.execute(
        f"SELECT chunks.id {condition}"
        f" ORDER BY coalesce(chunks.last_s, {WRITTEN_NS} / 1000000000) DESC, chunks.id LIMIT ?",
        (*values, limit),
    )
    return [ChunkId(chunk_id) for (chunk_id,) in rows]


def counts(connection: apsw.Connection, kinds: Collection[Kind], most: int) -> LabelCounts:
    """Count the tags and links of all visible notes.

    Args:
        connection: A reader's.
        kinds: The visible kinds of files.
        most: The most tags, and the most links, to return.
    """
    rows: list[tuple[int, str, str, int]] = connection.execute(
        "SELECT labels.kind, labels.name, min(labels.value), count(DISTINCT file_id) AS notes"
        " FROM labels JOIN files ON files.id = labels.file_id"
        f" WHERE labels.kind IN ({int(LabelKind.TAG)}, {int(LabelKind.LINK)}) AND files.kind IN ({_listed(kinds)})"
        " GROUP BY labels.kind, labels.name ORDER BY notes DESC, labels.name"
    ).fetchall()  # type: ignore[assignment]  # the columns are NOT NULL and of these types
    tags = tuple(LabelCount(value, notes) for kind, _, value, notes in rows if kind == LabelKind.TAG)
    links = [(name, value, notes) for kind, name, value, notes in rows if kind == LabelKind.LINK]
    there: set[str] = set()
    if links:
        for (path,) in connection.execute(f"SELECT path FROM files WHERE kind IN ({_listed(kinds)})"):
            there.update(link_names(path))
    return LabelCounts(
        tags[:most],
        tuple(
            LabelCount(value, notes, is_missing=name.strip("/").removesuffix(".md") not in there)
            for name, value, notes in links[:most]
        ),
        max(0, len(tags) - most) + max(0, len(links) - most),
    )


def link_names(path: str) -> list[str]:
    """Return the folded names by which a link may refer to a note: the ends of its path, as in [[plan]] and [[projects/plan]]."""
    parts = folded(path).removesuffix(".md").split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]


def matching(
    connection: apsw.Connection, wanted: SearchFilter, kinds: Collection[Kind]
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL from FROM on that selects the chunks that pass a filter, and its bound values."""
    conditions, values = file_conditions(connection, wanted, kinds)
    for bound, bound_ns, column, compared in (
        (wanted.since_s, wanted.since_ns, "last_s", ">="),
        (wanted.until_s, wanted.until_ns, "first_s", "<="),
    ):
        if bound is not None:
            conditions.append(
                f"CASE WHEN chunks.{column} IS NOT NULL THEN chunks.{column} {compared} ?"
                f" ELSE {WRITTEN_NS} {compared} ? END"
            )
            values += [bound, bound_ns]
    return (
        f"FROM files CROSS JOIN chunks ON chunks.file_id = files.id WHERE {' AND '.join(conditions)}",
        tuple(values),
    )


def file_conditions(
    connection: apsw.Connection, wanted: SearchFilter, kinds: Collection[Kind]
) -> tuple[list[str], list[Any]]:
    """Return SQL conditions on files for all of a filter but the time, and their bound values."""
    conditions = [f"files.kind IN ({_listed(kinds)})"]
    values: list[Any] = []
    if wanted.paths:
        conditions.append("files.id IN (SELECT value FROM json_each(?))")
        files: list[tuple[int, str]] = connection.execute(  # type: ignore[assignment]  # of these types
            f"SELECT id, path FROM files WHERE kind IN ({_listed(kinds)})"
        ).fetchall()
        values.append(f"[{','.join(map(str, paths_matching(files, wanted.paths)))}]")
    for tag in wanted.tags:
        # A tag below a/b begins with a/b/ and sorts before a/b0, as "0" is the next character after "/".
        conditions.append(
            "EXISTS (SELECT 1 FROM labels WHERE labels.file_id = files.id AND labels.kind = ?"
            " AND (labels.name = ? OR labels.name >= ? AND labels.name < ?))"
        )
        values += [int(LabelKind.TAG), tag, f"{tag}/", f"{tag}0"]
    for key, value in wanted.properties:
        conditions.append(
            "EXISTS (SELECT 1 FROM labels WHERE labels.file_id = files.id AND labels.kind = ?"
            " AND labels.name = ? AND labels.value = ?)"
        )
        values += [int(LabelKind.PROPERTY), key, value]
    return conditions, values


def paths_matching(files: Collection[tuple[int, str]], globs: Sequence[str]) -> list[int]:
    """Return the ids of the files whose path matches any glob, and no glob that begins with "!".

    People and models pass names as they are written, such as `proj [x]/`: where a file matches a glob whose brackets stand for
    themselves, they do.

    Args:
        files: (id, path) of each file that may be seen.
        globs: See SearchFilter.paths.
    """
    wanted = [_as_named(glob, files) for glob in globs if not glob.startswith("!")]
    among, without = (
        exclude_of(wanted or ["**"]),
        exclude_of(_as_named(glob[1:], files) for glob in globs if glob.startswith("!")),
    )
    return [file_id for file_id, path in files if among.matches(path) and not without.matches(path)]


def _as_named(glob: str, files: Iterable[tuple[int, str]]) -> str:
    """Return a glob with brackets that stand for themselves, if a file matches that; else the glob."""
    if "[" not in glob:
        return glob
    literal = glob.replace("[", "[[]")
    named = exclude_of([literal])
    return literal if any(named.matches(path) for _, path in files) else glob


def _listed(kinds: Collection[Kind]) -> str:
    return ", ".join(str(int(kind)) for kind in sorted(kinds))
