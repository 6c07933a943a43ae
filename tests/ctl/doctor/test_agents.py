"""What is said of an agent: its health, its notes, its qmd."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config.settings import AgentSettings, SharedMemory
from memd.ctl.doctor import agents
from memd.ctl.doctor.agents import check_qmd
from memd.inspection.probe import InspectedDatabase, InspectedRoot, PresetNotes, Program, RootsScan
from memd_client.messages import BackendFallback, Health, Pass, QmdStatus, VectorHealth
from tests.ctl import answers
from tests.ctl.answers import agent
from tests.ctl.doctor.context import CONTEXT, by_name, sound

_ROOT = InspectedRoot(path="/home/ann/ws", resolved="/home/ann/ws", is_workspace=True, fault=None)
_DATABASE = "/home/ann/.openclaw/agents/main/agent/openclaw-agent.sqlite"
_SCAN = RootsScan(
    agent="main",
    roots=(_ROOT,),
    presets=(),
    notes=12,
    transcript_roots=(),
    transcripts=0,
    databases=(),
    unreadable=(),
    unreadable_count=0,
    skipped={},
    future=(),
    future_count=0,
    directories=0,
)


@pytest.mark.parametrize(
    ("changed", "says", "mends"),
    [
        ({}, "everything works", ""),
        ({"rebuild": "chunking changed"}, "an index is being rebuilt", ""),
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
    finding = agents.check_health("main", answers.agent(**changed), CONTEXT)
    assert sound(finding) is (not mends)
    assert says in finding.detail
    assert mends in finding.fix


def test_health_is_not_checked_without_a_daemon() -> None:
    """Nobody else knows."""
    assert agents.check_health("main", None, CONTEXT).detail.startswith("not checked")


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
            {"transcripts": 23, "databases": (InspectedDatabase(file=_DATABASE, fault="cannot be opened"),)},
            {"notes"},
            "not read: ~/.openclaw/agents/main/agent/openclaw-agent.sqlite: cannot be opened",
        ),
        ({"future": ("memory/b.md",), "future_count": 1}, {"clock"}, "12 Markdown files"),
    ],
)
def test_what_is_wrong_below_the_roots_is_told(changed: dict[str, Any], bad: set[str], says: str) -> None:
    """Roots, files, and clocks."""
    found = by_name(agents.check_notes(msgspec.structs.replace(_SCAN, **changed), CONTEXT))
    assert {name.rpartition(".")[2] for name, one in found.items() if not one.ok} == bad
    assert says in found["agents.main.notes"].detail


def test_what_is_in_a_database_is_told() -> None:
    """Of a sound one, too: whose sessions they are decides who finds them."""
    database = InspectedDatabase(file=_DATABASE, version=23, is_open=True, sessions=9, shared=2, subagents=1)
    found = by_name(agents.check_notes(msgspec.structs.replace(_SCAN, databases=(database,)), CONTEXT))
    assert found["agents.main.notes"].ok
    told = "9 sessions in ~/.openclaw/agents/main/agent/openclaw-agent.sqlite (open, version 23, 2 of groups and channels, 1 of subagents)"
    assert told in found["agents.main.notes"].detail


def test_a_path_that_hangs_is_told() -> None:
    """Nothing is known of the clock then."""
    found = by_name(agents.report_hanging("main", Path("/mnt/x"), CONTEXT, "gave no answer within 5 s"))
    assert {name for name, one in found.items() if not one.ok} == {"agents.main.notes"}
    assert found["agents.main.notes"].detail == "/mnt/x gave no answer within 5 s"
    assert "df /mnt/x" in found["agents.main.notes"].fix


def test_every_root_that_cannot_be_read_is_told() -> None:
    """With what to do about each, so that one look is enough."""
    roots = [msgspec.structs.replace(_ROOT, fault="does not exist")]
    roots += [
        InspectedRoot(path=path, resolved=path, is_workspace=False, fault="does not exist")
        for path in ("/x/a.md", "/x/b")
    ]
    notes, _ = agents.check_notes(msgspec.structs.replace(_SCAN, roots=tuple(roots)), CONTEXT)
    assert notes.detail == "~/ws does not exist; /x/a.md does not exist; /x/b does not exist"
    assert "mkdir -p /home/ann/ws/memory" in notes.fix
    assert notes.fix.count("extra_paths") == 1


def test_who_searches_a_server_needs_no_notes_here() -> None:
    """A directory that is missing is no fault then; one that cannot be read still is."""
    searched = SharedMemory("team", "alice/main")
    for fault, said in (
        ("does not exist", "it searches alice/main on team, and has no notes here"),
        ("cannot be read", "~/ws cannot be read"),
    ):
        scan = msgspec.structs.replace(
            _SCAN, roots=(msgspec.structs.replace(_ROOT, fault=fault),), transcript_roots=()
        )
        notes, _ = agents.check_notes(scan, CONTEXT, searched=searched)
        assert (notes.ok, notes.detail) == (fault == "does not exist", said)


def test_a_file_name_cannot_command_a_terminal() -> None:
    """It is told with what it holds spelled out."""
    scan = msgspec.structs.replace(_SCAN, unreadable=("memory/\x1b[2J.md",), unreadable_count=1)
    assert "\x1b" not in agents.check_notes(scan, CONTEXT)[0].detail


def _scan(name: str, workspace: str, *extra: str) -> RootsScan:
    roots = [InspectedRoot(path=workspace, resolved=workspace, is_workspace=True, fault=None)]
    roots += [InspectedRoot(path=path, resolved=path, is_workspace=False, fault=None) for path in extra]
    return msgspec.structs.replace(_SCAN, agent=name, roots=tuple(roots))


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
    found = by_name(agents.check_overlap([_scan("a", *mine), _scan("b", *theirs)], settings, CONTEXT))
    assert {name.split(".")[1] for name, one in found.items() if "as configured" in one.detail} == reads
    assert all(one.ok for one in found.values())


@pytest.mark.parametrize(
    ("notes", "reads"),
    [
        (PresetNotes(directory="/b/memory"), True),
        (PresetNotes(directory="/b", file="MEMORY.md"), True),
        (PresetNotes(directory="/b", way=("memory",)), True),
        (PresetNotes(directory="/c", way=("projects", "*", "memory")), False),
    ],
)
def test_an_agent_that_reads_another_ones_by_way_of_a_preset_is_told(notes: PresetNotes, reads: bool) -> None:
    """As one that searches the notes of OpenClaw, where the other has its workspace."""
    settings = {"a": AgentSettings(workspace=Path("/a")), "b": AgentSettings(workspace=Path("/b"))}
    scan = msgspec.structs.replace(_scan("a", "/a"), presets=(notes,))
    found = by_name(agents.check_overlap([scan, _scan("b", "/b")], settings, CONTEXT))
    assert ("reads the memory of b too" in found["agents.a.apart"].detail) is reads


_TRANSCRIPT_ROOT = InspectedRoot(
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
    transcript_root = msgspec.structs.replace(_TRANSCRIPT_ROOT, fault=fault)
    finding = agents.check_notes(
        msgspec.structs.replace(_SCAN, transcript_roots=(transcript_root,), transcripts=3), CONTEXT
    )[0]
    assert sound(finding) is (not mends)
    assert says in finding.detail
    assert mends in finding.fix


SETTINGS = AgentSettings(workspace=Path("/w"), backend="qmd")
PROGRAM = Program(agent="main", file="/usr/bin/qmd", version="qmd 2.8.3")
LOST = Program(agent="main", fault="qmd is not on the PATH of the daemon.")
QMD = QmdStatus(command="/usr/bin/qmd", version="2.8.3", collections=["memory"])
FALLBACK = BackendFallback(from_="qmd", reason="qmd is not on the PATH", since=1.0, retry_at=2.0)


def test_an_agent_without_qmd_has_no_such_check() -> None:
    """Nothing is said of what nobody asked for."""
    assert check_qmd("main", AgentSettings(workspace=Path("/w")), None, None, CONTEXT) == []


@pytest.mark.parametrize(
    ("status", "program", "ok", "told"),
    [
        ({"qmd": QMD, "backend": "qmd"}, PROGRAM, True, "2.8.3 at /usr/bin/qmd answers from 1 collection"),
        ({"backend_fallback": FALLBACK}, LOST, False, "the built-in engine answers in its place"),
        (
            {"qmd": QMD, "backend": "qmd", "vector": VectorHealth(ok=False, reason="no model")},
            PROGRAM,
            False,
            "no model",
        ),
        ({}, PROGRAM, True, "not checked"),
        (None, PROGRAM, True, "qmd 2.8.3 at /usr/bin/qmd"),
        (None, LOST, False, "not on the PATH"),
        (None, None, True, "not checked"),
    ],
    ids=["answers", "fell back", "no vectors", "not ready", "found", "lost", "not looked at"],
)
def test_qmd_is_judged(status: dict[str, Any] | None, program: Program | None, ok: bool, told: str) -> None:
    """By what the daemon says of it or, without one, by whether it is found and runs."""
    said = None if status is None else agent(**status)
    (finding,) = check_qmd("main", SETTINGS, said, program, CONTEXT)
    assert sound(finding) is ok
    assert told in finding.detail


@pytest.mark.parametrize(
    "told",
    [{"update_failure": "it is locked"}, {"warnings": ["collection notes: /n does not exist"]}],
    ids=["update", "warning"],
)
def test_what_qmd_cannot_do_is_told(told: dict[str, Any]) -> None:
    """Though it answers: an update that failed, a part of the configuration that is not used."""
    qmd = QmdStatus(command="/usr/bin/qmd", version="2.8.3", **told)
    (finding,) = check_qmd("main", SETTINGS, agent(backend="qmd", qmd=qmd), PROGRAM, CONTEXT)
    assert not sound(finding)
    assert str(next(iter(told.values()))).strip("[']") in finding.detail


def test_who_has_no_models_is_told_how_to_do_without() -> None:
    """A mode of searching that needs none is one line of the configuration away."""
    status = agent(backend="qmd", qmd=QMD, vector=VectorHealth(ok=False, reason="no model"))
    (finding,) = check_qmd("main", SETTINGS, status, PROGRAM, CONTEXT)
    assert 'search_mode = "search" in [agents.main.qmd]' in finding.fix


def test_a_qmd_that_is_found_from_here_alone_is_told() -> None:
    """What a person's shell has, a service may not have; nobody is told to install it again."""
    (finding,) = check_qmd("main", SETTINGS, agent(backend_fallback=FALLBACK), PROGRAM, CONTEXT)
    assert "From here /usr/bin/qmd runs" in finding.fix
    assert "timeout_ms in [agents.main.qmd]" in finding.fix
    assert "npm install" not in finding.fix
