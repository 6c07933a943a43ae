"""Reads chunks of an index for searches and for embedding, and counts them."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import apsw
import msgspec

from memd.domain_types import ChunkId, Kind, LabelKind, TextHash, embedded_text
from memd.store import chunk_parts, meta, vector_table
from memd.store.errors import StoreDamaged
from memd.store.postings import ChunkText
from memd.text.writing_systems import scripts

T = TypeVar("T")

# A negative mtime marks a file that was written a moment before it was read; it is dated by its ctime.
WRITTEN_NS = "iif(files.mtime_ns < 0, files.ctime_ns, files.mtime_ns)"
# The link to the note that replaced a chunk's note, by its front matter; '' if superseded without a link; otherwise NULL.
_STATES = "'superseded', 'archived', 'obsolete', 'deprecated', '归档', '已归档', '作废', '已作废', '废弃', '已废弃', '过时'"
_REPLACED = "'superseded-by', 'superseded_by', 'superseded by', 'replaced-by', 'replaced_by', 'replaced by'"
SUPERSEDED = (
    f"(SELECT max(iif(labels.name IN ({_REPLACED}), labels.value, '')) FROM labels WHERE labels.file_id = files.id"
    f" AND labels.kind = {int(LabelKind.PROPERTY)} AND (labels.name IN ({_REPLACED})"
    f" OR labels.name IN ('status', '状态') AND labels.value IN ({_STATES})))"
)
_WHEN = f"chunks.first_s, chunks.last_s, {WRITTEN_NS}"


class StoredChunk(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk as read for a search."""

    id: ChunkId
    path: str
    kind: Kind
    start_line: int
    end_line: int
    text: str
    context: str
    # The line of the file for each line of the text; None: consecutive lines from start_line on.
    numbers: tuple[int, ...] | None = None
    # The times of its content, see TimeSpan.as_seconds; None: only written_ns dates it.
    first_s: int | None = None
    last_s: int | None = None
    written_ns: int = 0
    # The link to the note that replaced its note; "": superseded without a link.
    superseded: str | None = None
    # The memory that it is from, if several are searched together; "": the agent's own.
    memory: str = ""

    @property
    def when(self) -> tuple[int, int] | None:
        """The first and last second of its content; None: not dated."""
        return None if self.first_s is None or self.last_s is None else (self.first_s, self.last_s)


class ChunkPlace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The position and times of a chunk, for ranking without its text."""

    id: ChunkId
    path: str
    kind: Kind
    start_line: int
    scripts: bytes | None = None  # see scripts_read
    first_s: int | None = None  # see StoredChunk
    last_s: int | None = None
    written_ns: int = 0


class WaitingChunk(msgspec.Struct, frozen=True):
    """A chunk or a part of one that has no vector yet."""

    id: ChunkId  # negative for a part
    hash: TextHash
    text: str  # the text to embed


class Counts(msgspec.Struct, frozen=True):
    """Numbers of an index. A chunk is waiting until it and its parts have vectors."""

    files: int
    chunks: int
    done: int  # chunks with vectors
    waiting: int
    refused: int  # chunks whose text the provider refuses
    texts: int  # waiting chunks, and waiting parts if parts are embedded
    held: int  # all chunks, and all parts if parts are embedded


def _list(chunk_ids: Sequence[ChunkId]) -> str:
    return "[" + ",".join(map(str, chunk_ids)) + "]"


def places(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> list[ChunkPlace]:
    """Return the positions of chunks; deleted ones are left out.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    rows = connection.execute(
        f"SELECT chunks.id, files.path, files.kind, chunks.start_line, chunks.scripts, {_WHEN} FROM json_each(?) AS wanted"
        " JOIN chunks ON chunks.id = wanted.value JOIN files ON files.id = chunks.file_id",
        (_list(chunk_ids),),
    )
    return typed(rows.fetchall(), list[ChunkPlace])


