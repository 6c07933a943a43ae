"""One table of a TOML file of another program, set or taken out; the rest stays as it stands. Pure."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from memd.config.toml_lines import statements
from memd.ctl.integrations.json_edit import NotEditable


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
    del wanted[way[0]][way[1]]
    # Where its parent has a line of its own, that stays.
    without_parent = {name: value for name, value in wanted.items() if name != way[0] or value}
    for changed in (_cut(text, way), _taken_out(text, way)):
        if changed is not None and (_says(changed, wanted) or _says(changed, without_parent)):
            return changed
    raise NotEditable("it is written in a way that cannot be changed without you")


def _cut(text: str, way: tuple[str, str]) -> str:
    """The text without the lines from the header of a table, and of those in it, to the last key; what follows stays."""
    lines = text.split("\n")
    gone: set[int] = set()
    begin: int | None = None  # the first line of the table that is gone through
    for statement in statements(text):
        if statement.is_header:
            begin = statement.line if statement.keys[-1][:2] == way else None
        if begin is not None:
            gone |= set(range(begin, statement.last_line + 1))
    # An empty line stood before it.
    for number in sorted(gone):
        if number - 1 not in gone and number > 1 and not lines[number - 2].strip():
            gone.add(number - 1)
    kept = "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)
    return f"{kept.rstrip()}{_line_end(text)}" if kept.strip() else ""


def _taken_out(text: str, way: tuple[str, str]) -> str | None:
    """The text without a table of any other form; None where a comment would go with it."""
    try:
        tables: Any = tomlkit.parse(text)
        del tables[way[0]][way[1]]
        if not tables[way[0]]:
            del tables[way[0]]
        changed = tomlkit.dumps(tables)
    except TOMLKitError:
        return None
    if Counter(_comments(changed)) != Counter(_comments(text)):
        return None
    return f"{changed.rstrip()}{_line_end(text)}" if changed.strip() else ""


def _comments(text: str) -> Iterator[str]:
    return (line.strip() for line in text.split("\n") if line.lstrip().startswith("#"))


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
