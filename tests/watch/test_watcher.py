"""The file system as a stream of changes."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest
from anyio.to_thread import current_default_thread_limiter
from watchfiles import Change, awatch
from watchfiles._rust_notify import WatchfilesRustInternalError

from memd.paths import Root, SingleFile, Tree, Workspace
from memd.watch.watcher import Arm, Changed, Event, Health, Pace, RawEvent, Rescan, watch
from tests.wait import until_async

PACE = Pace(
    debounce_ms=10,
    step_ms=5,
    check_s=0.05,
    settle_s=0.03,
    settle_cap_s=0.3,
    trusted_s=0.0,
    poll_s=0.02,
    retry_s=0.1,
)
RECURSIVE = pytest.mark.parametrize("recursive", [False, True], ids=["flat", "deep"])


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory with a workspace ws and a vault, each with a note."""
    base = Path(os.path.realpath(tmp_path))
    for note in ("ws/memory/sub/a.md", "vault/sub/a.md"):
        (base / note).parent.mkdir(parents=True)
        (base / note).write_text("first")
    return base


class Seen:
    """The events so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def paths(self) -> set[Path]:
        return {path for event in self.events if isinstance(event, Changed) for path in event.paths}

    def rescans(self) -> int:
        return sum(isinstance(event, Rescan) for event in self.events)

    def health(self) -> list[bool]:
        return [event.ok for event in self.events if isinstance(event, Health)]

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
    *roots: Root, recursive: bool = False, pace: Pace = PACE, arm: Arm = awatch
) -> AsyncIterator[Seen]:
    seen = Seen()

    async def collect() -> None:
        async with aclosing(watch(roots, recursive=recursive, pace=pace, arm=arm)) as events:
            async for event in events:
                seen.events.append(event)

    task = asyncio.create_task(collect())
    try:
        await seen.rescanned(1)
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


@RECURSIVE
@pytest.mark.parametrize(
    "save", [save_in_place, save_by_rename, save_anew, save_with_backup, Path.unlink, Path.touch]
)
@pytest.mark.parametrize("note", ["ws/memory/sub/a.md", "vault/sub/a.md"])
async def test_a_saved_note(base: Path, note: str, save: Callable[[Path], None], recursive: bool) -> None:
    """However an editor saves a note, the change is seen, and nothing else is."""
    async with watching(Workspace(base / "ws"), Tree(base / "vault"), recursive=recursive) as seen:
        save(base / note)
        await seen.changed(base / note)
    assert {path for path in seen.paths() if path.suffix == ".md"} == {base / note}


async def test_begins_with_health_and_a_rescan(base: Path) -> None:
    """Whoever starts to listen is told that watching works, then to look at everything."""
    async with watching(Workspace(base / "ws")) as seen:
        pass
    assert seen.events == [Health(ok=True), Rescan("watching began")]


@RECURSIVE
async def test_the_workspace_itself(base: Path, recursive: bool) -> None:
    """Of the files in the workspace only the curated ones are seen."""
    workspace = base / "ws"
    async with watching(Workspace(workspace), recursive=recursive) as seen:
        (workspace / "README.md").write_text("code")
        (workspace / "src").mkdir()
        (workspace / "src" / "a.md").write_text("code")
        (workspace / "MEMORY.md").write_text("curated")
        await seen.changed(workspace / "MEMORY.md")
    assert seen.paths() == {workspace / "MEMORY.md"}


@RECURSIVE
async def test_a_single_file(base: Path, recursive: bool) -> None:
    """An extra file is seen, also when it is replaced; its neighbours are not."""
    async with watching(SingleFile(base, "todo.md"), recursive=recursive) as seen:
        (base / "other.md").write_text("other")
        (base / "todo.md").write_text("first")
        await seen.changed(base / "todo.md")
        seen.events.clear()
        save_by_rename(base / "todo.md")
        await seen.changed(base / "todo.md")
    assert seen.paths() == {base / "todo.md"}


@RECURSIVE
async def test_a_new_directory(base: Path, recursive: bool) -> None:
    """A new directory comes out itself, for the files in it; later ones come out one by one."""
    new = base / "ws" / "memory" / "2026" / "01"
    async with watching(Workspace(base / "ws"), recursive=recursive) as seen:
        new.mkdir(parents=True)
        (new / "a.md").write_text("early")
        await seen.changed(new.parent)
        if not recursive:
            await seen.rescanned(2)
        (new / "b.md").write_text("late")
        await seen.changed(new / "b.md")


@RECURSIVE
async def test_a_renamed_directory(base: Path, recursive: bool) -> None:
    """Both names of a renamed directory come out; what is written in it afterwards is seen by the new name."""
    old, new = base / "vault" / "sub", base / "vault" / "renamed"
    async with watching(Tree(base / "vault"), recursive=recursive) as seen:
        old.rename(new)
        await seen.changed(old)
        await seen.changed(new)
        if not recursive:
            await seen.rescanned(2)
        (new / "b.md").write_text("late")
        await seen.changed(new / "b.md")


@RECURSIVE
async def test_a_deleted_directory(base: Path, recursive: bool) -> None:
    """A directory that is moved away comes out, and so does one that is deleted and made anew."""
    sub = base / "vault" / "sub"
    async with watching(Tree(base / "vault"), recursive=recursive) as seen:
        sub.rename(base / "aside")
        await seen.changed(sub)
        before = seen.rescans()
        sub.mkdir()
        if not recursive:
            await seen.rescanned(before + 1)
        await until_async(lambda: not (sub / "b.md").write_text("b") or sub / "b.md" in seen.paths())


@RECURSIVE
async def test_memory_comes_later(base: Path, recursive: bool) -> None:
    """A memory/ that is made after the start is watched."""
    shutil.rmtree(base / "ws" / "memory")
    memory = base / "ws" / "memory"
    async with watching(Workspace(base / "ws"), recursive=recursive) as seen:
        await seen.stirred(memory.mkdir)
        (memory / "a.md").write_text("first")
        await seen.changed(memory / "a.md")


@RECURSIVE
async def test_a_root_comes_later(base: Path, recursive: bool) -> None:
    """A root that is not there at the start is watched when it comes."""
    async with watching(Tree(base / "away" / "vault"), recursive=recursive) as seen:
        assert seen.health() == [True]
        await seen.stirred(lambda: (base / "away" / "vault").mkdir(parents=True))
        (base / "away" / "vault" / "b.md").write_text("b")
        await seen.changed(base / "away" / "vault" / "b.md")


@RECURSIVE
@pytest.mark.parametrize("root", ["ws", "ws/memory", "vault"])
async def test_a_root_vanishes_and_returns(base: Path, root: str, recursive: bool) -> None:
    """Going and returning of a root each ask for a rescan; afterwards its changes are seen again."""
    async with watching(Workspace(base / "ws"), Tree(base / "vault"), recursive=recursive) as seen:
        await seen.stirred(lambda: (base / root).rename(base / "aside"))
        await seen.stirred(lambda: shutil.copytree(base / "aside", base / root))
        note = next((base / root).rglob("a.md"))
        await until_async(lambda: not note.write_text("again") or note in seen.paths())


@RECURSIVE
async def test_a_root_is_exchanged(base: Path, recursive: bool) -> None:
    """Another directory in the place of a root, as a mount would put it, is noticed and watched."""
    shutil.copytree(base / "vault", base / "other")

    def exchange() -> None:
        (base / "vault").rename(base / "aside")
        (base / "other").rename(base / "vault")

    async with watching(Tree(base / "vault"), recursive=recursive) as seen:
        await seen.stirred(exchange)
        note = base / "vault" / "sub" / "a.md"
        await until_async(lambda: not note.write_text("again") or note in seen.paths())


async def test_a_directory_becomes_listable(base: Path) -> None:
    """A directory whose permissions change comes out: what can be read there may have changed."""
    sub = base / "vault" / "sub"
    async with watching(Tree(base / "vault")) as seen:
        sub.chmod(0o700)
        await seen.changed(sub)


async def test_symlinks_are_not_followed(base: Path) -> None:
    """What changes behind a symlink below a root is not seen."""
    (base / "outside").mkdir()
    (base / "vault" / "link").symlink_to(base / "outside")
    async with watching(Tree(base / "vault")) as seen:
        (base / "outside" / "a.md").write_text("outside")
        (base / "vault" / "b.md").write_text("inside")
        await seen.changed(base / "vault" / "b.md")
    assert seen.paths() == {base / "vault" / "b.md"}


async def test_a_name_that_is_not_utf8(base: Path) -> None:
    """A file whose name no string can hold does not end the watching."""
    async with watching(Tree(base / "vault")) as seen:
        odd = os.fsencode(base / "vault") + b"/\xff.md"
        await seen.stirred(lambda: os.close(os.open(odd, os.O_CREAT | os.O_WRONLY)))
        await until_async(
            lambda: not (base / "vault" / "b.md").write_text("b") or base / "vault" / "b.md" in seen.paths()
        )
    assert False not in seen.health()


async def test_more_watches_than_threads(base: Path) -> None:
    """Each watch brings a thread of its own: none waits for another to end."""
    limiter = current_default_thread_limiter()
    usual, limiter.total_tokens = limiter.total_tokens, 1
    async with watching(Tree(base / "vault")) as first, watching(Tree(base / "vault")) as second:
        (base / "vault" / "b.md").write_text("b")
        await first.changed(base / "vault" / "b.md")
        await second.changed(base / "vault" / "b.md")
    assert limiter.total_tokens == 1
    assert limiter.borrowed_tokens == 0
    limiter.total_tokens = usual


@RECURSIVE
async def test_cancelling_ends_the_threads(base: Path, recursive: bool) -> None:
    """When the task that listens has ended, nothing watches any longer."""
    limiter = current_default_thread_limiter()
    async with watching(Workspace(base / "ws"), Tree(base / "vault"), recursive=recursive):
        await until_async(lambda: limiter.borrowed_tokens == 1 + recursive)
    assert limiter.borrowed_tokens == 0


async def test_closing_ends_the_threads(base: Path) -> None:
    """When the stream is closed by its reader, nothing watches any longer."""
    limiter = current_default_thread_limiter()
    async with aclosing(watch([Tree(base / "vault")], pace=PACE)) as events:
        assert await anext(events) == Health(ok=True)
        await until_async(lambda: limiter.borrowed_tokens == 1)
    assert limiter.borrowed_tokens == 0


class Arming:
    """An awatch that does what it is told, then watches in truth."""

    def __init__(self, *scripts: Exception | set[RawEvent] | None) -> None:
        self._scripts = list(scripts)
        self.armed = 0

    async def __call__(
        self,
        *paths: Path,
        watch_filter: None,
        debounce: int,
        step: int,
        stop_event: asyncio.Event,
        rust_timeout: int,
        recursive: bool,
        ignore_permission_denied: bool,
    ) -> AsyncIterator[set[RawEvent]]:
        self.armed += 1
        script = self._scripts.pop(0) if self._scripts else "watch"
        if isinstance(script, OSError):
            raise script
        if isinstance(script, Exception):
            # A running watch fails in the group of the library's tasks.
            await asyncio.sleep(0.05)
            raise ExceptionGroup("tasks", [script])
        if script is None:
            return
        if isinstance(script, set):
            yield script
        async for batch in awatch(
            *paths,
            watch_filter=None,
            debounce=debounce,
            step=step,
            stop_event=stop_event,
            recursive=recursive,
        ):
            yield batch


LIMIT = OSError("OS file watch limit reached.")
INTERNAL = WatchfilesRustInternalError("error in underlying watcher")


@pytest.mark.parametrize(
    "failure", [LIMIT, INTERNAL, None], ids=["no watches left", "broken inside", "ended"]
)
async def test_polls_where_watching_fails(base: Path, failure: Exception | None) -> None:
    """Where watching is impossible it says so, asks for rescans again and again, and recovers by itself."""
    pace = Pace(
        debounce_ms=10, step_ms=5, check_s=0.05, settle_s=0.03, trusted_s=10.0, poll_s=0.02, retry_s=0.2
    )
    async with watching(Tree(base / "vault"), pace=pace, arm=Arming(failure, failure)) as seen:
        await until_async(lambda: seen.health()[-1:] == [True] and seen.health().count(False) == 2)
        polled = [event for event in seen.events if event == Rescan("changes are not seen as they happen")]
        assert len(polled) > 4
        await until_async(lambda: seen.events[-1] == Rescan("watching began again"))
        (base / "vault" / "b.md").write_text("b")
        await seen.changed(base / "vault" / "b.md")
    broken = next(event for event in seen.events if isinstance(event, Health) and not event.ok)
    assert broken.reason is not None
    assert (str(failure) if failure else "the watch ended") in broken.reason


async def test_a_watch_that_worked_is_set_again_at_once(base: Path) -> None:
    """A watch that breaks after it worked for a while is set again, with a rescan and no alarm."""
    async with watching(Tree(base / "vault"), arm=Arming(INTERNAL)) as seen:
        await seen.rescanned(2)
        (base / "vault" / "b.md").write_text("b")
        await seen.changed(base / "vault" / "b.md")
    assert set(seen.health()) == {True}
    assert Rescan("watching began again") in seen.events


async def test_a_watch_that_never_worked_is_not_set_again_at_once(base: Path) -> None:
    """However long it took to fail, a watch that could not be set is tried again only after a while."""
    arm = Arming(*[LIMIT] * 50)
    async with watching(Tree(base / "vault"), pace=Pace(trusted_s=0.0, poll_s=0.02), arm=arm) as seen:
        await seen.rescanned(3)
    assert seen.health() == [False]
    assert arm.armed == 1


@pytest.mark.parametrize("failure", [FileNotFoundError("gone"), PermissionError("closed")])
async def test_a_directory_goes_away_before_it_is_watched(base: Path, failure: OSError) -> None:
    """When a directory goes away between being found and being watched, the others are found again."""
    arm = Arming(failure, failure)
    async with watching(Tree(base / "vault"), arm=arm) as seen:
        assert seen.events == [Health(ok=True), Rescan("watching began")]
    assert arm.armed == 3


async def test_directories_that_keep_going_away(base: Path) -> None:
    """When that does not end, watching is impossible for now."""
    pace = Pace(check_s=0.05, trusted_s=10.0, poll_s=0.02, retry_s=10.0)
    arm = Arming(*[FileNotFoundError("gone")] * 50)
    async with watching(Tree(base / "vault"), pace=pace, arm=arm) as seen:
        assert seen.health() == [False]
    assert arm.armed < 10


async def test_very_many_changes(base: Path) -> None:
    """A batch so large that events may be lost asks for a rescan instead of naming them."""
    batch = {(Change.modified, str(base / "vault" / f"{n}.md")) for n in range(2000)}
    async with watching(Tree(base / "vault"), arm=Arming(batch)) as seen:
        await seen.rescanned(3)
    assert Rescan("many files changed at once") in seen.events
    assert not seen.paths()


async def test_a_storm_of_directories(base: Path) -> None:
    """While directories keep coming the watches are set anew from time to time, and all are watched in the end."""
    async with watching(Tree(base / "vault")) as seen:
        deep = base / "vault"
        for n in range(40):
            deep = deep / f"d{n}" if n % 4 else base / "vault" / f"d{n}"
            deep.mkdir()
            await asyncio.sleep(0.005)
        notes = [path / "last.md" for path in (base / "vault").rglob("d*")]
        await until_async(lambda: [note.write_text("x") for note in notes] and seen.paths() >= set(notes))
