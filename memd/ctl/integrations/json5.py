"""Parses a value of JSON5, the syntax of OpenClaw's configuration: unquoted keys, single quotes, more forms of numbers.

Comments and trailing commas were removed before: see json_edit.
"""

import json
import math
import re
from contextlib import suppress
from typing import Any

_SPACE = re.compile(r"[\s\ufeff]*")
_NAME = re.compile(r"[^\W\d](?:[\w$\u200c\u200d])*|\$[\w$\u200c\u200d]*")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\\r\n|\\.)*"|\'(?:[^\'\\\r\n]|\\\r\n|\\.)*\'', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:\r\n|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<hex>0[xX][0-9a-fA-F]+)|(?P<word>Infinity|NaN)"
    r"|(?P<plain>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))(?![\w$.])"
)
_DECODER = json.JSONDecoder()
_WORDS = {"true": True, "false": False, "null": None}
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_DEEPEST = 200  # two frames of Python each


def decode(text: str, at: int, depth: int = 0) -> tuple[Any, int]:
    """Return the value that begins at a position, and its end.

    Raises:
        ValueError: there is none.
    """
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    first = text[at : at + 1]
    if first and first in '{["' and not depth:
        with suppress(ValueError, RecursionError):  # JSON is read a hundred times as fast
            return _DECODER.raw_decode(text, at)
    if first == "{":
        return _object(text, at, depth)
    if first == "[":
        return _list(text, at, depth)
    if first and first in "\"'":
        return _string(text, at)
    if number := _NUMBER.match(text, at):
        return _number(number), number.end()
    word = _NAME.match(text, at)
    if word is None or word[0] not in _WORDS:
        raise _wrong(text, at)
    return _WORDS[word[0]], word.end()


def decode_key(text: str, at: int) -> tuple[str, int]:
    """Return the key that begins at a position, and its end; errors as in decode."""
    name = _NAME.match(text, at)
    return _string(text, at) if name is None else (name[0], name.end())


def skip(text: str, at: int) -> int:
    """Return the position after whitespace."""
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    at = skip(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = decode_key(text, at)
        at = skip(text, at)
        if text[at : at + 1] != ":":
            raise _wrong(text, at)
        members[key], at = decode(text, skip(text, at + 1), depth + 1)
        at = _next(text, at, "}")
    return members, at + 1


def _list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = skip(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = decode(text, at, depth + 1)
        items.append(item)
        at = _next(text, at, "]")
    return items, at + 1


def _next(text: str, at: int, closing: str) -> int:
    """Return the position of the next item, or of the closing bracket."""
    at = skip(text, at)
    if text[at : at + 1] == ",":
        return skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _wrong(text, at)
    return at


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        raise _wrong(text, at)
    inside = _ESCAPE.sub(_plain, found[0][1:-1]) if "\\" in found[0] else found[0][1:-1]
    # Two halves of a character that were escaped one by one.
    return inside.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), found.end()


def _plain(escape: re.Match[str]) -> str:
    letter = escape[0][1]
    if len(escape[0]) > 2 and letter in "ux":
        return chr(int(f"0x{escape[0][2:]}", 0))
    # A line that goes on; any other sign stands for itself.
    return "" if letter in "\r\n\u2028\u2029" else _LETTERS.get(letter, letter)


def _number(found: re.Match[str]) -> float:
    sign = -1 if found["sign"] == "-" else 1
    if found["hex"]:
        return sign * int(found["hex"], 16)
    if found["word"]:
        return sign * (math.inf if found["word"] == "Infinity" else math.nan)
    plain = found["plain"]
    if not any(sign in plain for sign in ".eE"):
        return sign * json.loads(plain)  # type: ignore[no-any-return]  # an integer of any length
    return sign * float(plain)


def _wrong(text: str, at: int) -> ValueError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return ValueError(f"line {line}, column {column}")
