"""Formats durations, counts, sizes, paths and columns for people. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def duration(seconds: float) -> str:
    """Format a duration: 4 ms, 0.35 s, 12 s, 3 min, 2 h 5 min, 1 d 2 h."""
    if seconds < 0.1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    left = round(seconds / 60) * 60 if seconds < 86_370 else round(seconds / 3_600) * 3_600
    said = []
    for length, name in _STEPS:
        number, left = divmod(left, length)
        if number:
            said.append(f"{number} {name}")
    return " ".join(said)


def estimate(seconds: float) -> str:
    """Format an estimated duration: a few seconds, about 40 seconds, about 3 minutes, about 2 hours."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 55:
        return f"about {max(round(seconds / 10), 1) * 10} seconds"
    if seconds < 5_400:
        return f"about {counted(max(round(seconds / 60), 1), 'minute')}"
    if seconds < 172_800:
        return f"about {counted(round(seconds / 3_600), 'hour')}"
    return f"about {counted(round(seconds / 86_400), 'day')}"


def ago(seconds: float) -> str:
    """Format the age of an event; a negative one, as after a clock change, is "just now"."""
    return "just now" if seconds < 1.5 else f"{duration(round(seconds))} ago"


def counted(number: int, thing: str) -> str:
    """Format a number of things: 1 file, 1,830 chunks."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Join names in a sentence: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def size(count: int) -> str:
    """Format a size in bytes: 512 bytes, 12.4 MB."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return counted(count, "byte")


def shown(path: str | Path, home: Path) -> str:
    """Format a path with ~ for the home directory."""
    place = Path(path)
    if home != Path("/") and place.is_relative_to(home):
        return str(Path("~") / place.relative_to(home))
    return str(path)


def one_line(text: str) -> str:
    """Join the lines of a text; of a line before the last, the full stop is left out."""
    *before, last = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return "; ".join([*(line.rstrip(".") for line in before), last])


def clause(text: str) -> str:
    """Return a sentence on one line without its full stop, to be a part of another sentence."""
    return one_line(text).rstrip(".")


def visible(text: str) -> str:
    """Remove control characters that a terminal would interpret, except tabs and line ends."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        letter if letter in "\n\t" or not _commands(letter) else letter.encode("unicode_escape").decode()
        for letter in text
    )


_SPELLED = re.compile(r"\\u(20[26][0-9a-f])")


def as_printed(path: str) -> str:
    """Return the path that `visible` prints as this one; the path itself if no mark of direction is spelled out in it.

    No path in the index has a control character.
    """
    return _SPELLED.sub(lambda one: letter if _commands(letter := chr(int(one[1], 16))) else one[0], path)


def _commands(letter: str) -> bool:
    """Return whether a terminal may interpret a character: C0, DEL, C1, and marks of writing direction."""
    code = ord(letter)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069


_WIDE = frozenset("WF")
_NO_CELL = frozenset({"Mn", "Me", "Cf"})
_CUT = "…"


def width(text: str) -> int:
    """Return the width in cells of a one-line text without control characters."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def fitted(text: str, cells: int) -> str:
    """Return the text, or its beginning and end if it is too wide."""
    if width(text) <= cells:
        return text
    head = _taken(text, (cells - 1) // 3)
    tail = _taken(text[::-1], cells - 1 - width(head))[::-1]
    return f"{head}{_CUT}{tail}"


def wrapped(words: Iterable[str], cells: int, gap: str = "  ") -> Iterator[str]:
    """Wrap words into lines; only a single word may be too wide."""
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
