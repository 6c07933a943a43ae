"""An index that is built anew, with attempts that fail."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from memd.domain_types import TextHash
from memd.errors import FatalError
from memd.maintenance.tasks import MaintenanceTriggers
from memd.rebuild import rebuilder as renewals
from memd.rebuild.rebuilder import ROOM, Rebuilder
from memd.runtime import timers
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreClosed, StoreFull, StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.clock import hastily, now_s
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, vector_of
from tests.wait import until_async

CHUNKS = [chunk_of(f"note {n}", n + 1) for n in range(10)]
HASHES = [chunk.hash for chunk in CHUNKS]
assert FINGERPRINT.space is not None
SPACE = FINGERPRINT.space


def rebuilder_of(
    index: Index, fingerprint: Fingerprint, parts: Any, triggers: MaintenanceTriggers | None = None
) -> Rebuilder:
    """A rebuilder whose runner, embedding and permission are one stand-in."""
    triggers = triggers or MaintenanceTriggers()
    return Rebuilder("main", index, fingerprint, parts, parts, parts, triggers, Random(1))


class Bench:
    """An index with vectors, its renewal, and a provider that counts what it embeds."""

    def __init__(self, directory: Path) -> None:
        self.index = Index(directory / "main.sqlite")
        self.cache = EmbeddingStore(directory / "embeddings.sqlite")
        self.known = KnownVectors(self.cache, SPACE)
        self.embedded: list[TextHash] = []
        self.left_out = 0  # calls that had nothing taken back any more
        self.failing: type[StoreUnavailable] = StoreUnavailable
        self.failures = 0  # of attempts that are to fail before any is embedded
        self.meanwhile: Callable[[], object] = lambda: None  # called when the new index has its text
        self.reasons: list[str | None] = []  # why it is built again, at the end of each building
        self.writing = asyncio.Lock()
        self.triggers = MaintenanceTriggers()
        self.rebuilder = rebuilder_of(self.index, FINGERPRINT, self, self.triggers)

    def leave_out_published(self) -> None:
        self.left_out += 1

    def index_replaced(self) -> None:
        self.reasons.append(self.rebuilder.reason)

    def permitted(self, *_: object) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def fill(self, index: Index) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failing("something is in the way")
        if await index.find("memory/a.md") is None:
            known = (await self.known.look_up(HASHES)).vectors
            await index.replace(found_file("memory/a.md"), b"1", CHUNKS, known, frozenset())

    async def embed(self, index: Index) -> None:
        self.meanwhile()
        waiting = await index.waiting(100)
        self.embedded += [chunk.hash for chunk in waiting]
        vectors = {chunk.hash: vector_of(99) for chunk in waiting}
        await self.known.put(vectors)
        await index.add_vectors([(chunk.id, chunk.hash, vectors[chunk.hash]) for chunk in waiting], SPACE)

    async def rebuilt(self, *, force: bool = False) -> list[TextHash]:
        """What is embedded for an index that is built anew."""
        before = len(self.embedded)
        self.rebuilder.request("a person wishes it", force=force)

        def is_built() -> bool:
            if self.rebuilder.failure is not None:
                self.rebuilder.retry_now()  # to wait after a failure is tried without waiting, below
            return self.rebuilder.reason is None

        await until_async(is_built, 20)
        return self.embedded[before:]


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Bench]:
    bench = Bench(directory)
    await bench.cache.open()
    await bench.index.open()
    await bench.index.adopt(FINGERPRINT)
    vectors = {text_hash: vector_of(n) for n, text_hash in enumerate(HASHES)}
    await bench.index.replace(found_file("memory/a.md"), b"1", CHUNKS, vectors, frozenset())
    task = asyncio.create_task(bench.rebuilder.run())
    yield bench
    task.cancel()
    await asyncio.wait([task])
    await bench.index.close()
    await bench.cache.close()


@pytest.mark.parametrize("failures", [0, 1, 3])
async def test_force_embeds_everything_once_however_many_attempts_fail(tmp_path: Path, failures: int) -> None:
    """The wish holds until an index is in place, what was embedded since is not embedded again, and it is then over."""
    async with running(tmp_path) as bench:
        assert await bench.rebuilt() == []
        assert bench.left_out == 0
        asked: list[tuple[object, ...]] = []
        permitted = bench.permitted

        def noted(*what: object) -> AbstractAsyncContextManager[None]:
            asked.append(what)
            return permitted(*what)

        bench.permitted = noted  # type: ignore[method-assign]
        bench.failures = failures
        assert sorted(await bench.rebuilt(force=True)) == sorted(HASHES)
        assert bench.left_out > 0
        assert await bench.index.vectors_of(HASHES) == dict.fromkeys(HASHES, vector_of(99))
        await bench.known.forget(HASHES[:3])
        assert await bench.rebuilt() == []  # what the cache has lost meanwhile is put there by the index
        assert asked == [*[(FINGERPRINT, True)] * (failures + 1), (FINGERPRINT, False)]


async def test_force_that_is_wished_again_meanwhile_holds_for_the_next_one(tmp_path: Path) -> None:
    """It counts from when it was wished."""
    async with running(tmp_path) as bench:

        def wish() -> None:
            bench.meanwhile = lambda: None
            bench.rebuilder.request("again", force=True)

        bench.meanwhile = wish
        assert len(await bench.rebuilt(force=True)) == 2 * len(HASHES)
        assert bench.reasons == ["again", None]


async def test_nothing_is_pruned_that_a_rebuild_is_about_to_take(tmp_path: Path) -> None:
    """However small the cache is to be, and whoever prunes it: the vectors of the old index come back from it."""
    async with running(tmp_path) as bench:
        pruned: list[int] = []
        fill = bench.fill

        async def after_another_agent_has_pruned(index: Index) -> None:
            pruned.append(await bench.known.prune(1))
            await fill(index)

        bench.fill = after_another_agent_has_pruned  # type: ignore[method-assign]
        assert await bench.rebuilt() == []
        assert pruned == [0, 0]
        assert await bench.known.prune(1) == len(HASHES) - 1


async def test_a_wish_is_carried_out_when_it_is_permitted_and_damage_is_mended_unasked(
    tmp_path: Path,
) -> None:
    """Texts of a damaged index are searchable again at once; what a wish costs, a person confirms first."""
    async with running(tmp_path) as bench:
        asked, granted = list[tuple[object, ...]](), asyncio.Event()

        @asynccontextmanager
        async def permitted(*what: object) -> AsyncIterator[None]:
            asked.append(what)
            await granted.wait()
            yield

        bench.permitted = permitted  # type: ignore[method-assign]
        bench.index.damage.report("page 7 is not what was written")
        await until_async(lambda: bench.rebuilder.replaced.version == 1)
        assert asked == []
        bench.rebuilder.request("a person wishes it", force=True)
        await until_async(lambda: asked)
        for _ in range(20):
            await asyncio.to_thread(int)
        assert (asked, bench.rebuilder.replaced.version) == ([(FINGERPRINT, True)], 1)
        granted.set()
        await until_async(lambda: bench.rebuilder.replaced.version == 2)


async def test_after_a_clock_that_was_ahead_the_newest_stay(tmp_path: Path) -> None:
    """What was used in a time that has not come yet is as young as now, and grows old from there."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    now = 2.0e9
    known = KnownVectors(cache, SPACE, clock=lambda: now)
    await known.put({TextHash(b"old%d" % n): b"v" for n in range(100)})
    now = 1.8e9
    for day in range(3):
        await known.put({TextHash(b"new%d-%d" % (day, n)): b"v" for n in range(10)})
        assert await known.prune(100) == 10
        now += 86400
    assert (
        len(await known.held([TextHash(b"new%d-%d" % (day, n)) for day in (1, 2) for n in range(10)])) == 20
    )
    await cache.close()


