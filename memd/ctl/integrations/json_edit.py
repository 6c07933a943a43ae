"""Edits the text of a JSON file, and leaves the rest of it unchanged byte by byte. Pure.

Some programs allow comments and trailing commas (JSONC). Both are replaced by spaces before the text is parsed, so that positions
in the parsed text are positions in the text. The module json5 parses the rest of JSON5.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memd.ctl.integrations import json5

Path = Sequence[str | int]
"""The path to a value: keys of objects, and indexes of lists."""

_INDENT = re.compile(r"[ \t]*")
_STRING = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


class NotEditable(ValueError):
    """The text does not have the syntax of its file, or something else is where the change belongs."""


class _Blanked(msgspec.Struct, frozen=True):
    """A text, and the same text with comments and trailing commas replaced by spaces."""

    text: str
    commas: str  # without comments
    bare: str  # without trailing commas, too
    comments: tuple[str, ...]
    may_have_comments: bool


class _Item(msgspec.Struct, frozen=True):
    """The position of an object's member or a list's element in the text."""

    key: str | int
    begin: int  # of the key, or of a list's element
    value: int
    end: int


def document(text: str, *, comments: bool = False) -> Any:
    """Parse the text; an empty text is an empty object.

    Args:
        text: The content of a JSON file, which may have comments.
        comments: Whether JSON5 is allowed, including comments and trailing commas.

    Raises:
        NotEditable: it is not JSON.
    """
    return _said_by(_blanked(text, comments=comments), comments=comments)


def _said_by(source: _Blanked, *, comments: bool) -> Any:
    bare = source.bare.removeprefix("\ufeff")
    if not bare.strip():
        return {}
    try:
        return json.loads(bare)
    except RecursionError as error:
        raise NotEditable("it is nested too deeply") from error
    except ValueError as error:
        if comments:
            return _said_in_json5(bare)
        raise NotEditable(f"it is not plain JSON ({error}); comments could not be kept") from error


def _said_in_json5(bare: str) -> Any:
    try:
        value, end = json5.decode(bare, json5.skip(bare, 0))
        if json5.skip(bare, end) != len(bare):
            raise ValueError("something follows it")  # noqa: TRY301  as what decode raises
    except ValueError as error:
        raise NotEditable(f"it is not JSON ({error})") from error
    return value


def _blanked(text: str, *, comments: bool) -> _Blanked:
    if not comments:
        return _Blanked(text, text, text, (), may_have_comments=False)
    found: list[str] = []

    def blank(match: re.Match[str]) -> str:
        if match[0][0] in "\"'":
            return match[0]
        found.append(match[0])
        return " " * len(match[0])  # line ends too: a comment of several lines is then on one line

    commas = _STRING_OR_COMMENT.sub(blank, text)
    kept, found = tuple(found), []
    return _Blanked(text, commas, _STRING_OR_LAST_COMMA.sub(blank, commas), kept, may_have_comments=True)


def find(value: Any, path: Path) -> Any:
    """Return the value at a path; None: there is none."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def with_value(text: str, path: Path, value: Any, *, comments: bool = False) -> str:
    """Return the text with a value at a path; missing objects on the way are added.

    The index after the last element of a list appends to it.

    Raises:
        NotEditable: the text is not JSON, or a value on the way is neither an object nor a list.
    """
    source = _blanked(text, comments=comments)
    wanted = _said_by(source, comments=comments)
    _set(wanted, path, value)
    if not source.bare.removeprefix("\ufeff").strip() or text.strip() == "{}":
        before = f"{text.rstrip()}\n" if source.comments else ""
        return f"{before}{json.dumps(wanted, indent=2, ensure_ascii=False)}\n"
    return _checked(_put(source, path, value), wanted, source)


def without_value(text: str, path: Path, *, comments: bool = False) -> str:
    """Return the text without the value at a path; unchanged if there is none.

    Raises:
        NotEditable: the text is not JSON.
    """
    source = _blanked(text, comments=comments)
    wanted = _said_by(source, comments=comments)
    parent = find(wanted, path[:-1])
    if find(wanted, path) is None and not (isinstance(parent, dict) and path[-1] in parent):
        return text
    del parent[path[-1]]
    bare = source.bare
    at = _reach(bare, path[:-1])[0]
    items = _items(bare, at)
    gone = next(number for number, item in enumerate(items) if item.key == path[-1])
    if len(items) == 1:  # nothing stays between the brackets
        begin, end = at + 1, json5.skip(bare, items[0].end)
    elif gone:  # with the comma before it
        begin, end = items[gone - 1].end, items[gone].end
    else:
        begin, end = items[0].begin, items[1].begin
    comma = source.commas.find(",", items[-1].end, json5.skip(bare, items[-1].end))
    if text[begin:end] == bare[begin:end] and (comma < 0 or gone < len(items) - 1):
        return _checked(text[:begin] + text[end:], wanted, source)
    return _checked(_without_lines(source, items, gone, comma), wanted, source)


