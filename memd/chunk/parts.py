"""Cuts a chunk into parts: a few lines, or a few sentences of a long line."""

import re

from memd.text.tokens import width

# A chunk says many things, and its vector a little of each. Paraphrases are found .57 of the time instead of .33 where
# parts of this width have vectors beside it; with single lines as parts .57 to .65, and less across languages and of
# the newest; with parts of 60 to 110 .57, and half as many more to embed.
LEAST, MOST = 90, 160  # a CJK character counts as two

_SENTENCE_END = re.compile(r"(?<=[。！？!?；;])\s*|(?<=\.)\s+(?=[A-Z\"“(])")
_LINE = re.compile(r"[^\n]*\S[^\n]*")

Span = tuple[int, int]  # text[begin:end]


def parts_of(text: str) -> tuple[Span, ...]:
    """Where the parts of a text are, in its order; none, where it would be one.

    Lines are put together while they are short, and cut between sentences where they are long. Blank lines between two
    lines of a part are in it.
    """
    spans: list[Span] = []
    open_width = 0
    for begin, end, size in _units(text):
        if spans and open_width and open_width < LEAST and open_width + size <= MOST:
            spans[-1] = (spans[-1][0], end)
            open_width += size
        else:
            spans.append((begin, end))
            open_width = size
    return tuple(spans) if len(spans) > 1 else ()


def _units(text: str) -> list[tuple[int, int, int]]:
    """The lines that are not blank, long ones in sentences: (begin, end, width)."""
    found: list[tuple[int, int, int]] = []
    for line in _LINE.finditer(text):
        size = width(line[0])
        if size <= MOST:
            found.append((*line.span(), size))
            continue
        begin = line.start()
        for mark in _SENTENCE_END.finditer(text, *line.span()):
            if mark.start() > begin:
                found.append((begin, mark.start(), width(text[begin : mark.start()])))
            begin = mark.end()
        if begin < line.end():
            found.append((begin, line.end(), width(text[begin : line.end()])))
    return found