async def test_an_index_for_another_model_is_built_for_that(tmp_path: Path) -> None:
    """And is what it was built for."""
    other = Fingerprint("c1", "t1", ("memory",))
    async with running(tmp_path) as bench:
        bench.rebuilder.request_space("another model", other)
        assert bench.rebuilder.changes_space
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert await bench.index.fingerprint() == other
        assert not bench.rebuilder.changes_space


async def test_after_an_attempt_that_failed_there_is_a_pause_unless_somebody_hurries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads and cuts every file; the pauses grow."""
    pauses: list[int] = []

    def pause_s(failures: int, *_: object, **__: object) -> float:
        pauses.append(failures)
        return 3600.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    async with running(tmp_path) as bench:
        bench.failures = 2
        bench.rebuilder.request("a person wishes it", force=False)
        for failures in (1, 2):
            await until_async(lambda failures=failures: len(pauses) == failures)  # type: ignore[misc]
            assert bench.failures == 2 - failures
            bench.rebuilder.retry_now()
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert pauses == [1, 2]


async def test_what_is_wanted_no_more_and_later_again_begins_with_a_short_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed before was another wish."""
    pauses: list[int] = []

    def pause_s(failures: int, *_: object, **__: object) -> float:
        pauses.append(failures)
        return 3600.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    async with running(tmp_path) as bench:
        bench.failures = 2
        for wishes in (1, 2):
            bench.rebuilder.request_space("another model", Fingerprint("c1", "t1", ("memory",)))
            await until_async(lambda wishes=wishes: len(pauses) == wishes)  # type: ignore[misc]
            assert bench.rebuilder.failure == "something is in the way"
            bench.rebuilder.keep_current_space(FINGERPRINT)
            await asyncio.sleep(0.01)
            assert bench.rebuilder.failure is None
        assert pauses == [1, 1]


