"""Lists the content of an index page by page: files, folders, chunks of a file, and turns of a transcript."""

from collections.abc import Collection, Sequence
from datetime import tzinfo
from heapq import nsmallest

import apsw
import msgspec

from memd.domain_types import AFTER_ALL_NS, ChunkId, Kind, LabelKind, Role, SearchFilter
from memd.runtime.time_zones import wall_s
from memd.store import files, labels, sessions
from memd.store.chunks import SUPERSEDED, WRITTEN_NS, numbers_read, typed
from memd.text.tokens import folded
from memd_client.context.truncate import safe_end

REDACTED = "redacted."  # the prefix of counters of redacted secrets


class FileOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a page of files."""

    # The folder whose files and subfolders are listed; it ends with a slash, "" is the root. None: all files, without folders.
    folder: str | None = None
    by_time: bool = False  # newest first, otherwise by path; ignored if `folder` is set
    after: tuple[int, str] | None = None  # the last place of the previous page
    most: int
    zone: tzinfo  # the time zone of files that only their mtime dates


class FileRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file on a page."""

    id: int
    path: str
    kind: Kind
    size: int  # bytes
    written_ns: int
    when: tuple[int, int] | None  # the first and last second of its chunks, see StoredChunk.when
    chunks: int
    superseded: str | None  # see StoredChunk.superseded
    tags: tuple[str, ...] = ()


class FilePage(msgspec.Struct, frozen=True):
    """A page of files, and of folders with the number of files in and below them."""

    files: tuple[FileRow, ...]
    folders: dict[str, int]
    total: int  # the number of files in and below the folder that pass the filter
    next: str | None  # the cursor of the next page; None: there is none


class ChunkRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk of a file; `parts` are the first and last line of each part that has a vector of its own."""

    start_line: int
    end_line: int
    text: str
    context: str
    parts: tuple[tuple[int, int], ...]
    vector: int  # 0: waiting, 1: stored, 2: refused by the provider


class ChunkPage(msgspec.Struct, frozen=True):
    """A page of chunks of a file, in the order of their lines."""

    kind: Kind
    chunks: tuple[ChunkRow, ...]
    total: int
    next: int | None
    redacted: dict[str, int]  # for each kind of secret, how often it was redacted in the file


class TurnRow(msgspec.Struct, frozen=True, gc=False):
    """A turn of a transcript; a long text is truncated."""

    role: Role
    at: float | None  # unix time
    start_line: int
    end_line: int
    text: str
    chars: int  # length of the whole text


class TurnPage(msgspec.Struct, frozen=True):
    """A page of turns of a transcript, in order."""

    turns: tuple[TurnRow, ...]
    total: int
    next: int | None


def list_files(
    connection: apsw.Connection, wanted: SearchFilter, kinds: Collection[Kind], order: FileOrder
) -> FilePage:
    """Return a page of the files that pass a filter; a file passes its time if any of its chunks does."""
    conditions, values = labels.file_conditions(connection, wanted, kinds)
    if wanted.since_s is not None or wanted.until_s is not None:
        among, bound = labels.matching(connection, wanted, kinds)
        conditions.append(f"files.id IN (SELECT files.id {among})")
        values += bound
    if order.folder:
        conditions.append("files.path >= ? AND files.path < ?")
        # A path below a/b/ begins with a/b/ and sorts before a/b0, as "0" is the next character after "/".
        values += [order.folder, order.folder[:-1] + "0"]
    # Only the order by time needs `last_s`: looking it up takes as long as all the rest.
    last = "(SELECT max(last_s) FROM chunks WHERE file_id = files.id)" if order.by_time else "NULL"
    found = connection.execute(
        f"SELECT files.id, files.path, {WRITTEN_NS}, {last} FROM files WHERE {' AND '.join(conditions)}",
        values,
    )
    entries: dict[tuple[int, str], int | None] = {}  # sort key -> id of the file; None: a folder
    folders: dict[str, int] = {}
    total = 0
    for file_id, path, written_ns, last_s in found:
        total += 1
        if order.folder is not None and "/" in (rest := path[len(order.folder) :]):
            name = f"{order.folder}{rest[: rest.index('/') + 1]}"
            folders[name] = folders.get(name, 0) + 1
            entries[0, name] = None
        elif order.by_time and order.folder is None:
            entries[-(wall_s(written_ns, order.zone) if last_s is None else last_s), path] = file_id
        else:
            entries[1 if order.folder is not None else 0, path] = file_id
    after = order.after
    places = nsmallest(order.most + 1, (place for place in entries if after is None or place > after))
    shown = places[: order.most]
    more = len(places) > order.most
    return FilePage(
        _rows(connection, [one for place in shown if (one := entries[place]) is not None]),
        {path: folders[path] for place in shown if entries[place] is None and (path := place[1])},
        total,
        f"{shown[-1][0]} {shown[-1][1]}" if more else None,
    )


def cursor_place(cursor: str | None) -> tuple[int, str] | None:
    """Decode the cursor of a page; None: the first page.

    Raises:
        ValueError: the cursor is invalid.
    """
    if cursor is None:
        return None
    place, _, path = cursor.partition(" ")
    return int(place), path


def _rows(connection: apsw.Connection, ids: Sequence[int]) -> tuple[FileRow, ...]:
    wanted = f"[{','.join(map(str, ids))}]"
    tags: dict[int, list[str]] = {}
    for file_id, tag in connection.execute(
        "SELECT labels.file_id, labels.value FROM json_each(?) AS wanted JOIN labels"
        " ON labels.file_id = wanted.value AND labels.kind = ? ORDER BY labels.name",
        (wanted, int(LabelKind.TAG)),
    ):
        tags.setdefault(file_id, []).append(tag)
    rows = connection.execute(
        f"SELECT files.id, files.path, files.kind, files.size, {WRITTEN_NS},"
        " (SELECT min(first_s) FROM chunks WHERE file_id = files.id),"
        " (SELECT max(last_s) FROM chunks WHERE file_id = files.id),"
        f" (SELECT count(*) FROM chunks WHERE file_id = files.id), {SUPERSEDED}"
        " FROM json_each(?) AS wanted JOIN files ON files.id = wanted.value ORDER BY wanted.key",
        (wanted,),
    )
    found = [
        (
            *row[:4],
            max(-AFTER_ALL_NS, min(row[4], AFTER_ALL_NS)),
            None if row[5] is None else row[5:7],
            *row[7:],
            tags.get(row[0], []),
        )
        for row in rows
    ]
    return typed(found, tuple[FileRow, ...])


def _find(connection: apsw.Connection, path: str, kinds: Collection[Kind]) -> tuple[int, Kind] | None:
    row = connection.execute("SELECT id, kind FROM files WHERE path = ?", (path,)).fetchone()
    return None if row is None or row[1] not in kinds else (row[0], files.kind_of(row[1]))


def list_chunks(
    connection: apsw.Connection,
    path: str,
    kinds: Collection[Kind],
    *,
    skip: int,
    most: int,
    most_chars: int,
) -> ChunkPage | None:
    """Return a page of the chunks of a file; None if there is no such visible file.

    Args:
        connection: A reader's.
        path: The path of the file.
        kinds: The visible kinds of files.
        skip: The number of chunks before the page.
        most: The most chunks of a page.
        most_chars: The page ends once its texts exceed this many characters.
    """
    found = _find(connection, path, kinds)
    if found is None:
        return None
    file_id, kind = found
    total = _count(connection, "chunks", file_id)
    shown: list[object] = []
    chars = 0
    for chunk_id, start_line, end_line, text, context, stored, vector in connection.execute(
        "SELECT id, start_line, end_line, text, context, numbers, vector FROM chunks WHERE file_id = ?"
        " ORDER BY start_line, id LIMIT ? OFFSET ?",
        (file_id, most, skip),
    ):
        if shown and chars + len(text) > most_chars:
            break
        chars += len(text)
        numbers = numbers_read(stored)
        spans = connection.execute(
            "SELECT first, last FROM parts WHERE chunk_id = ? ORDER BY first", (chunk_id,)
        )
        parts = tuple(
            (_line_at(text, first, start_line, numbers), _line_at(text, last - 1, start_line, numbers))
            for first, last in spans
        )
        shown.append((start_line, end_line, text, context, parts, vector))
    tallies = connection.execute(
        "SELECT name, n FROM tallies WHERE file_id = ? AND name >= ? AND name < ? ORDER BY name",
        (file_id, REDACTED, f"{REDACTED[:-1]}/"),
    )
    end = skip + len(shown)
    return ChunkPage(
        kind,
        typed(shown, tuple[ChunkRow, ...]),
        total,
        end if shown and end < total else None,
        {name.removeprefix(REDACTED): n for name, n in tallies},
    )


def _count(connection: apsw.Connection, table: str, file_id: int) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table} WHERE file_id = ?", (file_id,)).fetchone()
    assert row is not None
    return int(row[0])


def _line_at(text: str, place: int, start_line: int, numbers: Sequence[int] | None) -> int:
    """Return the file's line number of a character of a chunk."""
    line = text.count("\n", 0, max(place, 0))
    return start_line + line if numbers is None else numbers[min(line, len(numbers) - 1)]


