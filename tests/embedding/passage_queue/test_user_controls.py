"""Pauses and confirmations of the user."""

import asyncio
from collections.abc import Collection, Sequence
from enum import Enum, auto
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memd.domain_types import TextHash
from memd.embedding.passage_queue.agent_backlog import AgentBacklog
from memd.embedding.passage_queue.user_controls import CostConfirmations, UserSwitches
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.embedding_cache import KnownVectors
from memd.store.errors import StoreUnavailable
from memd.store.provider_records import ProviderStore
from memd_client.token_estimate import estimate_tokens
from tests.bounds import shipped


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
                assert switches.is_unsaved("main")
            else:
                assert not switches.is_unsaved("main")
                assert await confirmed(disk) == wished
            assert switches.of("main").confirmed == wished
            switches.forget("main")  # an agent that is started again
            assert (await switches.read("main")).confirmed == wished


@pytest.mark.parametrize(
    ("kept", "expected"), [(b"true", True), (b"false", False), (b"", False), (b"tr", False), (b"1", False)]
)
async def test_what_cannot_be_understood_is_no_confirmation(kept: bytes, expected: bool) -> None:
    """A power cut may leave half a document."""
    assert await confirmed(Disk(**{"confirmed:main": kept})) is expected


async def test_what_is_written_is_not_written_again() -> None:
    """Nor where nobody ever confirmed anything."""
    disk = Disk()
    switches = switches_on(disk)
    await switches.read("main")
    for wished in (False, False, True, True, False, False):
        await switches.confirm("main", confirmed=wished)
    assert disk.writes == 2


@pytest.mark.parametrize("now", [False, True])
async def test_what_was_forgotten_is_read_again(now: bool) -> None:
    """The agent may have been served by another queue meanwhile, where a person confirmed, or all was used up."""
    disk = Disk()
    switches = switches_on(disk)
    for one, wished in ((switches, not now), (switches_on(disk), now)):
        await one.confirm("main", confirmed=wished)
        await one.pause("main", paused=wished)
    switches.forget("main")
    found = await switches.read("main")
    assert (found.paused, found.confirmed) == (now, now)


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


class Waiting:
    """The texts of an agent that wait, of which some are cached."""

    def __init__(self, texts: int, *, cached: int = 0) -> None:
        self.hashes = [TextHash(bytes([number]) * 32) for number in range(texts)]
        self.cached = self.hashes[:cached]
        self.sampled = 0
        self.source = SimpleNamespace(index=self, use_cache=True)

    async def waiting_hashes(self) -> list[TextHash]:
        return self.hashes

    async def waiting(self, limit: int, _: object) -> list[Any]:
        self.sampled += 1
        return [SimpleNamespace(text="word " * 10)] * min(limit, len(self.hashes))

    async def held(self, hashes: list[TextHash]) -> set[TextHash]:
        return set(hashes) & set(self.cached[::2])

    async def refused(self, hashes: list[TextHash]) -> set[TextHash]:
        return set(hashes) & set(self.cached[1::2])

    def backlog(self, *, sent: int = 0, out: Collection[TextHash] = ()) -> AgentBacklog:
        made = SimpleNamespace(
            agent="main", sent=sent, unconfirmed=None, held=set(), out=set(out), source=self.source
        )
        return cast("AgentBacklog", made)


@pytest.mark.parametrize(
    ("texts", "cached", "sent", "out", "expected"),
    [
        (10, 0, 0, 0, None),
        (11, 0, 0, 0, (11, 0)),
        (14, 4, 0, 0, None),  # what is cached, or refused, is not sent
        (15, 4, 0, 0, (11, 0)),
        (8, 0, 2, 0, None),
        (8, 0, 3, 0, (8, 3)),  # with what went out just before it is more than a person wants
        (1, 0, 10, 0, (1, 10)),
        (12, 0, 3, 1, (11, 0)),  # it is so without that
        (12, 0, 0, 2, None),
    ],
)
async def test_a_person_is_asked_before_many_texts_are_sent(
    texts: int, cached: int, sent: int, out: int, expected: tuple[int, int] | None
) -> None:
    """Each is counted once; the same question is not put together again."""
    waiting = Waiting(texts, cached=cached)
    controls = CostConfirmations(10, switches_on(Disk()), cast("KnownVectors", waiting), ChangeNotifier())
    backlog = waiting.backlog(sent=sent, out=waiting.hashes[-out:] if out else ())
    asked = await controls.wanted(backlog, texts - out)
    assert (None if asked is None else (asked.chunks, asked.sent)) == expected
    if asked is None:
        return
    assert asked.tokens == asked.chunks * estimate_tokens("word " * 10)
    backlog.unconfirmed = asked
    assert await controls.wanted(backlog, texts - out) is asked
    assert waiting.sampled == 1
    waiting.hashes.append(TextHash(b"new" * 10 + b"it"))
    more = await controls.wanted(backlog, texts - out + 1)
    assert more is not None
    assert (more.chunks, waiting.sampled) == (asked.chunks + 1, 2)
    free = CostConfirmations(None, switches_on(Disk()), cast("KnownVectors", waiting), ChangeNotifier())
    assert await free.wanted(backlog, texts) is None


async def test_tokens_are_estimated_by_so_many_texts() -> None:
    """By their mean; no more are read, however many wait."""
    sample = shipped("memd.embedding.passage_queue.user_controls.SAMPLE")
    waiting = Waiting(0)
    waiting.hashes = [TextHash(number.to_bytes(32)) for number in range(3 * sample)]
    read: list[int] = []

    async def some(limit: int, _: object) -> list[Any]:
        texts = ["word " * 10] * (sample - 1) + ["word " * 10 * (sample + 1)] + [""] * 2 * sample
        read.append(len(texts[:limit]))
        return [SimpleNamespace(text=text) for text in texts[:limit]]

    waiting.source = SimpleNamespace(
        index=SimpleNamespace(waiting_hashes=waiting.waiting_hashes, waiting=some), use_cache=True
    )
    controls = CostConfirmations(10, switches_on(Disk()), cast("KnownVectors", waiting), ChangeNotifier())
    asked = await controls.wanted(waiting.backlog(), 3 * sample)
    assert asked is not None
    assert read == [sample]
    tokens = (sample - 1) * estimate_tokens("word " * 10) + estimate_tokens("word " * 10 * (sample + 1))
    assert asked.tokens == round(tokens / sample * asked.chunks)
