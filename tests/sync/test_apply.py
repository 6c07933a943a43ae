"""Files into an index, as they are now."""

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from memd.config import Chunking
from memd.model import ChunkId, FoundFile
from memd.paths import Root, Workspace
from memd.sources.fence import Missing, OutsideFence
from memd.sources.notes import TooLarge
from memd.sources.scan import scan
from memd.store.files import KnownFile
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.sync.apply import Applied, apply_files
from memd.sync.treatment import Treatment
from memd.threads import Threads

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
    index: Index, roots: Sequence[Root], files: Sequence[FoundFile], known: dict[str, KnownFile]
) -> Applied:
    return await apply_files(
        index,
        files,
        known,
        treatment=Treatment(roots, Chunking(), MAX_BYTES),
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
    assert first == Applied(frozenset({"memory/a.md"}), 1, {})
    ids = [chunk.id for chunk in (await index.read(lambda reader: reader.texts(SOME))).values()]
    os.utime(note, ns=(5, 5))
    again = await apply(index, roots, found(roots), await index.known())
    assert again == Applied(frozenset({"memory/a.md"}), 0, {})
    assert (await index.known())["memory/a.md"].stamp.mtime_ns == 5
    assert [chunk.id for chunk in (await index.read(lambda reader: reader.texts(SOME))).values()] == ids


async def test_what_another_pass_indexed_meanwhile_counts(
    index: Index, roots: tuple[Root, ...], tmp_path: Path
) -> None:
    """A file that was changed, indexed and changed back during a long pass is indexed as it is."""
    note = tmp_path / "ws" / "memory" / "a.md"
    note.write_text("one")
    await apply(index, roots, found(roots), {})
    when_the_pass_began = await index.known()
    note.write_text("two")
    await apply(index, roots, found(roots), when_the_pass_began)
    note.write_text("one")
    applied = await apply(index, roots, found(roots), when_the_pass_began)
    assert applied.changed == 1
    assert (await index.known())["memory/a.md"].hash == when_the_pass_began["memory/a.md"].hash
    texts = await index.read(lambda reader: reader.texts(SOME))
    assert [chunk.text for chunk in texts.values()] == ["one"]


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
        "memory/gone.md": Missing,
        "memory/grown.md": TooLarge,
        "memory/fifo.md": OutsideFence,
        "memory/link.md": OutsideFence,
        "memory/directory.md": OutsideFence,
    }
