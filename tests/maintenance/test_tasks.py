"""The tasks that look after an index: when each is due, and what it leaves behind."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import apsw
import pytest

from memd.domain_types import Kind, TextHash
from memd.maintenance.tasks import (
    BACKUPS_EVERY_S,
    CHECK_EVERY_S,
    GONE_S,
    LATE_S,
    MANY,
    MaintenanceTriggers,
    UpgradedDatabase,
    check_integrity,
    delete_backups,
    optimize_keywords,
    truncate_wal,
)
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from memd.store.integrity import IndexDamage
from memd.store.migrations import KEPT_S, BackupCopy
from tests.bounds import shipped
from tests.clock import for_s, hastily, now_s
from tests.faults.vfs import Act, Operation, Sync, between
from tests.indexing.transcribed import opened
from tests.maintenance.keeping import keep
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, index, ranked
from tests.store.golden.read import DIRECTORY, unpack
from tests.store.older import made, run
from tests.wait import until_async


@asynccontextmanager
async def brought_up_to_date(tmp_path: Path) -> AsyncIterator[Index]:
    """An index that was of an older schema when it was opened."""
    unpack(DIRECTORY / "schema-1-2", tmp_path)
    index = Index(tmp_path / "agents" / "main.sqlite")
    await index.open()
    await index.adopt(FINGERPRINT)
    assert len(index.database.copies) == 1
    yield index
    await index.close()


@asynccontextmanager
async def proving(
    store: UpgradedDatabase, whole: asyncio.Event, *, later_s: float = KEPT_S
) -> AsyncIterator[IndexDamage]:
    """Somebody who looks all the time, so long after the copy was made; the damage that is reported."""
    damage = IndexDamage("main")
    proof = delete_backups(store, whole, damage, every_s=0.005, clock=lambda: time.time() + later_s)
    task = asyncio.create_task(keep(proof, first_wait_s=0.005))
    try:
        yield damage
    finally:
        task.cancel()
        await asyncio.wait([task])


def is_set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def looked(index: Index) -> None:
    """Give whoever looks time to have looked a few times."""
    for _ in range(10):
        await index.database.check()


async def test_a_copy_goes_when_all_is_proven(tmp_path: Path) -> None:
    """Not before a whole pass; and all that the database holds is on the disk itself by then."""
    whole = asyncio.Event()
    synced: list[str] = []

    def watch(operation: Operation, act: Act) -> bytes:
        if isinstance(operation, Sync):
            synced.append(Path(operation.file).name)
        return act(operation)

    with between(watch):
        async with brought_up_to_date(tmp_path) as index, proving(index.database, whole):
            [copy] = index.database.copies
            await looked(index)
            assert copy.path.exists()
            synced.clear()
            await index.replace(found_file("memory/new.md"), b"1", [chunk_of("words")], {}, frozenset())
            assert synced == []
            whole.set()
            await until_async(lambda: not index.database.copies)
            assert not copy.path.exists()
            assert synced[0] == "main.sqlite-wal"


async def test_a_young_copy_stays(tmp_path: Path) -> None:
    """For a day, in which somebody can go back to the program of before."""
    async with (
        brought_up_to_date(tmp_path) as index,
        proving(index.database, is_set(), later_s=KEPT_S - 600) as told,
    ):
        await looked(index)
        assert index.database.copies[0].path.exists()
        assert told.reason is None


async def test_damage_keeps_the_copy_and_is_told(tmp_path: Path) -> None:
    """What is not sound is not proven, however old the copy is."""
    async with brought_up_to_date(tmp_path) as index:
        run(index.file, "UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")
        async with proving(index.database, is_set()) as told:
            await until_async(lambda: told.reason)
            assert "fts5" in str(told.reason)
            assert index.database.copies[0].path.exists()


async def test_a_copy_that_cannot_be_deleted_is_tried_again(tmp_path: Path) -> None:
    """Somebody has put a directory in its place; when that is gone, so is all that was kept."""
    async with brought_up_to_date(tmp_path) as index:
        [copy] = index.database.copies
        copy.path.unlink()
        copy.path.mkdir()
        async with proving(index.database, is_set()) as told:
            await looked(index)
            assert copy.path.is_dir()
            copy.path.rmdir()
            await until_async(lambda: not index.database.copies)
            assert told.reason is None


@pytest.mark.parametrize("is_damaged", [True, False])
async def test_the_copy_of_a_cache_goes_likewise(tmp_path: Path, *, is_damaged: bool) -> None:
    """One that turns out to be damaged is replaced out of the copy, and that one is proven then."""
    file = made(tmp_path / "embeddings.sqlite", "embeddings", 1)
    run(file, "INSERT INTO cache VALUES ('p', 'm', 'k', x'07', x'0102', 1.0)")
    store = EmbeddingStore(file)
    await store.open()
    [copy] = store.copies
    if is_damaged:
        run(file, "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = 999 WHERE name = 'cache'")
    async with proving(store, is_set()) as told:
        await until_async(lambda: not store.copies)
        assert bool(told.reason) is is_damaged
    assert not copy.path.exists()
    assert (await store.look_up(("p", "m", "k"), [TextHash(b"\x07")], 1.0)).vectors == {b"\x07": b"\x01\x02"}
    assert (len(store.damaged_files()) == 1) is is_damaged
    await store.close()


async def test_an_index_that_is_built_anew_needs_no_copy(tmp_path: Path) -> None:
    """It goes at once: it may say what better rules have taken out."""
    async with brought_up_to_date(tmp_path) as index:
        [copy] = index.database.copies
        other = Index(tmp_path / "agents" / "main.sqlite.next")
        await other.open()
        await other.adopt(FINGERPRINT)
        await index.swap_in(other)
        assert index.database.copies == ()
        assert not copy.path.exists()


class Kept:
    """A database with one copy that is never old enough."""

    copies = (BackupCopy(Path("a.sqlite.schema-1"), 2, 1, 100, 0.0),)

    def __init__(self) -> None:
        self.checked: list[float] = []

    async def check(self) -> None:
        self.checked.append(now_s())

    async def drop_copies(self, which: Collection[BackupCopy]) -> None:
        raise AssertionError(which)


def test_copies_are_looked_at_each_hour() -> None:
    """From the first whole pass on."""
    store, whole = Kept(), asyncio.Event()
    whole.set()
    hastily(for_s(3.5 * BACKUPS_EVERY_S, keep(delete_backups(store, whole, None, clock=lambda: 0.0))))
    assert store.checked == pytest.approx([BACKUPS_EVERY_S * number for number in range(4)])


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

    file = Path("main.sqlite")

    def __init__(self, gone_at: float = math.inf, *, ended_cleanly: bool = True) -> None:
        self.checked: list[float] = []
        self.ended_cleanly = ended_cleanly
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
    index, busy_until = Quiet(), 2.5 * CHECK_EVERY_S
    check = check_integrity(cast("Index", index), lambda: now_s() < busy_until)
    hastily(for_s(4.5 * CHECK_EVERY_S, keep(check)))
    assert len(index.checked) == 2
    assert 0 <= index.checked[0] - busy_until <= GONE_S
    assert CHECK_EVERY_S <= index.checked[1] - index.checked[0] <= CHECK_EVERY_S + GONE_S
    for every_s in (11.0, 20.0):  # at a look, once the time is over
        seldom = Quiet()
        hastily(for_s(45, keep(check_integrity(cast("Index", seldom), bool, every_s=every_s, gone_s=10.0))))
        assert seldom.checked == pytest.approx([20.0, 40.0])
    gone = Quiet(gone_at=100.5)
    hastily(for_s(100.4, keep(check_integrity(cast("Index", gone), bool))))
    assert gone.damage.reason is None
    hastily(for_s(11 * GONE_S - 0.1, keep(check_integrity(cast("Index", gone), bool))))
    assert gone.damage.reason is None
    hastily(for_s(100.5 + GONE_S, keep(check_integrity(cast("Index", gone), bool))))
    assert gone.damage.reason is not None


def test_after_a_kill_an_index_is_checked_at_once() -> None:
    """Whatever else goes on; from then on as often as any other."""
    index, busy_until = Quiet(ended_cleanly=False), 10.0
    hastily(
        for_s(2.5 * CHECK_EVERY_S, keep(check_integrity(cast("Index", index), lambda: now_s() < busy_until)))
    )
    assert index.checked == pytest.approx([0, CHECK_EVERY_S, 2 * CHECK_EVERY_S], abs=2 * GONE_S)
    assert index.checked[0] == 0


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
        await ranked(index, '"word1x1"', 1, frozenset(Kind))
        assert parts(index) > 1
        tidy.note(1)
        await until_async(lambda: parts(index) == 1)
        assert index.damage.reason is None
        assert len(await ranked(index, '"word1x1"', 5, frozenset(Kind))) == 1


async def test_keywords_are_put_in_order_step_by_step() -> None:
    """Each step goes on with what the first has begun: what is written meanwhile is left for the next time."""
    steps: list[bool] = []

    async def tidy_keywords(*, begin: bool) -> bool:
        steps.append(begin)
        return len(steps) < 3

    shrunk: list[int] = []

    async def shrink() -> bool:
        shrunk.append(len(steps))
        return len(shrunk) < 4

    index = SimpleNamespace(
        tidy_keywords=tidy_keywords, database=SimpleNamespace(shrink=shrink), damage=IndexDamage("main")
    )
    tidy = MaintenanceTriggers()
    await optimize_keywords(cast("Index", index), tidy).run()
    assert steps == [True, False, False]
    assert shrunk == [3] * 4  # afterwards, and until nothing is left to give back
    assert tidy.left_over.is_set()


def test_changes_count_once() -> None:
    """Those that the keywords were put in order for are none of the next time's."""

    async def waited_s() -> list[float]:
        triggers = MaintenanceTriggers(late_s=100)
        triggers.note(MANY)
        waits = []
        for changes in (0, MANY - 1, MANY, 1):
            triggers.note(changes)
            began = now_s()
            await triggers.enough()
            waits.append(now_s() - began)
        assert not triggers.is_due
        return waits

    assert hastily(waited_s()) == pytest.approx([0, 100, 0, 100])


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
    async with asyncio.timeout(60):
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


