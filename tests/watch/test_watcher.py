"""The file system as a stream of changes."""

import asyncio
import errno
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, redirect_stdout, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from anyio.to_thread import current_default_thread_limiter
from structlog.testing import capture_logs

from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, SingleFile, Workspace
from memd.watch.event_barrier import EventBarrier
from memd.watch.events import Change, EventBatch, Feed, FeedBroken, FeedPosition
from memd.watch.inotify import InotifyFeed
from memd.watch.mounts import read_mounts
from memd.watch.watch_plan import WatchPlan
from memd.watch.watcher import (
    Event,
    PathsChanged,
    RescanNeeded,
    WatcherHealth,
    WatcherPace,
    WatchMethods,
    methods_of,
    watch,
)
from memd.watch.watchfiles_feed import LibraryFeed
from tests.bounds import shipped
from tests.descriptors import open_descriptors
from tests.otheruser import as_other_user, shared_directory
from tests.wait import until_async

PACE = WatcherPace(
    check_s=0.05, check_with_events_s=1e9, rewatch_quiet_s=0.03, rewatch_cap_s=0.3, trusted_s=0.0, retry_s=0.1
)
FLAT = WatchMethods(recursive=False, feed=lambda: InotifyFeed(gather_s=0.005))
DEEP = WatchMethods(recursive=True, feed=LibraryFeed)
METHODS = pytest.mark.parametrize("methods", [FLAT, DEEP], ids=["flat", "deep"])


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory with a workspace ws and a vault, each with a note."""
    base = Path(os.path.realpath(tmp_path))
    for note in ("ws/memory/sub/a.md", "vault/sub/a.md"):
        (base / note).parent.mkdir(parents=True)
        (base / note).write_text("first")
    return base


class Untold(InotifyFeed):
    """Tells nothing of the roots: they are looked at in intervals."""

    reports_roots = False


class Seen:
    """The events so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def paths(self) -> set[Path]:
        return {path for event in self.events if isinstance(event, PathsChanged) for path in event.paths}

    def rescans(self) -> int:
        return sum(isinstance(event, RescanNeeded) for event in self.events)

    def health(self) -> list[bool]:
        return [event.ok for event in self.events if isinstance(event, WatcherHealth)]

    def reasons(self) -> list[str]:
        return [event.reason or "" for event in self.events if isinstance(event, WatcherHealth)]

    async def changed(self, path: Path) -> None:
        await until_async(lambda: path in self.paths())

    async def rescanned(self, times: int) -> None:
        await until_async(lambda: self.rescans() >= times)

    async def stirred(self, act: Callable[[], object]) -> None:
        """Act, then wait until a Rescan says that other directories are watched."""
        before = self.rescans()
        act()
        await self.rescanned(before + 1)


@asynccontextmanager
async def watching(
    *roots: Root,
    methods: WatchMethods = FLAT,
    pace: WatcherPace = PACE,
    first: type[Event] = RescanNeeded,
    barrier: EventBarrier | None = None,
) -> AsyncIterator[Seen]:
    seen = Seen()

    async def collect() -> None:
        async with aclosing(
            watch(roots, methods=methods, pace=pace, rng=Random(1), barrier=barrier)
        ) as events:
            async for event in events:
                seen.events.append(event)

    task = asyncio.create_task(collect())
    try:
        await until_async(lambda: task.done() or any(isinstance(event, first) for event in seen.events))
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def save_in_place(note: Path) -> None:
    with note.open("a") as file:
        file.write("more")


def save_by_rename(note: Path) -> None:
    draft = note.with_name(f".{note.name}.swp")
    draft.write_text("second")
    draft.replace(note)


def save_anew(note: Path) -> None:
    note.unlink()
    note.write_text("second")


def save_with_backup(note: Path) -> None:
    note.rename(note.with_name(f"{note.name}~"))
    note.write_text("second")


@METHODS
@pytest.mark.parametrize(
    "save", [save_in_place, save_by_rename, save_anew, save_with_backup, Path.unlink, Path.touch]
)
@pytest.mark.parametrize("note", ["ws/memory/sub/a.md", "vault/sub/a.md"])
async def test_a_saved_note(
    base: Path, note: str, save: Callable[[Path], None], methods: WatchMethods
) -> None:
    """However an editor saves a note, the change is seen, and nothing else is."""
    async with watching(Workspace(base / "ws"), ExtraDirectory(base / "vault"), methods=methods) as seen:
        save(base / note)
        await seen.changed(base / note)
    assert {path for path in seen.paths() if path.suffix == ".md"} == {base / note}


async def test_begins_with_health_and_a_rescan(base: Path) -> None:
    """Whoever starts to listen is told that watching works, then to look at everything."""
    async with watching(Workspace(base / "ws")) as seen:
        pass
    assert seen.events == [WatcherHealth(ok=True), RescanNeeded("watching began")]


@METHODS
async def test_the_workspace_itself(base: Path, methods: WatchMethods) -> None:
    """Of the files in the workspace only the curated ones are seen."""
    workspace = base / "ws"
    async with watching(Workspace(workspace), methods=methods) as seen:
        (workspace / "README.md").write_text("code")
        (workspace / "src").mkdir()
        (workspace / "src" / "a.md").write_text("code")
        (workspace / "MEMORY.md").write_text("curated")
        await seen.changed(workspace / "MEMORY.md")
    assert seen.paths() == {workspace / "MEMORY.md"}


