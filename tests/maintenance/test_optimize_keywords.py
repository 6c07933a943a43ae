import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import apsw
import pytest

from memd.maintenance.optimize_keywords import optimize_keywords
from memd.maintenance.triggers import LATE_S, MANY, MaintenanceTriggers
from memd.model import Kind
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.index_damage import IndexDamage
from tests.clock import hastily, now_s
from tests.maintenance.keeping import keep
from tests.store.conftest import FINGERPRINT, chunk_of, found_file
from tests.wait import until_async


@asynccontextmanager
async def tidied(file: Path) -> AsyncIterator[tuple[Index, MaintenanceTriggers]]:
    """An index with a few parts, and what keeps it in order."""
    index = Index(file)
    await index.open()
    await index.adopt(FINGERPRINT)
    for number in range(6):
        text = " ".join(f"word{number}x{n}" for n in range(500))
        await index.replace(found_file(f"memory/{number}.md"), b"1", [chunk_of(text)], {}, frozenset())
    tidy = MaintenanceTriggers()
    running = asyncio.create_task(keep(optimize_keywords(index, tidy)))
    try:
        yield index, tidy
    finally:
        running.cancel()
        await index.close()


def parts(index: Index) -> int:
    """How many parts the keyword index consists of."""
    connection = apsw.Connection(str(index.file))
    try:
        return int(connection.execute("SELECT count(DISTINCT segid) FROM keywords_idx").get)
    finally:
        connection.close()


async def test_many_changes_put_the_keywords_in_order(tmp_path: Path) -> None:
    """Changes add up until there are enough; then one part is left of all."""
    async with tidied(tmp_path / "main.sqlite") as (index, tidy):
        assert parts(index) > 1
        tidy.note(MANY - 1)
        await index.keywords('"word1x1"', 1, frozenset(Kind))
        assert parts(index) > 1
        tidy.note(1)
        await until_async(lambda: parts(index) == 1)
        assert index.damage.reason is None
        assert len(await index.keywords('"word1x1"', 5, frozenset(Kind))) == 1


async def test_an_index_that_is_put_in_place_is_put_in_order(tmp_path: Path) -> None:
    """All its files are new."""
    async with tidied(tmp_path / "main.sqlite") as (index, tidy):
        tidy.note()
        await until_async(lambda: parts(index) == 1)


async def test_damage_that_is_met_is_told(tmp_path: Path) -> None:
    """A keyword index that cannot be put in order is broken, and is built anew by whoever is told."""
    async with tidied(tmp_path / "main.sqlite") as (index, tidy):
        connection = apsw.Connection(str(index.file))
        connection.execute("UPDATE keywords_data SET block = x'ff00ff00ff' WHERE id > 10")
        connection.close()
        tidy.note()
        await until_async(lambda: index.damage.reason)


async def test_an_index_that_closes_is_nobodys_damage(tmp_path: Path) -> None:
    """What cannot be done now is left for another time."""
    async with tidied(tmp_path / "main.sqlite") as (index, tidy):
        await index.close()
        tidy.note()
        for _ in range(5):
            await asyncio.sleep(0)
        assert index.damage.reason is None


async def test_a_few_changes_are_enough_after_a_while(tmp_path: Path) -> None:
    """Whoever waits for that is told; and what an earlier life of the daemon has left is put in order, too."""
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    for number in range(3):
        await index.replace(
            found_file(f"memory/{number}.md"), b"1", [chunk_of(f"word{number} " * 300)], {}, frozenset()
        )
    tidy = MaintenanceTriggers(late_s=0.02)
    running = asyncio.create_task(keep(optimize_keywords(index, tidy)))
    await until_async(tidy.left_over.is_set)
    assert parts(index) == 1
    tidy.left_over.clear()
    await index.remove(["memory/1.md"])
    tidy.note(1)
    await until_async(tidy.left_over.is_set)
    assert parts(index) == 1
    running.cancel()
    await asyncio.wait([running])
    await index.close()


async def test_what_could_not_be_put_in_order_is_put_in_order_later(tmp_path: Path) -> None:
    """The words of what was deleted stay in the keyword index until then, whether or not more changes follow."""

    class Locked(Index):
        attempts = 0

        async def tidy_keywords(self, *, begin: bool) -> bool:
            self.attempts += 1
            if self.attempts <= 2:
                raise StoreUnavailable("another program has it locked")
            return await super().tidy_keywords(begin=begin)

    index = Locked(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    tidy = MaintenanceTriggers(late_s=0.001)
    running = asyncio.create_task(keep(optimize_keywords(index, tidy), first_wait_s=0.001))
    async with asyncio.timeout(20):
        await tidy.left_over.wait()
    assert index.attempts > 2
    running.cancel()
    await asyncio.wait([running])
    await index.close()


class Orderly:
    """An index whose keywords are put in order in one step."""

    def __init__(self) -> None:
        self.tidied: list[float] = []
        self.damage = IndexDamage("main")
        self.database = self

    async def tidy_keywords(self, *, begin: bool) -> bool:
        assert begin
        self.tidied.append(now_s())
        return False

    async def shrink(self) -> bool:
        return False


def test_few_changes_wait_for_more_as_long_as_is_said_and_many_do_not() -> None:
    """What a life before has left waits as few do."""
    index = Orderly()

    async def main() -> None:
        tidy = MaintenanceTriggers()
        running = asyncio.create_task(keep(optimize_keywords(cast("Index", index), tidy)))
        await asyncio.sleep(2 * LATE_S)
        tidy.note(1)
        await asyncio.sleep(2 * LATE_S)
        tidy.note(MANY)
        await asyncio.sleep(1)
        running.cancel()

    hastily(main())
    assert index.tidied == pytest.approx([LATE_S, 3 * LATE_S, 4 * LATE_S], abs=1)