async def test_after_an_index_that_was_built_the_next_failure_is_a_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of what failed before."""
    pauses: list[int] = []

    def pause_s(failures: int, *_: object, **__: object) -> float:
        pauses.append(failures)
        return 3600.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    async with running(tmp_path) as bench:
        for wishes in (1, 2):
            bench.failures = 1
            bench.rebuilder.request("a person wishes it", force=False)
            await until_async(lambda wishes=wishes: len(pauses) == wishes)  # type: ignore[misc]
            for _ in range(20):
                await asyncio.to_thread(int)
            assert bench.rebuilder.failure == "something is in the way"
            bench.rebuilder.retry_now()
            await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert pauses == [1, 1]


async def test_what_fails_when_it_is_wanted_no_more_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is waited for, and nothing told."""
    pauses: list[object] = []

    def pause_s(*_: object, **__: object) -> float:
        pauses.append(None)
        return 3600.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    async with running(tmp_path) as bench:
        tried = asyncio.Event()

        async def fails(_: Index) -> None:
            bench.rebuilder.keep_current_space(FINGERPRINT)
            tried.set()
            raise StoreUnavailable("something is in the way")

        bench.fill = fails  # type: ignore[method-assign,assignment]
        bench.rebuilder.request_space("another model", Fingerprint("c1", "t1", ("memory",)))
        await tried.wait()
        for _ in range(20):
            await asyncio.to_thread(int)
        assert (pauses, bench.rebuilder.failure) == ([], None)


async def test_what_is_wanted_no_more_before_it_was_begun_is_not_built(tmp_path: Path) -> None:
    """Who looks whether there is a reason finds none, and waits for the next."""
    async with running(tmp_path) as bench:
        filled = list[Index]()
        fill = bench.fill

        async def counting(index: Index) -> None:
            filled.append(index)
            await fill(index)

        bench.fill = counting  # type: ignore[method-assign]
        for _ in range(20):
            await asyncio.sleep(0)
        bench.rebuilder.request_space("another model", Fingerprint("c1", "t1", ("memory",)))
        bench.rebuilder.keep_current_space(FINGERPRINT)
        for _ in range(20):
            await asyncio.to_thread(int)
        assert (filled, bench.rebuilder.replaced.version) == ([], 0)
        await bench.rebuilt()
        assert len(filled) == 2


async def test_a_new_index_is_looked_after_as_one_that_was_just_written(tmp_path: Path) -> None:
    """All of it has changed: its keywords are put in order, and what its log held before is emptied."""
    async with running(tmp_path) as bench:
        triggers = bench.triggers
        assert not triggers.whole.is_set()
        assert not triggers.left_over.is_set()
        due = asyncio.create_task(triggers.enough())
        await asyncio.sleep(0)
        assert not due.done()
        await bench.rebuilt()
        assert triggers.whole.is_set()
        assert triggers.left_over.is_set()
        async with asyncio.timeout(60):
            await due