@METHODS
async def test_a_single_file(base: Path, methods: WatchMethods) -> None:
    """An extra file is seen, also when it is replaced; its neighbours are not."""
    async with watching(SingleFile(base, "todo.md"), methods=methods) as seen:
        (base / "other.md").write_text("other")
        (base / "todo.md").write_text("first")
        await seen.changed(base / "todo.md")
        seen.events.clear()
        save_by_rename(base / "todo.md")
        await seen.changed(base / "todo.md")
    assert seen.paths() == {base / "todo.md"}


@METHODS
async def test_a_new_directory(base: Path, methods: WatchMethods) -> None:
    """A new directory comes out itself, for the files in it; later ones come out one by one."""
    new = base / "ws" / "memory" / "2026" / "01"
    async with watching(Workspace(base / "ws"), methods=methods) as seen:
        new.mkdir(parents=True)
        (new / "a.md").write_text("early")
        await seen.changed(new.parent)
        if not methods.recursive:
            await seen.rescanned(2)
        (new / "b.md").write_text("late")
        await seen.changed(new / "b.md")


@METHODS
async def test_a_renamed_directory(base: Path, methods: WatchMethods) -> None:
    """Both names of a renamed directory come out; what is written in it afterwards is seen by the new name."""
    old, new = base / "vault" / "sub", base / "vault" / "renamed"
    async with watching(ExtraDirectory(base / "vault"), methods=methods) as seen:
        old.rename(new)
        await seen.changed(old)
        await seen.changed(new)
        if not methods.recursive:
            await seen.rescanned(2)
        (new / "b.md").write_text("late")
        await seen.changed(new / "b.md")


@METHODS
async def test_a_deleted_directory(base: Path, methods: WatchMethods) -> None:
    """A directory that is moved away comes out, and so does one that is deleted and made anew."""
    sub = base / "vault" / "sub"
    async with watching(ExtraDirectory(base / "vault"), methods=methods) as seen:
        sub.rename(base / "aside")
        await seen.changed(sub)
        before = seen.rescans()
        sub.mkdir()
        if not methods.recursive:
            await seen.rescanned(before + 1)
        await until_async(lambda: not (sub / "b.md").write_text("b") or sub / "b.md" in seen.paths())


@METHODS
async def test_memory_comes_later(base: Path, methods: WatchMethods) -> None:
    """A memory/ that is made after the start is watched."""
    shutil.rmtree(base / "ws" / "memory")
    memory = base / "ws" / "memory"
    async with watching(Workspace(base / "ws"), methods=methods) as seen:
        await seen.stirred(memory.mkdir)
        (memory / "a.md").write_text("first")
        await seen.changed(memory / "a.md")


@METHODS
async def test_a_root_comes_later(base: Path, methods: WatchMethods) -> None:
    """A root that is not there at the start is named as missing, and is watched when it comes."""
    async with watching(ExtraDirectory(base / "away" / "vault"), methods=methods) as seen:
        assert "does not exist" in seen.reasons()[0]
        await seen.stirred(lambda: (base / "away" / "vault").mkdir(parents=True))
        (base / "away" / "vault" / "b.md").write_text("b")
        await seen.changed(base / "away" / "vault" / "b.md")


@METHODS
@pytest.mark.parametrize("root", ["ws", "ws/memory", "vault"])
async def test_a_root_vanishes_and_returns(base: Path, root: str, methods: WatchMethods) -> None:
    """Going and returning of a root each ask for a rescan; afterwards its changes are seen again."""
    async with watching(Workspace(base / "ws"), ExtraDirectory(base / "vault"), methods=methods) as seen:
        await seen.stirred(lambda: (base / root).rename(base / "aside"))
        await seen.stirred(lambda: shutil.copytree(base / "aside", base / root))
        note = next((base / root).rglob("a.md"))
        await until_async(lambda: not note.write_text("again") or note in seen.paths())


@METHODS
async def test_a_root_is_exchanged(base: Path, methods: WatchMethods) -> None:
    """Another directory in the place of a root, as a mount would put it, is noticed and watched."""
    shutil.copytree(base / "vault", base / "other")

    def exchange() -> None:
        (base / "vault").rename(base / "aside")
        (base / "other").rename(base / "vault")

    async with watching(ExtraDirectory(base / "vault"), methods=methods) as seen:
        await seen.stirred(exchange)
        note = base / "vault" / "sub" / "a.md"
        await until_async(lambda: not note.write_text("again") or note in seen.paths())


@pytest.mark.parametrize("link", ["", "home"], ids=["at the root", "above it"])
async def test_a_symlink_takes_the_place(base: Path, link: str) -> None:
    """A symlink at a root or above it hides the root, which is said; when the directory is back, it is watched."""
    (base / "home").mkdir()
    (base / "vault").rename(base / "home" / "vault")
    vault = base / "home" / "vault"
    moved = base / (link or "home/vault")

    def hide() -> None:
        moved.rename(base / "aside")
        moved.symlink_to(base / "aside")

    def uncover() -> None:
        moved.unlink()
        (base / "aside").rename(moved)

    async with watching(ExtraDirectory(vault)) as seen:
        await seen.stirred(hide)
        assert "symlink" in seen.reasons()[-1]
        assert seen.health()[-1]
        await seen.stirred(uncover)
        assert not seen.reasons()[-1]
        (vault / "b.md").write_text("b")
        await seen.changed(vault / "b.md")


