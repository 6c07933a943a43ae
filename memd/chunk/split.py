"""Cuts texts: into pieces that fit into a chunk, and into the parts of a chunk that are embedded separately."""

import re
from bisect import bisect_left

import msgspec

from memd.text.tokens import width, word_end
from memd_client.context.truncate import safe_end
from memd_client.token_estimate import quarter_tokens

_SENTENCE_END = re.compile(r"[。！？；…][”’」』）】]?|[.!?][\"')\]]?(?=\s)")


class ChunkSize(msgspec.Struct, frozen=True):
    """The capacity of a chunk in tokens and in characters, as one number.

    The cost of a text is the share of a chunk that it takes, by the limit that is nearer. Costs of lines add
    up, and a sum of costs within the capacity keeps both limits.
    """

    quarters: int  # capacity in quarter tokens
    chars: int

    @property
    def capacity(self) -> int:
        """The largest cost of the text of a chunk."""
        return self.quarters * self.chars

    @property
    def line_end(self) -> int:
        """The cost of a line end; no character costs less."""
        return max(self.quarters, self.chars)

    @property
    def most(self) -> int:
        """The largest cost of lines with their line ends: there is none after the last line."""
        return self.capacity + self.line_end

    def cost(self, text: str) -> int:
        """Return the cost of a text."""
        return self.cost_of(quarter_tokens(text), len(text))

    def cost_of(self, quarters: int, chars: int) -> int:
        """Return the cost of a text of so many quarter tokens, of which so many characters are shown."""
        return max(quarters * self.chars, chars * self.quarters)


def end_of(text: str, most: int, room: ChunkSize) -> str:
    """Return the end of a text within a cost, starting at a sentence, else at a word; empty if nothing fits."""
    starts = [max(0, len(text) - max(0, most) // room.line_end)]
    while starts[-1] < len(text):
        starts.append(starts[-1] + max(1, (len(text) - starts[-1]) // 8))
    fits = bisect_left(starts, 1, 0, len(starts) - 1, key=lambda at: room.cost(text[at:]) <= most)
    start = starts[fits]
    sentence = _SENTENCE_END.search(text, start)
    space = text.find(" ", start)
    if sentence and sentence.end() < len(text):
        return text[sentence.end() :].lstrip()
    return text[space + 1 :] if space >= 0 else ""


def fit_end(text: str, start: int, most: int, room: ChunkSize) -> int:
    """Return the farthest position at which a piece of a text may end within a cost; at least one character is taken."""
    low, high = start + 1, min(len(text), start + max(1, most // room.line_end))
    # If all characters cost about the same, the first two guesses are right and no bisection is needed.
    guess = start + (high - start) * most // room.cost(text[start:high])
    guesses = [guess + 1, guess, high]
    while low < high:
        middle = guesses.pop() if guesses else (low + high + 1) // 2
        if low < middle <= high:
            low, high = (middle, high) if room.cost(text[start:middle]) <= most else (low, middle - 1)
    return low


def piece_end(text: str, start: int, most: int, room: ChunkSize) -> int:
    """Return where a piece of a long line ends: after a sentence in its second half, else at a space, else between words."""
    low = fit_end(text, start, most, room)
    if low == len(text):
        return low
    half = start + (low - start) // 2
    end = max((found.end() for found in _SENTENCE_END.finditer(text, half, low)), default=0)
    if not end:
        end = text.rfind(" ", half, low) + 1
    if end <= start:
        end = safe_end(text, word_end(text, low, half))
    return end if end > start else low


# A chunk says many things, and its vector represents each of them only a little. With vectors for parts of
# this width, paraphrases are found .57 of the time instead of .33; with single lines as parts .57 to .65, and
# less across languages and for the newest; with parts of 60 to 110 .57, and half as many more to embed.
LEAST_PART_WIDTH, MOST_PART_WIDTH = 90, 160  # a CJK character counts as two

_BETWEEN_SENTENCES = re.compile(r"(?<=[。！？!?；;])\s*|(?<=\.)\s+(?=[A-Z\"“(])")
_LINE = re.compile(r"[^\n]+")

Span = tuple[int, int]  # text[begin:end]


def parts_of(text: str) -> tuple[Span, ...]:
    """Return the spans of a text's parts, in order; empty if there would be only one.

    Short lines are put together, and long ones are cut between sentences. Blank lines between two lines of a
    part belong to it.
    """
    spans: list[Span] = []
    open_width = 0
    for begin, end, size in _units(text):
        if spans and open_width and open_width < LEAST_PART_WIDTH and open_width + size <= MOST_PART_WIDTH:
            spans[-1] = (spans[-1][0], end)
            open_width += size
        else:
            spans.append((begin, end))
            open_width = size
    return tuple(spans) if len(spans) > 1 else ()


def _units(text: str) -> list[tuple[int, int, int]]:
    """Return the non-blank lines, long ones by sentence: (begin, end, width)."""
    found: list[tuple[int, int, int]] = []
    width_of = len if text.isascii() else width
    for line in _LINE.finditer(text):
        if line[0].isspace():
            continue
        size = width_of(line[0])
        if size <= MOST_PART_WIDTH:
            found.append((*line.span(), size))
            continue
        begin = line.start()
        for mark in _BETWEEN_SENTENCES.finditer(text, *line.span()):
            found.append((begin, mark.start(), width_of(text[begin : mark.start()])))
            begin = mark.end()
        if begin < line.end():
            found.append((begin, line.end(), width_of(text[begin : line.end()])))
    return found
