"""Finds, changes or removes one entry of another program's configuration file in any of four syntaxes. Pure.

The rest of the file stays as the user wrote it; if that is not possible, the file is refused. json_edit and toml_edit do the work for
their syntaxes. YAML is parsed line by line, and only block mappings are supported, as programs write them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import tomlkit

from memd.ctl.integrations import json_edit, toml_edit
from memd.ctl.integrations.json_edit import NotEditable

Syntax = Literal["json", "jsonc", "toml", "yaml"]
"""jsonc: JSON with comments and trailing commas."""

Values = Mapping[str, Any]


def entry_in(syntax: Syntax, text: str, path: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of an entry; None: there is none.

    Args:
        syntax: The syntax of the file.
        text: The whole file.
        path: The keys that lead to the entry; two of them in TOML and YAML.

    Raises:
        NotEditable: the text is not in that syntax, or the path leads to something else.
    """
    if syntax == "yaml":
        found = _Yaml(text, path).entry
        return None if found is None else {key: value for key, value, _ in found.members()}
    whole = toml_edit.document(text) if syntax == "toml" else _json(syntax, text)
    entry = json_edit.find(whole, path)
    if entry is not None and not isinstance(entry, dict):
        raise NotEditable(f"{'.'.join(path)} is no {'table' if syntax == 'toml' else 'object'} there")
    return entry


def with_entry(syntax: Syntax, text: str, path: Sequence[str], values: Values) -> str:
    """Return the text with these values in an entry; its other values stay.

    Raises:
        NotEditable: see entry_in; or only the user can make the change.
    """
    old = entry_in(syntax, text, path)
    if syntax == "toml":
        return toml_edit.with_values(text, (path[0], path[1]), values)
    if syntax == "yaml":
        return text if old is not None and _has(old, values) else _Yaml(text, path).with_values(values)
    comments = syntax == "jsonc"
    if old is None:
        return json_edit.with_value(text, path, dict(values), comments=comments)
    for key, value in values.items():
        text = json_edit.with_value(text, (*path, key), value, comments=comments)
    return text


def without_entry(syntax: Syntax, text: str, path: Sequence[str]) -> str:
    """Return the text without an entry; unchanged if there is none.

    Raises:
        NotEditable: see with_entry.
    """
    if not text.strip():
        return text
    if syntax == "toml":
        return toml_edit.without_table(text, (path[0], path[1]))
    if syntax == "yaml":
        return _Yaml(text, path).without()
    return json_edit.without_value(text, path, comments=syntax == "jsonc")


def entry_alone(syntax: Syntax, path: Sequence[str], values: Values) -> str:
    """Return the text of a file that contains only the entry."""
    whole: Any = dict(values)
    for key in reversed(path):
        whole = {key: whole}
    if syntax == "toml":
        return tomlkit.dumps(whole)
    if syntax == "yaml":
        return with_entry(syntax, "", path, values)
    return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"


def _json(syntax: Syntax, text: str) -> Any:
    return json_edit.document(text, comments=syntax == "jsonc")


def _has(entry: Values, values: Values) -> bool:
    return all(key in entry and entry[key] == value for key, value in values.items())


_TOP = re.compile(r"(?:[A-Za-z_][\w.-]*|\"[^\"]*\"|'[^']*')\s*:(?:\s|$)|#|- |-$")
_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_][\w.-]*|\"[^\"\\]*\"|'[^']*')\s*:(?P<rest>\s.*)?")
_STEP = 2
_BY_HAND = "it is written in a form that memd-ctl cannot edit: edit it by hand"
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


class _Block(msgspec.Struct, frozen=True):
    """A key of a block mapping, with the lines of its value."""

    lines: tuple[str, ...]
    begin: int  # the line of the key
    end: int  # the line after its last one
    indent: int

    def children(self) -> Iterator[tuple[str, "_Block"]]:
        """Yield the keys of the mapping in the block, with their blocks."""
        own = [n for n in range(self.begin + 1, self.end) if _is_code(self.lines[n])]
        if not own:
            return
        indent = _indent(self.lines[own[0]])
        if indent <= self.indent or any(_indent(self.lines[n]) < indent for n in own):
            raise NotEditable(_BY_HAND)
        starts = [
            n
            for n in own
            if _indent(self.lines[n]) == indent and not self.lines[n].lstrip().startswith(("- ", "-\n"))
        ]
        for begin, end in zip(starts, [*starts[1:], self.end], strict=True):
            match = _KEY.fullmatch(self.lines[begin].rstrip("\r\n"))
            if match is None:
                raise NotEditable(_BY_HAND)
            last = max(n for n in range(begin, end) if _is_code(self.lines[n]))
            yield match["key"].strip("\"'"), _Block(self.lines, begin, last + 1, indent)

    @property
    def value(self) -> str:
        """The value on the line of the key; "" if there is none."""
        match = _KEY.fullmatch(self.lines[self.begin].rstrip("\r\n"))
        return _uncommented((match and match["rest"]) or "")

    def members(self) -> Iterator[tuple[str, Any, "_Block"]]:
        """Yield the keys of the mapping with their values, if those are scalars or lists of scalars."""
        for key, child in self.children():
            below = [line.strip() for line in self.lines[child.begin + 1 : child.end] if _is_code(line)]
            if below and all(line.startswith("- ") for line in below):
                yield key, [_scalar(line.removeprefix("- ")) for line in below], child
            else:
                yield key, _scalar(child.value), child


