"""Changes or removes one table of a TOML file, and keeps the rest as the user wrote it. Pure.

Each change is tried in several ways, the smallest edit first; the first result that parses to the wanted values is used.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from memd.config.check import dotted
from memd.config.toml_lines import statements
from memd.ctl.integrations.json_edit import NotEditable

TablePath = tuple[str, str]  # such as ("agents", "main")

_BY_HAND = "it is written in a form that memd-ctl cannot edit: edit it by hand"


def document(text: str) -> dict[str, Any]:
    """Parse the text.

    Raises:
        NotEditable: it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"it is not TOML ({error})") from error


def with_values(text: str, path: TablePath, values: Mapping[str, Any]) -> str:
    """Return the text with these values in a table, which is added if it is missing; other values in it stay.

    Raises:
        NotEditable: the text is not TOML, the path leads to something else than a table, or only the user can make the change.
    """
    wanted, there = _table(text, path)
    if there is not None and all(there.get(name) == value for name, value in values.items()):
        return text
    wanted.setdefault(path[0], {}).setdefault(path[1], {}).update(values)
    for way in (_under_header, _appended, _in_place):
        changed = way(text, path, values)
        if changed is not None and _says(changed, wanted):
            return changed
    raise NotEditable(_BY_HAND)


def without_table(text: str, path: TablePath) -> str:
    """Return the text without a table; unchanged if there is none.

    Raises:
        NotEditable: see with_values.
    """
    wanted, there = _table(text, path)
    if there is None:
        return text
    del wanted[path[0]][path[1]]
    # A parent table with a header of its own stays, even if it is empty now.
    without_parent = {name: value for name, value in wanted.items() if name != path[0] or value}
    for changed in (_cut(text, path), _taken_out(text, path)):
        if changed is not None and (_says(changed, wanted) or _says(changed, without_parent)):
            return changed
    raise NotEditable(_BY_HAND)


def _cut(text: str, path: TablePath) -> str:
    """Return the text without the lines of a table and its subtables, from the header to the last key; comments after that stay."""
    lines = text.split("\n")
    gone: set[int] = set()
    begin: int | None = None  # the first line of the table that is being removed
    for statement in statements(text):
        if statement.is_header:
            begin = statement.line if statement.keys[-1][:2] == path else None
        if begin is not None:
            gone |= set(range(begin, statement.last_line + 1))
    # The empty line before the table is removed too.
    for number in sorted(gone):
        if number - 1 not in gone and number > 1 and not lines[number - 2].strip():
            gone.add(number - 1)
    kept = "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)
    return f"{kept.rstrip()}{_line_end(text)}" if kept.strip() else ""


def _taken_out(text: str, path: TablePath) -> str | None:
    """Return the text without a table in any other form; None if a comment would be lost."""
    try:
        tables: Any = tomlkit.parse(text)
        del tables[path[0]][path[1]]
        if not tables[path[0]]:
            del tables[path[0]]
        changed = tomlkit.dumps(tables)
    except TOMLKitError:
        return None
    if Counter(_comments(changed)) != Counter(_comments(text)):
        return None
    return f"{changed.rstrip()}{_line_end(text)}" if changed.strip() else ""


def _comments(text: str) -> Iterator[str]:
    return (line.strip() for line in text.split("\n") if line.lstrip().startswith("#"))


def _table(text: str, path: TablePath) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the parsed text, and the table in it; None: there is none."""
    whole = document(text)
    tables = whole.get(path[0], {})
    table = tables.get(path[1]) if isinstance(tables, dict) else None
    if not isinstance(tables, dict) or not isinstance(table, dict | None):
        raise NotEditable(f"{dotted(path)} must be a table there")
    return whole, table


def _under_header(text: str, path: TablePath, values: Mapping[str, Any]) -> str | None:
    """Return the text with new lines below the table's own header; None: it has no header.

    A value is inserted after the comment with its default, else after the last key: comments at the end of a table usually
    belong to the next one.
    """
    for name, value in values.items():
        changed = _with_line(text, path, name, value)
        if changed is None:
            return None
        text = changed
    return text


def _with_line(text: str, path: TablePath, name: str, value: Any) -> str | None:
    lines = text.split("\n")
    after = end = None
    for statement in statements(text):
        if statement.is_header and after is not None:
            end = statement.line - 1
            break
        if statement.is_header and statement.keys[-1] == path:
            after = header = statement.last_line
        elif after is not None:
            after = statement.last_line
    if after is None:
        return None
    default = re.compile(rf"\s*#\s*{re.escape(name)}\s*=")
    after = next((n for n, line in enumerate(lines[header:end], header + 1) if default.match(line)), after)
    ending = "\r" if lines[after - 1].endswith("\r") else ""
    if after == len(lines):  # the file ends without a line end
        lines.append("")
    lines.insert(after, f"{_assignment(name, value)}{ending}")
    return "\n".join(lines)


def _appended(text: str, path: TablePath, values: Mapping[str, Any]) -> str:
    """Return the text with a new table at the end."""
    end = _line_end(text)
    before = text.rstrip("\r\n") + end + end if text.strip() else ""
    lines = [f"[{dotted(path)}]", *(_assignment(name, value) for name, value in values.items())]
    return f"{before}{end.join(lines)}{end}"


def _in_place(text: str, path: TablePath, values: Mapping[str, Any]) -> str | None:
    """Return the text with existing values replaced, in whatever form the tables around them are; None: tomlkit cannot do that."""
    try:
        whole: Any = tomlkit.parse(text)
        table = whole.setdefault(path[0], {}).setdefault(path[1], {})
        for name, value in values.items():
            if isinstance(value, list) and table.get(name) == value[:-1]:
                table[name].append(value[-1])  # appending keeps the comments in a list
            else:
                table[name] = value
        return tomlkit.dumps(whole)
    except TOMLKitError:
        return None


def _assignment(name: str, value: Any) -> str:
    return f"{dotted((name,))} = {tomlkit.item(value).as_string()}"


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except ValueError:
        return False


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
