"""Vectors that a real server gives for the hashes of texts, and to whom."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from memd.domain_types import Kind
from memd.postgres import administration
from memd.postgres.connection import SharedUnavailable, connect
from memd.postgres.mirror import Mirror, VectorSpace
from memd.postgres.snapshots import ServerSnapshot, SharedConnections
from memd.postgres.vectors_by_text import StoredVectors, stored_vectors
from memd.store.embedding_cache import Space
from memd.store.published_files import PublishedChunk, PublishedFile, PublishedPart

SPACE = VectorSpace(("hashing", "words", "1"), 2, has_parts=True)
TEXT, OTHER = b"t" * 32, b"o" * 32
VECTOR, HALF = np.array([0.6, 0.8], "<f4").tobytes(), np.array([0.8, 0.6], "<f2").tobytes()
ALL = StoredVectors({TEXT: VECTOR}, {(TEXT, 0, 4): HALF})


def _dsn_file(directory: Path, name: str, dsn: str) -> Path:
    file = directory / f"{name}.dsn"
    file.touch(mode=0o600)
    file.write_text(dsn)
    return file


def _chunk(vector: bytes | None, *halves: bytes | None) -> PublishedChunk:
    parts = tuple(PublishedPart(4 * n, 4 * n + 4, half) for n, half in enumerate(halves))
    return PublishedChunk(1, 1, "The kettle", "", TEXT, None, None, None, None, vector, parts)


@pytest.fixture
def published(member_dsn: Callable[..., str], tmp_path: Path) -> Path:
    """The DSN of the member that has published alice/main, with one chunk."""
    dsn_file = _dsn_file(tmp_path, "alice", member_dsn("alice", "alice/main"))
    mirror = Mirror(dsn_file, "alice/main", "me")
    mirror.open()
    mirror.adopt(SPACE)
    file = PublishedFile("memory/a.md", Kind.NOTE, b"x" * 32, 1, None, (), (_chunk(VECTOR, HALF, None),))
    mirror.put(file, ["The kettle"], file.digests(["The kettle"], SPACE))
    mirror.close()
    return dsn_file


async def _asked(
    dsn_file: Path, memory: str = "alice/main", space: Space = SPACE.space
) -> StoredVectors | None:
    connections = SharedConnections(dsn_file, memory, 30.0)

    def ask(snapshot: ServerSnapshot) -> StoredVectors | None:
        return stored_vectors(snapshot, memory, space, [TEXT, OTHER], connections.vector_schema)

    try:
        return await connections.run(ask)
    finally:
        connections.close()


async def test_a_text_has_its_vector_and_those_of_its_parts(published: Path) -> None:
    """By its hash alone; one that is not there has none."""
    assert await _asked(published) == ALL
    assert ALL.usable(2) == ALL


async def test_vectors_of_another_model_are_none(published: Path) -> None:
    """Whichever part of its name differs."""
    for place in range(3):
        space = [*SPACE.space]
        space[place] = "another"
        assert await _asked(published, space=(space[0], space[1], space[2])) is None


async def test_no_other_member_gets_them(
    published: Path, member_dsn: Callable[..., str], tmp_path: Path, admin_dsn: str
) -> None:
    """One with a memory of its own that has the same text; and a member that was revoked."""
    bob = _dsn_file(tmp_path, "bob", member_dsn("bob", "bob/main"))
    mirror = Mirror(bob, "bob/main", "another")
    mirror.open()
    mirror.adopt(SPACE)
    file = PublishedFile("memory/a.md", Kind.NOTE, b"x" * 32, 1, None, (), (_chunk(None, None),))
    mirror.put(file, ["The kettle"], file.digests(["The kettle"], SPACE))
    mirror.close()
    assert await _asked(bob, "bob/main") == StoredVectors({}, {})
    assert await _asked(bob, "alice/main") is None
    with connect(admin_dsn) as admin:
        administration.revoke(admin, "alice", None)
    with pytest.raises(SharedUnavailable):
        await _asked(published)


@pytest.mark.parametrize(
    "vector", [[1.2, 0.0], [0.0, 0.0], [0.6, 0.8, 0.0], [float("nan"), 1.0], [float("inf"), 0.0]]
)
def test_what_is_no_vector_of_the_model_is_not_used(vector: list[float]) -> None:
    """Another length, another number of dimensions, or no numbers."""
    there = StoredVectors(
        {TEXT: np.array(vector, "<f4").tobytes(), OTHER: VECTOR},
        {(TEXT, 0, 4): np.array(vector, "<f2").tobytes(), (OTHER, 0, 4): HALF},
    )
    assert there.usable(2) == StoredVectors({OTHER: VECTOR}, {(OTHER, 0, 4): HALF})


def test_a_chunk_is_completed_with_what_it_lacks() -> None:
    """One that has its vector is left as it is; a part of another span has nothing."""
    assert ALL.completed(_chunk(None, None, None)) == _chunk(VECTOR, HALF, None)
    assert ALL.completed(_chunk(HALF, None)) == _chunk(HALF, None)
    assert ALL.completed(_chunk(None, VECTOR)) == _chunk(VECTOR, VECTOR)
    other = msgspec.structs.replace(_chunk(None, None), hash=OTHER)
    assert ALL.completed(other) == other


@pytest.mark.parametrize(("length", "is_one"), [(0.989, False), (0.991, True), (1.009, True), (1.011, False)])
def test_a_vector_has_the_length_1_but_for_rounding(length: float, *, is_one: bool) -> None:
    """Of a chunk as of a part."""
    vector = np.array([0, length], np.float64)
    whole, parts = {TEXT: vector.astype("<f4").tobytes()}, {(TEXT, 0, 4): vector.astype("<f2").tobytes()}
    there = StoredVectors(whole, parts)
    assert there.usable(2) == (there if is_one else StoredVectors({}, {}))