def texts(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
    """Return chunks by id; deleted ones are left out.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    rows = connection.execute(
        "SELECT chunks.id, files.path, files.kind, chunks.start_line, chunks.end_line, chunks.text, chunks.context,"
        f" chunks.numbers, {_WHEN}, {SUPERSEDED}"
        " FROM json_each(?) AS wanted JOIN chunks ON chunks.id = wanted.value JOIN files ON files.id = chunks.file_id",
        (_list(chunk_ids),),
    )
    found = [(*row[:7], numbers_read(row[7]), *row[8:]) for row in rows]
    return {chunk.id: chunk for chunk in typed(found, list[StoredChunk])}


def indexed_texts(connection: apsw.Connection, after: int, limit: int) -> list[ChunkText]:
    """Return the indexed texts of at most `limit` chunks with ids above `after`, in ascending order.

    Raises:
        StoreDamaged: a stored value has the wrong type.
    """
    rows = connection.execute(
        "SELECT chunks.id, files.kind, chunks.text, chunks.context, files.id, chunks.first_s, chunks.last_s, chunks.scripts"
        " FROM chunks"
        " CROSS JOIN files ON files.id = chunks.file_id WHERE chunks.id > ? ORDER BY chunks.id LIMIT ?",
        (after, limit),
    )
    return typed([(*row[:7], scripts_read(row[7])) for row in rows], list[ChunkText])


def numbers_stored(numbers: Sequence[int] | None) -> bytes | None:
    """Encode the line numbers of a chunk for the database."""
    return None if numbers is None else msgspec.msgpack.encode(numbers)


def numbers_read(stored: object) -> tuple[int, ...] | None:
    """Decode line numbers encoded by numbers_stored.

    Raises:
        StoreDamaged: the value is invalid.
    """
    if stored is None:
        return None
    if isinstance(stored, bytes):
        try:
            return msgspec.msgpack.decode(stored, type=tuple[int, ...])
        except msgspec.DecodeError:
            pass
    raise StoreDamaged("the lines of a chunk in the index are not what was written there")


def scripts_stored(text: str) -> bytes:
    """Encode the scripts of a text for the database."""
    return msgspec.msgpack.encode(scripts(text))


@lru_cache(maxsize=1024)  # most chunks of an index are written in one script
def scripts_read(stored: object) -> Mapping[str, float]:
    """Decode scripts encoded by scripts_stored; {} for a chunk stored by an older memd.

    Raises:
        StoreDamaged: the value is invalid.
    """
    if stored is None:
        return {}
    try:
        if isinstance(stored, bytes):
            return msgspec.msgpack.decode(stored, type=dict[str, float])
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    raise StoreDamaged("the scripts of a chunk in the index are not what was written there")


def typed(rows: object, kind: type[T]) -> T:
    """Convert rows to values; raise StoreDamaged if a value has another type, which SQLite does not check."""
    try:
        return msgspec.convert(rows, kind)
    except msgspec.ValidationError as error:
        # The error's own message is left out, since it may quote a value.
        raise StoreDamaged("a chunk in the index is not what was written there") from error


def waiting(
    connection: apsw.Connection,
    limit: int,
    passed_over: frozenset[TextHash] = frozenset(),
    *,
    with_parts: bool = False,
) -> list[WaitingChunk]:
    """Return chunks that wait for a vector: curated notes first, then notes, then transcripts, the newest files first.

    Parts come after all chunks, since chunks alone are already found.

    Args:
        connection: A reader's.
        limit: The most to return.
        passed_over: The hashes of texts to skip.
        with_parts: Whether parts are embedded too.
    """
    wanted = chunk_parts.first_waiting(
        connection,
        f"SELECT DISTINCT file_id FROM chunks INDEXED BY chunks_waiting WHERE vector = {vector_table.WAITING}",
        "SELECT chunks.id, chunks.hash FROM json_each(?) AS some CROSS JOIN chunks INDEXED BY chunks_waiting"
        f" ON chunks.file_id = some.value WHERE chunks.vector = {vector_table.WAITING} ORDER BY some.key, chunks.id",
        limit,
        passed_over,
    )
    rows = connection.execute(
        "SELECT chunks.id, chunks.hash, chunks.context, chunks.text FROM json_each(?) AS wanted"
        " JOIN chunks ON chunks.id = wanted.value ORDER BY wanted.key",
        (msgspec.json.encode(wanted).decode(),),
    )
    found = [
        WaitingChunk(ChunkId(chunk_id), TextHash(text_hash), embedded_text(context, text))
        for chunk_id, text_hash, context, text in rows
    ]
    if with_parts and len(found) < limit:
        left = chunk_parts.waiting(connection, limit - len(found), passed_over)
        found += [WaitingChunk(ChunkId(part_id), text_hash, text) for part_id, text_hash, text in left]
    return found


def waiting_hashes(connection: apsw.Connection, *, with_parts: bool = False) -> list[TextHash]:
    """Return the distinct hashes of all texts that wait for a vector."""
    # By the index of waiting chunks; the index of hashes would read every chunk.
    rows = connection.execute(
        f"SELECT DISTINCT +hash FROM chunks INDEXED BY chunks_waiting WHERE vector = {vector_table.WAITING}"
    )
    found = [TextHash(text_hash) for (text_hash,) in rows]
    return list({*found, *chunk_parts.waiting_hashes(connection)}) if with_parts else found


def mark_refused(connection: apsw.Connection, text_hash: TextHash) -> int:
    """Mark the waiting chunks of a text as refused by the provider; return their number."""
    connection.execute(
        f"UPDATE chunks SET vector = {vector_table.REFUSED} WHERE hash = ? AND vector = {vector_table.WAITING}",
        (text_hash,),
    )
    changed = connection.changes()
    chunk_parts.mark_refused(connection, text_hash)
    return changed


def hashes(connection: apsw.Connection) -> list[TextHash]:
    """Return the distinct hashes of all chunks' embedded texts."""
    return [TextHash(text_hash) for (text_hash,) in connection.execute("SELECT DISTINCT hash FROM chunks")]


def any_waits(connection: apsw.Connection, *, with_parts: bool = False) -> bool:
    """Return whether any chunk waits for a vector, or for one of a part of it; see Counts.waiting.

    Args:
        connection: A reader's.
        with_parts: Whether parts are embedded too.
    """
    some: int = connection.execute(
        f"SELECT EXISTS (SELECT 1 FROM chunks WHERE vector = {vector_table.WAITING})"
    ).get
    return bool(some) or (with_parts and chunk_parts.any_waits(connection))


def counts(connection: apsw.Connection, *, with_parts: bool = False) -> Counts:
    """Count files and chunks.

    Args:
        connection: A reader's.
        with_parts: Whether parts are embedded too.
    """
    files, chunks = meta.total(connection, "files"), meta.total(connection, "chunks")
    # Two queries that each read only their partial index; each edit calls this several times.
    waiting: int = connection.execute(
        f"SELECT count(*) FROM chunks WHERE vector = {vector_table.WAITING}"
    ).get
    refused: int = connection.execute(
        f"SELECT count(*) FROM chunks WHERE vector = {vector_table.REFUSED}"
    ).get
    texts, of_parts = chunk_parts.waiting_counts(connection) if with_parts else (0, 0)
    texts += waiting
    waiting += of_parts
    held = chunks + (meta.total(connection, "parts") if with_parts else 0)
    return Counts(files, chunks, chunks - waiting - refused, waiting, refused, texts, held)