def list_turns(
    connection: apsw.Connection,
    path: str,
    kinds: Collection[Kind],
    *,
    skip: int,
    most: int,
    most_chars: int,
) -> TurnPage | None:
    """Return a page of the turns of a transcript; see list_chunks. A turn longer than a page is truncated."""
    found = _find(connection, path, kinds)
    if found is None or not found[1].is_session:
        return None
    total = _count(connection, "turns", found[0])
    shown: list[TurnRow] = []
    room = most_chars
    for row in connection.execute(
        f"{sessions.TURNS} AND turns.seq >= ? ORDER BY turns.seq LIMIT ?", (path, skip, most)
    ):
        [turn] = sessions.typed_turns([row])
        if shown and len(turn.text) > room:
            break
        text = turn.text[: safe_end(turn.text, most_chars)]
        shown.append(TurnRow(turn.role, turn.at, turn.start_line, turn.end_line, text, len(turn.text)))
        room -= len(turn.text)
    end = skip + len(shown)
    return TurnPage(tuple(shown), total, end if shown and end < total else None)


def note_texts(
    connection: apsw.Connection, kinds: Collection[Kind], after: int, most: int
) -> list[tuple[ChunkId, str]]:
    """Return the texts of chunks with ids above `after`, in ascending order, of files of some kinds."""
    listed = ", ".join(str(int(kind)) for kind in kinds)
    rows = connection.execute(
        "SELECT chunks.id, chunks.text FROM chunks CROSS JOIN files ON files.id = chunks.file_id"
        f" WHERE chunks.id > ? AND files.kind IN ({listed}) ORDER BY chunks.id LIMIT ?",
        (after, most),
    )
    return typed(rows.fetchall(), list[tuple[ChunkId, str]])


def superseded_notes(
    connection: apsw.Connection, kinds: Collection[Kind], most: int
) -> list[tuple[str, str, str | None]]:
    """Return for each superseded note its path, the link to its replacement, and the path of that (None: not found)."""
    listed = ", ".join(str(int(kind)) for kind in kinds)
    found = connection.execute(
        f"SELECT path, by FROM (SELECT path, {SUPERSEDED} AS by FROM files WHERE kind IN ({listed}))"
        " WHERE by IS NOT NULL ORDER BY path LIMIT ?",
        (most,),
    ).fetchall()
    rows = typed(found, list[tuple[str, str]])
    wanted = {by: _note_name(by) for _, by in rows if by}
    places: dict[str, str] = {}
    if wanted:
        names = set(wanted.values())
        for (path,) in connection.execute(
            f"SELECT path FROM files WHERE kind IN ({listed}) ORDER BY path DESC"
        ):
            places |= dict.fromkeys(names.intersection(labels.link_names(str(path))), str(path))
    return [(path, by, places.get(wanted[by]) if by else None) for path, by in rows]


def _note_name(link: str) -> str:
    return (
        folded(link.strip().removeprefix("[[").removesuffix("]]").partition("|")[0])
        .strip("/ ")
        .removesuffix(".md")
    )
