"""Glances that never hold a search up."""

import asyncio
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from memd.domain_types import FoundFile, Kind, Stamp
from memd.indexing.recent_files import LOOK_S, NEWEST, RecentFileCheck, RecentFiles
from memd.indexing.watch_changes import Looks
from memd.runtime.threads import Threads
from memd.sources.root_links import RootLinks
from memd.sources.safe_open import ProcessExhausted
from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, SingleFile, Workspace
from memd.watch.watch_plan import identities_of
from tests.bounds import shipped
from tests.wait import until_async

NOTE = Path("/w/memory/a.md")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def nothing(_: frozenset[Path]) -> Looks:
    return {}


class Dead(RecentFiles):
    """A glance at a disk that answers when the test says so."""

    def __init__(self) -> None:
        super().__init__(tuple[Root, ...]())
        self.answers = threading.Event()
        self.looks = 0

    def changed(self) -> list[Path]:
        self.looks += 1
        self.answers.wait(30)
        return [NOTE]


async def test_a_moment_without_threads_is_over_when_it_is_over(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be looked at then is unknown then, and is looked at by whoever asks later."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    recent = RecentFileCheck(RecentFiles([ExtraDirectory(base)]), Threads(1, "test"), nothing)
    roots = identities_of([ExtraDirectory(base)])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert await recent.changed(5.0) is None
        assert await recent.replaced(roots, 5.0) is None
    assert await recent.changed(5.0) == []
    assert await recent.replaced(roots, 5.0) == []


async def test_a_disk_that_does_not_answer_is_waited_for_once() -> None:
    """The first search waits as long as it may, those after it not at all, and one thread is lost."""
    glance, threads = Dead(), Threads(1, "test")
    recent = RecentFileCheck(glance, threads, nothing)
    assert await recent.changed(0.05) is None
    async with asyncio.timeout(60):
        for _ in range(200):
            assert await recent.changed(0.05) is None
    assert (glance.looks, threads.count) == (1, 1)
    assert recent.blocked_s() > 0.05
    glance.answers.set()
    await until_async(lambda: recent.blocked_s() == 0.0)
    assert await recent.changed(5.0) == [NOTE]


async def test_a_look_is_shared_by_those_that_asked_before_it_began() -> None:
    """Searches that ask while one look is under way share the next one, which begins after they asked."""
    glance, threads = Dead(), Threads(1, "test")
    recent = RecentFileCheck(glance, threads, nothing)
    first = asyncio.create_task(recent.changed(20.0))
    await until_async(lambda: glance.looks == 1)
    others = [asyncio.create_task(recent.changed(20.0)) for _ in range(50)]
    await asyncio.sleep(0)
    glance.answers.set()
    assert await asyncio.gather(first, *others) == [[NOTE]] * 51
    assert glance.looks == 2


async def test_a_search_that_gives_up_takes_nothing_from_others() -> None:
    """A look is waited for by many; one that is cancelled leaves it to the others."""
    glance = Dead()
    recent = RecentFileCheck(glance, Threads(1, "test"), nothing)
    given_up, kept = asyncio.create_task(recent.changed(20.0)), asyncio.create_task(recent.changed(20.0))
    await until_async(lambda: glance.looks == 1)
    given_up.cancel()
    await asyncio.wait([given_up])
    glance.answers.set()
    assert await kept == [NOTE]


W, NONE = frozenset({Path("/w")}), frozenset[Path]()


class Mount:
    """Files on a network mount, and how long it takes to look at them."""

    def __init__(self) -> None:
        self.files = {NOTE: Stamp(1, 1, 1)}
        self.takes_s = 0.0
        self.looks = 0

    def __call__(self, places: frozenset[Path]) -> Looks:
        assert places == W
        self.looks += 1
        time.sleep(self.takes_s)
        return dict(self.files)


async def test_all_of_an_unseen_place_is_compared() -> None:
    """The first look tells nothing of what changed before it; each one after it tells what changed since, if anything."""
    mount = Mount()
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), mount)
    assert list(await recent.changed_in(NONE, W, 20.0) or ()) == [Path("/w")]
    assert list(await recent.changed_in(NONE, W, 20.0) or ()) == []
    mount.files[NOTE] = Stamp(1, 2, 1)
    assert list(await recent.changed_in(NONE, W, 20.0) or ()) == [NOTE]


