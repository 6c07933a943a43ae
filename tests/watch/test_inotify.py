"""What the Linux kernel tells, as raw events."""

import asyncio
import ctypes
import errno
import gc
import os
import resource
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from memd.watch.events import Change, EventBatch, FeedBroken
from memd.watch.inotify import InotifyFeed, _libc, _pieces, batch_of, sets_watches_by_directory
from memd.watch.watch_plan import RootState, WatchPlan
from tests.bounds import shipped
from tests.descriptors import open_descriptors
from tests.wait import until_async

PATHS = {1: [Path("/ws")], 2: [Path("/ws/memory"), Path("/vault")]}
ISDIR = 0x40000000


def event(watch: int, mask: int, name: bytes = b"") -> bytes:
    """A struct inotify_event; the kernel pads names with NUL."""
    padded = name + b"\0" * (16 - len(name) % 16) if name else b""
    return struct.pack("iIII", watch, mask, 0, len(padded)) + padded


@pytest.mark.parametrize(
    ("mask", "change"),
    [
        (0x2, Change.modified),
        (0x4, Change.modified),
        (0x4 | ISDIR, Change.modified),
        (0x8, Change.modified),
        (0x40, Change.deleted),
        (0x80, Change.added),
        (0x100 | ISDIR, Change.added),
        (0x200, Change.deleted),
    ],
    ids=["modify", "attrib", "attrib of a directory", "close", "moved from", "moved to", "create", "delete"],
)
def test_what_happens_to_a_name(mask: int, change: Change) -> None:
    """Each kind of event in a directory is a change of the path of that name."""
    assert batch_of(event(1, mask, b"a.md"), PATHS).events == {(change, "/ws/a.md")}


@pytest.mark.parametrize(
    ("mask", "change"),
    [(0x400, Change.deleted), (0x800, Change.deleted), (0x2000, Change.deleted), (0x4, Change.modified)],
    ids=["deleted", "moved", "unmounted", "permissions"],
)
def test_what_happens_to_the_directory_itself(mask: int, change: Change) -> None:
    """An event without a name is one of the watched directory."""
    assert batch_of(event(1, mask), PATHS) == EventBatch(frozenset({(change, "/ws")}))


def test_a_directory_at_two_places() -> None:
    """What lies at two places at once changes at both."""
    found = batch_of(event(2, 0x2, b"a.md"), PATHS).events
    assert found == {(Change.modified, "/ws/memory/a.md"), (Change.modified, "/vault/a.md")}


def test_many_events_at_once() -> None:
    """Events with names of any length and bytes follow one another; the end of a watch, and strange ones, say nothing."""
    raw = (
        event(1, 0x100, b"a-name-of-sixteen")
        + event(9, 0x2, b"stranger")
        + event(1, 0x8000)
        + event(1, 0x2, b"\xff.md")
    )
    assert batch_of(raw, PATHS).events == {
        (Change.added, "/ws/a-name-of-sixteen"),
        (Change.modified, "/ws/\udcff.md"),
    }


def test_the_same_event_again_and_again() -> None:
    """A file that is written without end is one change, below the root directory like anywhere."""
    raw = (event(1, 0x2, b"a.md") + event(3, 0x2, b"b.md")) * 10_000
    found = batch_of(raw, {**PATHS, 3: [Path("/")]}).events
    assert found == {(Change.modified, "/ws/a.md"), (Change.modified, "/b.md")}


def test_files_that_came_and_were_not_closed() -> None:
    """Who closes it under its name has written it under that name; a directory is no file."""
    raw = event(1, 0x100, b"linked.md") + event(1, 0x100, b"made.md") + event(1, 0x2, b"made.md")
    raw += event(1, 0x8, b"made.md") + event(1, 0x40000100, b"directory") + event(1, 0x80, b"moved.md")
    assert batch_of(raw, PATHS).begun == {"/ws/linked.md"}


