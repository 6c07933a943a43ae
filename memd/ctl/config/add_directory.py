"""The directory that `up` is to make searchable, and what has to change in the configuration for that."""

import os
from pathlib import Path

import msgspec

from memd.config.settings import AgentSettings
from memd.ctl.failures import UsageError
from memd.ctl.output.humanize import shown, visible
from memd.sources.roots import roots_of
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    ExtraDirectory,
    SessionPaths,
    descends,
    only_file,
    parts_below,
)

_LONG_TERM = "memory.md"  # in any case of letters


class Directory(msgspec.Struct, frozen=True):
    """A directory that can be made searchable."""

    path: Path  # absolute; a symlink is kept as it was named, for it may lead elsewhere tomorrow
    is_workspace: bool  # it holds MEMORY.md or memory/


def checked(typed: str, home: Path) -> Directory:
    """The directory that was typed.

    Raises:
        UsageError: there is none, or it should not be searched.
    """
    path = _absolute(typed, home)
    name = visible(shown(path, home))
    try:
        with os.scandir(path) as entries:
            is_workspace = any(map(_is_mark, entries))
    except FileNotFoundError:
        raise UsageError(f"{name} does not exist.", "Make it first, or name another directory.") from None
    except NotADirectoryError:
        raise UsageError(f"{name} is no directory.", "Name the directory that it is in.") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from error
    if not is_workspace and _holds_home(path, home):
        raise UsageError(
            f"{name} holds your whole home directory: all Markdown below it, of every program, would be searched.",
            "Name the directory of your notes. (A workspace holds MEMORY.md or memory/.)",
        )
    return Directory(path, is_workspace)


def _absolute(typed: str, home: Path) -> Path:
    written = Path(typed)
    expanded = home.joinpath(*written.parts[1:]) if written.parts[:1] == ("~",) else Path.cwd() / written
    # Behind a symlink `..` is the parent of what it leads to, as every program but a shell's cd has it.
    return Path(os.path.realpath(expanded)) if ".." in expanded.parts else Path(os.path.abspath(expanded))  # noqa: PTH100  Path.absolute keeps a trailing dot


def _is_mark(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry makes its directory a workspace. memd follows no symlink inside one."""
    if entry.name == MEMORY_DIRECTORY:
        return entry.is_dir(follow_symlinks=False)
    return entry.name.lower() == _LONG_TERM and entry.is_file(follow_symlinks=False)


def _holds_home(path: Path, home: Path) -> bool:
    return Path(os.path.realpath(home)).is_relative_to(os.path.realpath(path))


class AlreadySearched(msgspec.Struct, frozen=True):
    """Nothing has to change."""

    where: Path  # the workspace or extra path that holds the directory


class NewWorkspace(msgspec.Struct, frozen=True):
    """The directory becomes the agent's workspace."""

    old: Path | None  # None: the agent is new


class NewExtraPath(msgspec.Struct, frozen=True):
    """The directory is searched besides the workspace."""

    # For the agent has none: its workspace is that of a program that is not here.
    is_workspace_too: bool = False


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
        agent: The id of the agent.
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