async def test_a_rebuild_ends_with_the_daemon(tmp_path: Path) -> None:
    """What is half built is closed and deleted."""
    async with running(tmp_path) as bench:
        begun, beside = asyncio.Event(), list[Index]()

        async def held(index: Index) -> None:
            beside.append(index)
            begun.set()
            await asyncio.Event().wait()

        bench.fill = held  # type: ignore[method-assign]
        bench.rebuilder.request("a person wishes it", force=False)
        await begun.wait()
        assert beside[0].file.exists()
    assert len(beside) == 1
    assert not beside[0].file.exists()


async def test_a_disk_that_does_not_say_how_much_is_free_is_tried_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is full."""

    def refused(_: object) -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr(timers, "delay_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(renewals, "shutil", SimpleNamespace(disk_usage=refused))
    async with running(tmp_path) as bench:
        bench.failures, bench.failing = 2, StoreFull
        bench.rebuilder.request("a person wishes it", force=False)
        await until_async(lambda: bench.rebuilder.failure)
        for _ in range(20):
            await asyncio.to_thread(int)
        assert bench.failures == 1
        monkeypatch.setattr(renewals, "CALM_S", 0.0)
        await until_async(lambda: bench.rebuilder.reason is None, 20)


async def test_what_is_built_for_another_model_is_given_up_when_a_third_one_is_wanted(tmp_path: Path) -> None:
    """To want the same once more gives nothing up."""
    second, third = Fingerprint("c1", "t1", ("memory",)), Fingerprint("c2", "t1", ("memory",))
    async with running(tmp_path) as bench:
        begun: list[Fingerprint] = []
        go_on = asyncio.Event()
        fill = bench.fill

        async def held(index: Index) -> None:
            begun.append(bench.rebuilder.target)
            await go_on.wait()
            await fill(index)

        bench.fill = held  # type: ignore[method-assign]
        bench.rebuilder.request_space("the second", second)
        await until_async(lambda: begun)
        for _ in range(2):
            bench.rebuilder.request_space("again", second)
            for _ in range(20):
                await asyncio.to_thread(int)
        assert (begun, bench.rebuilder.reason) == ([second], "the second")
        bench.rebuilder.request_space("the third", third)
        await until_async(lambda: len(begun) == 2)
        assert (begun[1], bench.rebuilder.reason) == (third, "the third")
        go_on.set()
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert await bench.index.fingerprint() == third
        assert bench.rebuilder.replaced.version == 1


async def test_what_is_given_up_takes_no_place(tmp_path: Path) -> None:
    """The index that serves stays, and nobody is told of another."""
    async with running(tmp_path) as bench:
        bench.meanwhile = lambda: bench.rebuilder.keep_current_space(FINGERPRINT)
        bench.rebuilder.request_space("another model", Fingerprint("c1", "t1", ("memory",)))
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        await asyncio.sleep(0.01)
        assert bench.rebuilder.replaced.version == 0
        assert bench.reasons == []
        assert await bench.index.fingerprint() == FINGERPRINT


async def test_what_failed_is_closed_and_only_what_nobody_foresaw_is_logged_with_its_place(
    tmp_path: Path,
) -> None:
    """What a disk refuses is told by the pause that follows."""
    attempts: list[Index] = []
    async with running(tmp_path) as bench:

        async def fail(index: Index) -> None:
            attempts.append(index)
            if len(attempts) < 3:
                raise (ValueError("a defect"), StoreUnavailable("no disk"))[len(attempts) - 1]

        bench.fill = fail  # type: ignore[method-assign]
        with capture_logs() as logs:
            await bench.rebuilt()
        assert [type(one["exc_info"]) for one in logs if one["event"] == "rebuild.failed"] == [ValueError]
        for failed in attempts[:2]:
            with pytest.raises(StoreClosed):
                await failed.counts()


@pytest.mark.parametrize("free", [0, 1 << 40])
async def test_only_a_full_disk_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    """What failed for another reason, or where there is room enough by now, is tried again after one pause."""
    monkeypatch.setattr(timers, "delay_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(Rebuilder, "_free_bytes", lambda _: free)
    async with running(tmp_path) as bench:
        bench.failures = 3
        bench.failing = StoreFull if free else StoreUnavailable
        assert await bench.rebuilt() == []


async def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pauses that takes: each attempt would fill it again."""
    free, pauses = 0, list[int]()

    def pause_s(failures: int, *_: object, **__: object) -> float:
        pauses.append(failures)
        return 0.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    monkeypatch.setattr(Rebuilder, "_free_bytes", lambda _: free)
    async with running(tmp_path) as bench:
        bench.failures, bench.failing = 2, StoreFull
        bench.rebuilder.request("a person wishes it", force=False)
        await until_async(lambda: len(pauses) > 9)
        assert bench.failures == 1
        free = 1 << 40
        await until_async(lambda: bench.rebuilder.reason is None, 20)


