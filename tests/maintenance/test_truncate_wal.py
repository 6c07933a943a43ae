import asyncio
from itertools import pairwise
from pathlib import Path
from typing import cast

import apsw
import pytest

from memd.maintenance.triggers import MaintenanceTriggers
from memd.maintenance.truncate_wal import truncate_wal
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.index_damage import IndexDamage
from tests.bounds import shipped
from tests.clock import for_s, hastily, now_s
from tests.indexing.transcribed import opened
from tests.maintenance.keeping import keep
from tests.wait import until_async


def log_size(file: Path) -> int:
    return Path(f"{file}-wal").stat().st_size


async def test_the_log_is_emptied_as_soon_as_nobody_reads(tmp_path: Path) -> None:
    """Somebody in the middle of a search is not disturbed; afterwards the log has nothing in it."""
    file = tmp_path / "x.sqlite"
    async with opened(file) as index:
        triggers = MaintenanceTriggers()
        wiping = asyncio.create_task(keep(truncate_wal(index, triggers, again_s=0.01)))
        reader = apsw.Connection(str(file))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM files").fetchall()
        await index.start_ids_at(1000)
        assert log_size(file) > 0
        triggers.left_over.set()
        await until_async(lambda: not triggers.left_over.is_set())
        assert await index.counts() is not None
        assert log_size(file) > 0
        reader.close()
        await until_async(lambda: log_size(file) == 0)
        wiping.cancel()
        await asyncio.wait([wiping])


class Failing:
    """An index whose log can never be emptied."""

    file = Path("main.sqlite")
    damage = IndexDamage("main")

    def __init__(self, *, is_busy: bool) -> None:
        self.asked: list[float] = []
        self.database = self
        self._is_busy = is_busy

    async def empty_log(self) -> bool:
        self.asked.append(now_s())
        if self._is_busy:
            return False
        raise StoreUnavailable("no room")


def test_a_log_is_tried_again_soon_and_less_and_less_often_where_the_disk_fails() -> None:
    """Where only somebody reads, it stays soon."""
    again, longest = (
        shipped("memd.maintenance.truncate_wal._AGAIN_S"),
        shipped("memd.maintenance.loop.LONGEST_WAIT_S"),
    )
    for is_busy in (True, False):
        index, triggers = Failing(is_busy=is_busy), MaintenanceTriggers()
        triggers.left_over.set()
        hastily(for_s(20 * longest, keep(truncate_wal(cast("Index", index), triggers))))
        waits = [later - earlier for earlier, later in pairwise(index.asked)]
        if is_busy:
            assert waits == pytest.approx([again] * len(waits))
        else:
            assert again / 2 <= waits[0] <= again
            assert longest / 2 <= waits[-1] <= longest
            assert max(waits) <= longest + 0.001
