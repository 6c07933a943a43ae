"""Whether what the system told has been passed on."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest

from memd.watch.event_barrier import EventBarrier, UnwatchedNames
from memd.watch.events import EventBatch, Feed
from tests.bounds import shipped
from tests.wait import until_async

NEW = frozenset({Path("/w/new")})
NOTHING: frozenset[Path] = frozenset()
LONG_S = 20.0


class Counter:
    """A position whose counts a test sets."""

    def __init__(self) -> None:
        self.given = 0
        self.known = 0
        self.hurries = 0

    def queued(self) -> int:
        return self.known

    def hurry(self) -> None:
        self.hurries += 1


def watching() -> tuple[EventBarrier, Counter]:
    barrier, position = EventBarrier(), Counter()
    barrier.suspend()
    barrier.begin(position)
    return barrier, position


async def test_before_anything_is_watched() -> None:
    """Where nobody watches, nothing can be told, and nobody waits to learn that."""
    assert await EventBarrier().drained(LONG_S) is None


async def test_nothing_waits() -> None:
    """Where all is passed on that was told, the answer is there at once, and nobody is hurried."""
    barrier, position = watching()
    assert await barrier.drained(0) == NOTHING
    assert position.hurries == 0


async def test_it_waits_for_what_was_told_before_and_not_for_more() -> None:
    """What is read is not passed on yet; what the system tells after the question is not waited for."""
    barrier, position = watching()
    position.known = 100
    asked = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries)
    position.known = 1_000_000
    position.given = 60
    barrier.advance(NOTHING)
    await until_async(lambda: position.hurries == 2)
    position.given = 130
    assert not asked.done()
    barrier.advance(NEW)
    assert await asked == NEW


async def test_those_that_ask_later_wait_for_more() -> None:
    """Each that asks has its own goal."""
    barrier, position = watching()
    position.known = 10
    first = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries)
    position.known = 20
    second = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries == 2)
    position.given = 10
    barrier.advance(NOTHING)
    assert await first == NOTHING
    assert not second.done()
    position.given = 20
    barrier.advance(NOTHING)
    assert await second == NOTHING


async def test_too_late() -> None:
    """A watcher that does not move is waited for once, and not by each that asks; when it moves, it is trusted again."""
    now = [0.0]
    barrier, position = EventBarrier(lambda: now[0]), Counter()
    barrier.begin(position)
    position.known = 10
    with pytest.raises(TimeoutError):
        await barrier.drained(0.01)
    now[0] = LONG_S + 1
    async with asyncio.timeout(LONG_S / 2):
        for _ in range(100):
            with pytest.raises(TimeoutError):
                await barrier.drained(LONG_S)
    position.given = 5
    barrier.advance(NOTHING)
    asked = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries == 2)
    position.given = 10
    barrier.advance(NOTHING)
    assert await asked == NOTHING


async def test_who_has_as_much_patience_as_was_waited_in_vain_waits_himself() -> None:
    """Only a longer wait of another tells that this one would be in vain."""
    now = [0.0]
    barrier, position = EventBarrier(lambda: now[0]), Counter()
    barrier.begin(position)
    position.known = 10
    with pytest.raises(TimeoutError):
        await barrier.drained(0.01)
    now[0] = LONG_S
    asked = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries == 2 or asked.done())
    position.given = 10
    barrier.advance(NOTHING)
    assert await asked == NOTHING


async def test_watches_that_are_set_anew_are_waited_for() -> None:
    """Whoever asks before or meanwhile waits until they are set: what came in between was announced along with everything."""
    barrier, position = watching()
    position.known = 10
    before = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries)
    barrier.suspend()
    meanwhile = asyncio.create_task(barrier.drained(LONG_S))
    await asyncio.sleep(0)
    assert not before.done()
    other = Counter()
    other.known = 7
    barrier.begin(other)
    assert await before == NOTHING
    # What was written after the announcement and before it began is told by the new watches alone.
    await until_async(lambda: other.hurries)
    assert not meanwhile.done()
    other.given = 7
    barrier.advance(NEW)
    assert await meanwhile == NEW
    assert await barrier.drained(0) == NEW


async def test_the_end_of_watching() -> None:
    """When watching ends, those that wait are told that nothing can be told."""
    barrier, position = watching()
    position.known = 10
    asked = asyncio.create_task(barrier.drained(LONG_S))
    await until_async(lambda: position.hurries)
    barrier.suspend()
    barrier.end()
    assert await asked is None
    barrier.advance(NEW)
    assert await barrier.drained(LONG_S) is None


async def test_places_of_which_nothing_is_told() -> None:
    """Where the watches are broken all places are to be looked at; those that have none are, as long as it is so."""
    barrier, position = watching()
    barrier.begin(position, absent=NEW)
    assert (await barrier.drained(0), barrier.absent, barrier.unseen) == (NOTHING, NEW, NOTHING)
    barrier.end(NEW)
    assert (await barrier.drained(LONG_S), barrier.absent, barrier.unseen) == (NOTHING, NOTHING, NEW)
    barrier.begin(position)
    assert (await barrier.drained(0), barrier.absent, barrier.unseen) == (NOTHING, NOTHING, NOTHING)


async def test_files_with_several_names() -> None:
    """Until one is watched by itself, it is to be looked at; another file in its place is another one."""
    barrier, position = watching()
    note = Path("/w/a.md")
    barrier.set_linked(frozenset({(note, 1)}))
    assert position.hurries == 1
    assert await barrier.drained(0) == frozenset({note})
    barrier.note_watched(barrier.to_watch)
    barrier.set_linked(frozenset({(note, 1)}))
    assert (position.hurries, await barrier.drained(0)) == (1, NOTHING)
    barrier.set_linked(frozenset({(note, 2)}))
    assert await barrier.drained(0) == frozenset({note})
    hurries = position.hurries
    barrier.begin(position)
    assert (position.hurries, barrier.to_watch) == (hurries + 1, frozenset({(note, 2)}))
    barrier.set_linked(frozenset())
    assert await barrier.drained(0) == NOTHING


@pytest.mark.parametrize(
    ("now", "otherwise"),
    [({"/a"}, set()), ({"/a", "/b"}, {"/b"}), (set(), {"/a"}), ({"/b"}, {"/a", "/b"})],
)
def test_mount_points_that_are_not_as_they_were_found(now: set[str], otherwise: set[str]) -> None:
    """A disk that went may hide what was seen, and one that came back uncovers what is kept."""
    barrier = EventBarrier()
    barrier.set_mounts(frozenset({Path("/a")}), frozenset({Path("/b")}))
    found = barrier.changed_mounts(lambda places: frozenset(place for place in places if str(place) in now))
    assert found == set(map(Path, otherwise))


MOST_LINKED = shipped("memd.watch.event_barrier._MOST_LINKED")


async def test_a_tree_of_hard_links_uses_up_no_watches() -> None:
    """So many are watched, and the others are found as far as looking goes."""
    barrier, _ = watching()
    barrier.set_linked(frozenset((Path(f"/w/{number}.md"), number) for number in range(MOST_LINKED + 1)))
    assert len(barrier.to_watch) == MOST_LINKED


class Followed:
    """A feed that watches whatever it is to."""

    def __init__(self) -> None:
        self.watched: list[frozenset[Path]] = []

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:
        self.watched.append(frozenset(files))
        return self.watched[-1]


async def test_files_that_may_be_written_under_another_name_are_watched_once() -> None:
    """New ones that concern memory, and those that a scan found; only these may have changed since they were read."""
    barrier, _ = watching()
    feed = Followed()
    names, came, linked = UnwatchedNames(barrier), Path("/w/came.md"), Path("/w/linked.md")
    batch = EventBatch(begun=frozenset({str(came), "/w/came.txt"}))
    assert await names.watch_new(cast("Feed", feed), batch, {came}) == NOTHING
    assert feed.watched == [{came}]
    barrier.set_linked(frozenset({(linked, 1)}))
    assert await names.watch_new(cast("Feed", feed), EventBatch(), {came}) == {linked}
    assert await names.watch_new(cast("Feed", feed), EventBatch(), {came}) == NOTHING
    assert feed.watched == [{came}, {linked}]
    assert barrier.roots == {}


@pytest.mark.parametrize("beyond", [0, 1])
async def test_of_files_that_came_the_last_ones_are_watched_again(beyond: int) -> None:
    """So many: a program that writes on under a name that is gone does so soon."""
    most = shipped("memd.watch.event_barrier._MOST_BEGUN")
    first, later = "/w/first.md", frozenset(f"/w/{number}.md" for number in range(most - 1 + beyond))
    names, feed = UnwatchedNames(EventBarrier()), cast("Feed", Followed())
    for came in (frozenset({first}), later):
        assert not await names.watch_new(feed, EventBatch(begun=came), frozenset(map(Path, came)))
    expected = later if beyond else later | {first}
    assert await names.watch_again(feed) == frozenset(map(Path, expected))
