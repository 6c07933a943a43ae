import asyncio
import math
from pathlib import Path
from typing import cast

import apsw

from memd.maintenance.integrity_check import EVERY_S, GONE_S, check_integrity
from memd.store.index import Index
from memd.store.index_damage import IndexDamage
from tests.clock import for_s, hastily, now_s
from tests.maintenance.keeping import keep
from tests.store.conftest import chunk_of, found_file, index
from tests.wait import until_async

__all__ = ["index"]


async def told(index: Index, *, every_s: float) -> str:
    """The first damage that is found."""
    checking = asyncio.create_task(keep(check_integrity(index, bool, every_s=every_s, gone_s=0.01)))
    try:
        await until_async(lambda: index.damage.reason, 10)
    finally:
        checking.cancel()
    assert index.damage.reason is not None
    return index.damage.reason


async def test_zeroed_keywords_are_found_while_nobody_searches(index: Index) -> None:
    """SQLite itself finds nothing wrong with them; the check does."""
    for number in range(20):
        await index.replace(
            found_file(f"memory/{number}.md"), b"1", [chunk_of(f"words {number} " * 90)], {}, frozenset()
        )
    other = apsw.Connection(str(index.file))
    other.execute("UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")
    assert other.changes() > 0
    other.close()
    assert "fts5" in await told(index, every_s=0.02)


async def test_a_file_that_is_gone_is_found_while_nobody_searches(index: Index) -> None:
    """What the index has is still there to be read; what it writes would be lost."""
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("words")], {}, frozenset())
    index.file.unlink()
    assert "deleted or replaced" in await told(index, every_s=3600)
    assert (await index.counts()).chunks == 1


class Quiet:
    """An index that is sound, and is gone after a time."""

    ended_cleanly = True
    file = Path("main.sqlite")

    def __init__(self, gone_at: float = math.inf) -> None:
        self.checked: list[float] = []
        self._gone_at = gone_at
        self.damage = IndexDamage("main")
        self.database = self

    @property
    def is_gone(self) -> bool:
        return now_s() >= self._gone_at

    async def check(self) -> None:
        self.checked.append(now_s())


def test_an_index_is_looked_at_as_often_as_is_said() -> None:
    """Checked each hour, and not while it is busy; a file that is gone is found within seconds."""
    index, busy_until = Quiet(), 2.5 * EVERY_S
    check = check_integrity(cast("Index", index), lambda: now_s() < busy_until)
    hastily(for_s(4.5 * EVERY_S, keep(check)))
    assert len(index.checked) == 2
    assert 0 <= index.checked[0] - busy_until <= GONE_S
    assert EVERY_S <= index.checked[1] - index.checked[0] <= EVERY_S + GONE_S
    gone = Quiet(gone_at=100.5)
    hastily(for_s(100.4, keep(check_integrity(cast("Index", gone), bool))))
    assert gone.damage.reason is None
    hastily(for_s(100.5 + GONE_S, keep(check_integrity(cast("Index", gone), bool))))
    assert gone.damage.reason is not None