async def test_a_look_that_takes_long_is_no_search_s_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in such a place cannot be told, which is said at once; now and then it is tried whether it became quick."""
    mount = Mount()
    mount.takes_s = LOOK_S * 1.5
    threads = Threads(1, "test")
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), threads, mount)
    await recent.changed_in(NONE, W, 20.0)
    for _ in range(50):
        assert await recent.changed_in(NONE, W, 20.0) is None
    assert mount.looks == 1
    later = time.monotonic() + 3600
    monkeypatch.setattr("memd.indexing.recent_files.time", SimpleNamespace(monotonic=lambda: later))
    assert await recent.changed_in(NONE, W, 20.0) is None, "even then nobody waits for long"
    assert mount.looks == 2


async def test_a_directory_that_came_is_told_with_all_in_it(base: Path) -> None:
    """Neither one that is not there nor one that is a symlink is."""
    (base / "came").mkdir()
    (base / "link").symlink_to(base / "came")
    absent = frozenset(base / name for name in ("came", "link", "none"))
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), nothing)
    assert list(await recent.changed_in(absent, NONE, 20.0) or ()) == [base / "came"]


async def test_a_root_in_the_place_of_another_is_to_be_looked_at(base: Path) -> None:
    """Also where its end was not told: an open file keeps the old one, and directories above are not watched."""
    root, other = base / "above" / "root", base / "other"
    root.mkdir(parents=True)
    roots = identities_of([ExtraDirectory(root)])
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), nothing)
    assert list(await recent.replaced(roots, 20.0) or ()) == []
    root.parent.rename(other)
    assert list(await recent.replaced(roots, 20.0) or ()) == [root]
    root.mkdir(parents=True)
    assert list(await recent.replaced(roots, 20.0) or ()) == [root]
    root.parent.rename(base / "away")
    other.rename(root.parent)
    assert list(await recent.replaced(roots, 20.0) or ()) == []


async def test_a_root_whose_disk_does_not_answer_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked on the thread: neither another agent nor the next search waits for it."""
    answers = threading.Event()
    monkeypatch.setattr("memd.watch.watch_plan.identity_of", lambda _: answers.wait(30) and None)
    threads = Threads(1, "test")
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), threads, nothing)
    async with asyncio.timeout(60):
        for _ in range(50):
            assert await recent.replaced({Path("/w"): (1, 1)}, 0.05) is None
    assert threads.count == 1
    answers.set()
    assert list(await recent.replaced({Path("/w"): (1, 1)}, 20.0) or ()) == [Path("/w")]


async def test_a_look_that_fails_tells_nothing() -> None:
    """Without descriptors, nobody can say what has changed."""

    def fails(_: frozenset[Path]) -> Looks:
        raise ProcessExhausted("no descriptors")

    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), fails)
    assert await recent.changed_in(NONE, W, 20.0) is None


def found(file: Path) -> FoundFile:
    status = file.stat()
    return FoundFile(file.name, str(file), Kind.NOTE, Stamp.of(status))


def after_a_pass(glance: RecentFiles, *files: Path, within: frozenset[Path] | None = None) -> None:
    """A pass over everything, or some paths, that met these files."""
    before = glance.look()
    glance.remember([found(file) for file in files], before, within)


def test_sees_an_edit_a_new_note_and_a_new_memory_md(tmp_path: Path) -> None:
    """What an agent writes shows at once: an edited note, a new one, and a MEMORY.md that was not there."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, note)
    assert glance.changed() == []
    note.write_text("one two")
    assert glance.changed() == [note]
    after_a_pass(glance, note)
    (memory / "b.md").write_text("new")
    assert glance.changed() == [memory / "b.md"]
    after_a_pass(glance)
    (tmp_path / "MEMORY.md").write_text("- fact")
    assert glance.changed() == [tmp_path / "MEMORY.md"]


def test_other_files_of_a_workspace_are_none_of_its_business(tmp_path: Path) -> None:
    """What an agent does beside its memory makes no search slower."""
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance)
    (tmp_path / "main.py").write_text("print()")
    assert glance.changed() == []


@pytest.mark.parametrize("there_at_first", [True, False])
def test_a_file_that_is_an_extra_path_is_looked_at_alone(tmp_path: Path, there_at_first: bool) -> None:
    """Whether or not it was there; what else is in its directory is none of the agent's memory."""
    file = tmp_path / "notes.md"
    if there_at_first:
        file.write_text("one")
    glance = RecentFiles([SingleFile(tmp_path, "notes.md")])
    after_a_pass(glance, *[file] * there_at_first)
    (tmp_path / "other.md").write_text("another program's")
    assert glance.changed() == []
    file.write_text("one two")
    assert glance.changed() == [file]
    after_a_pass(glance, file)
    assert glance.changed() == []
    file.unlink()
    assert glance.changed() == [file]


