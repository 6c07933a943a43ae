"""Watermarks text that memd hands out, so that it is recognised in transcripts.

What memd puts into a conversation ends up in its transcript. There it must be distinguished from what was
said, or memory would be found again as if somebody had said it. A text is put into a block, and a tool's
reply gets a key:

    <memd-recall 0c9f2b61d2a44e17>            {"_memd": "6e1d5c0f83b2a794", "results": [...], ...} ...
    </memd-recall 0c9f2b61d2a44e17>

The number is a digest of the text between the marks, or of all texts in the reply. So a mark is valid for
exactly that text: one that is invented, copied to another text or cut off hides nothing. It is not secret, as
a secret would be lost with the state directory while the transcripts remain: anyone who computes it can hide
their own text, but nothing that others say. Whitespace is ignored, and the whole may be escaped as HTML or as
a string of JSON or Python, up to twice.
"""

import ast
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Literal

Reply = dict[str, Any]
Kind = Literal["recall", "workspace", "flush"]

REPLY_KEY = "_memd"  # also the first key if keys are sorted
_DIGEST_BYTES = 8
_HEX = f"[0-9a-f]{{{2 * _DIGEST_BYTES}}}"

REPLY_CHARS = len(f'"{REPLY_KEY}":"{"":16}",')
"""That the mark of a reply takes in compact JSON."""

_LEVELS = 2  # of escaping
_AROUND = 64  # characters before a name within which its mark begins
_LONGEST_ESCAPED = 1 << 16  # characters of a reply
_MOST_READ = 2_000_000  # characters of a text that are read to find the ends of replies

_AMP = "&(?:amp;)*"
_NAME = re.compile(rf"memd-(?:recall|workspace|flush) (?P<digest>{_HEX})|{REPLY_KEY}")
_NAMED = re.compile(rf"(memd-(?:recall|workspace|flush) )(?={_HEX})")
_TAG = re.compile(r"(</?)(?=memd-(?:recall|workspace|flush))")
_OPENS = re.compile(
    rf"(?:<|{_AMP}(?:lt|#60|#[xX]3[cC]);|\\{{1,7}}u003[cC])(?P<slash>\\{{0,7}}/|{_AMP}#(?:47|[xX]2[fF]);)?\Z"
)
_CLOSES = re.compile(rf"(?:>|{_AMP}(?:gt|#62|#[xX]3[eE]);|\\{{1,7}}u003[eE])")
_QUOTE = rf"(?:\\{{0,7}}(?:[\"']|{_AMP}(?:quot|apos|#34|#39|#[xX]2[27]);)|\\{{1,7}}u002[27])"
_BLANK = r"(?:\s|\\{1,7}[nrt])*"
_BEGINS = re.compile(rf"\{{{_BLANK}(?P<quote>{_QUOTE})\Z")
_TELLS = re.compile(rf"{_QUOTE}{_BLANK}:{_BLANK}{_QUOTE}(?P<digest>{_HEX}){_QUOTE}")
# An unclosed string extends to the end; otherwise each quotation mark in it would be tried in turn.
_TOKEN = re.compile(
    r""""[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z)|[\[\]{}]""", re.DOTALL
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_ESCAPE = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}"
    r"|\\U[0-9a-fA-F]{8}|\\.)",
    re.DOTALL,
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def marked(text: str, kind: Kind = "recall") -> str:
    """Return the text as a marked block; anything in it that looks like such a mark is made harmless."""
    inside = inert(text)
    name = f"memd-{kind} {_digest([inside])}"
    return f"<{name}>\n{inside}\n</{name}>"


def inert(text: str) -> str:
    """Return the text as it is inside a block: anything that a model could take for a mark gets an additional space."""
    return _TAG.sub(r"\1 ", _NAMED.sub(r"\1 ", text)) if "memd-" in text else text


def marked_reply(reply: Mapping[str, Any]) -> Reply:
    """Return a tool's reply with its mark."""
    return {REPLY_KEY: _digest(_texts(reply)), **reply}


def unmarked(text: str) -> str:
    """Return the text without what memd has handed out, if that is complete and unchanged."""
    if "memd-" not in text and REPLY_KEY not in text:
        return text
    kept: list[str] = []
    done = 0
    names = list(_NAME.finditer(text))
    search = _Search(text)
    for name, following in zip_longest(names, names[1:]):
        if name.start() < done:
            continue
        found = search.reply(name) if name["digest"] is None else search.block(name, following)
        if found is not None:
            kept.append(text[done : found[0]])
            done = found[1]
    kept.append(text[done:])
    return "".join(kept)


