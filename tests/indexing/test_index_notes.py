"""Files into an index, as they are now."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from memd.config.settings import Chunking
from memd.domain_types import Chunk, ChunkId, FoundFile, Kind, Stamp, TextHash
from memd.indexing.index_notes import (
    AppliedChanges,
    apply_files,
    each_by_itself,
    known_vectors,
    unexpected,
)
from memd.indexing.rules import IndexingRules
from memd.runtime.threads import NoMemory, Threads
from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileMissing, OutsideFence
from memd.sources.scan import scan
from memd.sources.scan_result import SkipReason, skip_of
from memd.store.embedding_cache import KnownVectors
from memd.store.errors import StoreUnavailable
from memd.store.files import FileChange, KnownFile
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.memory_paths import Root, Workspace
from tests.store.conftest import ranked

MAX_BYTES = 1000
SOME = [ChunkId(number) for number in range(1, 10)]


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    """An open index without vectors."""
    opened = Index(tmp_path / "main.sqlite")
    await opened.open()
    await opened.adopt(Fingerprint("c", "t", ("memory",)))
    yield opened
    await opened.close()


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Root, ...]:
    """A workspace with a memory directory."""
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    return (Workspace(Path(os.path.realpath(tmp_path / "ws"))),)


def found(roots: Sequence[Root]) -> list[FoundFile]:
    return list(scan(roots, max_bytes=MAX_BYTES).found.values())


async def apply(
    index: Index,
    roots: Sequence[Root],
    files: Sequence[FoundFile],
    known: dict[str, KnownFile],
    known_at: int | None = None,
) -> AppliedChanges:
    return await apply_files(
        index,
        files,
        known,
        known_at=known_at,
        rules=IndexingRules(roots, Chunking(), MAX_BYTES),
        vectors=None,
        threads=Threads(1, "reading"),
    )


async def test_the_same_bytes_change_nothing_but_the_stamp(
    index: Index, roots: tuple[Root, ...], tmp_path: Path
) -> None:
    """A file that was touched, or moved over itself, keeps its chunks."""
    note = tmp_path / "ws" / "memory" / "a.md"
    note.write_text("# A\n\none\n")
    os.utime(note, ns=(1, 1))
    first = await apply(index, roots, found(roots), {})
    assert first == AppliedChanges(frozenset({"memory/a.md"}), 1, {})
    ids = [chunk.id for chunk in (await index.read(lambda reader: reader.texts(SOME))).values()]
    os.utime(note, ns=(5, 5))
    await asyncio.sleep(0.05)  # until the time of change is no longer that of a write that may go on
    again = await apply(index, roots, found(roots), await index.known())
    assert again == AppliedChanges(frozenset({"memory/a.md"}), 0, {})
    assert (await index.known())["memory/a.md"].stamp.mtime_ns == 5
    assert [chunk.id for chunk in (await index.read(lambda reader: reader.texts(SOME))).values()] == ids


async def test_the_same_bytes_of_another_kind_are_indexed_anew(
    index: Index, roots: tuple[Root, ...], tmp_path: Path
) -> None:
    """A name that is private from today on is taken out of what groups may find, though nothing in the file has changed."""
    note = tmp_path / "ws" / "memory" / "a.md"
    note.write_text("# A\n\none\n")
    [before] = found(roots)
    await apply(index, roots, [before], {})
    other = Kind.CURATED if before.kind is Kind.NOTE else Kind.NOTE
    applied = await apply(index, roots, [msgspec.structs.replace(before, kind=other)], await index.known())
    assert applied.changed == 1
    assert (await index.known())["memory/a.md"].kind is other
    assert [len(await ranked(index, "one", 5, {kind})) for kind in (before.kind, other)] == [0, 1]


async def test_what_another_pass_indexed_meanwhile_counts(
    index: Index, roots: tuple[Root, ...], tmp_path: Path
) -> None:
    """A file that was changed, indexed and changed back during a long pass is indexed as it is."""
    note = tmp_path / "ws" / "memory" / "a.md"
    note.write_text("one")
    await apply(index, roots, found(roots), {})
    version, when_the_pass_began = index.changed.version, await index.known()
    note.write_text("two")
    await apply(index, roots, found(roots), when_the_pass_began, version)
    note.write_text("one")
    applied = await apply(index, roots, found(roots), when_the_pass_began, version)
    assert applied.changed == 1
    assert (await index.known())["memory/a.md"].hash == when_the_pass_began["memory/a.md"].hash
    texts = await index.read(lambda reader: reader.texts(SOME))
    assert [chunk.text for chunk in texts.values()] == ["one"]


async def test_what_the_index_holds_is_read_once_while_it_does_not_change(
    index: Index, roots: tuple[Root, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit that no other one overtakes costs no second look at the index."""
    note = tmp_path / "ws" / "memory" / "a.md"
    note.write_text("one")
    await apply(index, roots, found(roots), {})
    version, known = index.changed.version, await index.known()

    async def read_again(*_: object) -> dict[str, KnownFile]:
        raise AssertionError("it was read again")

    note.write_text("two")
    with monkeypatch.context() as patched:
        patched.setattr(index, "known", read_again)
        applied = await apply(index, roots, found(roots), known, version)
    assert applied.changed == 1
    assert [hit for hit, _ in await ranked(index, "two", 5, {Kind.NOTE})]