async def test_a_root_is_made_anew_between_two_looks(base: Path) -> None:
    """A root that is removed and made again at once, perhaps with the same inode, is watched again."""
    pace = WatcherPace(check_s=1e9, rewatch_quiet_s=0.03)
    vault = base / "vault"

    def exchange() -> None:
        shutil.rmtree(vault)
        vault.mkdir()

    async with watching(ExtraDirectory(vault), pace=pace) as seen:
        await seen.stirred(exchange)
        (vault / "b.md").write_text("b")
        await seen.changed(vault / "b.md")


def mountinfo(*lines: tuple[str, str, str]) -> str:
    """A mountinfo of a local disk with (mount point, kind, source) on it."""
    text = "1 0 254:0 / / rw - ext4 /dev/vda rw\n"
    return text + "".join(
        f"{number} 1 0:{number} / {point} rw - {kind} {source} rw\n"
        for number, (point, kind, source) in enumerate(lines, start=2)
    )


async def test_a_network_mount(base: Path) -> None:
    """A root on a network mount is named with its places, as nothing to worry about; what is done here is still seen."""
    info = mountinfo(
        (str(base / "ws"), "nfs4", "nas:/notes"), (str(base / "vault" / "sub"), "fuse.sshfs", "me@host:")
    )
    methods = WatchMethods(recursive=False, feed=FLAT.feed, mountinfo=lambda: info)
    async with watching(Workspace(base / "ws"), ExtraDirectory(base / "vault"), methods=methods) as seen:
        (health,) = [event for event in seen.events if isinstance(event, WatcherHealth)]
        assert health.ok
        assert health.unseen == {base / "ws", base / "vault" / "sub"}
        assert health.reason is not None
        assert f"{base / 'ws'} is on nas:/notes (nfs4)" in health.reason
        (base / "ws" / "memory" / "b.md").write_text("b")
        await seen.changed(base / "ws" / "memory" / "b.md")


async def test_mounting_and_unmounting(base: Path) -> None:
    """A mount that comes or goes, wherever notes can lie, asks for a rescan and is watched."""
    info = [mountinfo()]
    methods = WatchMethods(recursive=False, feed=Untold, mountinfo=lambda: info[0])
    async with watching(ExtraDirectory(base / "vault"), methods=methods) as seen:
        info[0] = mountinfo((str(base / "vault" / "sub"), "cifs", "//nas/notes"))
        await seen.rescanned(2)
        assert "//nas/notes" in seen.reasons()[-1]
        info[0] = mountinfo((str(base / "elsewhere"), "cifs", "//nas/notes"))
        await seen.rescanned(3)
        assert not seen.reasons()[-1]


async def test_a_root_that_somebody_missed_between_two_looks(base: Path) -> None:
    """It hangs on what it did, so nothing else tells that it is back."""
    barrier = EventBarrier()
    async with watching(ExtraDirectory(base / "vault"), barrier=barrier) as seen:
        assert base / "vault" not in seen.paths()
        barrier.set_missing(frozenset({base / "vault", base / "none"}))
        await seen.changed(base / "vault")
        assert base / "none" not in seen.paths()
        assert seen.rescans() == 1


async def test_mounts_that_cannot_be_looked_at(base: Path) -> None:
    """A process without descriptors does not take what it cannot read for a change: it watches on."""
    asked = [0]

    def exhausted() -> str:
        asked[0] += 1
        if asked[0] > 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return ""

    pace = WatcherPace(check_s=0.02)
    methods = WatchMethods(recursive=False, feed=Untold, mountinfo=exhausted)
    async with watching(ExtraDirectory(base / "vault"), pace=pace, methods=methods) as seen:
        await until_async(lambda: asked[0] > 8)
        (base / "vault" / "b.md").write_text("b")
        await seen.changed(base / "vault" / "b.md")
        assert len([event for event in seen.events if isinstance(event, RescanNeeded)]) == 1


async def test_a_disk_that_does_not_answer(base: Path) -> None:
    """While a look at the mounts hangs, events come all the same."""
    hangs, asked = threading.Event(), [0]

    def hanging() -> str:
        asked[0] += 1
        if asked[0] > 2:
            hangs.wait(20)
        return ""

    pace = WatcherPace(check_s=0.02, check_timeout_s=0.02)
    methods = WatchMethods(recursive=False, feed=Untold, mountinfo=hanging)
    try:
        async with watching(ExtraDirectory(base / "vault"), pace=pace, methods=methods) as seen:
            await until_async(lambda: asked[0] == 3)
            (base / "vault" / "b.md").write_text("b")
            await seen.changed(base / "vault" / "b.md")
    finally:
        hangs.set()


async def test_a_directory_becomes_listable(base: Path) -> None:
    """A directory whose permissions change comes out: what can be read there may have changed."""
    sub = base / "vault" / "sub"
    async with watching(ExtraDirectory(base / "vault")) as seen:
        sub.chmod(0o700)
        await seen.changed(sub)


async def _root_that_is_opened(base: Path, name: str) -> str:
    vault = base / "vault"
    for directory in (base / "closed" / "ws" / "memory", vault):
        directory.mkdir(parents=True)
    (base / name).chmod(0)
    async with watching(Workspace(base / "closed" / "ws"), ExtraDirectory(vault)) as seen:
        told = "; ".join(seen.reasons())
        await seen.stirred(lambda: (base / name).chmod(0o755))
        (vault / "a.md").write_text("a")
        await seen.changed(vault / "a.md")
        assert all(seen.health())
    return told.replace(str(base), "")