async def test_a_disk_that_tells_no_room_is_tried_after_a_while_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota is none of the disk's."""
    monkeypatch.setattr(timers, "delay_s", lambda *_, **__: 0.0)
    monkeypatch.setattr(Rebuilder, "_free_bytes", lambda _: 0)
    monkeypatch.setattr(renewals, "CALM_S", 0.0)
    async with running(tmp_path) as bench:
        bench.failures, bench.failing = 2, StoreFull
        bench.rebuilder.request("a person wishes it", force=False)
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert bench.failures == 0


async def test_no_chunk_of_a_new_index_has_the_id_of_another_one(tmp_path: Path) -> None:
    """However often it is built anew: a search that began before would take one for the other. They begin at the microsecond."""

    async def ids(index: Index) -> set[int]:
        return await index.database.read(lambda db: {one for (one,) in db.execute("SELECT id FROM chunks")})

    async with running(tmp_path) as bench:
        seen: set[int] = set()
        began_us = 0
        for _ in range(3):
            found = await ids(bench.index)
            assert len(found) == len(CHUNKS)
            assert min(found) > max(seen, default=0)
            if seen:
                assert 0 <= min(found) - began_us < 3600_000_000
            seen |= found
            began_us = time.time_ns() // 1000
            await bench.rebuilt()


@pytest.mark.parametrize("missing", [0, 1])
async def test_room_for_three_of_an_index_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """Then a full disk is not waited for: what took the room has given it back."""
    pauses: list[int] = []

    def pause_s(failures: int, *_: object, **__: object) -> float:
        pauses.append(failures)
        return 0.0 if len(pauses) < 5 else 3600.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    async with running(tmp_path) as bench:
        free = ROOM * bench.index.store_bytes - missing
        monkeypatch.setattr(Rebuilder, "_free_bytes", lambda _: free)
        bench.failures, bench.failing = 1, StoreFull
        bench.rebuilder.request("a person wishes it", force=False)
        await until_async(lambda: len(pauses) == (5 if missing else 1))
        if missing:
            bench.rebuilder.retry_now()
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert len(pauses) == (5 if missing else 1)


async def test_what_ends_the_daemon_is_not_tried_again(tmp_path: Path) -> None:
    """No pause mends a fatal error."""
    bench = Bench(tmp_path)

    def fail() -> None:
        raise FatalError("no index can be kept", exit_code=1)

    bench.meanwhile = fail
    await bench.cache.open()
    await bench.index.open()
    await bench.index.adopt(FINGERPRINT)
    bench.rebuilder.request("a person wishes it", force=False)
    with pytest.raises(FatalError):
        await asyncio.wait_for(bench.rebuilder.run(), 20)
    await bench.index.close()
    await bench.cache.close()


# --- whatever happens, in whatever order

TARGETS = [msgspec.structs.replace(FINGERPRINT, model=f"m{n}", key=f"k{n}") for n in range(2)]
BUILDING_S, SWAPPING_S = 10.0, 1.0
# While it is built, when the attempt fails or begins to swap, while that goes on or the next one is waited for, and later.
PAUSES = [0.0, BUILDING_S / 2, BUILDING_S, BUILDING_S + 0.3, BUILDING_S + SWAPPING_S + 0.3, 60.0]