async def test_what_changes_between_listing_and_reading(
    index: Index, roots: tuple[Root, ...], tmp_path: Path
) -> None:
    """A file that went, grew, or is something else by now is told apart, and the others are taken in."""
    memory = tmp_path / "ws" / "memory"
    for name in ("gone", "grown", "fifo", "link", "directory", "kept"):
        (memory / f"{name}.md").write_text(name)
    listed = found(roots)
    for name in ("gone", "fifo", "link", "directory"):
        (memory / f"{name}.md").unlink()
    os.truncate(memory / "grown.md", MAX_BYTES + 1)
    os.mkfifo(memory / "fifo.md")
    (memory / "link.md").symlink_to("kept.md")
    (memory / "directory.md").mkdir()
    applied = await apply(index, roots, listed, {})
    assert applied.taken == {"memory/kept.md"}
    assert {path: type(trouble) for path, trouble in applied.failed.items()} == {
        "memory/gone.md": FileMissing,
        "memory/grown.md": TooLarge,
        "memory/fifo.md": OutsideFence,
        "memory/link.md": OutsideFence,
        "memory/directory.md": OutsideFence,
    }


@pytest.mark.parametrize("when", ["2300-01-01", "1600-01-01"])
async def test_a_note_of_any_time_is_taken_in_once(
    index: Index, roots: tuple[Root, ...], tmp_path: Path, when: str
) -> None:
    """A time that 64 bits of nanoseconds cannot tell is no reason to fail, nor to read the file at each pass."""
    note = tmp_path / "ws" / "memory" / "a.md"
    note.write_text("# A\n\none\n")
    seconds = int(datetime.fromisoformat(f"{when}T00:00:00+00:00").timestamp())
    os.utime(note, (seconds, seconds))
    await asyncio.sleep(0.05)  # until the time of change is no longer that of a write that may go on
    assert await apply(index, roots, found(roots), {}) == AppliedChanges(frozenset({"memory/a.md"}), 1, {})
    [seen] = found(roots)
    assert (await index.known())["memory/a.md"].stamp == seen.stamp


async def test_what_memd_fails_at_is_the_trouble_of_one_file(index: Index, tmp_path: Path) -> None:
    """A defect that one file brings out, in reading or in writing, keeps no other from being taken in."""
    files = [
        FoundFile(f"memory/{n}.md", str(tmp_path / f"{n}.md"), Kind.NOTE, Stamp(1, 1, n)) for n in range(4)
    ]
    files[2] = msgspec.structs.replace(
        files[2], stamp=Stamp(1, 1, 1 << 63)
    )  # no such number fits into the index

    async def write(some: Sequence[FoundFile]) -> AppliedChanges:
        if any(one.path == "memory/1.md" for one in some):
            raise KeyError("a defect")
        await index.replace_all([FileChange(one, b"hash", []) for one in some], {}, frozenset())
        return AppliedChanges(frozenset(one.path for one in some), len(some), {})

    applied = await each_by_itself(files, write)
    assert applied.taken == (await index.known()).keys() == {"memory/0.md", "memory/3.md"}
    assert applied.changed == 2
    assert {path: skip_of(trouble) for path, trouble in applied.failed.items()} == {
        "memory/1.md": SkipReason.FAILED,
        "memory/2.md": SkipReason.FAILED,
    }


