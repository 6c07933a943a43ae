"""Notes into the index: read through the fence, cut, with the vectors that are known already."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import structlog

from memd.chunk import markdown
from memd.chunk.note_properties import labels_of
from memd.domain_types import Chunk, FoundFile, TextHash
from memd.errors import MemdError
from memd.indexing.rules import IndexingRules
from memd.runtime.profiling import spent
from memd.runtime.threads import NoMemory, Threads
from memd.sources import notes
from memd.sources.notes import NoteReading
from memd.sources.safe_open import SourceError, UnexpectedFailure
from memd.store.embedding_cache import KnownVectors, Space
from memd.store.files import FileChange, KnownFile
from memd.store.index import Index

log = structlog.get_logger()


class AppliedChanges(msgspec.Struct, frozen=True):
    """What became of some files."""

    taken: frozenset[str]  # what the index holds as it is now
    changed: int  # how many of them it held otherwise before, or not at all
    failed: Mapping[str, SourceError]
    stale: frozenset[str] = frozenset()  # somebody else changed what the index holds of them meanwhile


def read_and_cut(found: FoundFile, rules: IndexingRules) -> FileChange:
    """Read a note and cut it.

    Raises:
        SourceError: it cannot be read.
    """
    return _cut(found, _read(found, rules), rules)


def _read(found: FoundFile, rules: IndexingRules) -> NoteReading:
    with spent("reading", found.path):
        return notes.read_note(
            found.path,
            rules.roots,
            max_bytes=rules.max_bytes,
            now_ns=time.time_ns(),
            redactor=rules.notes_redactor,
        )


def _cut(found: FoundFile, reading: NoteReading, rules: IndexingRules) -> FileChange:
    with spent("cutting", found.path):
        chunks = markdown.chunk(
            reading.document,
            rules.chunking.tokens,
            rules.chunking.overlap,
            rules.chunking.max_chars,
        )
        labels = labels_of(reading.document)
    return FileChange(_as_read(found, reading), reading.sha256, chunks, reading.tally, labels)


def _as_read(found: FoundFile, reading: NoteReading) -> FoundFile:
    """With the stamp of what was read, which may be newer than what the scan saw."""
    return msgspec.structs.replace(found, stamp=reading.stamp)


async def known_vectors(
    vectors: KnownVectors | None, cut: Sequence[Sequence[Chunk]]
) -> tuple[Mapping[TextHash, bytes], frozenset[TextHash], Space | None]:
    """What is known of the texts of some chunks: vectors by text, texts that are refused, and the space of both."""
    hashes = [chunk.hash for chunks in cut for chunk in chunks]
    if vectors is None or not hashes:
        return {}, frozenset(), None if vectors is None else vectors.space
    with spent("asking the cache"):
        cached = await vectors.look_up(hashes)
    return cached.vectors, cached.refused, vectors.space


async def each_by_itself(
    group: Sequence[FoundFile], apply: Callable[[Sequence[FoundFile]], Awaitable[AppliedChanges]]
) -> AppliedChanges:
    """What becomes of some files together; where memd fails at one as nobody foresaw, the others are taken in all the same.

    Args:
        group: The files.
        apply: Makes the index hold some of them as they are now, or fails and changes nothing.

    Raises:
        NoMemory: see unexpected.
    """
    try:
        return await apply(group)
    except MemoryError:
        trouble: Exception = NoMemory("no memory is left")
    except Exception as failure:  # noqa: BLE001 - logged there, or raised
        trouble = failure
    is_large = isinstance(trouble, NoMemory) and any(found.kind.is_session for found in group)
    if isinstance(trouble, MemdError) and not is_large:
        raise trouble
    if len(group) == 1:
        return AppliedChanges(frozenset(), 0, {group[0].path: unexpected(group[0], trouble)})
    alone = [await each_by_itself([found], apply) for found in group]
    return AppliedChanges(
        frozenset[str]().union(*(one.taken for one in alone)),
        sum(one.changed for one in alone),
        {path: trouble for one in alone for path, trouble in one.failed.items()},
        frozenset[str]().union(*(one.stale for one in alone)),
    )


def unexpected(found: FoundFile, failure: Exception) -> SourceError:
    """What an exception that nobody foresaw amounts to, raised while one file was read and cut; it is logged.

    Raises:
        NoMemory: there is none for a note, which is never large: there is none for anything just now. A transcript may be as
            large as it likes, and keeps nobody waiting.
    """
    if isinstance(failure, MemoryError | NoMemory) and not found.kind.is_session:
        raise NoMemory("no memory is left") from failure
    log.error("sync.file_failed", path=found.path, exc_info=failure)
    return UnexpectedFailure(found.path, type(failure).__name__)


async def apply_files(
    index: Index,
    group: Sequence[FoundFile],
    known: Mapping[str, KnownFile],
    *,
    known_at: int | None = None,
    rules: IndexingRules,
    vectors: KnownVectors | None,
    threads: Threads,
) -> AppliedChanges:
    """Make the index hold some notes as they are now; those that cannot be read stay as they were in it.

    Together, because each way to a thread and back, and each transaction, costs as much as a small file.

    Args:
        index: Where to.
        group: The notes; see plan.groups.
        known: What the index held of them when the pass began, by path.
        known_at: The version of index.changed before known was read; None: it is read again in any case.
        rules: Of the agent.
        vectors: What is known; None where there is no provider, or no cache.
        threads: Where files are read.

    Raises:
        StoreUnavailable, StoreDamaged: none of them was taken in.
    """
    # Files that it holds as they are need no cutting. A pass that went in between may have indexed one of them since.
    now = known
    if index.changed.version != known_at:
        held = [found.path for found in group if found.path in known]
        now = await index.known(held) if held else {}
    with spent("reading"):
        read = await threads.run(_read_all, group, now, rules)
    with spent("writing"):
        await index.restamp(read.same)
    if read.changes:
        vector_of, refused, space = await known_vectors(vectors, [one.chunks for one in read.changes])
        with spent("writing"):
            await index.replace_all(read.changes, vector_of, refused, space)
    taken = frozenset(found.path for found in [*read.same, *(one.found for one in read.changes)])
    return AppliedChanges(taken, len(read.changes), read.failed)


class _Read(msgspec.Struct, frozen=True):
    same: list[FoundFile]  # the index holds what they say
    changes: list[FileChange]
    failed: dict[str, SourceError]


def _read_all(
    group: Sequence[FoundFile],
    known: Mapping[str, KnownFile],
    rules: IndexingRules,
) -> _Read:
    read = _Read([], [], {})
    for found in group:
        try:
            reading = _read(found, rules)
        except SourceError as trouble:
            read.failed[found.path] = trouble
            continue
        before = known.get(found.path)
        if before is not None and (before.hash, before.kind) == (reading.sha256, found.kind):
            read.same.append(_as_read(found, reading))
        else:
            read.changes.append(_cut(found, reading, rules))
    return read