class Course:
    """A renewal whose attempts end as is said, on a loop where no wait takes any time."""

    def __init__(self, outcomes: Sequence[str]) -> None:
        self.outcomes = list(outcomes)  # of the next attempts; then all succeed
        self.under_way = 0
        self.begun = 0
        self.built: list[tuple[int, Fingerprint]] = []  # the number of the attempt, and what it was for
        self.cache = None
        self.index = Index(Path("/nowhere/main.sqlite"))
        self.rebuilder = rebuilder_of(self.index, TARGETS[0], self)

    def index_replaced(self) -> None:
        pass

    def leave_out_published(self) -> None:
        pass

    def permitted(self, *_: object) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def embed(self, _: Index) -> None:
        raise AssertionError("nothing is built here")

    async def rebuild(
        self, _: Index, target: Fingerprint, *__: Any, swap: Callable[[], object], **___: Any
    ) -> None:
        """In the place of rebuild.rebuild."""
        self.begun += 1
        number = self.begun
        self.under_way += 1
        assert self.under_way == 1
        try:
            await asyncio.sleep(BUILDING_S)
            outcome = self.outcomes.pop(0) if self.outcomes else "well"
            if outcome == "fails":
                raise StoreUnavailable("the disk is busy")
            if outcome == "full":
                raise StoreFull("the disk is full")
            if outcome == "defect":
                raise ValueError("nobody foresaw this")
            swap()
            await asyncio.sleep(SWAPPING_S)
            if outcome == "fails swapping":
                raise StoreUnavailable("the disk is busy")
            self.built.append((number, target))
        finally:
            self.under_way -= 1

    def act(self, action: str, target: Fingerprint) -> None:
        match action:
            case "want":
                self.rebuilder.request("a person wishes it", force=False)
            case "want space":
                self.rebuilder.request_space(f"the model is {target.model} now", target)
            case "keep space":
                self.rebuilder.keep_current_space(target)
            case "damaged":
                self.index.damage.report("a page is not what it was")
            case "keyword":
                self.index.damage.report_keyword("malformed")
            case "begin again":
                self.rebuilder.cancel_attempt()
            case _:
                self.rebuilder.retry_now()

    async def run(self, steps: Sequence[tuple[str, int, float]]) -> None:
        """Go through steps: what happens, for which model, and how long nothing happens afterwards."""
        running = asyncio.create_task(self.rebuilder.run())
        owed = 0  # the first attempt that may be what was wished last
        for action, which, pause_s in steps:
            self.act(action, TARGETS[which])
            if action in {"want", "damaged", "keyword"}:
                # Damage is mended by whatever attempt comes to its end after it was told.
                owed = self.begun + 1 if action == "want" else max(owed, 1)
            for _ in range(10):
                await asyncio.sleep(0)
            self.check()
            await asyncio.sleep(pause_s)
        begun, is_wanted = self.begun, self.rebuilder.reason is not None
        target = self.rebuilder.target if self.rebuilder.changes_space else None
        await asyncio.sleep(20 * renewals.CALM_S)
        self.check()
        assert not running.done()
        assert self.rebuilder.reason is None, "what is wanted is built"
        assert self.index.damage.keyword is None
        assert not self.rebuilder.changes_space
        assert target is None or self.built[-1][1] == target
        if not is_wanted:
            assert self.begun == begun, "nobody wants it"
        assert not owed or self.built[-1][0] >= owed
        running.cancel()
        await asyncio.wait([running])

    def check(self) -> None:
        """What is told of a rebuild is so."""
        if self.rebuilder.reason is None:
            assert self.rebuilder.failure is None
            assert not self.under_way


ACTIONS = ["want", "want space", "keep space", "damaged", "keyword", "begin again", "hurry"]


