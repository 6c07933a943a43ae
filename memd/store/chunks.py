"""Reads chunks of an index: for a search, for embedding, and their counts."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import apsw
import msgspec

from memd.domain_types import ChunkId, Kind, LabelKind, TextHash, embedded_text
from memd.store import chunk_parts, meta, vectors
from memd.store.errors import StoreDamaged
from memd.store.postings import ChunkText
from memd.text.writing_systems import scripts

T = TypeVar("T")

# A file whose stamp is below 0 was written a moment before it was read: the change of its inode dates it.
WRITTEN_NS = "iif(files.mtime_ns < 0, files.ctime_ns, files.mtime_ns)"
# What replaced the note of a chunk, by its front matter; empty where that only says that it holds no more; else NULL.
_STATES = "'superseded', 'archived', 'obsolete', 'deprecated', '归档', '已归档', '作废', '已作废', '废弃', '已废弃', '过时'"
_REPLACED = "'superseded-by', 'superseded_by', 'superseded by', 'replaced-by', 'replaced_by', 'replaced by'"
SUPERSEDED = (
    f"(SELECT max(iif(labels.name IN ({_REPLACED}), labels.value, '')) FROM labels WHERE labels.file_id = files.id"
    f" AND labels.kind = {int(LabelKind.PROPERTY)} AND (labels.name IN ({_REPLACED})"
    f" OR labels.name IN ('status', '状态') AND labels.value IN ({_STATES})))"
)
_WHEN = f"chunks.first_s, chunks.last_s, {WRITTEN_NS}"


class StoredChunk(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk as a search needs it."""

    id: ChunkId
    path: str
    kind: Kind
    start_line: int
    end_line: int
    text: str
    context: str
    # Line of the file of each line of text; None: they follow start_line.
    numbers: tuple[int, ...] | None = None
    # Of when it is, see TimeSpan.as_seconds; None: of when its file was written.
    first_s: int | None = None
    last_s: int | None = None
    written_ns: int = 0
    superseded: str | None = None  # its note says that it holds no more: what by, empty where it does not say
    # Whose chunk it is, where several memories are searched together; empty: the agent's own.
    memory: str = ""

    @property
    def when(self) -> tuple[int, int] | None:
        """Of when it is; None: nothing in its file says."""
        return None if self.first_s is None or self.last_s is None else (self.first_s, self.last_s)