def test_who_is_watched_by_itself_has_closed_under_its_name_what_came_there() -> None:
    """Only a close that names a file tells that it was written under that name."""
    raw = event(1, 0x100, b"a.md") + event(3, 0x8)
    assert batch_of(raw, {**PATHS, 3: [Path("/ws/a.md")]}).begun == {"/ws/a.md"}


def test_an_overflow_among_events() -> None:
    """An overflow is told along with the events before it."""
    found = batch_of(event(1, 0x2, b"a.md") + event(-1, 0x4000), PATHS)
    assert found == EventBatch(frozenset({(Change.modified, "/ws/a.md")}), incomplete=True)


@asynccontextmanager
async def fed(*directories: Path) -> AsyncIterator[InotifyFeed]:
    feed = InotifyFeed(gather_s=0.005)
    try:
        await feed.start(WatchPlan(frozenset(directories), frozenset(), RootState({}, {})))
        yield feed
    finally:
        await feed.stop()


def soon() -> float:
    return asyncio.get_running_loop().time() + 5


def room_for_events() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


async def test_a_real_overflow(tmp_path: Path) -> None:
    """When more happens than the kernel keeps, that is known, and what happens afterwards is seen again."""
    one, other = tmp_path / "a.md", tmp_path / "b.md"
    one.touch()
    other.touch()
    async with fed(tmp_path) as feed:
        for _ in range(
            room_for_events() // 2 + 100
        ):  # nobody reads meanwhile; equal events in a row would count as one
            os.utime(one)
            os.utime(other)
        (tmp_path / "lost.md").touch()
        found = EventBatch()
        while not found.incomplete:
            found = await feed.next(soon())
            assert (Change.added, str(tmp_path / "lost.md")) not in found.events
        (tmp_path / "c.md").touch()
        while (Change.added, str(tmp_path / "c.md")) not in found.events:
            found = await feed.next(soon())


async def test_an_idle_watch_asks_for_nothing(tmp_path: Path) -> None:
    """Without events the wait lasts until the time that was given, and gives an empty batch."""
    async with fed(tmp_path) as feed:
        until = asyncio.get_running_loop().time() + 0.03
        assert await feed.next(until) == EventBatch()
        assert asyncio.get_running_loop().time() >= until


async def test_what_was_written_is_told_at_once_and_given_once_it_is_read(tmp_path: Path) -> None:
    """The count goes up before the writer goes on; it is the same for what is read and what is not."""
    async with fed(tmp_path) as feed:
        assert (feed.given, feed.queued()) == (0, 0)
        (tmp_path / "a.md").touch()
        told = feed.queued()
        assert told > 0
        assert feed.given == 0
        await feed.next(soon())
        assert (feed.given, feed.queued()) == (told, told)


async def test_nothing_is_gathered_for_somebody_who_waits(tmp_path: Path) -> None:
    """Hurried, the feed gives what there is, be it nothing; then it waits for events again."""
    feed = InotifyFeed(gather_s=1000.0)
    await feed.start(WatchPlan(frozenset({tmp_path}), frozenset(), RootState({}, {})))
    try:
        (tmp_path / "a.md").touch()
        giving = asyncio.create_task(feed.next(soon()))
        feed.hurry()
        assert (Change.added, str(tmp_path / "a.md")) in (await giving).events
        feed.hurry()
        until = soon()
        assert await feed.next(until) == EventBatch()
        assert asyncio.get_running_loop().time() < until
        until = asyncio.get_running_loop().time() + 0.03
        assert await feed.next(until) == EventBatch()
        assert asyncio.get_running_loop().time() >= until
    finally:
        await feed.stop()
    assert feed.queued() == feed.given


