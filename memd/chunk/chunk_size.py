"""The capacity of a chunk, and the places where a text is cut to fit into it."""

import re
from bisect import bisect_left

import msgspec

from memd.text.tokens import DEAREST_QUARTERS, quarter_tokens, safe_end, word_end

_SENTENCE_END = re.compile(r"[。！？；…][”’」』）】]?|[.!?][\"')\]]?(?=\s)")


class ChunkSize(msgspec.Struct, frozen=True):
    """The capacity of a chunk in tokens and in characters, as one number.

    The cost of a text is the share of a chunk that it takes, by the nearer of the two limits. Costs add up over lines, and a sum of
    costs within the capacity keeps both limits.
    """

    quarters: int  # of a token
    chars: int

    @property
    def capacity(self) -> int:
        """What the text of a chunk may take."""
        return self.quarters * self.chars

    @property
    def line_end(self) -> int:
        """What a line end takes; no character takes less."""
        return max(self.quarters, self.chars)

    @property
    def most(self) -> int:
        """What lines with their ends may take: there is no line end after the last line."""
        return self.capacity + self.line_end

    @property
    def dearest(self) -> int:
        """What a character takes at most."""
        return max(DEAREST_QUARTERS * self.chars, self.quarters)

    def cost(self, text: str) -> int:
        """The share of the capacity that a text takes."""
        return max(quarter_tokens(text) * self.chars, len(text) * self.quarters)


def end_of(text: str, most: int, room: ChunkSize) -> str:
    """The end of a text within a cost: from the beginning of a sentence, else of a word, else nothing."""
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
    """Where a piece of a text would end if it were cut anywhere: the farthest place within a cost, one character at least."""
    low, high = start + 1, min(len(text), start + max(1, most // room.line_end))
    # Where characters cost about the same, the first two guesses are right and there is nothing to halve.
    guess = start + (high - start) * most // room.cost(text[start:high])
    guesses = [guess + 1, guess, high]
    while low < high:
        middle = guesses.pop() if guesses else (low + high + 1) // 2
        if low < middle <= high:
            low, high = (middle, high) if room.cost(text[start:middle]) <= most else (low, middle - 1)
    return low


def piece_end(text: str, start: int, most: int, room: ChunkSize) -> int:
    """Where a piece of a long line ends: after a sentence in its second half, else at a space, else between words."""
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
