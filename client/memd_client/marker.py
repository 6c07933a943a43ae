"""The block in which recalled memory stands in a prompt.

What memd puts into a conversation ends up in its transcript. There it must be told from what was said, or memory would
be found again as if somebody had said it, time after time.
"""

import re

BEGIN = "<memd-recall>"
END = "</memd-recall>"

# A block without an end goes on to the end: it was cut short. A mark within a line is somebody's who speaks of marks.
_BLOCK = re.compile(rf"{re.escape(BEGIN)}[ \t]*\r?\n.*?(?:{re.escape(END)}|\Z)\n?", re.DOTALL)


def marked(text: str) -> str:
    """The text as a block of recalled memory; whatever looks like a mark inside is broken up."""
    inside = text.replace(BEGIN, "<memd-recall >").replace(END, "</memd-recall >")
    return f"{BEGIN}\n{inside}\n{END}"


def unmarked(text: str) -> str:
    """The text without blocks of recalled memory."""
    return _BLOCK.sub("", text) if BEGIN in text else text