def root_that_is_opened(base: str, name: str) -> str:
    """What the other user is told at first."""
    with redirect_stdout(sys.stderr):  # the log goes where the answer goes
        return asyncio.run(_root_that_is_opened(Path(base), name))


@pytest.mark.parametrize(
    ("closed", "told"), [("closed", "/closed/ws cannot be listed"), ("vault", "/vault cannot be listed")]
)
def test_a_root_that_is_closed(closed: str, told: str) -> None:
    """A root that may not be listed, or lies behind such a directory, is named, and watched once it is open."""
    with shared_directory() as base:
        assert told in as_other_user(__name__, root_that_is_opened.__name__, str(base), closed)


async def test_symlinks_are_not_followed(base: Path) -> None:
    """What changes behind a symlink below a root is not seen."""
    (base / "outside").mkdir()
    (base / "vault" / "link").symlink_to(base / "outside")
    async with watching(ExtraDirectory(base / "vault")) as seen:
        (base / "outside" / "a.md").write_text("outside")
        (base / "vault" / "b.md").write_text("inside")
        await seen.changed(base / "vault" / "b.md")
    assert seen.paths() == {base / "vault" / "b.md"}


@pytest.mark.parametrize(
    "feed", [FLAT.feed, pytest.param(LibraryFeed, id="library")], ids=["inotify", "library"]
)
async def test_a_name_that_is_not_utf8(base: Path, feed: Callable[[], Feed]) -> None:
    """A file whose name no string can hold does not end the watching."""
    vault = base / "vault"
    async with watching(ExtraDirectory(vault), methods=WatchMethods(recursive=False, feed=feed)) as seen:
        os.close(os.open(os.fsencode(vault) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
        await until_async(lambda: not (vault / "b.md").write_text("b") or vault / "b.md" in seen.paths())
    assert False not in seen.health()


async def test_more_watches_than_threads(base: Path) -> None:
    """Each watch of the library brings a thread of its own: none waits for another to end."""
    limiter = current_default_thread_limiter()
    usual, limiter.total_tokens = limiter.total_tokens, 1
    vault = ExtraDirectory(base / "vault")
    async with watching(vault, methods=DEEP) as first, watching(vault, methods=DEEP) as second:
        (base / "vault" / "b.md").write_text("b")
        await first.changed(base / "vault" / "b.md")
        await second.changed(base / "vault" / "b.md")
    assert limiter.total_tokens == 1
    assert limiter.borrowed_tokens == 0
    limiter.total_tokens = usual


def inotify_instances() -> int:
    """How many this process has."""
    return sum("inotify" in leads_to for leads_to in open_descriptors().values())


@METHODS
async def test_cancelling_takes_the_watches_away(base: Path, methods: WatchMethods) -> None:
    """When the task that listens has ended, nothing watches any longer: no thread, no descriptor."""
    limiter, before = current_default_thread_limiter(), inotify_instances()
    async with watching(Workspace(base / "ws"), ExtraDirectory(base / "vault"), methods=methods):
        await until_async(lambda: limiter.borrowed_tokens == 2 * methods.recursive)
        assert inotify_instances() > before
    assert limiter.borrowed_tokens == 0
    await until_async(lambda: inotify_instances() <= before)  # those of earlier tests may go meanwhile


@METHODS
async def test_closing_takes_the_watches_away(base: Path, methods: WatchMethods) -> None:
    """When the stream is closed by its reader, nothing watches any longer."""
    limiter, before = current_default_thread_limiter(), inotify_instances()
    async with aclosing(watch([ExtraDirectory(base / "vault")], methods=methods, pace=PACE)) as events:
        assert await anext(events) == WatcherHealth(ok=True)
        await until_async(lambda: limiter.borrowed_tokens == methods.recursive)
        assert inotify_instances() > before
    assert limiter.borrowed_tokens == 0
    await until_async(lambda: inotify_instances() <= before)  # those of earlier tests may go meanwhile


class Scripted:
    """Makes feeds that do what they are told, then watch in truth."""

    def __init__(self, *scripts: BaseException | EventBatch) -> None:
        self._scripts = list(scripts)
        self.armed = 0

    @property
    def methods(self) -> WatchMethods:
        return WatchMethods(recursive=False, feed=self._make)

    def _make(self) -> Feed:
        self.armed += 1
        return ScriptedFeed(self._scripts.pop(0) if self._scripts else None)


class ScriptedFeed:
    """Fails to start, or fails later, or gives a batch first."""

    def __init__(self, script: BaseException | EventBatch | None) -> None:
        self._script = script
        self._feed = InotifyFeed(gather_s=0.005)

    async def start(self, plan: WatchPlan) -> None:
        if isinstance(self._script, OSError | FeedBroken):
            raise self._script
        await self._feed.start(plan)

    async def next(self, until: float) -> EventBatch:
        script, self._script = self._script, None
        if isinstance(script, BaseException):
            raise script
        return script or await self._feed.next(until)

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:
        return await self._feed.watch_files(files)

    @property
    def reports_roots(self) -> bool:
        return False

    def position(self) -> FeedPosition:
        return self._feed.position()

    async def stop(self) -> None:
        await self._feed.stop()


LIMIT = FeedBroken("no watches are left")


class Later(RuntimeError):
    """An error that comes when the watches are set."""


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (LIMIT, "no watches are left"),
        (OSError(errno.EIO, "broken disk"), "broken disk"),
        (Later("a bug"), "Later: <5 characters>"),
    ],
    ids=["limit", "disk", "bug"],
)
async def test_says_that_changes_are_not_seen(base: Path, failure: Exception, told: str) -> None:
    """Whatever keeps it from watching, it says so and where to look instead, and recovers by itself."""
    pace = WatcherPace(check_s=0.05, rewatch_quiet_s=0.03, trusted_s=10.0, retry_s=0.05)
    scripted = Scripted(failure, failure, failure)
    with capture_logs() as logs:
        seen = await _recovered(base, scripted, pace)
    assert [one["event"] for one in logs if one["log_level"] in {"warning", "error"}] == [
        "watch.failed" if isinstance(failure, Later) else "watch.broken"
    ]
    broken = next(event for event in seen.events if isinstance(event, WatcherHealth) and not event.ok)
    assert broken.reason is not None
    assert told in broken.reason
    assert broken.unseen == {base / "vault", base / "a.md"}