async def test_events_of_one_moment_are_one_batch(tmp_path: Path) -> None:
    """What comes after the first is gathered, again after each batch, and meanwhile the event loop is not asked."""
    feed, loop = InotifyFeed(gather_s=1000.0), asyncio.get_running_loop()
    before = _inotify_descriptors()
    await feed.start(WatchPlan(frozenset({tmp_path}), frozenset(), RootState({}, {})))
    (descriptor,) = _inotify_descriptors() - before
    try:
        for number in range(2):
            giving = asyncio.create_task(feed.next(soon()))
            (tmp_path / f"{number}a.md").touch()
            for _ in range(20):
                await asyncio.sleep(0)
            assert not giving.done()
            assert not loop.remove_reader(descriptor)
            (tmp_path / f"{number}b.md").touch()
            feed.hurry()
            came = {str(tmp_path / f"{number}{name}.md") for name in "ab"}
            assert {path for _, path in (await giving).events} == came
    finally:
        await feed.stop()


def _inotify_descriptors() -> set[int]:
    return {number for number, leads_to in open_descriptors().items() if "inotify" in leads_to}


async def test_after_a_hurry_the_wait_is_for_events(tmp_path: Path) -> None:
    """What was given in haste is no reason to give nothing a moment later."""
    async with fed(tmp_path) as feed:
        feed.hurry()
        assert await feed.next(soon()) == EventBatch()
        until = asyncio.get_running_loop().time() + 0.03
        assert await feed.next(until) == EventBatch()
        assert asyncio.get_running_loop().time() >= until


class Remounted:
    """Mounts that a test changes."""

    changed = False
    closed = 0
    wakes: int | None = None

    def acknowledge(self) -> None:
        self.changed = True
        assert self.wakes is not None
        os.read(self.wakes, 1)

    def have_changed(self) -> bool:
        return self.changed

    def take(self) -> bool:
        changed, self.changed = self.changed, False
        return changed

    def close(self) -> None:
        self.closed += 1


async def test_a_mount_is_told_without_an_event_and_counts_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a wait at the latest; the count of what is queued tells of it before."""
    mounts = Remounted()
    monkeypatch.setattr("memd.watch.inotify.MountEvents", lambda: mounts)
    async with fed(tmp_path) as feed:
        counts = [(feed.given, feed.queued())]
        mounts.changed = True
        counts.append((feed.given, feed.queued()))
        assert await feed.next(asyncio.get_running_loop().time() + 0.01) == EventBatch(remounted=True)
        counts.append((feed.given, feed.queued()))
        before = mounts.closed
    assert counts == [(0, 0), (0, 1), (1, 1)]
    assert (before, mounts.closed) == (0, 1)


async def test_a_mount_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells of it by a descriptor that is readable."""
    mounts = Remounted()
    mounts.wakes, tells = os.pipe()
    monkeypatch.setattr("memd.watch.inotify.MountEvents", lambda: mounts)
    try:
        async with fed(tmp_path) as feed:
            os.write(tells, b"x")
            assert await feed.next(soon()) == EventBatch(remounted=True)
            until = asyncio.get_running_loop().time() + 0.03
            assert await feed.next(until) == EventBatch()
    finally:
        os.close(mounts.wakes)
        os.close(tells)


async def test_of_a_directory_above_only_its_own_way_is_told(tmp_path: Path) -> None:
    """What else is in it is nobody's matter; one that cannot be watched is to be looked at."""
    above, root = tmp_path / "above", tmp_path / "above" / "root"
    root.mkdir(parents=True)
    for directories in (frozenset({above, tmp_path}), frozenset({above, tmp_path / "none"})):
        plan = WatchPlan(frozenset({root}), frozenset(), RootState({}, {}), directories)
        feed = InotifyFeed(gather_s=0.005)
        try:
            await feed.start(plan)
            assert feed.reports_roots is (tmp_path in directories)
            (above / "note").write_text("a")
            (above / "other").mkdir(exist_ok=True)
            (root / "note").write_text("a")
            batch = await feed.next(soon())
            assert {place for _, place in batch.events} == {str(root / "note")}
            assert not batch.uprooted
            if feed.reports_roots:
                above.rename(tmp_path / "aside")
                assert await feed.next(soon()) == EventBatch(uprooted=True)
                (tmp_path / "aside").rename(above)
                assert await feed.next(soon()) == EventBatch(uprooted=True)
        finally:
            await feed.stop()


