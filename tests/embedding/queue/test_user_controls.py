"""Pauses and confirmations of the user."""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from itertools import product
from typing import cast

import pytest

from memd.embedding.queue.user_controls import UserSwitches
from memd.store.errors import StoreUnavailable
from memd.store.provider_records import ProviderStore


class How(Enum):
    """What becomes of a write."""

    WRITTEN = auto()
    REFUSED = auto()
    WRITTEN_AND_FAILED = auto()
    WRITTEN_AND_CANCELLED = auto()
    CANCELLED = auto()


class Disk:
    """Small documents."""

    def __init__(self, **kept: bytes) -> None:
        self.kept = kept
        self.how = How.WRITTEN
        self.writes = 0

    async def document(self, name: str) -> bytes | None:
        return self.kept.get(name)

    async def put_document(self, name: str, content: bytes) -> None:
        self.writes += 1
        if self.how not in {How.REFUSED, How.CANCELLED}:
            self.kept[name] = content
        if self.how in {How.CANCELLED, How.WRITTEN_AND_CANCELLED}:
            raise asyncio.CancelledError
        if self.how is not How.WRITTEN:
            raise StoreUnavailable("the disk is full")


def switches_on(disk: Disk) -> UserSwitches:
    """All of whose documents are on one disk."""
    kept = cast("ProviderStore", disk)
    return UserSwitches(kept, kept)


async def confirmed(disk: Disk) -> bool:
    """What a daemon that starts reads."""
    return (await switches_on(disk).read("main")).confirmed


@pytest.mark.parametrize("before", [False, True])
async def test_a_confirmation_is_kept_or_its_failure_is_told(*, before: bool) -> None:
    """However often it was tried before, and whatever became of that: no call comes to a good end without it being so."""
    each: Sequence[tuple[bool, How]] = list(product([False, True], How))
    for steps in product(each, repeat=3):
        disk = Disk(**{"confirmed:main": b"true"} if before else {})
        switches = switches_on(disk)
        await switches.read("main")
        for wished, how in steps:
            disk.how = how
            try:
                await switches.confirm("main", confirmed=wished)
            except (StoreUnavailable, asyncio.CancelledError):
                assert switches.is_unkept("main")
            else:
                assert not switches.is_unkept("main")
                assert await confirmed(disk) == wished
            assert switches.of("main").confirmed == wished
            switches.forget("main")  # an agent that is started again
            assert (await switches.read("main")).confirmed == wished


async def test_what_is_written_is_not_written_again() -> None:
    """Nor where nobody ever confirmed anything."""
    disk = Disk()
    switches = switches_on(disk)
    await switches.read("main")
    for wished in (False, False, True, True, False, False):
        await switches.confirm("main", confirmed=wished)
    assert disk.writes == 2


async def test_of_two_at_once_the_later_one_holds() -> None:
    """The work is done just when a person confirms more of it."""
    may, disk = asyncio.Event(), Disk()

    class Slow(Disk):
        async def put_document(self, name: str, content: bytes) -> None:
            await may.wait()
            await disk.put_document(name, content)

    switches = switches_on(Slow())
    writes = [asyncio.create_task(switches.confirm("main", confirmed=one)) for one in (True, False, True)]
    await asyncio.sleep(0)
    may.set()
    await asyncio.gather(*writes)
    assert switches.of("main").confirmed
    assert await confirmed(disk)