async def _recovered(base: Path, scripted: Scripted, pace: WatcherPace) -> Seen:
    """What is seen by a watcher that fails three times."""
    async with watching(
        ExtraDirectory(base / "vault"),
        SingleFile(base, "a.md"),
        pace=pace,
        methods=scripted.methods,
        first=WatcherHealth,
    ) as seen:
        await until_async(lambda: seen.health()[-1:] == [True] and seen.health().count(False) == 3, 20)
        await until_async(lambda: seen.events[-1] == RescanNeeded("watching began again"))
        (base / "vault" / "b.md").write_text("b")
        await seen.changed(base / "vault" / "b.md")
    return seen


class Waits:
    """Says how long to wait after a failure, and what it is told."""

    told: ClassVar[list[str]] = []

    def __init__(self, _: Random, *, first_s: float, cap_s: float) -> None:
        self.told[:] = [f"from {first_s} to {cap_s} s"]

    def failed(self) -> float:
        self.told.append("failed")
        return 0.0

    def reset(self) -> None:
        self.told.append("reset")


@pytest.mark.parametrize("trusted_s", [0.0, 1000.0])
async def test_after_watches_that_worked_the_first_wait_is_short_again(
    base: Path, monkeypatch: pytest.MonkeyPatch, *, trusted_s: float
) -> None:
    """Watches that are set anew because others are needed have worked; those that broke have, if that was not at once."""
    monkeypatch.setattr("memd.watch.watcher.Backoff", Waits)
    scripted = Scripted(LIMIT, EventBatch(incomplete=True), Later("a bug"), LIMIT)
    pace = WatcherPace(
        check_s=1e9,
        rewatch_quiet_s=0.01,
        rewatch_cap_s=0.01,
        trusted_s=trusted_s,
        retry_s=3.0,
        retry_cap_s=7.0,
    )
    async with watching(
        ExtraDirectory(base / "vault"), methods=scripted.methods, pace=pace, first=WatcherHealth
    ):
        await until_async(lambda: scripted.armed == 5)
    after_the_break = "failed" if trusted_s else "reset"
    assert Waits.told == ["from 3.0 to 7.0 s", "failed", "reset", after_the_break, "failed"]


class Recording(InotifyFeed):
    """Tells until when events are waited for."""

    until: ClassVar[list[float]] = []

    async def next(self, until: float) -> EventBatch:
        self.until.append(until)
        return await super().next(until)


async def test_looks_at_roots_are_near_one_another_but_not_at_once(base: Path) -> None:
    """So one timer of the system serves all, while no two threads begin together."""
    methods = WatchMethods(recursive=False, feed=Recording)
    pace = WatcherPace(check_with_events_s=2.0)
    apart_s = set()
    for number in range(12):
        (base / str(number)).mkdir()
        Recording.until.clear()
        async with watching(ExtraDirectory(base / str(number)), methods=methods, pace=pace):
            await until_async(lambda: Recording.until)
            apart_s.add(round(Recording.until[0] % 2.0, 3))
            assert Recording.until[0] - asyncio.get_running_loop().time() <= 2.0
    assert len(apart_s) > 4
    assert all(one <= 0.2 or one > 1.999 for one in apart_s)


@pytest.mark.parametrize(
    ("roots", "told"),
    [
        ([ExtraDirectory(Path("vault"))], True),
        ([ExtraDirectory(Path("vault")), ExtraDirectory(Path("none"))], False),
    ],
    ids=["all there", "one missing"],
)
async def test_roots_whose_changes_events_tell_are_seldom_looked_at(
    base: Path, roots: list[ExtraDirectory], *, told: bool
) -> None:
    """A missing root may come anywhere, and so may one that a scan did not find."""
    Recording.until.clear()
    barrier, methods = EventBarrier(), WatchMethods(recursive=False, feed=Recording)
    pace = WatcherPace(check_s=1000.0, check_with_events_s=1e9)
    there = [ExtraDirectory(base / root.directory) for root in roots]
    async with watching(*there, methods=methods, pace=pace, barrier=barrier):
        await until_async(lambda: Recording.until)
        assert (Recording.until[-1] > 1e6) is told
        barrier.set_missing(frozenset({base / "vault" / "gone"}))
        await until_async(lambda: Recording.until[-1] < 1e6)