class _Search:
    """Finds the blocks and replies of memd in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = _MOST_READ

    def block(self, name: re.Match[str], following: re.Match[str] | None) -> tuple[int, int] | None:
        """Return the span of the block whose first mark has this name; None if there is none, or it was changed."""
        # A block contains no mark, so it ends at the next one; but it may contain a reply.
        while following is not None and following["digest"] is None:
            following = _NAME.search(self._text, following.end())
        if following is None or following[0] != name[0]:
            return None
        first, last = self._mark(name), self._mark(following)
        if first is None or last is None or first.ends or not last.ends:
            return None
        inside = self._text[first.end : last.start]
        if all(_digest([one]) != name["digest"] for one, _ in _decoded(inside)):
            return None
        return first.start, last.end + (self._text[last.end : last.end + 1] == "\n")

    def _mark(self, name: re.Match[str]) -> "_Mark | None":
        begin = max(0, name.start() - _AROUND)
        opens = _OPENS.search(self._text[begin : name.start()])
        closes = _CLOSES.match(self._text, name.end())
        if opens is None or closes is None:
            return None
        return _Mark(begin + opens.start(), closes.end(), ends=opens["slash"] is not None)

    def reply(self, name: re.Match[str]) -> tuple[int, int] | None:
        """Return the span of the reply that this key belongs to; None if there is none, or it was changed."""
        begin = max(0, name.start() - _AROUND)
        begins = _BEGINS.search(self._text[begin : name.start()])
        tells = _TELLS.match(self._text, name.end())
        if begins is None or tells is None:
            return None
        start = begin + begins.start()
        if begins["quote"] in {'"', "'"} and self._left > 0:
            end = _end_of_object(self._text, start)
            self._left -= (len(self._text) if end is None else end) - start
            if end is not None and _is_as_it_was(self._text[start:end], tells["digest"]):
                return start, end
        for text, steps in _decoded(self._text[start : start + _LONGEST_ESCAPED]):
            if self._left <= 0:
                return None
            end = _end_of_object(text)
            self._left -= len(text)
            if end is not None and _is_as_it_was(text[:end], tells["digest"]):
                return start, start + _as_escaped(end, steps)
        return None


class _Mark:
    def __init__(self, start: int, end: int, *, ends: bool) -> None:
        self.start = start
        self.end = end
        self.ends = ends  # the mark ends a block


class _Step:
    """One level of unescaping of a text."""

    def __init__(self, text: str, pattern: re.Pattern[str], plain: Callable[[re.Match[str]], str]) -> None:
        self.text = text
        self._pattern = pattern
        self._plain = plain

    def result(self) -> str:
        """Return the unescaped text."""
        return self._pattern.sub(self._plain, self.text)

    def before(self, length: int) -> int:
        """Return how many characters of the text correspond to the first `length` characters of the result."""
        given = at = 0
        for escape in self._pattern.finditer(self.text):
            if given + escape.start() - at >= length:
                break
            given += escape.start() - at + len(self._plain(escape))
            at = escape.end()
        return at + length - given


def _decoded(text: str) -> Iterator[tuple[str, tuple[_Step, ...]]]:
    """Yield the text as it is, and unescaped in each way, with the steps that led to it."""
    level: list[tuple[str, tuple[_Step, ...]]] = [(text, ())]
    seen = {text}
    yield level[0]
    for _ in range(_LEVELS):
        following: list[tuple[str, tuple[_Step, ...]]] = []
        for escaped, steps in level:
            for sign, pattern, plain in (("&", _ENTITY, _without_entity), ("\\", _ESCAPE, _without_escape)):
                if sign not in escaped:
                    continue
                step = _Step(escaped, pattern, plain)
                if (result := step.result()) not in seen:
                    seen.add(result)
                    following.append((result, (*steps, step)))
                    yield following[-1]
        level = following


def _as_escaped(length: int, steps: tuple[_Step, ...]) -> int:
    for step in reversed(steps):
        length = step.before(length)
    return length


def _without_entity(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _without_escape(escape: re.Match[str]) -> str:
    letter, digits = escape[0][1], escape[0][2:]
    if not digits:
        return _LETTERS.get(letter, letter)
    if letter == "u" and len(digits) > 4:  # a surrogate pair
        return str(json.loads(f'"{escape[0]}"'))
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"


def _end_of_object(text: str, start: int = 0) -> int | None:
    """Return the end of the object that begins at `start`, in the syntax of JSON or Python; None if it does not end."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if not depth:
                return token.end()
    return None


def _is_as_it_was(text: str, digest: str) -> bool:
    """Return whether a text is a reply with this mark."""
    for parse in (json.loads, ast.literal_eval):
        try:
            reply = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(reply, dict) and reply.pop(REPLY_KEY, None) == digest:
            return _digest(_texts(reply)) == digest
    return False


def _texts(value: object) -> Iterator[str]:
    """Yield all text in a reply, in an order that does not change when it is parsed and written again."""
    match value:
        case str():
            yield value
        case Mapping():
            for key in sorted(value, key=str):
                yield str(key)
                yield from _texts(value[key])
        case list() | tuple():
            for one in value:
                yield from _texts(one)
        case _:  # numbers are written in different ways
            pass


def _digest(texts: Iterator[str] | list[str]) -> str:
    """Return the digest of the texts without their whitespace."""
    squeezed = "".join("".join(text.split()) for text in texts)
    return hashlib.blake2b(
        squeezed.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES, person=b"memd"
    ).hexdigest()
