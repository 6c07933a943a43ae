"""What the cache of vectors holds while its file cannot be written."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from memd.domain_types import TextHash
from memd.runtime import timers
from memd.store.connections import Connections
from memd.store.embedding_cache import UNSAVED, CachedTexts, EmbeddingStore, KnownVectors
from memd.store.errors import StoreDamaged, StoreUnavailable
from tests.bounds import shipped
from tests.clock import Clock
from tests.wait import until_async

SPACE = ("hashing", "m", "1")
A, B, C = (TextHash(letter * 32) for letter in (b"a", b"b", b"c"))


class Failing(EmbeddingStore):
    """A store whose writes go as a test says."""

    is_locked = False
    after_write: Callable[[], Any] | None = None  # awaited once, before who wrote hears of it

    async def write(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_locked:
            raise StoreUnavailable("another program has it locked")
        result = await super().write(fn, *args, **kwargs)
        act, self.after_write = self.after_write, None
        if act is not None:
            await act()
        return result


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Failing]:
    opened = Failing(tmp_path / "embeddings.sqlite")
    await opened.open()
    yield opened
    await opened.close()


async def test_what_comes_during_a_save_that_it_is_no_part_of_is_kept(store: Failing) -> None:
    """It has been paid for: a save takes from memory what it has written, and nothing newer."""

    async def more_comes() -> None:
        store.is_locked = True
        await store.put(SPACE, {A: b"newer", B: b"second"}, 2.0)
        await store.refuse(SPACE, C, "it is too long", 2.0)
        store.is_locked = False

    store.after_write = more_comes
    await store.put(SPACE, {A: b"first"}, 1.0)
    expected = {A: b"newer", B: b"second"}
    assert (await store.look_up(SPACE, [A, B], 3.0)).vectors == expected
    await store.put(SPACE, {TextHash(b"d" * 32): b"third"}, 3.0)  # by which all is written
    again = EmbeddingStore(store.file)
    await again.open()
    assert (await again.look_up(SPACE, [A, B], 4.0)).vectors == expected
    assert await again.refused(SPACE, [A, B, C]) == {C}
    await again.close()


async def test_vectors_and_refusals_are_looked_up_at_once_whether_or_not_they_are_saved(
    store: Failing,
) -> None:
    """By one read of the file; one that is in neither is not known."""
    await store.put(SPACE, {A: b"saved"}, 1.0)
    await store.refuse(SPACE, B, "it is too long", 1.0)
    store.is_locked = True
    unsaved, refused, unknown = (TextHash(letter * 32) for letter in (b"d", b"e", b"f"))
    await store.put(SPACE, {unsaved: b"unsaved"}, 2.0)
    await store.refuse(SPACE, refused, "it is too long", 2.0)
    reads: list[object] = []
    read = store.read

    async def counted(fn: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(fn)
        return await read(fn, *args, **kwargs)

    store.read = counted  # type: ignore[method-assign]
    cached = await store.look_up(SPACE, [A, B, unsaved, refused, unknown], 3.0)
    assert cached == CachedTexts({A: b"saved", unsaved: b"unsaved"}, frozenset({B, refused}))
    assert len(reads) == 1


async def test_of_vectors_that_cannot_be_saved_the_newest_are_held(store: Failing) -> None:
    """So many, however long the disk is full."""
    hashes = [TextHash(number.to_bytes(32, "big")) for number in range(UNSAVED + 1)]
    store.is_locked = True
    await store.put(SPACE, dict.fromkeys(hashes[:-1], b"v"), 1.0)
    assert await store.held(SPACE, hashes) == frozenset(hashes[:-1])
    await store.put(SPACE, {hashes[-1]: b"v"}, 2.0)
    assert await store.held(SPACE, hashes) == frozenset(hashes[1:])


async def test_a_save_is_tried_again_after_pauses_that_grow(
    store: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it succeeds; the next trouble begins with a short one."""
    asked: list[int] = []

    def pause_s(failures: int, *_: object, **__: object) -> float:
        asked.append(failures)
        if len(asked) in {3, 5}:
            store.is_locked = False
        return 0.0

    monkeypatch.setattr(timers, "delay_s", pause_s)
    running = asyncio.create_task(store.run())
    for trouble in (1, 2):
        store.is_locked = True
        await store.put(SPACE, {A: b"%d" % trouble}, 1.0)
        await until_async(lambda: store.failure is None, 20)
    running.cancel()
    await asyncio.wait([running])
    assert asked == [1, 2, 3, 1, 2]


