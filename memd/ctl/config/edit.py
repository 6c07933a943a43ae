"""Changes to the text of memd's own configuration that leave the rest as a person wrote it. Pure."""

from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit

from memd.config.check import dotted
from memd.config.load import ConfigError, document
from memd.ctl.integrations import toml_edit
from memd.ctl.integrations.json_edit import NotEditable


def with_workspace(text: str, agent: str, workspace: Path) -> str:
    """The configuration with another workspace for an agent, which is added if it is not there.

    Args:
        text: A configuration; may be empty.
        agent: The id of the agent.
        workspace: Written as it is given: absolute, or beginning with ``~``.

    Raises:
        ConfigError: the text is not TOML, or the change cannot be made in it without a person.
    """
    return _changed(text, agent, "workspace", _writable(workspace))


def with_extra_path(text: str, agent: str, directory: Path) -> str:
    """The configuration with one more directory (or file) for an agent to search; the same text if it has it.

    Args:
        text: A configuration; may be empty.
        agent: The id of the agent.
        directory: Written as it is given: absolute, or beginning with ``~``.

    Raises:
        ConfigError: the text is not TOML, or the change cannot be made in it without a person.
    """
    present = _agent_of(document(text, "the configuration"), agent).get("extra_paths", [])
    new = _writable(directory)
    if not isinstance(present, list):
        raise ConfigError(f"{dotted(('agents', agent, 'extra_paths'))} must be a list")
    return text if new in present else _changed(text, agent, "extra_paths", [*present, new])


def example() -> str:
    """A configuration with every key: what it does, and its default in a line that is a comment."""
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
    """The table of an agent, made if it is not there."""
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