async def test_the_log_is_left_alone_once_it_is_empty(tmp_path: Path) -> None:
    """Until something is left in it again."""
    async with opened(tmp_path / "x.sqlite") as index:
        triggers = MaintenanceTriggers()
        await truncate_wal(index, triggers, again_s=0.0).run()
        await index.counts()
        assert log_size(index.file) == 0
        assert not triggers.left_over.is_set()


def test_whose_copies_are_deleted_is_told() -> None:
    """Of a database whose damage is reported elsewhere, or of the cache, which mends itself."""
    named = (
        delete_backups(cast("UpgradedDatabase", None), is_set(), damage).name
        for damage in (IndexDamage("main"), None)
    )
    assert list(named) == ["deleting old copies", "deleting old copies of the cache"]


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

    async def truncate_wal(self) -> bool:
        self.asked.append(now_s())
        if self._is_busy:
            return False
        raise StoreUnavailable("no room")


def test_a_log_is_tried_again_soon_and_less_and_less_often_where_the_disk_fails() -> None:
    """Where only somebody reads, it stays soon."""
    again, longest = (
        shipped("memd.maintenance.tasks._AGAIN_S"),
        shipped("memd.maintenance.loop.LONGEST_WAIT_S"),
    )
    for is_busy in (True, False):
        index, triggers = Failing(is_busy=is_busy), MaintenanceTriggers()
        triggers.left_over.set()
        hastily(for_s(20 * longest, keep(truncate_wal(cast("Index", index), triggers))))
        waits = [later - earlier for earlier, later in pairwise(index.asked)]
        if is_busy:
            assert len(waits) > longest
            assert waits == pytest.approx([again] * len(waits))
        else:
            assert again / 2 <= waits[0] <= again
            assert longest / 2 <= waits[-1] <= longest
            assert max(waits) <= longest + 0.001
