"""Which raw events concern memory."""

from pathlib import Path

import pytest

from memd.text.memory_paths import ExtraDirectory, SessionPaths, SingleFile, Workspace
from memd.watch.events import Change, filter_events
from memd.watch.watch_plan import RootState, WatchPlan
from tests.table import table

ADDED, MODIFIED, DELETED = Change.added, Change.modified, Change.deleted
WORKSPACE = Workspace(Path("/ws"))
ROOTS = (WORKSPACE, ExtraDirectory(Path("/vault")), SingleFile(Path("/home"), "todo.md"))
FLAT = WatchPlan(
    flat=frozenset(map(Path, ("/ws", "/ws/memory", "/ws/memory/sub", "/vault", "/home"))),
    deep=frozenset(),
    root_state=RootState({}, {}),
)
DEEP = WatchPlan(
    flat=frozenset(map(Path, ("/ws", "/home"))),
    deep=frozenset(map(Path, ("/ws/memory", "/vault"))),
    root_state=RootState({}, {}),
)
DIRECTORIES = frozenset(
    map(
        Path,
        (
            "/ws/memory",
            "/ws/memory/sub",
            "/ws/memory/new",
            "/ws/memory/new.md",
            "/ws/src",
            "/vault/node_modules",
            "/vault/d",
            "/home/d",
        ),
    )
)


@pytest.mark.parametrize("plan", [FLAT, DEEP], ids=["flat", "deep"])
@pytest.mark.parametrize("change", [ADDED, MODIFIED, DELETED])
@pytest.mark.parametrize(
    ("path", "concerns"),
    [
        ("/ws/MEMORY.md", True),
        ("/ws/user.md", True),
        ("/ws/README.md", False),
        ("/ws/package.json", False),
        ("/ws/memory/a.md", True),
        ("/ws/memory/.a.md.swp", False),
        ("/ws/memory/.a.md", False),
        ("/ws/memory/.git/a.md", False),
        ("/vault/node_modules/p/README.md", False),
        ("/vault/x/a.MD", True),
        ("/home/todo.md", True),
        ("/home/other.md", False),
        ("/elsewhere/a.md", False),
    ],
)
def test_files(path: str, concerns: bool, change: Change, plan: WatchPlan) -> None:
    """Files that may be notes concern memory, whatever happened to them; no other file does."""
    seen = filter_events([(change, path)], ROOTS, plan, DIRECTORIES.__contains__)
    assert seen.paths == ({Path(path)} if concerns else set())
    assert not seen.restructured


@table(
    ("change", "path", "concerns", "restructured"),
    [
        (ADDED, "/ws/memory/new", True, True),
        (ADDED, "/ws/memory/new.md", True, True),
        (ADDED, "/ws/memory", True, True),
        (ADDED, "/ws/memory/sub", True, True),
        (MODIFIED, "/ws/memory/sub", True, False),
        (MODIFIED, "/ws/memory/new", True, True),
        (DELETED, "/ws/memory/sub", True, True),
        (DELETED, "/ws/memory", True, True),
        (DELETED, "/ws", True, True),
        (DELETED, "/ws/memory/never-watched", False, False),
        (ADDED, "/ws/memory/file", False, False),
        (ADDED, "/ws/src", False, False),
        (ADDED, "/vault/node_modules", False, False),
        (ADDED, "/vault/d", True, True),
        (DELETED, "/vault", True, True),
        (ADDED, "/home/d", False, False),
        (DELETED, "/home", True, True),
    ],
)
def test_directories_watched_one_by_one(
    change: Change, path: str, concerns: bool, restructured: bool
) -> None:
    """A directory that comes or goes stands for its files, and for another set of watches."""
    seen = filter_events([(change, path)], ROOTS, FLAT, DIRECTORIES.__contains__)
    assert seen.paths == ({Path(path)} if concerns else set())
    assert seen.restructured is restructured