async def test_a_file_at_two_names_is_told_by_both_and_watched_once(tmp_path: Path) -> None:
    """One that is gone keeps no other from being watched."""
    note, other = tmp_path / "a.md", tmp_path / "b.md"
    note.write_text("a")
    other.hardlink_to(note)
    async with fed() as feed:
        assert await feed.watch_files([tmp_path / "gone.md", note, other]) == {note, other}
        assert await feed.watch_files([note, other]) == set()
        note.write_text("b")
        told = {path for _, path in (await feed.next(soon())).events}
        assert told == {str(note), str(other)}


@pytest.mark.parametrize("fails", [False, True])
async def test_who_stops_while_watches_are_set_closes_nothing_under_the_hands_of_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """A directory may lie on a disk that does not answer: the thread ends with it, sets no more watches, and then all is closed."""
    entered, goes_on, asked = threading.Event(), threading.Event(), []

    def hangs(*call: object) -> int:
        asked.append(call)
        entered.set()
        goes_on.wait(20)
        ctypes.set_errno(errno.EIO)
        return -1 if fails else 1

    descriptor = os.eventfd(0, os.EFD_NONBLOCK)
    system = SimpleNamespace(inotify_init1=lambda _: descriptor, inotify_add_watch=hangs)
    monkeypatch.setattr("memd.watch.inotify._libc", system)
    feed = InotifyFeed()
    plan = WatchPlan(frozenset({tmp_path, tmp_path / "b"}), frozenset(), RootState({}, {}))
    starting = asyncio.create_task(feed.start(plan))
    await until_async(entered.is_set)
    starting.cancel()
    with suppress(asyncio.CancelledError):
        await starting
    await feed.stop()
    os.fstat(descriptor)
    goes_on.set()
    await until_async(lambda: not Path(f"/proc/self/fd/{descriptor}").exists())
    assert len(asked) == 1
    gc.collect()  # of an error that nobody asked for, the event loop would complain now


async def test_a_watch_whose_setting_was_given_up_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the event loop ends all that is left on it."""
    entered, goes_on = threading.Event(), threading.Event()

    def hangs(*_: object) -> int:
        entered.set()
        goes_on.wait(20)
        return 1

    descriptor = os.eventfd(0, os.EFD_NONBLOCK)
    system = SimpleNamespace(inotify_init1=lambda _: descriptor, inotify_add_watch=hangs)
    monkeypatch.setattr("memd.watch.inotify._libc", system)
    feed = InotifyFeed()
    starting = asyncio.create_task(
        feed.start(WatchPlan(frozenset({tmp_path}), frozenset(), RootState({}, {})))
    )
    await until_async(entered.is_set)
    await feed.stop()
    os.fstat(descriptor)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    goes_on.set()
    await asyncio.wait(left)
    assert starting.cancelled()
    await until_async(lambda: not Path(f"/proc/self/fd/{descriptor}").exists())


async def test_a_watch_that_fails_when_nobody_waits_for_it_any_more_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed, and the event loop has nothing to complain of."""
    entered, goes_on = threading.Event(), threading.Event()

    def fails_late(*_: object) -> int:
        entered.set()
        goes_on.wait(20)
        ctypes.set_errno(errno.ENOSPC)
        return -1

    descriptor = os.eventfd(0, os.EFD_NONBLOCK)
    system = SimpleNamespace(inotify_init1=lambda _: descriptor, inotify_add_watch=fails_late)
    monkeypatch.setattr("memd.watch.inotify._libc", system)
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    feed = InotifyFeed()
    plan = WatchPlan(frozenset({tmp_path}), frozenset(), RootState({}, {}))
    starting = asyncio.create_task(feed.start(plan))
    await until_async(entered.is_set)
    starting.cancel()
    await asyncio.wait([starting])
    await feed.stop()
    goes_on.set()
    await until_async(lambda: not Path(f"/proc/self/fd/{descriptor}").exists())
    del starting, feed
    gc.collect()
    assert complaints == []