@settings(max_examples=4 * settings().max_examples)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1), st.sampled_from(PAUSES)),
        min_size=2,
        max_size=7,
    ),
    outcomes=st.lists(st.sampled_from(["well", "fails", "full", "defect", "fails swapping"]), max_size=4),
)
@example(steps=[("want", 0, BUILDING_S / 2), ("keep space", 1, 0.0)], outcomes=[])
@example(steps=[("want space", 1, BUILDING_S + 0.3), ("keep space", 0, 60.0)], outcomes=["fails"] * 3)
@example(steps=[("want space", 1, BUILDING_S + 1.3), ("keep space", 0, 60.0)], outcomes=["fails swapping"])
@example(steps=[("want space", 1, 1.0), ("damaged", 0, 1.0), ("keep space", 0, 0.0)], outcomes=[])
@example(
    steps=[("want space", 1, BUILDING_S + 1.3), ("hurry", 0, BUILDING_S + 0.3), ("keep space", 0, 0.0)],
    outcomes=["fails", "fails swapping"],
)
@example(steps=[("want", 0, 60.0)], outcomes=["defect"])
def test_what_is_wanted_is_built_and_nothing_else(
    steps: Sequence[tuple[str, int, float]], outcomes: Sequence[str]
) -> None:
    """With a reason there is an attempt, or one comes; without one there is no attempt, and no trouble."""

    async def at_once() -> None:
        """Give no memory back."""

    course = Course(outcomes)
    with pytest.MonkeyPatch.context() as patch, capture_logs():  # to print tracebacks takes a minute
        patch.setattr(renewals, "rebuild", course.rebuild)
        patch.setattr(renewals, "discard", lambda _: None)
        patch.setattr(renewals, "give_back_beside", at_once)
        patch.setattr(Rebuilder, "_free_bytes", lambda _: 0)
        hastily(course.run(steps))


def test_who_hurried_before_an_attempt_failed_has_hurried_nothing() -> None:
    """The pause after it is as long as any."""

    async def begun(course: Course) -> tuple[int, int]:
        running = asyncio.create_task(course.rebuilder.run())
        course.act("hurry", TARGETS[0])
        course.act("want", TARGETS[0])
        await asyncio.sleep(BUILDING_S + 0.3)
        before = course.begun
        course.act("hurry", TARGETS[0])
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.wait([running])
        return before, course.begun

    course = Course(["fails"])
    with pytest.MonkeyPatch.context() as patch, capture_logs():
        patch.setattr(renewals, "rebuild", course.rebuild)
        patch.setattr(renewals, "discard", lambda _: None)
        assert hastily(begun(course)) == (1, 2)


def test_damage_that_comes_back_is_given_longer_and_longer() -> None:
    """A second time soon after it is mended at once, too, then after pauses: it is the disk that fails."""
    built = asyncio.Event()

    async def at_once() -> None:
        """Give no memory back: the new index is in place."""
        built.set()

    async def waited_s(course: Course) -> list[float]:
        running = asyncio.create_task(course.rebuilder.run())
        waits = []
        # For so long each index stays whole.
        for whole_s in (1, 1, renewals.CALM_S - 60, 1, 1, renewals.CALM_S + 60, 1):
            await asyncio.sleep(whole_s)
            began = now_s()
            built.clear()
            course.act("damaged", TARGETS[0])
            await built.wait()
            waits.append(now_s() - began - BUILDING_S - SWAPPING_S)
        running.cancel()
        await asyncio.wait([running])
        return waits

    course = Course([])
    with pytest.MonkeyPatch.context() as patch, capture_logs():
        patch.setattr(renewals, "time", SimpleNamespace(monotonic=now_s))
        patch.setattr(renewals, "rebuild", course.rebuild)
        patch.setattr(renewals, "discard", lambda _: None)
        patch.setattr(renewals, "give_back_beside", at_once)
        waits = hastily(waited_s(course))
    assert waits[:2] == pytest.approx([0, 0], abs=0.1)
    assert 0.9 < waits[2] < 2.1
    assert 3.9 < waits[4] < 8.1
    assert waits[5:] == pytest.approx([0, 0], abs=0.1)


async def test_what_was_begun_for_another_reason_is_begun_again(tmp_path: Path) -> None:
    """The provider turns out to give other vectors while the index is cut anew: it is cut for those."""
    async with running(tmp_path) as bench:
        fill, begun = bench.fill, asyncio.Event()

        async def held(_: Index) -> None:
            bench.fill = fill  # type: ignore[method-assign]
            begun.set()
            await asyncio.Event().wait()

        bench.fill = held  # type: ignore[method-assign,assignment]
        bench.rebuilder.request("the chunking changed", force=False)
        await begun.wait()
        wanted = msgspec.structs.replace(FINGERPRINT, parts=not FINGERPRINT.parts)
        bench.rebuilder.keep_current_space(wanted)
        await until_async(lambda: bench.rebuilder.reason is None, 20)
        assert await bench.index.fingerprint() == wanted