class ChunkPlace(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a chunk stands: enough to rank it without its text."""

    id: ChunkId
    path: str
    kind: Kind
    start_line: int
    scripts: bytes | None = None  # see scripts_read
    first_s: int | None = None  # as of StoredChunk
    last_s: int | None = None
    written_ns: int = 0


class WaitingChunk(msgspec.Struct, frozen=True):
    """A chunk without a vector, or a part of one."""

    id: ChunkId  # of a part, the negative one
    hash: TextHash
    text: str  # as it is embedded


class Counts(msgspec.Struct, frozen=True):
    """How much an index holds. A chunk waits until it and its parts have their vectors."""

    files: int
    chunks: int
    done: int  # chunks with a vector
    waiting: int
    set_aside: int
    texts: int  # that wait: chunks, and parts where these are embedded
    held: int  # texts, whether they wait or not


def _list(chunk_ids: Sequence[ChunkId]) -> str:
    return "[" + ",".join(map(str, chunk_ids)) + "]"


def places(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> list[ChunkPlace]:
    """Where these chunks stand; those that are gone are left out.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
    """
    rows = connection.execute(
        f"SELECT chunks.id, files.path, files.kind, chunks.start_line, chunks.scripts, {_WHEN} FROM json_each(?) AS wanted"
        " JOIN chunks ON chunks.id = wanted.value JOIN files ON files.id = chunks.file_id",
        (_list(chunk_ids),),
    )
    return typed(rows.fetchall(), list[ChunkPlace])


def texts(connection: apsw.Connection, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
    """These chunks by id; those that are gone are left out.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
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
    """What the keyword index reads of the chunks with larger ids than one, in their order.

    Raises:
        StoreDamaged: what is stored of one is no such thing.
    """
    rows = connection.execute(
        "SELECT chunks.id, files.kind, chunks.text, chunks.context, files.id, chunks.first_s, chunks.last_s, chunks.scripts"
        " FROM chunks"
        " CROSS JOIN files ON files.id = chunks.file_id WHERE chunks.id > ? ORDER BY chunks.id LIMIT ?",
        (after, limit),
    )
    return typed([(*row[:7], scripts_read(row[7])) for row in rows], list[ChunkText])


def numbers_stored(numbers: Sequence[int] | None) -> bytes | None:
    """The lines of a chunk's lines as the database keeps them."""
    return None if numbers is None else msgspec.msgpack.encode(numbers)


def numbers_read(stored: object) -> tuple[int, ...] | None:
    """What numbers_stored gave.

    Raises:
        StoreDamaged: it is no such thing.
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
    """The scripts of a chunk's text as the database keeps them."""
    return msgspec.msgpack.encode(scripts(text))


@lru_cache(maxsize=1024)  # most chunks of an index are written in one script
def scripts_read(stored: object) -> Mapping[str, float]:
    """What scripts_stored gave; nothing of a chunk that was stored before scripts were.

    Raises:
        StoreDamaged: it is no such thing.
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
    """Rows as values: a number where a text should be is damage that SQLite does not notice."""
    try:
        return msgspec.convert(rows, kind)
    except msgspec.ValidationError as error:
        # Without the error's own text, which may quote a value.
        raise StoreDamaged("a chunk in the index is not what was written there") from error


def waiting(
    connection: apsw.Connection,
    limit: int,
    passed_over: frozenset[TextHash] = frozenset(),
    *,
    with_parts: bool = False,
) -> list[WaitingChunk]:
    """Chunks that wait for a vector: MEMORY.md and its like first, then notes, then transcripts, the newest files first.

    Parts come after all chunks: these are what is found by.

    Args:
        connection: To the index.
        limit: How many at most.
        passed_over: Texts that are left out.
        with_parts: Whether parts are embedded, too.
    """
    # In order without the texts first: of a large index most are only put in order, or passed over.
    ordered = connection.execute(
        "SELECT chunks.id, chunks.hash FROM chunks JOIN files ON files.id = chunks.file_id"
        f" WHERE chunks.vector = {vectors.WAITING}"
        # A stamp below 0 equals no other: the file was written a moment before it was read.
        f" ORDER BY files.kind <> {int(Kind.CURATED)}, files.kind >= {int(Kind.SESSION)},"
        " files.mtime_ns = -1 DESC, files.mtime_ns DESC,"
        " chunks.file_id, chunks.id"
    )
    wanted = list(
        islice((ChunkId(chunk_id) for chunk_id, text_hash in ordered if text_hash not in passed_over), limit)
    )
    rows = connection.execute(
        "SELECT chunks.id, chunks.hash, chunks.context, chunks.text FROM json_each(?) AS wanted"
        " JOIN chunks ON chunks.id = wanted.value ORDER BY wanted.key",
        (_list(wanted),),
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
    """The hash of every text that waits for a vector, each once."""
    # By the index of what waits: the one of the hashes is in their order, which takes a look at every chunk.
    rows = connection.execute(
        f"SELECT DISTINCT +hash FROM chunks INDEXED BY chunks_waiting WHERE vector = {vectors.WAITING}"
    )
    found = [TextHash(text_hash) for (text_hash,) in rows]
    return list({*found, *chunk_parts.waiting_hashes(connection)}) if with_parts else found


def set_aside(connection: apsw.Connection, text_hash: TextHash) -> int:
    """Mark every chunk of this text as one that never gets a vector; how many there are."""
    connection.execute(
        f"UPDATE chunks SET vector = {vectors.SET_ASIDE} WHERE hash = ? AND vector = {vectors.WAITING}",
        (text_hash,),
    )
    changed = connection.changes()
    chunk_parts.set_aside(connection, text_hash)
    return changed


def hashes(connection: apsw.Connection) -> list[TextHash]:
    """The hash of every chunk's embedded text, each once."""
    return [TextHash(text_hash) for (text_hash,) in connection.execute("SELECT DISTINCT hash FROM chunks")]


def any_waits(connection: apsw.Connection) -> bool:
    """Whether any chunk waits for a vector."""
    some: int = connection.execute(
        f"SELECT EXISTS (SELECT 1 FROM chunks WHERE vector = {vectors.WAITING})"
    ).get
    return bool(some)


def counts(connection: apsw.Connection, *, with_parts: bool = False) -> Counts:
    """How much there is.

    Args:
        connection: Of a reader.
        with_parts: Whether a chunk waits for its parts, too.
    """
    files, chunks = meta.total(connection, "files"), meta.total(connection, "chunks")
    # Each by an index of nothing else: this is asked several times for each edit.
    waiting: int = connection.execute(f"SELECT count(*) FROM chunks WHERE vector = {vectors.WAITING}").get
    aside: int = connection.execute(f"SELECT count(*) FROM chunks WHERE vector = {vectors.SET_ASIDE}").get
    texts, of_parts = chunk_parts.waiting_counts(connection) if with_parts else (0, 0)
    texts += waiting
    waiting += of_parts
    held = chunks + (meta.total(connection, "parts") if with_parts else 0)
    return Counts(files, chunks, chunks - waiting - aside, waiting, aside, texts, held)
