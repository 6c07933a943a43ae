"""Which lines of a TOML text say what."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

# ("agents", "main", "scope", "rules", 0): names of tables and keys, places in lists.
Key = tuple[str | int, ...]

# Only a line with one of these may end what another line has begun.
_CLOSING = re.compile(r"""[]}]|\"{3}|'{3}""")
# Each attempt to end a statement parses it from its beginning. After so many characters, about a second, the rest of the
# text is not followed.
_MOST_PARSED = 1_000_000


class TomlStatement(msgspec.Struct, frozen=True):
    """A table header, or a key with its value."""

    line: int  # 1-based
    last_line: int  # inclusive
    # Every key it mentions: a header's table is the last, what is in a value comes after it.
    keys: tuple[Key, ...]
    is_header: bool


def statements(text: str) -> Iterator[TomlStatement]:
    """The statements of a text that is valid TOML, in order.

    TOML ends a statement with its line unless a list or a string is still open. So the fewest lines that are valid
    by themselves are one statement.
    """
    table: Key = ()
    tables_in: dict[Key, int] = {}  # array of tables -> how many so far
    pending: list[str] = []
    parsed = 0  # in attempts that failed
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        pending.append(line)
        if len(pending) > 1 and not _CLOSING.search(line):
            continue
        attempt = "\n".join(pending)
        try:
            piece = tomllib.loads(attempt)
        except (ValueError, RecursionError):  # open still, wrong, or nested without end
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
    """The keys and tables that a text gives more than once, which TOML does not allow, with their lines.

    Other than the functions beside it, this one is for a text that is no valid TOML because of that.
    """
    given: dict[tuple[Key, bool], dict[int, None]] = {}
    for statement in statements(text):
        for key in statement.keys[-1:] if statement.is_header else _leaves(statement.keys):
            if not any(isinstance(part, int) for part in key):
                given.setdefault((key, statement.is_header), {})[statement.line] = None
    return {key: list(found) for (key, _), found in given.items() if len(found) > 1}


def _leaves(keys: tuple[Key, ...]) -> Iterator[Key]:
    """The keys that are above no other."""
    above = {key[:-1] for key in keys}
    return (key for key in keys if key not in above)


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
