"""The power goes while one database takes the place of another: it is the one or the other then, and sound."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from memd.store.index import Index
from tests.faults.powercut_machine import Cut, Machine, restore
from tests.store.conftest import FINGERPRINT, chunk_of, found_file

NOTES = 12


async def filled(file: Path, word: str) -> Index:
    """An index that is open, with some notes of one word."""
    index = Index(file)
    await index.open()
    await index.adopt(FINGERPRINT)
    for number in range(NOTES):
        await put(index, number, word)
    return index


async def put(index: Index, number: int, word: str) -> None:
    """Have the index hold a note."""
    chunk = chunk_of(f"{word} {number} " * 50)
    await index.replace(found_file(f"memory/{number}.md"), b"", [chunk], {}, frozenset())


async def damaged_gives_way(index: Index, other: Index) -> None:
    """It is set aside, and the other has its name."""
    await index.swap_in(other, damage="a test wants it")


async def pages_are_copied(index: Index, other: Index) -> None:
    """Those of the other."""
    await index.swap_in(other)


async def log_is_emptied(index: Index, other: Index) -> None:
    """After the swap, as where secrets were taken out."""
    await index.swap_in(other)
    assert await index.database.truncate_wal()


def words_left(cut: Cut, directory: Path) -> tuple[str, ...] | None:
    """The words in the index that a power cut left; None: it is gone, or nothing was put into it yet.

    Raises:
        AssertionError, apsw.Error: it is damaged.
    """
    shutil.rmtree(directory)
    restore(cut.left, directory)
    file = directory / "main.sqlite"
    if not file.exists():
        return None
    connection = apsw.Connection(str(file))
    try:
        assert connection.pragma("integrity_check") == "ok"
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'chunks'").get:
            return None
        return tuple(text.split()[0] for (text,) in connection.execute("SELECT text FROM chunks"))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("swap", "kinds", "draws"),
    [
        (damaged_gives_way, ("rename",), 60),  # few places, and at each it is names that are lost
        (damaged_gives_way, ("",), 4),
        (pages_are_copied, ("",), 4),
        (log_is_emptied, ("",), 4),
    ],
)
async def test_an_index_is_the_old_one_or_the_new_one(
    tmp_path: Path, swap: Callable[[Index, Index], Awaitable[None]], kinds: tuple[str, ...], draws: int
) -> None:
    """Wherever the power goes, no log of the one is ever applied to the other."""
    directory = tmp_path / "agents"
    directory.mkdir()
    await (await filled(directory / "main.sqlite", "old")).close()
    machine = Machine(directory, 1)
    with machine.watching():
        index = Index(directory / "main.sqlite")
        await index.open()
        await index.adopt(FINGERPRINT)
        await put(index, NOTES, "old")  # of this index alone there is a log now
        await swap(index, await filled(directory / "main.sqlite.next", "new"))
        await index.close()
    olds, news = ("old",) * NOTES, ("new",) * NOTES
    found = set()
    for cut in machine.cuts(kinds, draws):
        words = words_left(cut, directory)
        found.add(words)
        if (
            swap is damaged_gives_way
        ):  # its file is the new one, and nothing of the other is in a log beside it
            file = cut.left.files.get(str(directory / "main.sqlite"), b"")
            assert (words == news) is (b"new 1 " in file)
    # What was written last may be lost. While a damaged file is moved away, there may be none.
    assert {news} < found <= {None, olds, (*olds, "old"), news}
