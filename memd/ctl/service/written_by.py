"""The line that tells who wrote a file, and whether it is still as it was written. Pure."""

import hashlib
import re
from typing import Literal

Author = Literal["memd", "edited", "other"]
"""Who a file is from: as memd wrote it, changed by somebody since, or by somebody else from the start."""

_WORDS = "Written by memd-ctl service install; sha256 of the other lines:"
_MARK = re.compile(rf"^.*{re.escape(_WORDS)} ([0-9a-f]{{64}}).*\n", re.MULTILINE)


def marked(text: str, *, opening: str = "# ", closing: str = "", line: int = 0) -> str:
    """A text with the mark in it.

    Args:
        text: Lines, each with its end.
        opening: What begins a comment.
        closing: What ends one.
        line: How many lines stay before it.
    """
    lines = text.splitlines(keepends=True)
    lines.insert(line, f"{opening}{_WORDS} {_digest(text)}{closing}\n")
    return "".join(lines)


def author(text: str) -> Author:
    """Who a text is from."""
    found = _MARK.search(text)
    if found is None:
        return "other"
    rest = text[: found.start()] + text[found.end() :]
    return "memd" if _digest(rest) == found.group(1) else "edited"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
