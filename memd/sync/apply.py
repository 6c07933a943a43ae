"""Files into the index: read through the fence, cut, with the vectors that are known already."""

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from memd.chunk import markdown
from memd.config import Chunking
from memd.model import FoundFile, TextHash
from memd.paths import Root
from memd.sources import notes
from memd.sources.fence import SourceError
from memd.store.embeddings import KnownVectors
from memd.store.files import Change, KnownFile
from memd.store.index import Index


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
    reading = notes.read_note(found.path, roots, max_bytes=max_bytes, now_ns=time.time_ns())
    chunks = markdown.chunk(reading.document, chunking.tokens, chunking.overlap)
    # With the stamp of what was read, which may be newer than what the scan saw.
    return Change(msgspec.structs.replace(found, stamp=reading.stamp), reading.sha256, chunks)


async def apply_files(
    index: Index,
    group: Sequence[FoundFile],
    known: Mapping[str, KnownFile],
    *,
    roots: Sequence[Root],
    chunking: Chunking,
    max_bytes: int,
    vectors: KnownVectors | None,
) -> Applied:
    """Make the index hold some files as they are now; those that cannot be read stay as they were in it.

    Together, because each way to a thread and back, and each transaction, costs as much as a small file.

    Args:
        index: Where to.
        group: The files; see plan.groups.
        known: What the index holds of them, by path.
        roots: Of the agent.
        chunking: Of the agent.
        max_bytes: Of a file that is indexed.
        vectors: What is known; None where there is no provider, or no cache.

    Raises:
        StoreUnavailable, StoreDamaged: none of them was taken in.
    """
    read, failed = await asyncio.to_thread(_read_all, group, roots, chunking, max_bytes)
    same = {one.found.path for one in read if _is_same(one, known.get(one.found.path))}
    await index.restamp([one.found for one in read if one.found.path in same])
    changes = [one for one in read if one.found.path not in same]
    hashes = [chunk.hash for one in changes for chunk in one.chunks]
    vector_of: dict[TextHash, bytes] = {}
    refused: frozenset[TextHash] = frozenset()
    if vectors is not None and hashes:
        vector_of, refused = await vectors.get(hashes), await vectors.refused(hashes)
    if changes:
        await index.replace_all(changes, vector_of, refused)
    return Applied(frozenset(one.found.path for one in read), len(changes), failed)


def _read_all(
    group: Sequence[FoundFile], roots: Sequence[Root], chunking: Chunking, max_bytes: int
) -> tuple[list[Change], dict[str, SourceError]]:
    read: list[Change] = []
    failed: dict[str, SourceError] = {}
    for found in group:
        try:
            read.append(read_and_cut(found, roots, chunking, max_bytes))
        except SourceError as trouble:
            failed[found.path] = trouble
    return read, failed


def _is_same(one: Change, known: KnownFile | None) -> bool:
    return known is not None and known.hash == one.hash and known.kind == one.found.kind
