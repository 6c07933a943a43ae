"""Changes to the text of a JSON file that leave the rest of it as it stands, byte by byte. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

Path = Sequence[str | int]
"""The way to a value: keys of objects, places in lists."""

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"[ \t]*")
_DECODER = json.JSONDecoder()


class NotEditable(ValueError):
    """The text is not JSON as RFC 8259 has it, or it holds something else where the change belongs."""


class _Item(msgspec.Struct, frozen=True):
    """A member of an object, or an element of a list, by its place in the text."""

    key: str | int
    begin: int  # of the key, or of the value where there is none
    value: int
    end: int


def document(text: str) -> Any:
    """What the text says; nothing at all is an empty object.

    Raises:
        NotEditable: it is not JSON. Comments and trailing commas are none of it.
    """
    bare = text.removeprefix("\ufeff")
    if not bare.strip():
        return {}
    try:
        return json.loads(bare)
    except RecursionError as error:
        raise NotEditable("it is nested too deeply") from error
    except ValueError as error:
        raise NotEditable(f"it is not plain JSON ({error}); comments could not be kept") from error


def find(value: Any, path: Path) -> Any:
    """The value at the end of a path; None where the path ends before."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def with_value(text: str, path: Path, value: Any) -> str:
    """The text with a value at a path; what is missing on the way is added.

    A place in a list that is one past its end is added to it.

    Raises:
        NotEditable: the text is not JSON, or something on the way is no object, or no list.
    """
    wanted = document(text)
    _set(wanted, path, value)
    if not text.removeprefix("\ufeff").strip() or text.strip() == "{}":
        return f"{json.dumps(wanted, indent=2, ensure_ascii=False)}\n"
    return _checked(_put(text, path, value), wanted)


def without_value(text: str, path: Path) -> str:
    """The text without what is at a path; the same text where nothing is.

    Raises:
        NotEditable: the text is not JSON.
    """
    wanted = document(text)
    parent = find(wanted, path[:-1])
    if find(wanted, path) is None and not (isinstance(parent, dict) and path[-1] in parent):
        return text
    del parent[path[-1]]
    at = _reach(text, path[:-1])[0]
    items = _items(text, at)
    gone = next(number for number, item in enumerate(items) if item.key == path[-1])
    if len(items) == 1:  # nothing stays between the brackets
        begin, end = at + 1, _skip(text, items[0].end)
    elif gone:  # with the comma before it
        begin, end = items[gone - 1].end, items[gone].end
    else:
        begin, end = items[0].begin, items[1].begin
    return _checked(text[:begin] + text[end:], wanted)


def _set(value: Any, path: Path, new: Any) -> None:
    for key, following in zip(path, [*path[1:], None], strict=True):
        is_fit = isinstance(value, dict) if isinstance(key, str) else isinstance(value, list)
        if not is_fit or (isinstance(key, int) and key > len(value)):
            kind = "an object" if isinstance(key, str) else "a list"
            raise NotEditable(f"{'.'.join(map(str, path[:-1]))} must be {kind} there")
        if following is None:
            fresh: Any = new
        elif (isinstance(value, dict) and key in value) or (isinstance(key, int) and key < len(value)):
            fresh = value[key]
        else:
            fresh = {} if isinstance(following, str) else []
        if isinstance(value, list) and key == len(value):
            value.append(fresh)
        else:
            value[key] = fresh
        value = fresh


def _put(text: str, path: Path, value: Any) -> str:
    at, left = _reach(text, path)
    if not left:
        old, end = _DECODER.raw_decode(text, at)
        return text if old == value else text[:at] + _written(text, value, _margin(text, at)) + text[end:]
    for key in reversed(left[1:]):
        value = {key: value} if isinstance(key, str) else [value]
    items = _items(text, at)
    name = f"{json.dumps(left[0], ensure_ascii=False)}: " if isinstance(left[0], str) else ""
    if not items and "\n" in text.rstrip():
        inner = _margin(text, at) + _unit(text)
        line_end = _line_end(text)
        new = f"{line_end}{inner}{name}{_written(text, value, inner)}{line_end}{_margin(text, at)}"
        return text[: at + 1] + new + text[_skip(text, at + 1) :]
    if not items:
        return f"{text[: at + 1]}{name}{_written(text, value, '')}{text[_skip(text, at + 1) :]}"
    last = items[-1]
    between = text[_comma(text, items[-2].end) : last.begin] if len(items) > 1 else text[at + 1 : last.begin]
    if "\n" not in between:  # all on one line
        flat = json.dumps(value, ensure_ascii=False)
        return f"{text[: last.end]},{between or ''}{name}{flat}{text[last.end :]}"
    return f"{text[: last.end]},{between}{name}{_written(text, value, _margin(text, last.begin))}{text[last.end :]}"


def _reach(text: str, path: Path) -> tuple[int, Path]:
    """Where the value at a path begins, or the last that there is on the way, and what of the path is left."""
    at = _skip(text, len(text) - len(text.removeprefix("\ufeff")))
    for number, key in enumerate(path):
        # Of two members with one name, the last counts.
        found = next((item for item in reversed(_items(text, at)) if item.key == key), None)
        if found is None:
            return at, path[number:]
        at = found.value
    return at, ()


def _items(text: str, at: int) -> list[_Item]:
    """What the object, or the list, that begins there holds. The text is known to be JSON."""
    closing = "}" if text[at] == "{" else "]"
    items: list[_Item] = []
    here = _skip(text, at + 1)
    while text[here] != closing:
        begin = here
        key: str | int = len(items)
        if closing == "}":
            key, here = _DECODER.raw_decode(text, here)
            here = _skip(text, _skip(text, here) + 1)
        end = _DECODER.raw_decode(text, here)[1]
        items.append(_Item(key, begin, here, end))
        here = _skip(text, end)
        if text[here] == ",":
            here = _skip(text, here + 1)
    return items


def _written(text: str, value: Any, margin: str) -> str:
    """A value in the indentation of the text, its later lines behind a margin; on one line in a text that is one."""
    if "\n" not in text.rstrip():
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", _line_end(text) + margin)


def _unit(text: str) -> str:
    """What the text indents one level with."""
    first = re.search(r"\n([ \t]+)\S", text)
    return first[1] if first else "  "


def _margin(text: str, at: int) -> str:
    """What the line that holds a place begins with."""
    indent = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return indent[0] if indent else ""


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _comma(text: str, at: int) -> int:
    """Past the comma that follows."""
    return _skip(text, at) + 1


def _checked(text: str, wanted: Any) -> str:
    if document(text) != wanted:
        raise NotEditable("it is written in a way that cannot be changed without you")
    return text