async def test_a_root_that_may_be_closed_is_looked_at(base: Path) -> None:
    """An event of a root itself may tell of other permissions: nobody looks at it by itself for long."""
    asked = [0]

    def mounts() -> str:
        asked[0] += 1
        return ""

    methods = WatchMethods(recursive=False, feed=FLAT.feed, mountinfo=mounts)
    async with watching(ExtraDirectory(base / "vault"), methods=methods) as seen:
        (base / "vault" / "b.md").write_text("b")
        await seen.changed(base / "vault" / "b.md")
        before = asked[0]
        (base / "vault").chmod(0o500)
        await until_async(lambda: asked[0] > before)
        assert seen.rescans() == 1


@pytest.mark.parametrize("fails", [False, True])
async def test_a_mount_that_came_or_went_since_a_scan_is_to_be_looked_at(base: Path, *, fails: bool) -> None:
    """As soon as the system tells of mounts, and if it cannot be looked at just then, by the next look."""
    barrier, asked, disk = EventBarrier(), [0], base / "vault" / "sub"
    barrier.set_mounts(frozenset({disk}), frozenset())

    def mounts() -> str:
        asked[0] += 1
        if fails and asked[0] == 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return mountinfo()

    feed = Scripted(EventBatch(remounted=True)).methods.feed
    methods = WatchMethods(recursive=False, feed=feed, mountinfo=mounts)
    pace = WatcherPace(check_s=0.05 if fails else 1e9)
    async with watching(ExtraDirectory(base / "vault"), methods=methods, pace=pace, barrier=barrier) as seen:
        await seen.changed(disk)
        assert asked[0] == 4 if fails else 3
        assert (seen.rescans(), seen.paths()) == (1, {disk})


class Late(ScriptedFeed):
    """A directory comes while the watches are set."""

    def __init__(self, directory: Path) -> None:
        super().__init__(None)
        self._directory = directory

    async def start(self, plan: WatchPlan) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)  # nobody watches yet
        await super().start(plan)


async def test_a_directory_that_came_while_watches_were_set_is_to_be_looked_at(base: Path) -> None:
    """No event tells of it, nor of what is in it: until it is watched, each search looks at all."""
    barrier = EventBarrier()
    methods = WatchMethods(recursive=False, feed=lambda: Late(base / "vault" / "new" / "er"))
    pace = WatcherPace(check_s=1e9, rewatch_quiet_s=1000.0, rewatch_cap_s=1000.0)
    async with watching(ExtraDirectory(base / "vault"), methods=methods, pace=pace, barrier=barrier):
        assert await barrier.drained(20.0) == frozenset({base / "vault"})


async def test_a_directory_that_came_while_watches_were_set_is_watched_soon(base: Path) -> None:
    """The watches are set once more."""
    new = base / "vault" / "new"
    methods = WatchMethods(recursive=False, feed=lambda: Late(new))
    async with watching(ExtraDirectory(base / "vault"), methods=methods, pace=PACE) as seen:
        await seen.rescanned(2)
        (new / "b.md").write_text("b")
        await seen.changed(new / "b.md")


async def test_a_file_that_came_is_watched_by_the_next_watches_too(base: Path) -> None:
    """It may have been written under its other name while there were none."""
    note, outside = base / "vault" / "b.md", base / "outside.md"
    outside.write_text("b")
    async with watching(ExtraDirectory(base / "vault")) as seen:
        note.hardlink_to(outside)
        await seen.changed(note)
        seen.events.clear()
        await seen.stirred((base / "vault" / "new").mkdir)
        await seen.changed(note)
        seen.events.clear()
        outside.write_text("more")
        await seen.changed(note)


async def test_what_is_wrong_with_each_root_is_told_once(base: Path) -> None:
    """A place without a source is told by its kind; a root that is missing twice once."""
    info = mountinfo((str(base / "vault"), "fuse.sshfs", ""))
    methods = WatchMethods(recursive=False, feed=FLAT.feed, mountinfo=lambda: info)
    roots: list[Root] = [
        ExtraDirectory(base / "vault"),
        SingleFile(base / "none", "a.md"),
        SingleFile(base / "none", "b.md"),
    ]
    async with watching(*roots, methods=methods) as seen:
        pass
    missing, distant = seen.reasons()[0].split("; it is watched as soon as it does; ")
    assert missing == f"{base / 'none'} does not exist"
    assert distant.startswith(
        f"{base / 'vault'} (fuse.sshfs): what others change there is looked for every few seconds"
    )


@pytest.mark.parametrize(
    ("platform", "recursive", "feed"),
    [("linux", False, InotifyFeed), ("darwin", True, LibraryFeed), ("freebsd14", False, LibraryFeed)],
)
def test_how_each_platform_watches(platform: str, feed: type[object], *, recursive: bool) -> None:
    """Only macOS watches a tree by its top."""
    methods = methods_of(platform)
    assert (methods.recursive, methods.feed, methods.mountinfo) == (recursive, feed, read_mounts)


def test_the_shipped_pace() -> None:
    """In seconds: the other tests bring a faster one."""
    assert WatcherPace() == WatcherPace(
        check_s=2.0,
        check_with_events_s=60.0,
        check_timeout_s=0.5,
        rewatch_quiet_s=0.2,
        rewatch_cap_s=2.0,
        trusted_s=5.0,
        retry_s=2.0,
        retry_cap_s=60.0,
    )


