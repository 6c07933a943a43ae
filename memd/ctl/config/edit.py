"""Edits the configuration file: decides how a directory becomes searchable, and changes the text."""

import os
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from memd.config.check import dotted
from memd.config.load import ConfigError, document
from memd.config.settings import AgentSettings
from memd.ctl.failures import UsageError
from memd.ctl.integrations import toml_edit
from memd.ctl.integrations.json_edit import NotEditable
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

    path: Path  # absolute; a symlink is not resolved, since its target may change
    is_workspace: bool  # it holds MEMORY.md or memory/


def checked_directory(typed: str, home: Path, state: Path | None = None) -> Directory:
    """Return the directory that the user typed.

    Args:
        typed: A path; relative to the working directory, or below ``~``.
        home: The user's home directory.
        state: The state directory, in which nothing is indexed; None: it is not looked for.

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
    if state is not None and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(state)):
        raise UsageError(
            f"{name} is, or is in, the directory in which memd keeps its state: nothing there is indexed.",
            "Name the directory of your notes, and keep it elsewhere.",
        )
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
    """Return whether an entry makes its directory a workspace; memd follows no symlink inside of one."""
    if entry.name == MEMORY_DIRECTORY:
        return entry.is_dir(follow_symlinks=False)
    return entry.name.lower() == _LONG_TERM and entry.is_file(follow_symlinks=False)


def _holds_home(path: Path, home: Path) -> bool:
    return Path(os.path.realpath(home)).is_relative_to(os.path.realpath(path))


class AlreadySearched(msgspec.Struct, frozen=True):
    """The agent searches the directory already."""

    where: Path  # the workspace or extra path that holds the directory


class NewWorkspace(msgspec.Struct, frozen=True):
    """The directory becomes the agent's workspace."""

    old: Path | None  # None: the agent is new


class NewExtraPath(msgspec.Struct, frozen=True):
    """The directory becomes an extra path of the agent."""

    # The agent's workspace is the default one, which does not exist.
    is_workspace_too: bool = False


DirectoryChange = AlreadySearched | NewWorkspace | NewExtraPath


def agent_of(named: str | None, agents: dict[str, AgentSettings]) -> str:
    """Return the agent named, else the only one, else main.

    Raises:
        UsageError: there are several, none of them is main, and none was named.
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
) -> DirectoryChange:
    """Return the change by which an agent searches a directory.

    Args:
        directory: The directory to search.
        agent: The agent's id.
        agents: The settings of all agents.
        default_workspace: The workspace that main has without a setting; it is given up if it does not exist.

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


def with_workspace(text: str, agent: str, workspace: Path) -> str:
    """Return the configuration with another workspace of an agent, which is added if it is missing.

    Args:
        text: A configuration; may be empty.
        agent: The id of the agent.
        workspace: An absolute path, or one that begins with ``~``; written as it is.

    Raises:
        ConfigError: the text is not TOML, or only the user can make the change.
    """
    return _changed(text, agent, "workspace", _writable(workspace))


def with_extra_path(text: str, agent: str, directory: Path) -> str:
    """Return the configuration with another directory (or file) for an agent to search; unchanged if it has that one.

    Args:
        text: A configuration; may be empty.
        agent: The id of the agent.
        directory: An absolute path, or one that begins with ``~``; written as it is.

    Raises:
        ConfigError: the text is not TOML, or only the user can make the change.
    """
    present = _agent_of(document(text, "the configuration"), agent).get("extra_paths", [])
    new = _writable(directory)
    if not isinstance(present, list):
        raise ConfigError(f"{dotted(('agents', agent, 'extra_paths'))} must be a list")
    return text if new in present else _changed(text, agent, "extra_paths", [*present, new])


def example() -> str:
    """Return a configuration with every key, its description, and its default in a comment."""
    return resources.files("memd.ctl").joinpath("example.toml").read_text(encoding="utf-8")


def _changed(text: str, agent: str, key: str, value: str | list[str]) -> str:
    _agent_of(document(text, "the configuration"), agent)
    try:
        return toml_edit.with_values(text, ("agents", agent), {key: value})
    except NotEditable as error:
        raise ConfigError(
            "the configuration is written in a way that cannot be changed without you; say in it:\n"
            f"{dotted(('agents', agent, key))} = {tomlkit.item(value).as_string()}"
        ) from error


def _agent_of(tables: Any, agent: str) -> Any:
    """Return the table of an agent, which is created if it is missing."""
    for name in ("agents", agent):
        tables = tables.setdefault(name, {})
        if not isinstance(tables, dict):
            raise ConfigError(f"{name} must be a table in the configuration")
    return tables


def _writable(path: Path) -> str:
    written = str(path)
    try:
        written.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{written!a} cannot be written to a configuration: its name is not UTF-8"
        ) from error
    return written