def test_looks_at_the_newest_of_many(tmp_path: Path) -> None:
    """Of thousands of notes only the newest are looked at, and a deleted one of them shows."""
    files = [tmp_path / f"{number}.md" for number in range(NEWEST + 10)]
    for number, file in enumerate(files):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    glance = RecentFiles([ExtraDirectory(tmp_path)])
    after_a_pass(glance, *files)
    assert glance.changed() == []
    files[0].write_text("an old one that changed")
    assert glance.changed() == []
    files[-1].unlink()
    assert set(glance.changed()) == {files[-1]}


def test_what_is_written_during_a_pass_shows_after_it(tmp_path: Path) -> None:
    """A pass that read a note before it was written, or listed a directory before a note came, hides neither."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, note)
    before, met = glance.look(), found(note)
    note.write_text("one two")
    (memory / "b.md").write_text("new")
    glance.remember([met], before, None)
    assert set(glance.changed()) == {note, memory / "b.md"}


def test_a_pass_over_one_file_hides_no_other(tmp_path: Path) -> None:
    """What a pass was not about looks as it did before."""
    memory = tmp_path / "memory"
    memory.mkdir()
    one, other = memory / "a.md", memory / "b.md"
    for note in (one, other):
        note.write_text("one")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, one, other)
    for note in (one, other):
        note.write_text("one two")
    after_a_pass(glance, one, within=frozenset({one}))
    assert glance.changed() == [other]


def test_a_directory_tells_what_came_went_or_was_replaced(tmp_path: Path) -> None:
    """Of a directory that changed, only the entries that are others now are looked at; no file that is no note."""
    memory = tmp_path / "memory"
    (memory / "sub").mkdir(parents=True)
    old = [memory / f"{number}.md" for number in range(3)]
    for number, file in enumerate(old):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    newest = [memory / "new" / f"{number}.md" for number in range(NEWEST)]
    newest[0].parent.mkdir()
    for file in newest:
        file.write_text("x")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, *old, *newest)
    (memory / "picture.png").write_text("x")
    assert glance.changed() == []
    old[0].unlink()
    (memory / "aside").write_text("replaced in one step, as editors do")
    (memory / "aside").rename(old[1])
    (memory / "sub").rename(memory / "moved")
    assert set(glance.changed()) == {old[0], old[1], memory / "sub", memory / "moved"}
    after_a_pass(glance, within=frozenset({old[0], old[1]}))
    assert memory / "moved" in glance.changed()
    after_a_pass(glance, within=frozenset({memory / "sub", memory / "moved", old[0], old[1]}))
    assert glance.changed() == []


def test_a_change_that_leaves_no_trace_has_the_directory_looked_at(tmp_path: Path) -> None:
    """Where a directory changed and its entries did not, a note may have come again under its old number."""
    memory = tmp_path / "memory"
    memory.mkdir()
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance)
    os.utime(memory, ns=(1, 1))
    assert glance.changed() == [memory]
    after_a_pass(glance, within=frozenset({memory}))
    assert glance.changed() == []


def test_what_is_not_the_same_directory_is_looked_at_with_all_below(tmp_path: Path) -> None:
    """A directory that went, or was replaced by another, is looked at itself."""
    memory = tmp_path / "memory"
    memory.mkdir()
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance)
    memory.rename(tmp_path / "old")
    assert glance.changed() == [memory]
    memory.mkdir()
    (memory / "a.md").write_text("x")
    assert glance.changed() == [memory]


def test_a_clock_that_was_ahead_hides_nothing(tmp_path: Path) -> None:
    """However many notes are dated in the future, the newest of those written in truth are looked at."""
    now_ns = 1_700_000_000 * 10**9
    files = [tmp_path / f"{number}.md" for number in range(NEWEST + 10)]
    for number, file in enumerate(files):
        file.write_text("x")
        ahead_ns = shipped("memd.indexing.recent_files._AHEAD_NS")
        ahead = ahead_ns if number == 0 else ahead_ns + 1_000
        os.utime(file, ns=(now_ns, now_ns + ahead))
    glance = RecentFiles([ExtraDirectory(tmp_path)], lambda: now_ns)
    after_a_pass(glance, *files)
    files[0].write_text("changed")
    assert glance.changed() == [files[0]]


def test_notes_of_the_future_are_looked_at_where_there_are_few_others(tmp_path: Path) -> None:
    """They come last, and transcripts take no place."""
    now_ns = 10**18

    def found(name: str, mtime_ns: int, kind: Kind = Kind.NOTE) -> FoundFile:
        return FoundFile(name, str(tmp_path / name), kind, Stamp(1, mtime_ns, 1))

    def looked_at(files: list[FoundFile]) -> set[str]:
        fresh = RecentFiles([ExtraDirectory(tmp_path)], lambda: now_ns)
        fresh.remember(files, {}, None)
        return {path.name for path in fresh.look() if path != tmp_path}

    ahead = [found(f"ahead{n}.md", 2 * now_ns + n) for n in range(3)]
    said = [found(f"said{n}.jsonl", now_ns - n, Kind.SESSION) for n in range(9)]
    few = [found(f"{n}.md", n) for n in range(NEWEST - 2)]
    assert looked_at([*ahead, *said, *few]) == {one.path for one in (*few, *ahead[1:])}
    many = [found(f"{n}.md", n // 2) for n in range(3 * NEWEST + 1)]
    newest = sorted(many, key=lambda one: (one.stamp.mtime_ns, one.location))[-NEWEST:]
    assert looked_at([*ahead, *said, *many]) == {one.path for one in newest}


def test_what_is_deleted_makes_room(tmp_path: Path) -> None:
    """When the newest notes are deleted, others are looked at in their place."""
    files = [tmp_path / f"{number}.md" for number in range(2 * NEWEST)]
    for number, file in enumerate(files):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    glance = RecentFiles([ExtraDirectory(tmp_path)])
    after_a_pass(glance, *files)
    for file in files[NEWEST:]:
        file.unlink()
    after_a_pass(glance, *files[:NEWEST])
    files[0].write_text("changed")
    assert glance.changed() == [files[0]]


def test_a_directory_that_cannot_be_listed_is_looked_at_with_all_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it changes, whoever looks learns what is wrong; a search waits for no transcript at all."""
    memory, chats = tmp_path / "memory", tmp_path / "chats"
    memory.mkdir()
    chats.mkdir()
    glance = RecentFiles([Workspace(tmp_path), SessionPaths(chats, "chats", "plain")])
    after_a_pass(glance)

    def refused(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr("memd.indexing.recent_files.os.scandir", refused)
    assert glance.changed() == []
    (memory / "a.md").write_text("x")
    (chats / "a.jsonl").write_text("{}")
    assert glance.changed() == [memory]


async def test_a_link_that_moves_while_nobody_searches_is_noticed(base: Path) -> None:
    """A comparison in each period finds it; one that leads nowhere is waited for."""
    link, other = base / "link", base / "other"
    link.symlink_to(base / "one")
    links = RootLinks({link: base / "one"})
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), nothing, links)
    link.unlink()
    moved = asyncio.create_task(recent.links_moved(period_s=0.01))
    await until_async(lambda: links.changed is not None)
    assert not links.is_moved
    other.mkdir()
    link.symlink_to(other)
    async with asyncio.timeout(60):
        await moved
    assert links.is_moved


