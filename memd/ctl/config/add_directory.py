"""What has to change in a configuration for a directory to be searched. Pure but for resolving symlinks."""

import os
from pathlib import Path

import msgspec

from memd.config.settings import AgentSettings
from memd.ctl.config.directory import Directory
from memd.ctl.failures import UsageError
from memd.sources.roots import roots_of
from memd.text.memory_paths import ExtraDirectory, SessionPaths, descends, only_file, parts_below


class AlreadySearched(msgspec.Struct, frozen=True):
    """Nothing has to change."""

    where: Path  # the workspace or extra path that holds the directory


class NewWorkspace(msgspec.Struct, frozen=True):
    """The directory becomes the agent's workspace."""

    old: Path | None  # None: the agent is new


class NewExtraPath(msgspec.Struct, frozen=True):
    """The directory is searched besides the workspace."""

    is_workspace_too: bool = (
        False  # for the agent has none: its workspace is that of a program that is not here
    )


Change = AlreadySearched | NewWorkspace | NewExtraPath


def agent_of(named: str | None, agents: dict[str, AgentSettings]) -> str:
    """The agent that is meant.

    Raises:
        UsageError: it could be any of several.
    """
    if named is not None:
        return named
    if len(agents) == 1:
        return next(iter(agents))
    if "main" in agents:
        return "main"
    raise UsageError(
        f"There are {len(agents)} agents: {', '.join(sorted(agents))}.", "Name one with --agent."
    )


def change_for(
    directory: Directory, agent: str, agents: dict[str, AgentSettings], default_workspace: Path | None = None
) -> Change:
    """What has to change for an agent to search a directory.

    Args:
        directory: To be searched.
        agent: Its id.
        agents: All there are.
        default_workspace: Which nobody chose, so that it need not stay if it is not there.

    Raises:
        UsageError: the agent is new, and the directory cannot be its workspace.
    """
    settings = agents.get(agent)
    if settings is None:
        if directory.is_workspace:
            return NewWorkspace(None)
        raise UsageError(
            f"There is no agent {agent} yet, and {directory.path} cannot be its workspace: "
            "it holds neither MEMORY.md nor memory/.",
            f"The agents are: {', '.join(sorted(agents))}.",
        )
    resolved = Path(os.path.realpath(directory.path))
    if directory.is_workspace:
        # A directory of another agent's workspace, or an extra path, may well become a workspace of its own.
        same = resolved == Path(os.path.realpath(settings.workspace))
        return AlreadySearched(settings.workspace) if same else NewWorkspace(settings.workspace)
    for root in roots_of(settings):
        parts = None if isinstance(root, SessionPaths) or only_file(root) else parts_below(root, resolved)
        way = root.way if isinstance(root, ExtraDirectory) else ()
        if parts is not None and len(parts) >= len(way) and descends(root, parts):
            return AlreadySearched(root.directory)
    return NewExtraPath(settings.workspace == default_workspace and not os.path.lexists(default_workspace))
