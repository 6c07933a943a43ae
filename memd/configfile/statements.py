"""Which lines of a TOML text say what."""

import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

Key = tuple[
    str | int, ...
]  # ("agents", "main", "scope", "rules", 0): names of tables and keys, places in lists

# A list of more lines than this is not followed: each of its lines is parsed again with all before it.
_MOST_LINES = 500


class Statement(msgspec.Struct, frozen=True):
    """A table header, or a key with its value."""

    line: int  # 1-based
    last_line: int  # inclusive
    keys: tuple[
        Key, ...
    ]  # every key it mentions: a header's table is the last, what is in a value comes after it
    is_header: bool


def statements(text: str) -> Iterator[Statement]:
    """The statements of a text that is valid TOML, in order.

    TOML ends a statement with its line unless a list or a string is still open. So the fewest lines that are valid
    by themselves are one statement.
    """
    table: Key = ()
    tables_in: dict[Key, int] = {}  # array of tables -> how many so far
    pending: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        pending.append(line)
        try:
            piece = tomllib.loads("\n".join(pending))
        except ValueError:
            if len(pending) == _MOST_LINES:
                return
            continue
        first, pending = number - len(pending) + 1, []
        if not piece:
            continue
        if line.lstrip().startswith("[") and first == number:
            table = _header(piece, tables_in)
            yield Statement(first, number, tuple(table[: n + 1] for n in range(len(table))), is_header=True)
        else:
            yield Statement(first, number, tuple(_keys(piece, table)), is_header=False)


def lines(text: str) -> dict[Key, int]:
    """Where each key of a text that is valid TOML is first mentioned; 1-based."""
    found: dict[Key, int] = {}
    for statement in statements(text):
        for key in statement.keys:
            found.setdefault(key, statement.line)
    return found


def _header(piece: dict[str, Any], tables_in: dict[Key, int]) -> Key:
    """The table that ``[a.b]`` or ``[[a.b]]`` opens; within an array of tables, that of its last element."""
    key: Key = ()
    value: Any = piece
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        key = (*key, name)
        if isinstance(value, list):  # [[a.b]]: one more
            tables_in[key] = tables_in.get(key, 0) + 1
        if key in tables_in:
            key = (*key, tables_in[key] - 1)
    return key


def _keys(value: Any, key: Key) -> Iterator[Key]:
    """The keys of a value, those of its tables and lists too, under the key it has."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield (*key, name)
        yield from _keys(member, (*key, name))
