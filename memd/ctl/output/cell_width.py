"""How much room text takes on a terminal: a CJK character two cells, a mark on another one none. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator

_WIDE = frozenset("WF")
_NO_CELL = frozenset({"Mn", "Me", "Cf"})
_CUT = "…"


def width(text: str) -> int:
    """The cells of a text that has one line and no control characters."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def fitted(text: str, cells: int) -> str:
    """The text, or its beginning and its end where it is wider than there is room."""
    if width(text) <= cells:
        return text
    head = _taken(text, (cells - 1) // 3)
    tail = _taken(text[::-1], cells - 1 - width(head))[::-1]
    return f"{head}{_CUT}{tail}"


def wrapped(words: Iterable[str], cells: int, gap: str = "  ") -> Iterator[str]:
    """Lines of whole words, none wider than there is room but where a single word is."""
    line = ""
    for word in words:
        if line and width(line) + width(gap) + width(word) > cells:
            yield line
            line = word
        else:
            line = f"{line}{gap}{word}" if line else word
    if line:
        yield line


def _taken(text: str, cells: int) -> str:
    room = cells
    for at, letter in enumerate(text):
        room -= _cells(letter)
        if room < 0:
            return text[:at]
    return text


def _cells(letter: str) -> int:
    if unicodedata.east_asian_width(letter) in _WIDE:
        return 2
    return 0 if unicodedata.category(letter) in _NO_CELL else 1
