"""The part of a chunk that answers."""

from collections.abc import Sequence
from itertools import accumulate

from memd.chunk.parts import Span
from memd.model import Window
from memd.search.terms import occurrences
from memd.text.tokens import safe_end

_PART = -1  # among the numbers of terms: the part of the chunk that is closest to the question


def window(
    chunk_text: str, start_line: int, terms: Sequence[str], max_chars: int, part: Span | None = None
) -> Window:
    """Choose what an agent reads of a chunk.

    A chunk that fits is shown whole. Of a larger one, the whole lines that hold the most of the terms, the ones that are
    rarer in the chunk counting more; the part that is closest to the question counts as a term that stands there once.
    Its beginning where nothing of that is known. Of a single line that is longer, the stretch that holds the most.

    Args:
        chunk_text: Lines of the file; the first is line start_line.
        start_line: 1-based.
        terms: Of the question.
        max_chars: The most characters of the window.
        part: Where in chunk_text the part is whose vector is closest to the question; None: nobody knows.

    Returns:
        The text with the lines it stands on, without blank lines at its ends.
    """
    whole = _trimmed(chunk_text.split("\n"), 0, chunk_text.count("\n") + 1, start_line)
    if len(whole.text) <= max_chars:
        return whole
    skipped = _line_starts(chunk_text)[whole.start_line - start_line]
    chunk_text, start_line = whole.text, whole.start_line
    lines = chunk_text.split("\n")
    starts = _line_starts(chunk_text)
    places = [(o.term, o.start, o.end) for o in occurrences(chunk_text, terms)]
    if part is not None:
        places = sorted([*places, (_PART, part[0] - skipped, part[1] - skipped)], key=lambda place: place[1])
    first, last = _best(
        starts[:-1], [at + len(line) for at, line in zip(starts, lines, strict=False)], places, max_chars
    )
    if starts[first] + max_chars >= starts[last] - 1:
        return _trimmed(lines, first, last, start_line)
    line = lines[first]  # by itself longer than a window
    inside = [
        (term, start - starts[first], end - starts[first])
        for term, start, end in places
        if start >= starts[first]
    ]
    text = _stretch(line, [place for place in inside if place[2] <= len(line)], max_chars)
    return Window(start_line + first, start_line + first, text)


def _line_starts(text: str) -> list[int]:
    """Where each line begins, and where one after the last would."""
    return [0, *accumulate(len(line) + 1 for line in text.split("\n"))]


def _trimmed(lines: list[str], first: int, last: int, start_line: int) -> Window:
    """lines[first:last] without blank ones at the ends; the first where all are blank."""
    while last - first > 1 and not lines[first].strip():
        first += 1
    while last - first > 1 and not lines[last - 1].strip():
        last -= 1
    return Window(start_line + first, start_line + last - 1, "\n".join(lines[first:last]))


def _best(
    starts: list[int], ends: list[int], places: list[tuple[int, int, int]], most: int
) -> tuple[int, int]:
    """The units first..last-1, at most so many characters, with the most weight of distinct terms.

    A term weighs 1 / (how often it stands in the whole). Of equal ones the one with its terms nearest to its middle, of
    these the first. A unit that is longer than the limit stands alone.
    """
    often: dict[int, int] = {}
    for term, _, _ in places:
        often[term] = often.get(term, 0) + 1
    best = (0.0, 0, 0, 1)
    chosen = (0, 1)
    last = 0
    for first, start in enumerate(starts):
        last = max(last, first + 1)
        while last < len(ends) and ends[last] - start <= most:
            last += 1
        end = max(ends[last - 1], start)
        inside = [place for place in places if start <= place[1] and place[2] <= end]
        weight = sum(1 / often[term] for term in {place[0] for place in inside})
        aside = abs((inside[0][1] - start) - (end - inside[-1][2])) if inside else 0
        rank = (round(weight, 9), -aside, -first, last)
        if first == 0 or rank > best:
            best, chosen = rank, (first, last)
    return chosen


def _stretch(line: str, places: list[tuple[int, int, int]], most: int) -> str:
    """The stretch of a long line that holds the most terms, from the beginning of a word where there is one near."""
    starts = sorted({0, *(max(0, place[1] - most // 3) for place in places)})
    first, _ = _best(starts, [min(len(line), start + most) for start in starts], places, most)
    start = safe_end(line, starts[first])
    if start:
        space = line.find(" ", start, start + most // 8)
        start = space + 1 if space >= 0 else start
    return line[start : start + (safe_end(line[start : start + most + 1], most))].rstrip()