@pytest.mark.parametrize("kind", [NoMemory("none is left"), MemoryError()])
async def test_a_moment_without_memory_is_no_trouble_of_a_note(tmp_path: Path, kind: Exception) -> None:
    """The pass fails and is made again, and answers are stale until then; a transcript may be too large for any memory."""
    files = [FoundFile(f"{n}", str(tmp_path / f"{n}"), kind, Stamp(1, 1, n)) for n, kind in enumerate(Kind)]
    for found in files:

        async def short(_: Sequence[FoundFile]) -> AppliedChanges:
            raise kind

        if found.kind.is_session:
            assert (await each_by_itself([found], short)).failed.keys() == {found.path}
        else:
            with pytest.raises(NoMemory):
                await each_by_itself([found], short)


async def test_trouble_of_the_store_is_no_trouble_of_a_file() -> None:
    """A disk that is full fails the pass, which is tried again."""

    async def full(_: Sequence[FoundFile]) -> AppliedChanges:
        raise StoreUnavailable("no room")

    session = FoundFile("a", "a", next(kind for kind in Kind if kind.is_session), Stamp(1, 1, 1))
    for group in ([], [session]):
        with pytest.raises(StoreUnavailable):
            await each_by_itself(group, full)


@pytest.mark.parametrize("failure", [MemoryError(), NoMemory("none is left"), KeyError("a defect")])
def test_what_nobody_foresaw_is_trouble_of_a_file_but_no_want_of_memory_for_a_note(
    failure: Exception,
) -> None:
    """A note is never large: there is no memory for anything just now."""
    kinds = {kind.is_session: FoundFile("a", "a", kind, Stamp(1, 1, 1)) for kind in Kind}
    assert skip_of(unexpected(kinds[True], failure)) is SkipReason.FAILED
    if isinstance(failure, KeyError):
        assert skip_of(unexpected(kinds[False], failure)) is SkipReason.FAILED
    else:
        with pytest.raises(NoMemory):
            unexpected(kinds[False], failure)


async def test_what_is_known_of_texts_is_asked_once_and_not_for_nothing() -> None:
    """Their vectors, which are refused, and the space of both; an agent without a provider has none."""
    asked: list[list[bytes]] = []
    one, other = (Chunk(1, 1, text, "", TextHash(text.encode())) for text in ("one", "other"))

    class Cache:
        space = ("hashing", "m", "k")

        async def look_up(self, hashes: list[bytes]) -> SimpleNamespace:
            asked.append(hashes)
            return SimpleNamespace(vectors={one.hash: b"v"}, refused=frozenset({other.hash}))

    cache = cast("KnownVectors", Cache())
    assert await known_vectors(cache, [[one], [other]]) == (
        {one.hash: b"v"},
        frozenset({other.hash}),
        Cache.space,
    )
    assert asked == [[one.hash, other.hash]]
    assert await known_vectors(cache, [[], []]) == ({}, frozenset(), Cache.space)
    assert await known_vectors(None, [[one]]) == ({}, frozenset(), None)
    assert len(asked) == 1


@pytest.mark.parametrize("max_chars", [100, 300, 700, 2000])
async def test_the_longest_chunk_is_a_setting(
    index: Index, roots: tuple[Root, ...], tmp_path: Path, max_chars: int
) -> None:
    """Of notes: as many characters as fit are in one chunk, where the tokens leave room for more."""
    (tmp_path / "ws" / "memory" / "a.md").write_text(
        "\n".join(f"line {n} of a long note" for n in range(200))
    )
    how = IndexingRules(roots, Chunking(tokens=8000, overlap=0, max_chars=max_chars), 100_000)
    await apply_files(
        index,
        list(scan(roots, max_bytes=100_000).found.values()),
        {},
        rules=how,
        vectors=None,
        threads=Threads(1, "reading"),
    )
    ids = [ChunkId(number) for number in range(1, 200)]
    sizes = [len(chunk.text) for chunk in (await index.read(lambda reader: reader.texts(ids))).values()]
    assert max_chars - 40 < max(sizes) <= max_chars
