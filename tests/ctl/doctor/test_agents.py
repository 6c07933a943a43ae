"""Whether each agent's notes can be read, its index is sound, and what it does works."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.ctl.doctor import agents
from memd.inspection.facts import Cache, KeptBackup, NotesOf, Root, RootsScan, Store
from memd_client.messages import Health, Pass, VectorHealth
from tests.ctl import answers
from tests.ctl.doctor.scenes import SCENE, sound, told

_ROOT = Root(path="/home/ann/ws", resolved="/home/ann/ws", is_workspace=True, fault=None)
_GROUND = RootsScan(agent="main", roots=(_ROOT,), notes=12)
_STORE = Store(
    agent="main",
    file="/s/agents/main.sqlite",
    configured=True,
    bytes=4096,
    schema=1,
    known_schema=1,
    files=2,
    chunks=3,
)
_CACHE = Cache(file="/s/embeddings.sqlite", bytes=4096, schema=1, known_schema=1, rows=7)


@pytest.mark.parametrize(
    ("changed", "says", "mends"),
    [
        ({}, "everything works", ""),
        ({"rebuild": "chunking changed"}, "an index is being built anew", ""),
        ({"keyword": Health(ok=False, reason="broken")}, "keyword: broken", "reindex --agent main"),
        ({"vector": VectorHealth(ok=False, reason="no extension")}, "no extension", "installation.vectors"),
        ({"watcher": Health(ok=False, reason="no watches")}, "no watches", "limits.watches"),
        ({"provider_health": Health(ok=False, reason="gone")}, "gone", "installation.model"),
        ({"watcher": Health(ok=True, reason="on a network mount")}, "everything works", ""),
        ({"last_pass": Pass(at=1.0, took_s=1.0, failed="disk full")}, "disk full", "logs"),
    ],
)
def test_what_the_daemon_says_is_degraded_is_told(changed: dict[str, Any], says: str, mends: str) -> None:
    """Part by part, with what may mend it."""
    finding = agents.judged_health("main", answers.agent(**changed), SCENE)
    assert sound(finding) is (not mends)
    assert says in finding.detail
    assert mends in finding.fix


def test_health_is_not_checked_without_a_daemon() -> None:
    """Nobody else knows."""
    assert agents.judged_health("main", None, SCENE).detail.startswith("not checked")


@pytest.mark.parametrize(
    ("changed", "bad", "says"),
    [
        ({}, set(), "12 Markdown files in ~/ws"),
        ({"skipped": {"symlink": 2, "too large": 1}}, set(), "2 files (symlink), 1 file (too large)"),
        (
            {"roots": (msgspec.structs.replace(_ROOT, resolved="/data/ws"),)},
            set(),
            "~/ws (leads to /data/ws)",
        ),
        ({"roots": (msgspec.structs.replace(_ROOT, remote="nfs4"),)}, set(), "is on nfs4"),
        (
            {"roots": (msgspec.structs.replace(_ROOT, fault="does not exist"),)},
            {"notes"},
            "~/ws does not exist",
        ),
        (
            {"roots": (msgspec.structs.replace(_ROOT, fault="is not a directory"),)},
            {"notes"},
            "is not a directory",
        ),
        (
            {"roots": (msgspec.structs.replace(_ROOT, fault="cannot be read by this user"),)},
            {"notes"},
            "by this user",
        ),
        ({"unreadable": ("memory/a.md",), "unreadable_count": 4}, {"notes"}, "memory/a.md and 3 more"),
        (
            {"transcripts": 23, "unread": ("/home/ann/.openclaw/agents/main/agent/openclaw-agent.sqlite",)},
            {"notes"},
            "does not read: ~/.openclaw/agents/main/agent/openclaw-agent.sqlite",
        ),
        ({"hangs_at": "/mnt/x"}, {"notes"}, "/mnt/x gave no answer within 5 s"),
        ({"future": ("memory/b.md",), "future_count": 1}, {"clock"}, "12 Markdown files"),
    ],
)
def test_what_is_wrong_below_the_roots_is_told(changed: dict[str, Any], bad: set[str], says: str) -> None:
    """Roots, files, and clocks."""
    found = told(agents.judged_notes(msgspec.structs.replace(_GROUND, **changed), SCENE, 5.0))
    assert {name.rpartition(".")[2] for name, one in found.items() if not one.ok} == bad
    assert says in found["agents.main.notes"].detail


def test_every_root_that_cannot_be_read_is_told() -> None:
    """With what to do about each, so that one look is enough."""
    roots = [msgspec.structs.replace(_ROOT, fault="does not exist")]
    roots += [
        Root(path=path, resolved=path, is_workspace=False, fault="does not exist")
        for path in ("/x/a.md", "/x/b")
    ]
    notes, _ = agents.judged_notes(msgspec.structs.replace(_GROUND, roots=tuple(roots)), SCENE, 5.0)
    assert notes.detail == "~/ws does not exist; /x/a.md does not exist; /x/b does not exist"
    assert "mkdir -p /home/ann/ws/memory" in notes.fix
    assert notes.fix.count("extra_paths") == 1


def test_a_file_name_cannot_command_a_terminal() -> None:
    """It is told with what it holds spelled out."""
    ground = msgspec.structs.replace(_GROUND, unreadable=("memory/\x1b[2J.md",), unreadable_count=1)
    assert "\x1b" not in agents.judged_notes(ground, SCENE, 5.0)[0].detail


def _ground(name: str, workspace: str, *extra: str) -> RootsScan:
    roots = [Root(path=workspace, resolved=workspace, is_workspace=True, fault=None)]
    roots += [Root(path=path, resolved=path, is_workspace=False, fault=None) for path in extra]
    return RootsScan(agent=name, roots=tuple(roots))


@pytest.mark.parametrize(
    ("mine", "exclude", "theirs", "reads"),
    [
        (("/a",), (), ("/b",), set()),
        (("/a", "/shared"), (), ("/b", "/shared"), set()),
        (("/a",), (), ("/a/other",), set()),
        (("/a",), (), ("/a",), {"a", "b"}),
        (("/a",), (), ("/a/memory/sub",), {"a"}),
        (("/a", "/b"), (), ("/b",), {"a"}),
        (("/a", "/b/memory/sub"), (), ("/b",), {"a"}),
        (("/a", "/b/MEMORY.md"), (), ("/b",), {"a"}),
        (("/a", "/"), (), ("/b",), {"a"}),
        (("/a", "/x"), (), ("/x/b",), {"a"}),
        (("/a", "/x"), ("b/",), ("/x/b",), set()),
    ],
)
def test_an_agent_that_reads_the_memory_of_another_is_told(
    mine: tuple[str, ...], exclude: tuple[str, ...], theirs: tuple[str, ...], reads: set[str]
) -> None:
    """Where it reads what lies in the workspace of the other; what both were given is shared on purpose."""
    settings = {
        "a": AgentSettings(workspace=Path(mine[0]), exclude=exclude),
        "b": AgentSettings(workspace=Path(theirs[0])),
    }
    found = told(agents.judged_overlap([_ground("a", *mine), _ground("b", *theirs)], settings, SCENE))
    assert {name.split(".")[1] for name, one in found.items() if "as configured" in one.detail} == reads
    assert all(one.ok for one in found.values())


@pytest.mark.parametrize(
    ("notes", "reads"),
    [
        (NotesOf(directory="/b/memory"), True),
        (NotesOf(directory="/b", file="MEMORY.md"), True),
        (NotesOf(directory="/b", way=("memory",)), True),
        (NotesOf(directory="/c", way=("projects", "*", "memory")), False),
    ],
)
def test_an_agent_that_reads_another_ones_by_way_of_a_preset_is_told(notes: NotesOf, reads: bool) -> None:
    """As one that searches the notes of OpenClaw, where the other has its workspace."""
    settings = {"a": AgentSettings(workspace=Path("/a")), "b": AgentSettings(workspace=Path("/b"))}
    ground = msgspec.structs.replace(_ground("a", "/a"), presets=(notes,))
    found = told(agents.judged_overlap([ground, _ground("b", "/b")], settings, SCENE))
    assert ("reads the memory of b too" in found["agents.a.apart"].detail) is reads


@pytest.mark.parametrize(
    ("changed", "bad", "says"),
    [
        ({}, set(), "sound: 2 files, 3 chunks, 4.1 kB"),
        ({"exists": False}, set(), "none yet"),
        ({"unchecked": "that takes longer"}, set(), "not checked: that takes longer"),
        ({"closed": "Permission denied"}, {"index"}, "cannot be opened: Permission denied"),
        ({"faults": ("malformed inverted index",)}, {"index"}, "damaged: malformed inverted index"),
        ({"schema": 9}, {"index"}, "schema 9, this one knows 1"),
        ({"damaged": ("main.sqlite.damaged-1",)}, {"damaged"}, "sound"),
        ({"rebuild": "chunking changed"}, set(), "sound"),
    ],
)
def test_what_is_wrong_with_an_index_is_told(changed: dict[str, Any], bad: set[str], says: str) -> None:
    """That it has to be built anew is said, and is no fault."""
    store = msgspec.structs.replace(_STORE, **changed)
    found = told(agents.judged_store(store, SCENE, is_ours=True, knows_config=True))
    assert {name.rpartition(".")[2] for name, one in found.items() if not one.ok} == bad
    assert says in found["agents.main.index"].detail
    assert ("chunking changed" in found["agents.main.fit"].detail) is ("rebuild" in changed)


def test_an_index_of_another_user_is_not_checked() -> None:
    """That the directory is not theirs is told there."""
    store = msgspec.structs.replace(_STORE, closed="Permission denied")
    assert sound(agents.judged_store(store, SCENE, is_ours=False, knows_config=True)[0])


@pytest.mark.parametrize("knows_config", [True, False])
def test_an_index_that_no_agent_has_is_kept(*, knows_config: bool) -> None:
    """It is left over only where the configuration could be read."""
    store = msgspec.structs.replace(_STORE, configured=False)
    index, *_ = agents.judged_store(store, SCENE, is_ours=True, knows_config=knows_config)
    assert sound(index)
    assert ("left over" in index.detail) is knows_config


@pytest.mark.parametrize(
    ("changed", "bad", "says"),
    [
        ({}, set(), "sound: 7 vectors, 4.1 kB"),
        ({"exists": False}, set(), "none yet"),
        ({"faults": ("file is not a database",)}, {"embeddings"}, "file is not a database"),
        ({"schema": 2}, {"embeddings"}, "schema 2"),
        ({"damaged": ("embeddings.sqlite.damaged-1",)}, {"damaged"}, "sound"),
        ({"files": ("openai file-1", "gemini files/x")}, {"batch_files"}, "sound"),
    ],
)
def test_what_is_wrong_with_the_cache_is_told(changed: dict[str, Any], bad: set[str], says: str) -> None:
    """Like an index; it concerns all agents."""
    found = told(agents.judged_cache(msgspec.structs.replace(_CACHE, **changed), SCENE, is_ours=True))
    assert {name.removeprefix("state.") for name, one in found.items() if not one.ok} == bad
    assert says in found["state.embeddings"].detail
    for file in changed.get("files", ()):
        assert file in found["state.batch_files"].detail


_SHELF = Root(
    path="/home/ann/.codex/sessions", resolved="/home/ann/.codex/sessions", is_workspace=False, fault=None
)


@pytest.mark.parametrize(
    ("fault", "says", "mends"),
    [
        (None, "3 transcripts in ~/.codex/sessions", ""),
        ("does not exist", "~/.codex/sessions does not exist", ""),
        ("cannot be read by this user", "~/.codex/sessions cannot be read by this user", "chmod u+rx"),
        ("is neither a file nor a directory", "~/.codex/sessions is neither", "agents.main.sessions"),
    ],
)
def test_places_of_transcripts_are_looked_at_too(fault: str | None, says: str, mends: str) -> None:
    """One that is not there yet is no fault."""
    shelf = msgspec.structs.replace(_SHELF, fault=fault)
    finding = agents.judged_notes(
        msgspec.structs.replace(_GROUND, shelves=(shelf,), transcripts=3), SCENE, 5.0
    )[0]
    assert sound(finding) is (not mends)
    assert says in finding.detail
    assert mends in finding.fix


_KEPT = KeptBackup(name="main.sqlite.before-schema-2", bytes=12_400_000, schema=1, made_at=1.0)


@pytest.mark.parametrize(
    ("configured", "says"), [(True, "daemon deletes it"), (False, "rm /s/agents/main.sqlite.before")]
)
def test_a_copy_that_is_kept_is_told_and_is_no_fault(*, configured: bool, says: str) -> None:
    """With its size, and why it is there."""
    store = msgspec.structs.replace(_STORE, copies=(_KEPT,), configured=configured)
    found = told(agents.judged_store(store, SCENE, is_ours=True, knows_config=True))["agents.main.copy"]
    assert found.ok
    assert all(
        word in found.detail for word in (_KEPT.name, "12.4 MB", "before it was brought up to date", says)
    )
    kept = msgspec.structs.replace(_KEPT, name="embeddings.sqlite.before-schema-3")
    cache = told(agents.judged_cache(msgspec.structs.replace(_CACHE, copies=(kept,)), SCENE, is_ours=True))
    assert "embeddings.sqlite.before-schema-3" in cache["state.copy"].detail
    assert "agents.main.copy" not in told(agents.judged_store(_STORE, SCENE, is_ours=True, knows_config=True))


@pytest.mark.parametrize(("schema", "is_way"), [(1, True), (2, False), (0, False)])
def test_the_way_back_from_a_newer_store_is_its_copy(schema: int, *, is_way: bool) -> None:
    """Where this program can read it; else the file is moved away."""
    copy = msgspec.structs.replace(_KEPT, schema=schema)
    store = msgspec.structs.replace(_STORE, schema=2, copies=(copy,))
    fix = told(agents.judged_store(store, SCENE, is_ours=True, knows_config=True))["agents.main.index"].fix
    log = "rm -f /s/agents/main.sqlite-wal /s/agents/main.sqlite-shm"
    back = f"{log}; mv /s/agents/main.sqlite.before-schema-2 /s/agents/main.sqlite;"
    assert (back in fix) is is_way
    assert ("main.sqlite.newer" in fix) is not is_way
