"""Reads the published vectors of texts, by the hashes of chunks."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from memd.postgres.binary_vectors import vector_bytes
from memd.postgres.connection import quoted
from memd.postgres.snapshots import ServerQuery, ServerSnapshot
from memd.store.embedding_cache import Space
from memd.store.published_files import PublishedChunk, PublishedPart

# A lookup by key per row: the server misestimates combined conditions and policies, and would read all rows.
_WHOLE = (
    "SELECT c.hash, {schema}.vector_send(v.vector) FROM memd.chunks c, LATERAL (SELECT vector FROM memd.vectors"
    " WHERE tenant = %(tenant)s AND chunk_id = c.id OFFSET 0) AS v WHERE c.tenant = %(tenant)s AND c.hash = ANY(%(hashes)s)"
)
_PARTS = (
    "SELECT c.hash, p.first, p.last, p.vector FROM memd.chunks c, LATERAL (SELECT first, last, vector FROM memd.parts"
    " WHERE tenant = %(tenant)s AND chunk_id = c.id AND vector IS NOT NULL OFFSET 0) AS p"
    " WHERE c.tenant = %(tenant)s AND c.hash = ANY(%(hashes)s)"
)


def vector_queries(tenant: int, hashes: Collection[bytes], schema: str) -> tuple[ServerQuery, ServerQuery]:
    """Return the statements for the vectors of some chunks and their parts; see StoredVectors.of.

    Args:
        tenant: The number of the memory on the server.
        hashes: The hashes of the chunks' embedded texts.
        schema: The schema of pgvector.
    """
    values = {"tenant": tenant, "hashes": list(hashes)}
    return (
        ServerQuery(_WHOLE.format(schema=quoted(schema)), values, binary=True),
        ServerQuery(_PARTS, values, binary=True),
    )


class StoredVectors(msgspec.Struct, frozen=True):
    """The published vectors of some chunks, by hash of the text."""

    whole: Mapping[bytes, bytes]  # float32, little-endian
    parts: Mapping[
        tuple[bytes, int, int], bytes
    ]  # with the span of the part in the text; float16, little-endian

    @classmethod
    def of(cls, whole: Iterable[Sequence[Any]], parts: Iterable[Sequence[Any]]) -> Self:
        """Create it from the answers to vector_queries."""
        return cls(
            {bytes(text): vector_bytes(sent) for text, sent in whole},
            {(bytes(text), first, last): bytes(vector) for text, first, last, vector in parts},
        )

    def usable(self, dimensions: int) -> Self:
        """Drop vectors that are not of length 1 and these dimensions: members may have written anything."""
        return type(self)(
            {text: vector for text, vector in self.whole.items() if _is_vector(vector, "<f4", dimensions)},
            {part: vector for part, vector in self.parts.items() if _is_vector(vector, "<f2", dimensions)},
        )

    def completed(self, chunk: PublishedChunk) -> PublishedChunk:
        """Return a chunk with the vectors that it lacks, as far as they are here."""
        if chunk.vector is not None:
            return chunk
        parts = (
            PublishedPart(
                one.first, one.last, one.vector or self.parts.get((chunk.hash, one.first, one.last))
            )
            for one in chunk.parts
        )
        return msgspec.structs.replace(chunk, vector=self.whole.get(chunk.hash), parts=tuple(parts))


_LENGTH_ERROR = 0.01  # the tolerance for the length of a float16 vector of length 1


def _is_vector(data: bytes, stored: str, dimensions: int) -> bool:
    if len(data) != dimensions * np.dtype(stored).itemsize:
        return False
    vector = np.frombuffer(data, stored).astype(np.float32)
    return bool(abs(np.linalg.norm(vector) - 1) <= _LENGTH_ERROR)  # False if the length is NaN


def stored_vectors(
    snapshot: ServerSnapshot, memory: str, space: Space, hashes: Collection[bytes], schema: str
) -> StoredVectors | None:
    """Read the published vectors of some chunks; None: they belong to another model, or the memory is not granted.

    Args:
        snapshot: A snapshot of the server.
        memory: The name of the memory.
        space: The wanted vector space.
        hashes: The hashes of the chunks' embedded texts.
        schema: The schema of pgvector.

    Raises:
        SharedUnavailable.
    """
    row = snapshot.execute(
        "SELECT tenant FROM memd.memories WHERE name = %s AND provider = %s AND model = %s AND space_key = %s",
        (memory, *space),
    ).fetchone()
    if row is None:
        return None
    whole, parts = snapshot.ask(*vector_queries(row[0], hashes, schema), is_last=True)
    return StoredVectors.of(whole.fetchall(), parts.fetchall())
