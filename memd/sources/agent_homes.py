"""Where known agents keep their notes and transcripts. Computes paths, and does not read the disk.

Claude Code, Codex, Gemini CLI, Qwen Code, opencode, Copilot CLI and pi have one home each. OpenClaw has one
per profile; its former name is Clawdbot.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import assert_never

import msgspec

from memd.config.settings import PresetName
from memd.text.memory_paths import Parts
from memd.text.transcript_files import Layout
from memd_client import paths

_OPENCLAW = ".openclaw"
_CLAWDBOT = ".clawdbot"

VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "OPENCLAW_STATE_DIR",
    "CLAWDBOT_STATE_DIR",
    "OPENCLAW_WORKSPACE_DIR",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "QWEN_HOME",
    "XDG_DATA_HOME",
)
"""The variables that name a directory of an agent."""


class AgentHome(msgspec.Struct, frozen=True):
    """A directory with transcripts."""

    directory: Path
    layout: Layout
    archived: bool = False


class NotesPlace(msgspec.Struct, frozen=True):
    """A directory with notes, or one file of a directory."""

    directory: Path
    way: Parts = ()  # only notes below these directories; * matches any one
    exclude: tuple[str, ...] = ()
    file: str | None = None


class HomePlaces(msgspec.Struct, frozen=True):
    """The environment and home directory, which determine where agents keep their files."""

    environ: Mapping[str, str]
    home: Path
    beside: tuple[str, ...] = ()  # names in the home directory that begin with .openclaw-

    def named(self, *variables: str) -> Path | None:
        """Return the directory that the first set variable names; a relative path is ignored."""
        for variable in variables:
            if path := paths.absolute(self.environ, variable, self.home):
                return path
        return None


def profiles(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in a home directory that belong to other profiles of OpenClaw."""
    return tuple(sorted(name for name in names if name.startswith(f"{_OPENCLAW}-")))


def shelves(preset: PresetName, homes: HomePlaces) -> tuple[AgentHome, ...]:
    """Return where an agent keeps transcripts; the usual directory first."""
    match preset:
        case "openclaw":
            pi = homes.named("PI_CODING_AGENT_SESSION_DIR") or (
                (homes.named("PI_CODING_AGENT_DIR") or homes.home / ".pi" / "agent") / "sessions"
            )
            return (
                *(AgentHome(home / "agents", "openclaw") for home in openclaw_homes(homes)),
                AgentHome(pi, "pi"),
            )
        case "claude-code":
            return (AgentHome(_claude_code(homes) / "projects", "claude-code"),)
        case "codex":
            home = _codex(homes)
            return AgentHome(home / "sessions", "codex"), AgentHome(
                home / "archived_sessions", "codex", archived=True
            )
        case "gemini":
            return (AgentHome(_gemini(homes) / "tmp", "gemini"),)
        case "qwen":
            return (AgentHome(_qwen(homes) / "projects", "qwen"),)
        case "opencode":
            data = homes.named("XDG_DATA_HOME") or homes.home / ".local" / "share"
            return (AgentHome(data / "opencode", "opencode"),)
        case "copilot":
            home = homes.named("COPILOT_HOME") or homes.home / ".copilot"
            return (AgentHome(home / "session-state", "copilot"),)
        case _:
            assert_never(preset)


def notes(
    preset: PresetName, homes: HomePlaces, list_directory: Callable[[Path], Iterable[str]]
) -> tuple[NotesPlace, ...]:
    """Return where an agent keeps its own notes.

    Args:
        preset: The agent.
        homes: Environment and home directory.
        list_directory: Returns the names in a directory, none if it does not exist: each agent of OpenClaw
            may have a workspace of its own.
    """
    match preset:
        case "openclaw":
            return tuple(
                part for workspace in _workspaces(homes, list_directory) for part in _workspace(workspace)
            )
        case "claude-code":
            return (NotesPlace(_claude_code(homes), ("projects", "*", "memory")),)
        case "codex":
            # Extracts from single sessions, whose summaries are better.
            return (NotesPlace(_codex(homes), ("memories",), ("raw_memories.md",)),)
        case "gemini":
            home = _gemini(homes)
            # Proposed skills are not memory yet.
            return NotesPlace(home, file="GEMINI.md"), NotesPlace(
                home, ("tmp", "*", "memory"), ("tmp/*/memory/skills/",)
            )
        case "qwen":
            home = _qwen(homes)
            return NotesPlace(home, file="QWEN.md"), NotesPlace(home, ("projects", "*", "memory"))
        case "opencode" | "copilot":
            return ()
        case _:
            assert_never(preset)


def openclaw_homes(homes: HomePlaces) -> tuple[Path, ...]:
    """Return the homes of OpenClaw, the one in use first."""
    named = homes.named("OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR")
    if named is not None:
        return (named,)
    profile = homes.environ.get("OPENCLAW_PROFILE", "")
    own = [f"{_OPENCLAW}-{profile}"] if profile not in {"", "default"} and "/" not in profile else []
    names = (*own, _OPENCLAW, *homes.beside, _CLAWDBOT)
    return tuple(homes.home / name for name in dict.fromkeys(names))


def _workspaces(homes: HomePlaces, list_directory: Callable[[Path], Iterable[str]]) -> tuple[Path, ...]:
    named = homes.named("OPENCLAW_WORKSPACE_DIR")
    found = [] if named is None else [named]
    for number, home in enumerate(openclaw_homes(homes)):
        names = {
            name for name in list_directory(home) if name == "workspace" or name.startswith("workspace-")
        }
        if number == 0:
            names.add("workspace")  # may be created later
        found += [home / name for name in sorted(names)]
    return tuple(dict.fromkeys(found))


def _workspace(directory: Path) -> tuple[NotesPlace, ...]:
    files = (NotesPlace(directory, file=name) for name in ("MEMORY.md", "memory.md", "USER.md"))
    return (*files, NotesPlace(directory, ("memory",)))


def _claude_code(homes: HomePlaces) -> Path:
    return homes.named("CLAUDE_CONFIG_DIR") or homes.home / ".claude"


def _codex(homes: HomePlaces) -> Path:
    return homes.named("CODEX_HOME") or homes.home / ".codex"


def _gemini(homes: HomePlaces) -> Path:
    return (homes.named("GEMINI_CLI_HOME") or homes.home) / ".gemini"


def _qwen(homes: HomePlaces) -> Path:
    return homes.named("QWEN_HOME") or homes.home / ".qwen"