async def test_an_agent_without_links_compares_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It wakes for nothing."""
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), nothing)
    monkeypatch.setattr(RecentFileCheck, "_ask", None)
    moved = asyncio.create_task(recent.links_moved(period_s=0.001))
    await recent.compare_links()
    await asyncio.sleep(0.01)
    assert not moved.done()
    moved.cancel()


async def test_a_look_that_takes_long_is_taken_again_after_so_many_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then it is told at once that nothing is known."""
    share, took_s, now_s = shipped("memd.indexing.recent_files._SHARE"), 2.0, 0.0

    class SlowMount(Mount):
        def __call__(self, places: frozenset[Path]) -> Looks:
            nonlocal now_s
            now_s += took_s
            return super().__call__(places)

    clock = SimpleNamespace(monotonic=lambda: now_s, time_ns=time.time_ns)
    for module in ("recent_files", "watch_changes"):
        monkeypatch.setattr(f"memd.indexing.{module}.time", clock)
    mount = SlowMount()
    recent = RecentFileCheck(RecentFiles(tuple[Root, ...]()), Threads(1, "test"), mount)
    await recent.changed_in(NONE, W, 20.0)
    now_s = took_s + share * took_s - 0.1
    assert await recent.changed_in(NONE, W, 20.0) is None
    assert mount.looks == 1
    now_s = took_s + share * took_s
    await recent.changed_in(NONE, W, 20.0)
    await until_async(lambda: mount.looks == 2)