def _without_lines(source: _Blanked, items: list[_Item], gone: int, last_comma: int) -> str:
    """Return the text without one item, but with the comments around it.

    Args:
        source: The text.
        items: The items of the object or list.
        gone: The index of the item to remove.
        last_comma: The position of a comma behind the last item, or -1.
    """
    text, item = source.text, items[gone]
    is_last = gone == len(items) - 1
    comma = last_comma if is_last else source.commas.index(",", item.end)
    end = item.end if comma < 0 else comma + 1
    if not source.text[item.end : end].strip(", \t"):
        pieces = [(item.begin, end)]
    else:  # a comment stands between it and its comma
        pieces = [(item.begin, item.end), (comma, end)]
    line = text.rfind("\n", 0, item.begin)
    if line >= 0 and not text[line : item.begin].strip() and not _line(text, end).strip():
        begin = line - 1 if text[line - 1 : line] == "\r" else line
        pieces[0] = (begin, pieces[0][1])
        pieces[-1] = (pieces[-1][0], end + len(_line(text, end)))
    if is_last and gone and comma < 0:
        before = source.commas.index(",", items[gone - 1].end)
        pieces.insert(0, (before, before + 1))
    for begin, finish in reversed(pieces):
        text = text[:begin] + text[finish:]
    return text


def _line(text: str, at: int) -> str:
    """Return the rest of a line without its end."""
    return re.split(r"\r?\n", text[at:], maxsplit=1)[0]


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


def _put(source: _Blanked, path: Path, value: Any) -> str:
    text, bare = source.text, source.bare
    at, left = _reach(bare, path)
    if not left:
        old, end = json5.decode(bare, at)
        return text if old == value else text[:at] + _written(text, value, _margin(text, at)) + text[end:]
    for key in reversed(left[1:]):
        value = {key: value} if isinstance(key, str) else [value]
    items = _items(bare, at)
    name = f"{json.dumps(left[0], ensure_ascii=False)}: " if isinstance(left[0], str) else ""
    line_end = _line_end(text)
    if not items and "\n" in text.rstrip():
        inner = _margin(text, at) + _unit(text)
        closing = json5.skip(bare, at + 1)
        kept = text[at + 1 : closing].rstrip() if text[at + 1 : closing].strip() else ""  # a comment
        new = f"{line_end}{inner}{name}{_written(text, value, inner)}{line_end}{_margin(text, at)}"
        return text[: at + 1] + kept + new + text[closing:]
    if not items:
        return f"{text[: at + 1]}{name}{_written(text, value, '')}{text[json5.skip(bare, at + 1) :]}"
    last = items[-1]
    between = bare[_comma(bare, items[-2].end) : last.begin] if len(items) > 1 else bare[at + 1 : last.begin]
    if "\n" not in between:  # all on one line
        flat = json.dumps(value, ensure_ascii=False)
        return f"{text[: last.end]},{between or ''}{name}{flat}{text[last.end :]}"
    if text == source.commas == bare:
        return f"{text[: last.end]},{between}{name}{_written(text, value, _margin(text, last.begin))}{text[last.end :]}"
    margin = _margin(text, last.begin)
    closing = json5.skip(bare, last.end)
    comma = source.commas.find(",", last.end, closing)
    begin = last.end if comma < 0 else comma + 1
    rest = _line(bare, begin)  # what is blank of it in bare is a comment about the last item
    begin = begin if rest.strip() else begin + len(rest)
    new = f"{line_end}{margin}{name}{_written(text, value, margin)}{'' if comma < 0 else ','}"
    return f"{text[: last.end]}{',' if comma < 0 else ''}{text[last.end : begin]}{new}{text[begin:]}"


def _reach(text: str, path: Path) -> tuple[int, Path]:
    """Return where the value at a path begins, or the deepest existing value on the way, and the rest of the path."""
    at = json5.skip(text, len(text) - len(text.removeprefix("\ufeff")))
    for number, key in enumerate(path):
        # Of two members with one name, the last one counts.
        found = next((item for item in reversed(_items(text, at)) if item.key == key), None)
        if found is None:
            return at, path[number:]
        at = found.value
    return at, ()


def _items(text: str, at: int) -> list[_Item]:
    """Return the items of the object or list that begins at a position. The text is known to be JSON."""
    closing = "}" if text[at] == "{" else "]"
    items: list[_Item] = []
    here = json5.skip(text, at + 1)
    while text[here] != closing:
        begin = here
        key: str | int = len(items)
        if closing == "}":
            key, here = json5.decode_key(text, here)
            here = json5.skip(text, json5.skip(text, here) + 1)
        end = json5.decode(text, here)[1]
        items.append(_Item(key, begin, here, end))
        here = json5.skip(text, end)
        if text[here] == ",":
            here = json5.skip(text, here + 1)
    return items


def _written(text: str, value: Any, margin: str) -> str:
    """Format a value with the text's indentation and a margin; on one line if the text is one line."""
    if "\n" not in text.rstrip():
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", _line_end(text) + margin)


def _unit(text: str) -> str:
    """Return the indentation of one level in the text."""
    first = re.search(r"\n([ \t]+)\S", text)
    return first[1] if first else "  "


def _margin(text: str, at: int) -> str:
    """Return the indentation of the line at a position."""
    indent = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return indent[0] if indent else ""


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _comma(text: str, at: int) -> int:
    """Return the position after the next comma."""
    return json5.skip(text, at) + 1


def _checked(text: str, wanted: Any, source: _Blanked) -> str:
    """Return the text if it has the wanted value and all comments."""
    found = _blanked(text, comments=source.may_have_comments)
    if _said_by(found, comments=source.may_have_comments) != wanted or found.comments != source.comments:
        raise NotEditable("it is written in a form that memd-ctl cannot edit: edit it by hand")
    return text
