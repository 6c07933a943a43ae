"""What the cache of vectors holds while its file cannot be written."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from memd.model import TextHash
from memd.store.embeddings import UNSAVED, EmbeddingStore
from memd.store.trouble import StoreUnavailable

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
    assert await store.get(SPACE, [A, B], 3.0) == expected
    await store.put(SPACE, {TextHash(b"d" * 32): b"third"}, 3.0)  # by which all is written
    again = EmbeddingStore(store.file)
    await again.open()
    assert await again.get(SPACE, [A, B], 4.0) == expected
    assert await again.refused(SPACE, [A, B, C]) == {C}
    await again.close()


async def test_of_vectors_that_cannot_be_saved_the_newest_are_held(store: Failing) -> None:
    """So many, however long the disk is full."""
    hashes = [TextHash(number.to_bytes(32, "big")) for number in range(UNSAVED + 1)]
    store.is_locked = True
    await store.put(SPACE, dict.fromkeys(hashes[:-1], b"v"), 1.0)
    assert await store.held(SPACE, hashes) == frozenset(hashes[:-1])
    await store.put(SPACE, {hashes[-1]: b"v"}, 2.0)
    assert await store.held(SPACE, hashes) == frozenset(hashes[1:])
