"""Changes to the text of a configuration file that leave what a person wrote there as it stands. Pure."""

import re
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from memd.config.check import dotted
from memd.config.load import ConfigError, document
from memd.config.toml_lines import statements

_Value = str | list[str]


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


def _changed(text: str, agent: str, key: str, value: _Value) -> str:
    """The text with one value set, by the way that touches least."""
    wanted = document(text, "the configuration")
    _agent_of(wanted, agent)[key] = value
    ways: tuple[Callable[[str, str, str, _Value], str | None], ...] = (_under_header, _appended, _in_place)
    for way in ways:
        changed = way(text, agent, key, value)
        if changed is not None and _means(changed, wanted):
            return changed
    raise ConfigError(
        "the configuration is written in a way that cannot be changed without you; say in it:\n"
        f"{dotted(('agents', agent, key))} = {_toml(value)}"
    )


def _under_header(text: str, agent: str, key: str, value: _Value) -> str | None:
    """A new line in the table ``[agents.<id>]``.

    It comes after the line that holds its default as a comment, else after the last key: the comments at the end of a
    table lead on to the next.
    """
    lines = text.split("\n")
    after = end = None
    for statement in statements(text):
        if statement.is_header and after is not None:
            end = statement.line - 1
            break
        if statement.is_header and statement.keys[-1] == ("agents", agent):
            after = header = statement.last_line
        elif after is not None:
            after = statement.last_line
    if after is None:
        return None
    default = re.compile(rf"\s*#\s*{key}\s*=")
    after = next((n for n, line in enumerate(lines[header:end], header + 1) if default.match(line)), after)
    ending = "\r" if lines[after - 1].endswith("\r") else ""
    if after == len(lines):  # the file ends without a line end
        lines.append("")
    lines.insert(after, f"{key} = {_toml(value)}{ending}")
    return "\n".join(lines)


def _appended(text: str, agent: str, key: str, value: _Value) -> str:
    """A new table at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    kept = text.rstrip("\r\n")
    before = f"{kept}{end}{end}" if text.strip() else ""
    return f"{before}[{dotted(('agents', agent))}]{end}{key} = {_toml(value)}{end}"


def _in_place(text: str, agent: str, key: str, value: _Value) -> str | None:
    """Another value where one stands, whatever the form of the tables around it."""
    try:
        tables = tomlkit.parse(text)
        settings = _agent_of(tables, agent)
        if isinstance(value, list) and key in settings:
            settings[key].append(value[-1])  # lists only grow; this way their comments stay
        else:
            settings[key] = value
        return tomlkit.dumps(tables)
    except TOMLKitError:
        return None


def _agent_of(tables: Any, agent: str) -> Any:
    """The table of an agent, made if it is not there."""
    for name in ("agents", agent):
        tables = tables.setdefault(name, {})
        if not isinstance(tables, dict):
            raise ConfigError(f"{name} must be a table in the configuration")
    return tables


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except ValueError:
        return False


def _toml(value: _Value) -> str:
    return tomlkit.item(value).as_string()


def _writable(path: Path) -> str:
    written = str(path)
    try:
        written.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{written!a} cannot be written to a configuration: its name is not UTF-8"
        ) from error
    return written
