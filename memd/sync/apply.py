"""Files into the index: read through the fence, cut, with the vectors that are known already."""

import time
from collections.abc import Mapping, Sequence

import msgspec

from memd.chunk import markdown
from memd.config import Chunking
from memd.model import FoundFile, TextHash
from memd.paths import Root
from memd.sources import notes
from memd.sources.fence import SourceError
from memd.sources.notes import Reading
from memd.store.embeddings import KnownVectors
from memd.store.files import Change, KnownFile
from memd.store.index import Index
from memd.threads import Threads


class Applied(msgspec.Struct, frozen=True):
    """What became of some files."""

    taken: frozenset[str]  # what the index holds as it is now
    changed: int  # how many of them it held otherwise before, or not at all
    failed: Mapping[str, SourceError]


def read_and_cut(found: FoundFile, roots: Sequence[Root], chunking: Chunking, max_bytes: int) -> Change:
    """Read a file and cut it.

    Raises:
        SourceError: it cannot be read.
    """
    return _cut(found, _read(found, roots, max_bytes), chunking)


def _read(found: FoundFile, roots: Sequence[Root], max_bytes: int) -> Reading:
    return notes.read_note(found.path, roots, max_bytes=max_bytes, now_ns=time.time_ns())


def _cut(found: FoundFile, reading: Reading, chunking: Chunking) -> Change:
    chunks = markdown.chunk(reading.document, chunking.tokens, chunking.overlap)
    return Change(_as_read(found, reading), reading.sha256, chunks)


def _as_read(found: FoundFile, reading: Reading) -> FoundFile:
    """With the stamp of what was read, which may be newer than what the scan saw."""
    return msgspec.structs.replace(found, stamp=reading.stamp)


async def apply_files(
    index: Index,
    group: Sequence[FoundFile],
    known: Mapping[str, KnownFile],
    *,
    roots: Sequence[Root],
    chunking: Chunking,
    max_bytes: int,
    vectors: KnownVectors | None,
    threads: Threads,
) -> Applied:
    """Make the index hold some files as they are now; those that cannot be read stay as they were in it.

    Together, because each way to a thread and back, and each transaction, costs as much as a small file.

    Args:
        index: Where to.
        group: The files; see plan.groups.
        known: What the index held of them when the pass began, by path.
        roots: Of the agent.
        chunking: Of the agent.
        max_bytes: Of a file that is indexed.
        vectors: What is known; None where there is no provider, or no cache.
        threads: Where files are read.

    Raises:
        StoreUnavailable, StoreDamaged: none of them was taken in.
    """
    # A pass that went in between may have indexed one of them since. Files that it holds as they are need no cutting.
    held = [found.path for found in group if found.path in known]
    now = await index.known(held) if held else {}
    read = await threads.run(_read_all, group, now, roots, chunking, max_bytes)
    await index.restamp(read.same)
    hashes = [chunk.hash for one in read.changes for chunk in one.chunks]
    vector_of: dict[TextHash, bytes] = {}
    refused: frozenset[TextHash] = frozenset()
    if vectors is not None and hashes:
        vector_of, refused = await vectors.get(hashes), await vectors.refused(hashes)
    if read.changes:
        space = None if vectors is None else vectors.space
        await index.replace_all(read.changes, vector_of, refused, space)
    taken = frozenset(found.path for found in [*read.same, *(one.found for one in read.changes)])
    return Applied(taken, len(read.changes), read.failed)


class _Read(msgspec.Struct, frozen=True):
    same: list[FoundFile]  # the index holds what they say
    changes: list[Change]
    failed: dict[str, SourceError]


def _read_all(
    group: Sequence[FoundFile],
    known: Mapping[str, KnownFile],
    roots: Sequence[Root],
    chunking: Chunking,
    max_bytes: int,
) -> _Read:
    read = _Read([], [], {})
    for found in group:
        try:
            reading = _read(found, roots, max_bytes)
        except SourceError as trouble:
            read.failed[found.path] = trouble
            continue
        before = known.get(found.path)
        if before is not None and (before.hash, before.kind) == (reading.sha256, found.kind):
            read.same.append(_as_read(found, reading))
        else:
            read.changes.append(_cut(found, reading, chunking))
    return read
