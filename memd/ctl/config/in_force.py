"""The settings that are in force, and where each comes from."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import tomlkit

from memd.config.check import dotted
from memd.config.settings import Config
from memd.config.toml_lines import Key
from memd.ctl.output.humanize import width
from memd.ctl.output.terminal import Paint


def origin(key: Key, known: Mapping[Key, int]) -> str:
    """The line that says what a setting is, in words: ``line 4``, ``line 2, [defaults]``, or ``default``.

    Args:
        key: Of the whole configuration: ("agents", "main", "query", "max_results").
        known: The lines of the keys of the file; see statements.lines.
    """
    own = known.get(key)
    shared = known.get(("defaults", *key[2:])) if key[:1] == ("agents",) else None
    if own is not None and shared is not None and key[2:] == ("extra_paths",):
        return f"lines {own} and {shared}, [defaults]"  # they are those of both
    if own is not None:
        return f"line {own}"
    return "default" if shared is None else f"line {shared}, [defaults]"


_MASKED = "********"
_SECRET = frozenset({"api_key", "headers"})  # headers carry keys too, and their names say so too seldom
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_FURTHEST = 60  # columns that remarks are aligned within


class ValuePlace(msgspec.Struct, frozen=True):
    """A file or directory, and what says so."""

    path: str
    origin: str  # --socket, MEMD_SOCKET, XDG_RUNTIME_DIR, usual place


def effective(config: Config) -> dict[str, Any]:
    """The configuration in force as plain tables, secrets masked."""
    tables: dict[str, Any] = masked(
        msgspec.to_builtins({"daemon": config.daemon, "agents": config.agents}, enc_hook=str)
    )
    return tables


def origins(tables: Mapping[str, Any], known: Mapping[Key, int]) -> dict[str, str]:
    """For the dotted key of each value, where it comes from."""
    return {dotted(key): origin(key, known) for key, _ in _values(tables, ())}


def text(
    tables: Mapping[str, Any], known: Mapping[Key, int], places: Mapping[str, ValuePlace], paint: Paint
) -> str:
    """A configuration file that means the same, with remarks.

    Args:
        tables: See effective.
        known: The lines of the keys of the file that they were read from.
        places: What else is in force, by name.
        paint: How to set off the remarks.
    """
    longest = max(map(len, places), default=0)
    lines = [
        paint(f"# {name.ljust(longest)}  {place.path}  ({place.origin})", "dim")
        for name, place in places.items()
    ]
    for key, table in _tables(tables, ()):
        values = [(name, value) for name, value in table.items() if not isinstance(value, dict)]
        if not values:
            continue
        lines += ["", paint(f"[{dotted(key)}]", "bold")]
        said = [
            (f"{dotted((name,))} = {_written(value)}", origin((*key, name), known)) for name, value in values
        ]
        column = max((width(setting) for setting, _ in said if width(setting) <= _FURTHEST), default=0)
        for setting, remark in said:
            lines.append(f"{setting}{' ' * (column - width(setting))}  {paint(f'# {remark}', 'dim')}")
    return "\n".join(lines)


def masked(value: Any) -> Any:
    """A value without its secrets, nor what TOML cannot say: that something is not there."""
    match value:
        case dict():
            return {
                name: _hidden(member) if name in _SECRET else masked(member)
                for name, member in value.items()
                if member is not None
            }
        case list() | tuple():
            return [masked(member) for member in value]
        case str():
            return _USER_OF_URL.sub(_MASKED, value)
        case _:
            return value


def _hidden(value: Any) -> Any:
    """Something in place of a secret; nothing hides nothing."""
    if isinstance(value, dict):
        return {name: _hidden(member) for name, member in value.items()}
    return _MASKED if value else value


def _tables(table: Mapping[str, Any], key: Key) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """A table and those in it, each after the one that it is in."""
    for name, member in table.items():
        if isinstance(member, dict):
            yield (*key, name), member
            yield from _tables(member, (*key, name))


def _values(table: Mapping[str, Any], key: Key) -> Iterator[tuple[Key, Any]]:
    for name, member in table.items():
        if isinstance(member, dict) and member:
            yield from _values(member, (*key, name))
        else:
            yield (*key, name), member


def _written(value: Any) -> str:
    """A value as TOML, in one line."""
    match value:
        case dict():
            return f"{{ {', '.join(f'{dotted((name,))} = {_written(member)}' for name, member in value.items())} }}"
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case float():
            return str(
                float(f"{value:.12g}")
            )  # a weight that was made a share: 0.375, not 0.37499999999999994
        case _:
            return str(tomlkit.item(value).as_string())