async def test_a_watch_that_could_not_be_begun_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where mounts cannot be followed, no watch is set; stopped again, it closes nothing of others."""
    descriptor = os.eventfd(0, os.EFD_NONBLOCK)
    monkeypatch.setattr("memd.watch.inotify._libc", SimpleNamespace(inotify_init1=lambda _: descriptor))

    def refused() -> None:
        raise FeedBroken("there is no file of mounts")

    monkeypatch.setattr("memd.watch.inotify.MountEvents", refused)
    feed = InotifyFeed()
    with pytest.raises(FeedBroken):
        await feed.start(WatchPlan(frozenset(), frozenset(), RootState({}, {})))
    await feed.stop()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    await feed.stop()


async def test_files_are_not_watched_on_by_who_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others cost a look each, on a disk that may not answer."""
    asked = []
    async with fed(tmp_path) as feed:

        def last(*call: object) -> int:
            asked.append(call)
            stopping = asyncio.run_coroutine_threadsafe(feed.stop(), loop)
            stopping.result(20)
            return 1

        loop = asyncio.get_running_loop()
        monkeypatch.setattr("memd.watch.inotify._libc", SimpleNamespace(inotify_add_watch=last))
        assert await feed.watch_files([tmp_path / "a.md", tmp_path / "b.md"]) == {tmp_path / "a.md"}
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("300000\n", 600_000),
        ("3\n", shipped("memd.watch.inotify._INSTANCES")),
        ("none", shipped("memd.watch.inotify._INSTANCES")),
        (None, shipped("memd.watch.inotify._INSTANCES")),
    ],
)
async def test_what_a_limit_is_to_be_raised_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, told: int
) -> None:
    """Twice what it is, and a usual number where that is less or cannot be read."""
    if text is not None:
        (tmp_path / "max_user_instances").write_text(text)

    def init(_: int) -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    monkeypatch.setattr("memd.watch.inotify._LIMITS", tmp_path)
    monkeypatch.setattr("memd.watch.inotify._libc", SimpleNamespace(inotify_init1=init))
    assert f"max_user_instances={told}`" in await _refused(tmp_path)


async def test_no_fewer_watches_than_usual_are_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where twice the current limit would be less."""
    (tmp_path / "max_user_watches").write_text("8192\n")

    def add(*_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr("memd.watch.inotify._LIMITS", tmp_path)
    libc = SimpleNamespace(inotify_init1=_libc.inotify_init1, inotify_add_watch=add)
    monkeypatch.setattr("memd.watch.inotify._libc", libc)
    assert f"max_user_watches={shipped('memd.watch.inotify._WATCHES')}`" in await _refused(tmp_path)


def test_other_tasks_run_between_so_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where events come as fast as they are read, a batch has an end; the rest stays to be read."""
    monkeypatch.setattr("memd.watch.inotify._PIECE_BYTES", 1)
    reading, writing = os.pipe2(os.O_NONBLOCK)
    try:
        most = shipped("memd.watch.inotify._PIECES")
        os.write(writing, bytes(most + 1))
        assert [len(list(_pieces(reading))) for _ in range(3)] == [most, 1, 0]
    finally:
        os.close(reading)
        os.close(writing)