class _Yaml:
    """A YAML text, and the two keys that lead to an entry in it."""

    def __init__(self, text: str, path: Sequence[str]) -> None:
        self._text = text
        self._key, self._name = path
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        lines = tuple(text.splitlines(keepends=True))
        tops = [n for n, line in enumerate(lines) if line.strip() and not line[0].isspace()]
        if any(
            not _TOP.match(lines[n]) and not (n == tops[0] and lines[n].rstrip() == "---") for n in tops
        ) or any(line.lstrip(" ").startswith("\t") for line in lines):
            raise NotEditable("it is not YAML of the kind that can be changed without you")
        keys = [n for n in tops if not lines[n].startswith(("#", "- ", "---"))]
        own = [n for n in keys if re.match(rf"(['\"]?){re.escape(self._key)}\1\s*:", lines[n])]
        if len(own) > 1:
            raise NotEditable(f"{self._key} is there twice")
        self._parent: _Block | None = None
        self.entry: _Block | None = None
        self._has_comments = False  # in the mapping
        if own:
            end = next((n for n in keys if n > own[0]), len(lines))
            self._has_comments = any(
                line.lstrip().startswith("#") and line[0] == " " for line in lines[own[0] : end]
            )
            while not _is_code(lines[end - 1]):
                end -= 1
            self._parent = _Block(lines, own[0], end, 0)
            if self._parent.value not in {"", "{}", "null", "~"}:
                raise NotEditable(f"{self._key} is no block mapping there")
            found = [child for name, child in self._parent.children() if name == self._name]
            if len(found) > 1:
                raise NotEditable(f"{self._name} is there twice")
            self.entry = found[0] if found else None
            if self.entry is not None and self.entry.value:
                raise NotEditable(f"{self._key}.{self._name} is no block mapping there")
        self._lines = list(lines)

    def with_values(self, values: Values) -> str:
        """Return the text with these values in the entry."""
        lines = self._lines
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += self._line_end
        if self.entry is not None:
            members = {key: child for key, _, child in self.entry.members()}
            indent = next(iter(members.values())).indent if members else self.entry.indent + _STEP
            end = self.entry.end
            places = {key: (child.begin, child.end) for key, child in members.items()}
            edits = [(places.get(key, (end, end)), key, value) for key, value in values.items()]
            for (begin, finish), key, value in sorted(edits, key=lambda edit: edit[0], reverse=True):
                lines[begin:finish] = self._written(key, value, indent)
            return "".join(lines)
        indent = _STEP
        if self._parent is None:
            at = len(lines)
            lines.append(f"{self._key}:{self._line_end}")
        else:
            at = self._parent.begin
            indent = next((child.indent for _, child in self._parent.children()), _STEP)
            if self._parent.value:
                lines[at] = lines[at].replace(self._parent.value, "", 1).replace(": ", ":", 1)
            at = self._parent.end - 1
        new = [f"{' ' * indent}{self._name}:{self._line_end}"]
        for key, value in values.items():
            new += self._written(key, value, indent + _STEP)
        lines[at + 1 : at + 1] = new
        return "".join(lines)

    def _written(self, key: str, value: Any, indent: int) -> list[str]:
        # JSON is a subset of YAML.
        return [f"{' ' * indent}{key}: {json.dumps(value, ensure_ascii=False)}{self._line_end}"]

    def without(self) -> str:
        """Return the text without the entry, and without its parent if that is then empty."""
        if self.entry is None or self._parent is None:
            return self._text
        lines = self._lines
        others = [name for name, _ in self._parent.children() if name != self._name]
        if others or self._has_comments:
            del lines[self.entry.begin : self.entry.end]
        else:
            del lines[self._parent.begin : self._parent.end]
        return "".join(lines)


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _uncommented(text: str) -> str:
    """Return a value without the comment that follows on its line."""
    text = text.strip()
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        end = 0
    if end and (not text[end:].strip() or text[end:].lstrip().startswith("#")):
        return text[:end]
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()


def _scalar(text: str) -> Any:
    """Parse a value on one line: JSON, a quoted string, or a plain one."""
    text = _uncommented(text)
    try:
        return json.loads(text)
    except ValueError:
        pass
    if text in _WORDS:
        return _WORDS[text]
    return text[1:-1].replace("''", "'") if text[:1] == text[-1:] == "'" else text
