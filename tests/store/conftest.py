"""An index of its own for each test."""

import hashlib
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

import numpy as np
import pytest

from memd.domain_types import (
    NO_FILTER,
    Chunk,
    ChunkId,
    FoundFile,
    Kind,
    SearchFilter,
    Stamp,
    TextHash,
    embedded_text,
)
from memd.store.index import Index
from memd.store.keywords import Match
from memd.store.meta import Fingerprint

DIMENSIONS = 8
FINGERPRINT = Fingerprint("c1", "t1", ("memory",), "fake", "m", "k", DIMENSIONS)


def found_file(path: str, *, size: int = 1, kind: Kind = Kind.NOTE, mtime_ns: int = 1) -> FoundFile:
    """A file as a scan would have seen it."""
    return FoundFile(path, f"/nowhere/{path}", kind, Stamp(size, mtime_ns, 7))


def chunk_of(text: str, start_line: int = 1, context: str = "") -> Chunk:
    """A chunk of whole lines from start_line on."""
    digest = TextHash(hashlib.sha256(embedded_text(context, text).encode()).digest())
    return Chunk(start_line, start_line + text.count("\n"), text, context, digest)


def vector_of(seed: int) -> bytes:
    """A float32 vector of length 1."""
    vector = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype("<f4")
    raw: bytes = (vector / np.linalg.norm(vector)).tobytes()
    return raw


async def ranked(
    index: Index,
    match: str,
    limit: int,
    kinds: Collection[Kind],
    wanted: Sequence[SearchFilter] = (NO_FILTER,),
) -> list[tuple[ChunkId, Match]]:
    """The best keyword matches, as a search finds them."""
    return await index.read(lambda reader: reader.keywords.search(match, limit, kinds, wanted))


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    """An open index that has room for vectors."""
    opened = Index(tmp_path / "main.sqlite")
    await opened.open()
    await opened.adopt(FINGERPRINT)
    yield opened
    await opened.close()