async def test_a_process_without_descriptors_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has one error for both limits; the other is told by what else cannot be opened."""

    def init(_: int) -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    def opened(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("memd.watch.inotify._libc", SimpleNamespace(inotify_init1=init))
    monkeypatch.setattr("memd.watch.inotify.os.open", opened)
    assert "ulimit -n" in await _refused(Path("/"))


async def test_what_is_read_is_no_event(tmp_path: Path) -> None:
    """Searches read notes all the time."""
    note = tmp_path / "a.md"
    note.write_text("words")
    async with fed(tmp_path) as feed:
        assert await feed.watch_files([note]) == {note}
        assert note.read_text() == "words"
        assert feed.queued() == feed.given


async def test_directories_that_went_meanwhile(tmp_path: Path) -> None:
    """A directory that is gone, or is none any more, keeps the others from nothing."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    async with fed(tmp_path / "gone", tmp_path / "file", tmp_path / "link", tmp_path) as feed:
        (tmp_path / "a.md").touch()
        assert (Change.added, str(tmp_path / "a.md")) in (await feed.next(soon())).events


async def _refused(*directories: Path) -> str:
    try:
        async with fed(*directories):
            return "not at all"
    except FeedBroken as broken:
        return str(broken)


def refusals(directory: str) -> list[str]:
    """What is said where a limit is reached; for a process that is alone in a user namespace."""
    limits = Path("/proc/sys/user")
    directories = [Path(directory), Path(directory) / "sub"]

    async def all_of_them() -> list[str]:
        said = [await _refused(*directories)]
        (limits / "max_inotify_watches").write_text("1")
        said.append(await _refused(*directories))
        (limits / "max_inotify_instances").write_text("0")
        said.append(await _refused(*directories))
        (limits / "max_inotify_instances").write_text("10")
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = os.open("/", os.O_RDONLY)
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken, hard))
        said.append(await _refused(*directories))
        return said

    return asyncio.run(all_of_them())


def test_limits_are_named_with_their_remedy(tmp_path: Path) -> None:
    """Without watches, instances or descriptors left, a person is told which limit it is and how to raise it."""
    (tmp_path / "sub").mkdir()
    code = f"import json; from {__name__} import refusals; print(json.dumps(refusals({str(tmp_path)!r})))"
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, check=False, cwd=Path(__file__).parents[2], timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    free, watches, instances, descriptors = msgspec.json.decode(done.stdout, type=list[str])
    assert free == "not at all"
    assert watches.startswith("2 directories")
    assert "sudo sysctl fs.inotify.max_user_watches=" in watches
    assert "sudo sysctl fs.inotify.max_user_instances=" in instances
    assert "ulimit -n" in descriptors


@pytest.mark.parametrize(
    ("made", "why", "told"),
    [
        (False, errno.EMFILE, "max_user_instances=1800000`"),
        (False, errno.ENOMEM, "gives no inotify instance: Cannot allocate memory"),
        (True, errno.ENOSPC, "max_user_watches=1800000`"),
        (True, errno.EIO, "refuses a watch: Input/output error"),
        (True, errno.EACCES, "not at all"),
        (True, errno.ELOOP, "not at all"),
    ],
)
async def test_what_the_system_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, made: bool, why: int, told: str
) -> None:
    """A person is told to raise a limit to twice what it is; a directory that may not be watched keeps no other from it."""
    for limit in ("max_user_instances", "max_user_watches"):
        (tmp_path / limit).write_text("900000\n")

    def refused(*_: object) -> int:
        ctypes.set_errno(why)
        return -1

    def init(_: int) -> int:
        return os.eventfd(0, os.EFD_NONBLOCK) if made else refused()

    monkeypatch.setattr("memd.watch.inotify._LIMITS", tmp_path)
    system = SimpleNamespace(inotify_init1=init, inotify_add_watch=refused)
    monkeypatch.setattr("memd.watch.inotify._libc", system)
    assert told in await _refused(tmp_path)


@pytest.mark.parametrize(("platform", "does"), [("linux", True), ("darwin", False), ("freebsd14", False)])
def test_platforms(platform: str, does: bool) -> None:
    """Only Linux has inotify."""
    assert sets_watches_by_directory(platform) is does
