"""Indexes notes: reads them without following symlinks, chunks them, and adds vectors that are cached."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import structlog

from memd.chunk import markdown
from memd.chunk.note_properties import front_matter, labels_of
from memd.domain_types import LONG_FRONT_MATTER, Chunk, FoundFile, TextHash
from memd.errors import MemdError
from memd.indexing.rules import IndexingRules
from memd.runtime.profiling import timed_part
from memd.runtime.threads import NoMemory, Threads
from memd.sources import notes
from memd.sources.notes import NoteReading
from memd.sources.safe_open import SourceError, UnexpectedFailure
from memd.store.embedding_cache import KnownVectors, Space
from memd.store.files import FileChange, KnownFile
from memd.store.index import Index

log = structlog.get_logger()


class AppliedChanges(msgspec.Struct, frozen=True):
    """The results for some files."""

    taken: frozenset[str]  # paths whose current content is indexed
    changed: int  # how many of them were changed or new
    failed: Mapping[str, SourceError]
    stale: frozenset[str] = frozenset()  # paths whose indexed state was changed by another pass meanwhile


def read_and_cut(found: FoundFile, rules: IndexingRules) -> FileChange:
    """Read a note and chunk it.

    Raises:
        SourceError: it cannot be read.
    """
    return _cut(found, _read(found, rules), rules)


def _read(found: FoundFile, rules: IndexingRules) -> NoteReading:
    with timed_part("reading", found.path):
        return notes.read_note(
            found.path,
            rules.roots,
            max_bytes=rules.max_bytes,
            now_ns=time.time_ns(),
            redactor=rules.notes_redactor,
        )


def _cut(found: FoundFile, reading: NoteReading, rules: IndexingRules) -> FileChange:
    with timed_part("cutting", found.path):
        chunks = markdown.chunk(
            reading.document,
            rules.chunking.tokens,
            rules.chunking.overlap,
            rules.chunking.max_chars,
        )
        labels = labels_of(reading.document)
        tally = dict(reading.tally)
        if front_matter(reading.document).is_cut:
            tally[LONG_FRONT_MATTER] = 1
    return FileChange(_as_read(found, reading), reading.sha256, chunks, tally, labels)


def _as_read(found: FoundFile, reading: NoteReading) -> FoundFile:
    """Return the file with the stamp of the read content, which may be newer than the scanned one."""
    return msgspec.structs.replace(found, stamp=reading.stamp)


async def known_vectors(
    vectors: KnownVectors | None, cut: Sequence[Sequence[Chunk]]
) -> tuple[Mapping[TextHash, bytes], frozenset[TextHash], Space | None]:
    """Look up the texts of some chunks in the cache; return vectors by hash, refused hashes, and the space of both."""
    hashes = [chunk.hash for chunks in cut for chunk in chunks]
    if vectors is None or not hashes:
        return {}, frozenset(), None if vectors is None else vectors.space
    with timed_part("asking the cache"):
        cached = await vectors.look_up(hashes)
    return cached.vectors, cached.refused, vectors.space


async def each_by_itself(
    group: Sequence[FoundFile], apply: Callable[[Sequence[FoundFile]], Awaitable[AppliedChanges]]
) -> AppliedChanges:
    """Apply a function to some files together; if it fails unexpectedly, apply it to each file alone.

    Args:
        group: The files.
        apply: Indexes some files, or fails and changes nothing.

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
    """Log an unexpected exception while one file was read and chunked, and return it as a SourceError.

    Raises:
        NoMemory: memory is short for a note, which is never large, and so for everything now. A transcript may be of any size,
            and delays nothing else.
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
    """Index some notes; those that cannot be read keep their indexed content.

    They are handled together, because each call to a thread and each transaction costs as much as a small file.

    Args:
        index: The index to write to.
        group: The notes; see plan.groups.
        known: Their indexed states when the pass began, by path.
        known_at: The version of index.changed before `known` was read; None: `known` is read again in any case.
        rules: The rules of the agent.
        vectors: The cache; None without a provider or a cache.
        threads: The threads that read files.

    Raises:
        StoreUnavailable, StoreDamaged: none of them was indexed.
    """
    # Unchanged files need no chunking. A short pass may have indexed some of them since.
    now = known
    if index.changed.version != known_at:
        held = [found.path for found in group if found.path in known]
        now = await index.known(held) if held else {}
    with timed_part("reading"):
        read = await threads.run(_read_all, group, now, rules)
    with timed_part("writing"):
        await index.restamp(read.same)
    if read.changes:
        vector_of, refused, space = await known_vectors(vectors, [one.chunks for one in read.changes])
        with timed_part("writing"):
            await index.replace_all(read.changes, vector_of, refused, space)
    taken = frozenset(found.path for found in [*read.same, *(one.found for one in read.changes)])
    return AppliedChanges(taken, len(read.changes), read.failed)


class _Read(msgspec.Struct, frozen=True):
    same: list[FoundFile]  # unchanged files
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