@pytest.mark.parametrize(
    ("change", "path", "concerns", "restructured"),
    [
        (ADDED, "/ws/memory/new", True, False),
        (MODIFIED, "/ws/memory/sub", True, False),
        (DELETED, "/ws/memory/was-it-a-directory", True, False),
        (DELETED, "/ws/memory/.hidden", False, False),
        (DELETED, "/ws/memory", True, True),
        (ADDED, "/ws/memory", True, True),
        (DELETED, "/ws", True, True),
        (ADDED, "/ws/src", False, False),
    ],
)
def test_directories_watched_from_above(
    change: Change, path: str, concerns: bool, restructured: bool
) -> None:
    """Where everything below is watched, directories there ask for no other watches."""
    seen = filter_events([(change, path)], ROOTS, DEEP, DIRECTORIES.__contains__)
    assert seen.paths == ({Path(path)} if concerns else set())
    assert seen.restructured is restructured


def test_a_batch() -> None:
    """All events of a batch count."""
    batch = [
        (ADDED, "/ws/memory/a.md"),
        (DELETED, "/ws/memory/b.md"),
        (MODIFIED, "/ws/x"),
        (ADDED, "/vault/d"),
    ]
    seen = filter_events(batch, ROOTS, FLAT, DIRECTORIES.__contains__)
    assert seen.paths == set(map(Path, ("/ws/memory/a.md", "/ws/memory/b.md", "/vault/d")))
    assert seen.unwatched == {Path("/vault/d")}


@pytest.mark.parametrize(
    ("change", "path", "told"),
    [
        (ADDED, "/ws/memory/a.txt", {"/ws", "/vault", "/home/todo.md"}),
        (ADDED, "/ws/MEMORY.bak", {"/ws", "/vault", "/home/todo.md"}),
        (ADDED, "/vault/sub/a.txt", {"/ws", "/vault", "/home/todo.md"}),
        (ADDED, "/elsewhere/a.txt", set()),
        (ADDED, "/ws/src/a.txt", set()),
        (MODIFIED, "/ws/memory/a.txt", set()),
        (ADDED, "/ws/memory/a.md", {"/ws/memory/a.md"}),
    ],
)
def test_a_file_that_is_no_note_may_be_another_name_of_one(change: Change, path: str, told: set[str]) -> None:
    """A hard link that comes beside notes has all of them looked at; what only changes, or lies elsewhere, does not."""
    seen = filter_events([(change, path)], ROOTS, FLAT, DIRECTORIES.__contains__, lambda _: True)
    assert seen.paths == set(map(Path, told))


def test_an_empty_batch() -> None:
    """Nothing is nothing."""
    seen = filter_events([], ROOTS, FLAT, DIRECTORIES.__contains__)
    assert not seen.paths
    assert not seen.restructured


CLAUDE = SessionPaths(Path("/c/projects"), "claude-code", "claude-code")
GEMINI = SessionPaths(Path("/g/tmp"), "gemini", "gemini")
TRANSCRIPTS = WatchPlan(
    flat=frozenset(map(Path, ("/c/projects", "/c/projects/-a", "/g/tmp", "/g/tmp/9f", "/g/tmp/9f/chats"))),
    deep=frozenset(),
    root_state=RootState({}, {}),
)


@pytest.mark.parametrize(
    ("change", "path", "is_directory", "counts", "restructures"),
    [
        (MODIFIED, "/c/projects/-a/x.jsonl", False, True, False),
        (DELETED, "/c/projects/-a/x.jsonl.zst", False, True, False),
        (ADDED, "/c/projects/-a/x.jsonl.lock", False, False, False),
        (ADDED, "/c/projects/-a/x", True, False, False),  # of subagents, and spilled results
        (ADDED, "/c/projects/-b", True, True, True),
        (DELETED, "/c/projects/-a", False, True, True),
        (MODIFIED, "/g/tmp/9f/logs.json", False, False, False),
        (ADDED, "/g/tmp/9f/checkpoints", True, False, False),
        (ADDED, "/g/tmp/9f/chats/s.jsonl.tmp-7", False, False, False),
        (ADDED, "/g/tmp/9f/chats/s.jsonl", False, True, False),
    ],
)
def test_transcripts_are_seen_and_noise_is_not(
    change: Change, path: str, is_directory: bool, counts: bool, restructures: bool
) -> None:
    """Locks, temporary files and logs of an agent cost no pass, its other directories no watch."""
    filtered = filter_events([(change, path)], (CLAUDE, GEMINI), TRANSCRIPTS, lambda _: is_directory)
    assert filtered.paths == (frozenset({Path(path)}) if counts else frozenset())
    assert filtered.restructured is restructures