async def test_a_watch_that_worked_is_set_again_at_once(base: Path) -> None:
    """A watch that breaks after it worked for a while is set again, with a rescan and no alarm."""
    async with watching(ExtraDirectory(base / "vault"), methods=Scripted(Later("a bug")).methods) as seen:
        await seen.rescanned(2)
        (base / "vault" / "b.md").write_text("b")
        await seen.changed(base / "vault" / "b.md")
    assert set(seen.health()) == {True}
    assert RescanNeeded("watching began again") in seen.events


async def test_attempts_to_watch_again_grow_rare(base: Path) -> None:
    """However often setting the watches fails, each attempt waits longer than the one before."""
    scripted = Scripted(*[LIMIT] * 50)
    pace = WatcherPace(trusted_s=0.0, retry_s=0.02, retry_cap_s=1000.0)
    times: list[float] = []
    clock = asyncio.get_running_loop().time
    async with aclosing(
        watch([ExtraDirectory(base / "vault")], methods=scripted.methods, pace=pace, rng=Random(1))
    ) as events:
        async for event in events:
            assert isinstance(event, WatcherHealth)
            times.append(clock())
            if len(times) == 5:
                break
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert all(wait >= 0.01 * 2**n for n, wait in enumerate(waits))
    assert scripted.armed == 5


@pytest.mark.parametrize("failure", [FileNotFoundError("gone"), PermissionError("closed")])
async def test_a_directory_goes_away_before_it_is_watched(base: Path, failure: OSError) -> None:
    """When a directory goes away between being found and being watched, the others are found again."""
    scripted = Scripted(failure, failure)
    async with watching(ExtraDirectory(base / "vault"), methods=scripted.methods) as seen:
        assert seen.events == [WatcherHealth(ok=True), RescanNeeded("watching began")]
    assert scripted.armed == 3


async def test_directories_that_keep_going_away(base: Path) -> None:
    """When that does not end, watching is impossible for now."""
    pace = WatcherPace(check_s=0.05, trusted_s=10.0, retry_s=100.0)
    scripted = Scripted(*[FileNotFoundError("gone")] * 50)
    async with watching(
        ExtraDirectory(base / "vault"), pace=pace, methods=scripted.methods, first=WatcherHealth
    ) as seen:
        assert seen.health() == [False]
        assert seen.reasons()[0].endswith(": gone")
    assert scripted.armed == shipped("memd.watch.watcher._ATTEMPTS")


async def test_whoever_waits_is_not_kept_by_gathering(base: Path) -> None:
    """What was written before the question has been announced when it is answered, however long events are gathered."""
    barrier = EventBarrier()
    patient = WatchMethods(recursive=False, feed=lambda: InotifyFeed(gather_s=1000.0))
    pace = WatcherPace(check_s=1e9)
    async with watching(ExtraDirectory(base / "vault"), methods=patient, pace=pace, barrier=barrier) as seen:
        assert await barrier.drained(20.0) == frozenset()
        for number in range(20):
            note = base / "vault" / "sub" / f"{number}.md"
            note.write_text("new")
            assert await barrier.drained(20.0) == frozenset()
            assert note in seen.paths()


async def test_a_directory_that_came_is_to_be_looked_at(base: Path) -> None:
    """No event tells what is written in a new directory: it is named to whoever asks, as long as nobody watches it."""
    barrier = EventBarrier()
    new, renamed = base / "vault" / "new", base / "vault" / "renamed"
    pace = WatcherPace(check_s=1e9, rewatch_quiet_s=1000.0, rewatch_cap_s=1000.0)
    async with watching(ExtraDirectory(base / "vault"), pace=pace, barrier=barrier):
        assert await barrier.drained(20.0) == frozenset()
        new.mkdir()
        assert await barrier.drained(20.0) == frozenset({new})
        (new / "b.md").write_text("b")
        assert await barrier.drained(20.0) == frozenset({new})
        (base / "vault" / "sub").rename(renamed)
        assert await barrier.drained(20.0) == frozenset({new, renamed, base / "vault" / "sub"})


async def test_a_directory_that_came_is_watched_in_the_end(base: Path) -> None:
    """Once new directories are watched, they need not be looked at, and what is written in them is announced."""
    barrier = EventBarrier()
    new = base / "vault" / "new"
    async with watching(ExtraDirectory(base / "vault"), barrier=barrier) as seen:
        await seen.stirred(new.mkdir)
        assert await barrier.drained(20.0) == frozenset()
        (new / "c.md").write_text("c")
        await barrier.drained(20.0)
        assert new / "c.md" in seen.paths()


async def test_after_lost_events_everything_is_to_be_looked_at(base: Path) -> None:
    """Directories may be among what was lost: until all are watched, any place may hold something unseen."""
    barrier = EventBarrier()
    pace = WatcherPace(check_s=1e9, rewatch_quiet_s=1000.0, rewatch_cap_s=1000.0)
    scripted = Scripted(EventBatch(incomplete=True))
    async with watching(
        ExtraDirectory(base / "vault"), methods=scripted.methods, pace=pace, barrier=barrier
    ) as seen:
        await seen.rescanned(2)
        (base / "vault" / "b.md").write_text("b")
        assert await barrier.drained(20.0) == frozenset({base / "vault"})


