"""One table of a TOML file of another program, set or taken out; the rest stays as it stands. Pure."""

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from memd.ctl.jsonedit import NotEditable


def document(text: str) -> dict[str, Any]:
    """What the text says.

    Raises:
        NotEditable: it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"it is not TOML ({error})") from error


def with_table(text: str, way: tuple[str, str], values: Mapping[str, Any]) -> str:
    """The text with these values in a table; others that are there stay.

    Raises:
        NotEditable: the text is not TOML, or something else than tables is on the way.
    """
    wanted, there = _table(text, way)
    if there is not None and all(there.get(name) == value for name, value in values.items()):
        return text
    wanted.setdefault(way[0], {}).setdefault(way[1], {}).update(values)
    for changed in (_appended(text, way, values), _in_place(text, way, values)):
        if changed is not None and _says(changed, wanted):
            return changed
    raise NotEditable("it is written in a way that cannot be changed without you")


def without_table(text: str, way: tuple[str, str]) -> str:
    """The text without a table; the same text where there is none.

    Raises:
        NotEditable: as with_table.
    """
    wanted, there = _table(text, way)
    if there is None:
        return text
    try:
        tables: Any = tomlkit.parse(text)
        del tables[way[0]][way[1]]
        del wanted[way[0]][way[1]]
        if not wanted[way[0]]:
            del tables[way[0]], wanted[way[0]]
        changed = tomlkit.dumps(tables)
    except TOMLKitError as error:
        raise NotEditable(str(error)) from error
    # An empty line stood before the table, which was the last.
    changed = f"{changed.rstrip()}{_line_end(text)}" if changed.strip() else ""
    if not _says(changed, wanted):
        raise NotEditable("it is written in a way that cannot be changed without you")
    return changed


def _table(text: str, way: tuple[str, str]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """All that the text says, and the table of it; None where there is none."""
    whole = document(text)
    tables = whole.get(way[0], {})
    table = tables.get(way[1]) if isinstance(tables, dict) else None
    if not isinstance(tables, dict) or not isinstance(table, dict | None):
        raise NotEditable(f"{'.'.join(way)} must be a table there")
    return whole, table


def _appended(text: str, way: tuple[str, str], values: Mapping[str, Any]) -> str:
    """A new table at the end."""
    end = _line_end(text)
    before = f"{text.rstrip()}{end}{end}" if text.strip() else ""
    lines = [
        f"[{'.'.join(way)}]",
        *(f"{name} = {tomlkit.item(value).as_string()}" for name, value in values.items()),
    ]
    return f"{before}{end.join(lines)}{end}"


def _in_place(text: str, way: tuple[str, str], values: Mapping[str, Any]) -> str | None:
    """Other values where some stand, whatever the form of the tables around them."""
    try:
        whole: Any = tomlkit.parse(text)
        table = whole.setdefault(way[0], {}).setdefault(way[1], {})
        for name, value in values.items():
            table[name] = value
        return tomlkit.dumps(whole)
    except TOMLKitError:
        return None


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except ValueError:
        return False


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
