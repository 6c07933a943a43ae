"""Where agents keep their files."""

from pathlib import Path

import pytest

from memd.config.settings import PresetName
from memd.sources.agent_homes import HomePlaces, NotesPlace, notes, profiles, shelves

HOME = Path("/home/li")


def _directories(
    preset: PresetName, environ: dict[str, str] | None = None, beside: tuple[str, ...] = ()
) -> list[str]:
    return [str(shelf.directory) for shelf in shelves(preset, HomePlaces(environ or {}, HOME, beside))]


@pytest.mark.parametrize(
    ("preset", "environ", "directories"),
    [
        ("claude-code", {}, ["/home/li/.claude/projects"]),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/d/claude"}, ["/d/claude/projects"]),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "~/c"}, ["/home/li/c/projects"]),
        ("claude-code", {"CLAUDE_CONFIG_DIR": ""}, ["/home/li/.claude/projects"]),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "relative"}, ["/home/li/.claude/projects"]),
        ("codex", {}, ["/home/li/.codex/sessions", "/home/li/.codex/archived_sessions"]),
        ("codex", {"CODEX_HOME": "/x"}, ["/x/sessions", "/x/archived_sessions"]),
        ("gemini", {}, ["/home/li/.gemini/tmp"]),
        ("qwen", {}, ["/home/li/.qwen/projects"]),
        ("qwen", {"QWEN_HOME": "/q"}, ["/q/projects"]),
        ("copilot", {}, ["/home/li/.copilot/session-state"]),
        ("copilot", {"COPILOT_HOME": "/c"}, ["/c/session-state"]),
        ("opencode", {}, ["/home/li/.local/share/opencode"]),
        ("opencode", {"XDG_DATA_HOME": "/data"}, ["/data/opencode"]),
        (
            "openclaw",
            {},
            ["/home/li/.openclaw/agents", "/home/li/.clawdbot/agents", "/home/li/.pi/agent/sessions"],
        ),
        (
            "openclaw",
            {"OPENCLAW_STATE_DIR": "/s", "PI_CODING_AGENT_DIR": "/pi"},
            ["/s/agents", "/pi/sessions"],
        ),
        (
            "openclaw",
            {"OPENCLAW_PROFILE": "team", "PI_CODING_AGENT_SESSION_DIR": "/p"},
            [
                "/home/li/.openclaw-team/agents",
                "/home/li/.openclaw/agents",
                "/home/li/.clawdbot/agents",
                "/p",
            ],
        ),
    ],
)
def test_where_transcripts_are(preset: PresetName, environ: dict[str, str], directories: list[str]) -> None:
    """Below the home of the agent, which variables of the environment may name."""
    assert _directories(preset, environ) == directories


def test_codex_archives_beside_what_is_in_use() -> None:
    """A session that is in both is read from the one in use."""
    found = shelves("codex", HomePlaces({}, HOME))
    assert [(one.directory.name, one.archived) for one in found] == [
        ("sessions", False),
        ("archived_sessions", True),
    ]


def test_homes_of_profiles_are_homes() -> None:
    """They lie beside the first one, and are told by their name."""
    beside = profiles([".openclaw", ".openclaw-b", "openclaw-x", ".openclaw-a", ".claude"])
    assert beside == (".openclaw-a", ".openclaw-b")
    assert _directories("openclaw", beside=beside)[:4] == [
        "/home/li/.openclaw/agents",
        "/home/li/.openclaw-a/agents",
        "/home/li/.openclaw-b/agents",
        "/home/li/.clawdbot/agents",
    ]


def test_a_profile_leads_nowhere_else() -> None:
    """A name with a slash in it is that of no profile."""
    assert _directories("openclaw", {"OPENCLAW_PROFILE": "../x"})[0] == "/home/li/.openclaw/agents"


def test_each_agent_of_openclaw_has_a_workspace() -> None:
    """And the one that a variable names is another."""
    homes = HomePlaces({"OPENCLAW_WORKSPACE_DIR": "/mine"}, HOME)
    listed = {HOME / ".openclaw": ["workspace-ann", "agents", "workspace"]}
    found = notes("openclaw", homes, lambda directory: listed.get(directory, []))
    assert [str(one.directory) for one in found if one.way] == [
        "/mine",
        "/home/li/.openclaw/workspace",
        "/home/li/.openclaw/workspace-ann",
    ]
    assert {one.file for one in found} == {None, "MEMORY.md", "memory.md", "USER.md"}


def test_where_notes_are() -> None:
    """Below a home that is there, so that directories which come later are seen to come."""
    homes = HomePlaces({}, HOME)
    assert notes("claude-code", homes, lambda _: ()) == (
        NotesPlace(HOME / ".claude", ("projects", "*", "memory")),
    )
    assert notes("codex", homes, lambda _: ())[0].exclude == ("raw_memories.md",)
    assert [one.file for one in notes("qwen", homes, lambda _: ())] == ["QWEN.md", None]
    assert [one.file for one in notes("gemini", homes, lambda _: ())] == ["GEMINI.md", None]


@pytest.mark.parametrize("preset", ["opencode", "copilot"])
def test_who_keeps_no_notes_has_no_place_for_them(preset: PresetName) -> None:
    """Nor is the disk asked."""
    assert notes(preset, HomePlaces({}, HOME, ()), lambda _: pytest.fail("asked")) == ()


def test_where_qwen_keeps_notes() -> None:
    """In its home, wherever that is, and beside its transcripts."""
    home = Path("/q")
    found = notes("qwen", HomePlaces({"QWEN_HOME": "/q"}, HOME, ()), lambda _: ())
    assert found == (NotesPlace(home, file="QWEN.md"), NotesPlace(home, ("projects", "*", "memory")))
