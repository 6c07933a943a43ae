"""Writes files of an index with their turns, chunks, keywords and vectors, in one transaction."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import apsw
import msgspec

from memd.domain_types import Chunk, ChunkId, FoundFile, Kind, Label, Stamp, TextHash
from memd.store import chunk_parts, keywords, labels, sessions, vector_table
from memd.store.chunks import numbers_stored, scripts_stored
from memd.store.errors import StoreDamaged
from memd.store.sessions import SessionChange
from memd.store.vector_matrix import Row

_KNOWN = "SELECT path, kind, size, mtime_ns, inode, ctime_ns, hash FROM files"
_KINDS = {int(kind): kind for kind in Kind}  # a call of the enumeration takes six times as long
_MANY_PLACES = 100  # more are not queried one by one


Seconds = tuple[int | None, int | None]  # the times of a chunk, see TimeSpan.as_seconds


class KnownFile(msgspec.Struct, frozen=True, gc=False):
    """An indexed file."""

    path: str
    kind: Kind
    stamp: Stamp
    hash: bytes  # sha256 of its bytes; of a transcript, 32 bytes that differ for each state


class FileChange(msgspec.Struct, frozen=True):
    """The new state of a file."""

    found: FoundFile
    hash: bytes  # sha256 of its bytes
    chunks: Sequence[Chunk]
    tally: Mapping[str, int] = {}  # what was counted while it was read
    labels: Sequence[Label] = ()  # its tags, links and properties


class ReplacedChunks(msgspec.Struct, frozen=True):
    """How the chunks of a file changed."""

    removed: tuple[ChunkId, ...]
    added: int
    embedded: tuple[Row, ...]  # new chunks whose vector was known
    dated: Mapping[ChunkId, Seconds] = {}  # kept chunks with new times


def known(connection: apsw.Connection, within: Collection[str] | None = None) -> dict[str, KnownFile]:
    """Return indexed files by path.

    Args:
        connection: A reader's.
        within: Paths: at least the files at and below these are returned; "" is the workspace. None: all files.
    """
    everything = within is None or "" in within or len(within) > _MANY_PLACES
    # A path below a/b begins with a/b/ and sorts before a/b0, as "0" is the next character after "/".
    wanted = ((path, path.rstrip("/") + "/", path.rstrip("/") + "0") for path in within or ())
    found = (
        connection.execute(_KNOWN)
        if everything
        else chain.from_iterable(
            connection.execute(f"{_KNOWN} WHERE path = ? OR path >= ? AND path < ?", places)
            for places in wanted
        )
    )
    return {
        path: KnownFile(path, kind_of(kind), Stamp(size, mtime_ns, inode, ctime_ns), content_hash)
        for path, kind, size, mtime_ns, inode, ctime_ns, content_hash in found
    }


def find(connection: apsw.Connection, path: str) -> KnownFile | None:
    """Return one file; None if it is not indexed."""
    row = connection.execute(
        "SELECT kind, size, mtime_ns, inode, ctime_ns, hash FROM files WHERE path = ?", (path,)
    ).fetchone()
    return None if row is None else KnownFile(path, kind_of(row[0]), Stamp(*row[1:5]), row[5])


def kind_of(value: int) -> Kind:
    """Convert the number of a kind in the table.

    Raises:
        StoreDamaged: the number is not a kind's.
    """
    try:
        return _KINDS[value]
    except KeyError as error:
        raise StoreDamaged(f"a file in the index is of kind {value!r}, which there is not") from error


def _stamped(stamp: Stamp) -> tuple[int, int, int, int]:
    return stamp.size, stamp.mtime_ns, stamp.inode, stamp.ctime_ns


def restamp(connection: apsw.Connection, found: FoundFile) -> None:
    """Store the new stamp of a file whose content is unchanged."""
    connection.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, ctime_ns = ? WHERE path = ?",
        (*_stamped(found.stamp), found.path),
    )


class _Terms:
    """Changes of the keyword index in one transaction, made last.

    Each statement that fires a trigger makes FTS5 write the terms that it has collected, as a segment of their own.
    """

    def __init__(self) -> None:
        self._gone: list[ChunkId] = []
        self._came: dict[ChunkId, tuple[str, str]] = {}  # (text, context) of new chunks

    def add(self, chunk_id: ChunkId, chunk: Chunk) -> None:
        self._came[chunk_id] = chunk.text, chunk.context

    def remove(self, chunk_ids: Iterable[ChunkId]) -> None:
        self._gone += [one for one in chunk_ids if self._came.pop(one, None) is None]

    def write(self, connection: apsw.Connection) -> None:
        keywords.remove(connection, self._gone)
        keywords.add(connection, [(chunk_id, *terms) for chunk_id, terms in self._came.items()])


class _Known(msgspec.Struct, frozen=True):
    """What is known of the texts of new chunks."""

    vector_of: Mapping[TextHash, bytes]  # float32 vectors
    refused: frozenset[TextHash]  # texts that the provider cannot embed


def replace_all(
    connection: apsw.Connection,
    changes: Iterable[FileChange],
    vector_of: Mapping[TextHash, bytes],
    refused: frozenset[TextHash],
) -> list[ReplacedChunks]:
    """Replace the chunks of some files.

    A chunk with the same embedded text as before keeps its id, keywords and vector; only its lines and times are updated.

    Args:
        connection: The writer's, in a transaction.
        changes: The new states of the files.
        vector_of: Known float32 vectors, by text hash.
        refused: The hashes of texts that the provider cannot embed.
    """
    known, terms = _Known(vector_of, refused), _Terms()
    done = [_replace(connection, change, known, terms) for change in changes]
    terms.write(connection)
    return done


def replace_sessions(
    connection: apsw.Connection,
    changes: Iterable[SessionChange],
    vector_of: Mapping[TextHash, bytes],
    refused: frozenset[TextHash],
) -> list[ReplacedChunks | None]:
    """Replace turns and chunks of some transcripts, each from some turn on.

    A chunk with the same embedded text is kept, as in `replace_all`.

    Returns:
        For each change, None if the stored progress is not its `since` any more, since another pass has read or removed the
        transcript. Nothing of it was changed then.
    """
    known, terms = _Known(vector_of, refused), _Terms()
    done = [_replace_session(connection, change, known, terms) for change in changes]
    terms.write(connection)
    return done


def _replace(connection: apsw.Connection, change: FileChange, known: _Known, terms: _Terms) -> ReplacedChunks:
    file_id, others = _put_file(connection, change.found, change.hash, terms)
    sessions.forget(connection, file_id)
    sessions.put_tally(connection, file_id, change.tally)
    labels.put(connection, file_id, change.labels)
    rows = connection.execute(
        "SELECT id, hash, text, first_s, last_s FROM chunks WHERE file_id = ? ORDER BY id", (file_id,)
    )
    return _replace_chunks(connection, file_id, rows, change.chunks, known, terms, others)


def _replace_session(
    connection: apsw.Connection, change: SessionChange, known: _Known, terms: _Terms
) -> ReplacedChunks | None:
    if change.since is not None and not sessions.is_at(connection, change.found.path, change.since):
        return None
    file_id, others = _put_file(connection, change.found, change.hash, terms)
    sessions.put(connection, file_id, change)
    sessions.put_tally(connection, file_id, change.tally)
    # From turn 0 on, chunks without a turn are replaced too.
    those = "AND turn >= ?" if change.chunks_from else "AND ? = 0"
    rows = connection.execute(
        f"SELECT id, hash, text, first_s, last_s FROM chunks WHERE file_id = ? {those} ORDER BY id",
        (file_id, change.chunks_from),
    )
    return _replace_chunks(connection, file_id, rows, change.chunks, known, terms, others)


def _replace_chunks(
    connection: apsw.Connection,
    file_id: int,
    rows: Iterable[tuple[Any, ...]],
    chunks: Sequence[Chunk],
    known: _Known,
    terms: _Terms,
    gone_before: Sequence[ChunkId],
) -> ReplacedChunks:
    """Replace (id, hash, text, first_s, last_s) rows by chunks; rows with the same text are kept."""
    before: dict[tuple[TextHash, str], deque[tuple[ChunkId, Seconds]]] = defaultdict(deque)
    for chunk_id, text_hash, text, *seconds in rows:
        before[text_hash, text].append((chunk_id, (seconds[0], seconds[1])))
    fresh: list[Chunk] = []
    dated: dict[ChunkId, Seconds] = {}
    for chunk in chunks:
        same = before.get((chunk.hash, chunk.text)) if before else None
        if same:
            chunk_id, seconds_before = same.popleft()
            if seconds_before != _seconds(chunk):
                dated[chunk_id] = _seconds(chunk)
            place = (
                chunk.start_line,
                chunk.end_line,
                numbers_stored(chunk.numbers),
                chunk.turn,
                *_seconds(chunk),
            )
            connection.execute(
                "UPDATE chunks SET start_line = ?, end_line = ?, numbers = ?, turn = ?, first_s = ?, last_s = ?"
                " WHERE id = ? AND (start_line <> ? OR end_line <> ? OR numbers IS NOT ? OR turn IS NOT ?"
                " OR first_s IS NOT ? OR last_s IS NOT ?)",
                (*place, chunk_id, *place),
            )
        else:
            fresh.append(chunk)
    gone = [chunk_id for left in before.values() for chunk_id, _ in left]
    _remove(connection, gone, terms)
    embedded = _insert(connection, file_id, fresh, known, terms)
    return ReplacedChunks((*gone_before, *gone), len(fresh), tuple(embedded), dated)


def _put_file(
    connection: apsw.Connection, found: FoundFile, content_hash: bytes, terms: _Terms
) -> tuple[int, Sequence[ChunkId]]:
    """Store the state of a file; return its id, and the chunks that were deleted.

    If its kind changed, all of its chunks are deleted, since other agents or searches may see the new kind.
    """
    values = (int(found.kind), *_stamped(found.stamp), content_hash, found.path)
    row = connection.execute("SELECT id, kind FROM files WHERE path = ?", (found.path,)).fetchone()
    if row is None:
        connection.execute(
            "INSERT INTO files (kind, size, mtime_ns, inode, ctime_ns, hash, path) VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        return connection.last_insert_rowid(), ()
    connection.execute(
        "UPDATE files SET kind = ?, size = ?, mtime_ns = ?, inode = ?, ctime_ns = ?, hash = ? WHERE path = ?",
        values,
    )
    file_id, old_kind = row
    gone = _remove_chunks(connection, file_id, terms) if old_kind != found.kind else ()
    return int(file_id), gone


def _insert(
    connection: apsw.Connection, file_id: int, chunks: Sequence[Chunk], known: _Known, terms: _Terms
) -> list[Row]:
    rows: list[tuple[ChunkId, Chunk]] = []
    for chunk in chunks:
        connection.execute(
            "INSERT INTO chunks (file_id, start_line, end_line, text, context, hash, vector, numbers, turn, scripts,"
            " first_s, last_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                file_id,
                chunk.start_line,
                chunk.end_line,
                chunk.text,
                chunk.context,
                chunk.hash,
                vector_table.REFUSED if chunk.hash in known.refused else vector_table.WAITING,
                numbers_stored(chunk.numbers),
                chunk.turn,
                scripts_stored(chunk.text),
                *_seconds(chunk),
            ),
        )
        chunk_id = ChunkId(connection.last_insert_rowid())
        rows.append((chunk_id, chunk))
        terms.add(chunk_id, chunk)
    chunk_parts.add(connection, rows)
    embedded = [
        (chunk_id, chunk.hash, known.vector_of[chunk.hash])
        for chunk_id, chunk in rows
        if chunk.hash in known.vector_of
    ]
    return vector_table.add(connection, embedded)[0]


def _seconds(chunk: Chunk) -> Seconds:
    return (None, None) if chunk.when is None else chunk.when.as_seconds


def remove(connection: apsw.Connection, paths: Sequence[str]) -> list[ChunkId]:
    """Delete files with all that belongs to them; return the ids of their chunks."""
    gone: list[ChunkId] = []
    terms = _Terms()
    for path in paths:
        row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        if row is not None:
            gone += _remove_chunks(connection, row[0], terms)
            connection.execute("DELETE FROM files WHERE id = ?", (row[0],))
    terms.write(connection)
    return gone


def _remove_chunks(connection: apsw.Connection, file_id: int, terms: _Terms) -> list[ChunkId]:
    gone = [
        ChunkId(chunk_id)
        for (chunk_id,) in connection.execute("SELECT id FROM chunks WHERE file_id = ?", (file_id,))
    ]
    _remove(connection, gone, terms)
    return gone


def _remove(connection: apsw.Connection, chunk_ids: Sequence[ChunkId], terms: _Terms) -> None:
    vector_table.remove(connection, chunk_ids)
    terms.remove(chunk_ids)
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(chunk_id,) for chunk_id in chunk_ids])
