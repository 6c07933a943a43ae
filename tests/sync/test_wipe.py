import asyncio
from pathlib import Path

import apsw

from memd.sync.wipe import keep_wiping
from tests.sync.transcribed import opened
from tests.wait import until_async


def log_size(file: Path) -> int:
    return Path(f"{file}-wal").stat().st_size


async def test_the_log_is_emptied_as_soon_as_nobody_reads(tmp_path: Path) -> None:
    """Somebody in the middle of a search is not disturbed; afterwards the log has nothing in it."""
    file = tmp_path / "x.sqlite"
    async with opened(file) as index:
        replaced = asyncio.Event()
        wiping = asyncio.create_task(keep_wiping(index, replaced, again_s=0.01))
        reader = apsw.Connection(str(file))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM files").fetchall()
        await index.start_ids_at(1000)
        assert log_size(file) > 0
        replaced.set()
        await until_async(lambda: not replaced.is_set())
        assert await index.counts() is not None
        assert log_size(file) > 0
        reader.close()
        await until_async(lambda: log_size(file) == 0)
        wiping.cancel()
        await asyncio.wait([wiping])
