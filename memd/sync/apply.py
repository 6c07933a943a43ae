"""One file into the index: read through the fence, cut, with the vectors that are known already."""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from memd.chunk import markdown
from memd.config import Chunking
from memd.model import Chunk, FoundFile, TextHash
from memd.paths import Root
from memd.sources import notes
from memd.store.embeddings import KnownVectors
from memd.store.files import KnownFile
from memd.store.index import Index


class Cut(msgspec.Struct, frozen=True):
    """A file, read and cut."""

    found: FoundFile  # with the stamp and the kind to remember
    content_hash: bytes
    chunks: tuple[Chunk, ...]


def read_and_cut(found: FoundFile, roots: Sequence[Root], chunking: Chunking, max_bytes: int) -> Cut:
    """Read a file and cut it.

    Raises:
        SourceError: it cannot be read.
    """
    reading = notes.read_note(found.path, roots, max_bytes=max_bytes, now_ns=time.time_ns())
    chunks = markdown.chunk(reading.document, chunking.tokens, chunking.overlap)
    return Cut(msgspec.structs.replace(found, stamp=reading.stamp), reading.sha256, tuple(chunks))


async def apply_file(
    index: Index,
    found: FoundFile,
    known: KnownFile | None,
    *,
    roots: Sequence[Root],
    chunking: Chunking,
    max_bytes: int,
    vectors: KnownVectors | None,
) -> bool:
    """Make the index hold a file as it is now; whether anything but its stamp changed.

    Raises:
        SourceError, StoreUnavailable, StoreDamaged: the file is as it was in the index.
    """
    cut = await asyncio.to_thread(read_and_cut, found, roots, chunking, max_bytes)
    if known is not None and known.hash == cut.content_hash and known.kind == found.kind:
        await index.restamp([cut.found])
        return False
    vector_of: dict[TextHash, bytes] = {}
    refused: frozenset[TextHash] = frozenset()
    if vectors is not None and cut.chunks:
        hashes = [chunk.hash for chunk in cut.chunks]
        vector_of, refused = await vectors.get(hashes), await vectors.refused(hashes)
    await index.replace(cut.found, cut.content_hash, cut.chunks, vector_of, refused)
    return True
