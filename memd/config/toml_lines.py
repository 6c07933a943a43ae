"""Finds the lines of a TOML text that define each key."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

# ("agents", "main", "scope", "rules", 0): names of tables and keys, indexes in lists.
Key = tuple[str | int, ...]

# Only a line with one of these may end a statement that began on an earlier line.
_CLOSING = re.compile(r"""[]}]|\"{3}|'{3}""")
# Each attempt to end a statement parses it from its beginning. After so many characters, about a second, the
# rest of the text is ignored.
# text is not followed.
_MOST_PARSED = 1_000_000


class TomlStatement(msgspec.Struct, frozen=True):
    """A table header, or a key with its value."""

    line: int  # 1-based
    last_line: int  # inclusive
    # Every key it mentions: a header's table is the last; keys within a value follow the key itself.
    keys: tuple[Key, ...]
    is_header: bool


def statements(text: str) -> Iterator[TomlStatement]:
    """Yield the statements of a valid TOML text, in order.

    TOML ends a statement with its line unless a list or a string is still open. So the fewest lines that are
    valid TOML together are one statement.
    """
    table: Key = ()
    tables_in: dict[Key, int] = {}  # array of tables -> number of its elements so far
    pending: list[str] = []
    parsed = 0  # characters parsed in failed attempts
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        pending.append(line)
        if len(pending) > 1 and not _CLOSING.search(line):
            continue
        attempt = "\n".join(pending)
        try:
            piece = tomllib.loads(attempt)
        except (ValueError, RecursionError):  # incomplete, invalid, or nested too deeply
            parsed += len(attempt)
            if parsed > _MOST_PARSED:
                return
            continue
        first, pending = number - len(pending) + 1, []
        if not piece:
            continue
        if line.lstrip().startswith("[") and first == number:
            table = _header(piece, tables_in)
            yield TomlStatement(
                first, number, tuple(table[: n + 1] for n in range(len(table))), is_header=True
            )
        else:
            yield TomlStatement(first, number, tuple(_keys(piece, table)), is_header=False)


def repeated(text: str) -> dict[Key, list[int]]:
    """Return the keys and tables that a text defines more than once, which TOML forbids, with their lines.

    Unlike the other functions, this one accepts a text that is invalid for that reason.
    """
    given: dict[tuple[Key, bool], dict[int, None]] = {}
    for statement in statements(text):
        for key in statement.keys[-1:] if statement.is_header else _leaves(statement.keys):
            if not any(isinstance(part, int) for part in key):
                given.setdefault((key, statement.is_header), {})[statement.line] = None
    return {key: list(found) for (key, _), found in given.items() if len(found) > 1}


def _leaves(keys: tuple[Key, ...]) -> Iterator[Key]:
    """Return the keys that contain no other key."""
    above = {key[:-1] for key in keys}
    return (key for key in keys if key not in above)


def lines(text: str) -> dict[Key, int]:
    """Return the line, from 1, on which each key of a valid TOML text is first mentioned."""
    found: dict[Key, int] = {}
    for statement in statements(text):
        for key in statement.keys:
            found.setdefault(key, statement.line)
    return found


def _header(piece: dict[str, Any], tables_in: dict[Key, int]) -> Key:
    """Return the table that ``[a.b]`` or ``[[a.b]]`` opens; for an array of tables, its last element."""
    key: Key = ()
    value: Any = piece
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        key = (*key, name)
        if isinstance(value, list):  # [[a.b]]: another element
            tables_in[key] = tables_in.get(key, 0) + 1
        if key in tables_in:
            key = (*key, tables_in[key] - 1)
    return key


def _keys(value: Any, key: Key) -> Iterator[Key]:
    """Yield the keys within a value, including those of nested tables and lists, with the path of the value in front."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield (*key, name)
        yield from _keys(member, (*key, name))