@pytest.mark.parametrize(
    ("why", "drained", "absent", "unseen"),
    [
        ("library", None, (), ()),
        ("network", frozenset(), (), ("vault",)),
        ("missing", frozenset(), ("away", "off"), ()),
        ("broken", frozenset(), (), ("vault",)),
    ],
)
async def test_where_not_every_change_is_seen(
    base: Path,
    why: str,
    drained: frozenset[Path] | None,
    absent: tuple[str, ...],
    unseen: tuple[str, ...],
) -> None:
    """Where events come late or not at all, that is said of the places, and of no others; nobody waits."""
    barrier = EventBarrier()
    remote = mountinfo((str(base / "vault"), "nfs4", "nas:/notes"))
    methods = {
        "library": DEEP,
        "network": WatchMethods(recursive=False, feed=FLAT.feed, mountinfo=lambda: remote),
        "missing": FLAT,
        "broken": Scripted(*[LIMIT] * 50).methods,
    }[why]
    roots: list[Root] = [ExtraDirectory(base / "vault")]
    if why == "missing":
        roots += [ExtraDirectory(base / "away"), SingleFile(base / "off", "a.md")]
    pace = WatcherPace(check_s=1e9, trusted_s=10.0, retry_s=100.0)
    async with watching(*roots, methods=methods, pace=pace, first=WatcherHealth, barrier=barrier):
        assert await barrier.drained(20.0) == drained
        assert barrier.absent == {base / name for name in absent}
        assert barrier.unseen == {base / name for name in unseen}


@pytest.mark.parametrize("more", [0, 1])
async def test_very_many_changes(base: Path, more: int) -> None:
    """A batch of very many events asks for a rescan instead of naming them, and for other watches; one of fewer does not."""
    number = shipped("memd.watch.watcher._MANY_EVENTS") + more
    notes = {base / "vault" / f"{n}.md" for n in range(number)}
    scripted = Scripted(EventBatch(frozenset((Change.modified, str(note)) for note in notes)))
    async with watching(ExtraDirectory(base / "vault"), methods=scripted.methods) as seen:
        if more:
            await seen.rescanned(3)
            assert RescanNeeded("very many files changed at once") in seen.events
            assert not seen.paths()
        else:
            await until_async(lambda: seen.paths() == notes)
            assert seen.rescans() == 1


async def test_lost_events(base: Path) -> None:
    """Where events were lost it asks for a rescan, and sets the watches anew: directories may have come."""
    note = str(base / "vault" / "a.md")
    scripted = Scripted(EventBatch(frozenset({(Change.modified, note)}), incomplete=True))
    async with watching(ExtraDirectory(base / "vault"), methods=scripted.methods) as seen:
        await seen.rescanned(3)
        assert scripted.armed == 2
    assert not seen.paths()


async def test_a_storm_of_directories(base: Path) -> None:
    """While directories keep coming the watches are set anew from time to time, and all are watched in the end."""
    async with watching(ExtraDirectory(base / "vault")) as seen:
        deep = base / "vault"
        for n in range(40):
            deep = deep / f"d{n}" if n % 4 else base / "vault" / f"d{n}"
            deep.mkdir()
            await asyncio.sleep(0.005)
        notes = [path / "last.md" for path in (base / "vault").rglob("d*")]
        await until_async(lambda: [note.write_text("x") for note in notes] and seen.paths() >= set(notes))


@METHODS
async def test_transcripts_are_followed(base: Path, methods: WatchMethods) -> None:
    """They are seen to grow, to be renamed and deleted, in new directories too; what lies beside them is not."""
    root = SessionPaths(base / "codex", "codex", "codex")
    day = base / "codex" / "2026" / "03" / "02"
    day.mkdir(parents=True)
    names = [f"rollout-2026-03-02T01-02-0{number}-x.jsonl" for number in range(3)]
    for name in names:
        (day / name).write_text("{}\n")
    async with watching(root, methods=methods) as seen:
        save_in_place(day / names[0])
        (day / f"{names[0]}.lock").touch()
        (day / names[1]).rename(day / f"{names[1]}.zst")
        (day / names[2]).unlink()
        for name in (names[0], names[1], f"{names[1]}.zst", names[2]):
            await seen.changed(day / name)
        assert day / f"{names[0]}.lock" not in seen.paths()
        new = base / "codex" / "2027" / "01" / "01"
        if methods.recursive:
            new.mkdir(parents=True)
        else:
            await seen.stirred(lambda: new.mkdir(parents=True))
        rollout = new / "rollout-2027-01-01T01-02-03-x.jsonl"
        rollout.write_text("{}\n")
        await until_async(
            lambda: (
                any(path == rollout or path in rollout.parents for path in seen.paths()) or seen.rescans() > 2
            )
        )


async def test_transcripts_that_are_not_there_cost_notes_nothing(base: Path) -> None:
    """The barrier reports notes all the same, and only a home that is expected is missed."""
    missing = SessionPaths(base / "none", "codex", "codex")
    archive = SessionPaths(base / "archive", "codex", "codex", archived=True, expected=False)
    barrier = EventBarrier()
    async with watching(Workspace(base / "ws"), missing, archive, barrier=barrier) as seen:
        assert await barrier.drained(10) == frozenset()
        assert seen.reasons() == [f"{base / 'none'} does not exist; it is watched as soon as it does"]
        await seen.stirred(archive.directory.mkdir)
        assert await barrier.drained(10) == frozenset()