async def test_a_cache_that_is_damaged_is_replaced_by_a_check(store: Failing) -> None:
    """And whoever fills it hears of that."""
    before = store.renewed.version
    other = apsw.Connection(str(store.file))
    other.execute("DROP TABLE set_aside")
    other.close()
    with pytest.raises(StoreDamaged):
        await store.check()
    assert store.renewed.version == before + 1
    await store.check()


async def test_a_file_that_could_not_be_opened_is_tried_again_after_a_while(tmp_path: Path) -> None:
    """Not at each use, which would wait for its disk each time; what was to be kept is written then."""
    clock, directory = Clock(), tmp_path / "state"
    reopen_s = shipped("memd.store.embedding_cache.REOPEN_S")
    cache = EmbeddingStore(directory / "embeddings.sqlite", clock)
    await cache.open()
    directory.mkdir()
    for passed_s, is_open in ((reopen_s - 1, False), (1, True)):
        clock.run(passed_s)
        await cache.put(SPACE, {A: b"v"}, 1.0)
        assert (cache.failure is None) is is_open
    await cache.close()
    again = EmbeddingStore(cache.file)
    await again.open()
    assert (await again.look_up(SPACE, [A], 2.0)).vectors == {A: b"v"}
    await again.close()


async def test_what_one_space_knows_is_used_by_the_clock_of_who_asks(store: Failing) -> None:
    """What is looked up is younger than what is only asked for, and stays when others go; another space knows none of it."""
    times = iter(float(n) for n in range(1, 99))
    known = KnownVectors(store, SPACE, lambda: next(times))
    other = KnownVectors(store, ("hashing", "another", "1"), lambda: next(times))
    await known.put({A: b"a"})
    await known.put({B: b"b"})
    await known.refuse(C, "it is too long")
    assert await known.held([A, B, C]) == {A, B}
    assert await known.refused([A, B, C]) == {C}
    assert await known.look_up([A]) == CachedTexts({A: b"a"}, frozenset())
    assert (await other.held([A, B]), await other.refused([C])) == (frozenset(), frozenset())
    assert await known.prune(1) == 1
    assert await known.held([A, B]) == {A}
    await known.forget([A, C])
    assert await known.look_up([A, B, C]) == CachedTexts({}, frozenset())


async def test_a_clock_that_was_ahead_keeps_nothing_for_years(store: Failing) -> None:
    """What was used by it counts as used now, at the next time that some have to go."""
    await store.put(SPACE, {A: b"a"}, 9_999.0)
    await store.put(SPACE, {B: b"b"}, 5.0)
    assert await store.prune(1, 6.0) == 1
    assert await store.held(SPACE, [A, B]) == {A}
    await store.put(SPACE, {C: b"c"}, 10.0)
    assert await store.prune(1, 11.0) == 1
    assert await store.held(SPACE, [A, C]) == {C}


async def test_a_file_that_may_only_be_read_is_told_from_the_start(
    store: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors are found; what comes is kept until it can be written."""
    await store.put(SPACE, {A: b"first"}, 1.0)
    await store.close()
    connect = Connections.open

    def read_only(connections: Connections, uri: str, flags: int) -> apsw.Connection:
        if flags & apsw.SQLITE_OPEN_READWRITE:
            raise apsw.ReadOnlyError("no permission to write")
        return connect(connections, uri, flags)

    again = EmbeddingStore(store.file)
    with monkeypatch.context() as patched:
        patched.setattr(Connections, "open", read_only)
        await again.open()
        assert again.failure is not None
        assert "no permission to write" in again.failure
        await again.put(SPACE, {B: b"second"}, 2.0)
    assert (await again.look_up(SPACE, [A, B], 3.0)).vectors == {A: b"first", B: b"second"}
    await again.close()


async def test_copies_of_the_file_of_before_are_told_and_deleted(store: Failing) -> None:
    """Those that are named."""
    await store.close()
    for schema in (1, 2):
        shutil.copy(store.file, f"{store.file}.before-schema-{schema}")
    again = EmbeddingStore(store.file)
    await again.open()
    newer, older = again.copies
    await again.drop_copies([newer])
    assert again.copies == (older,)
    await again.close()
