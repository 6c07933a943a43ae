"""Chooses the window of a chunk that a hit shows, without lines that earlier hits show."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from memd.chunk.split import Span
from memd.domain_types import Window
from memd.search.query import Query
from memd.search.terms import held, occurrences
from memd.store.chunks import StoredChunk
from memd.text.turn_header import CONTINUED, brief, header_in
from memd_client.context.truncate import safe_end

_PART = -1  # the pseudo term number of the part closest to the question


def window(
    chunk_text: str,
    start_line: int,
    terms: Sequence[str],
    max_chars: int,
    part: Span | None = None,
    synonyms: Sequence[str] = (),
) -> Window:
    """Choose the lines of a chunk that an agent reads.

    A chunk that fits is shown whole. Of a larger one, the window of whole lines with the most terms is chosen: a term
    counts more the rarer it is in the chunk, and the part closest to the question counts as a term that occurs once.
    Without any of these, the synonyms are the terms; without any of them, too, the window is the beginning. Of a single line that is too long, a stretch of it is chosen.

    Args:
        chunk_text: Lines of the file.
        start_line: The number of the first line, from 1.
        terms: The terms of the question.
        max_chars: The most characters of the window.
        part: The span in chunk_text whose vector is closest to the question; None: unknown.
        synonyms: Synonyms and translations of the terms.

    Returns:
        The text with its line numbers, without blank lines at its ends.
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
    if not places:
        places = [(o.term, o.start, o.end) for o in occurrences(chunk_text, synonyms)]
    first, last = _best(
        starts[:-1], [at + len(line) for at, line in zip(starts, lines, strict=False)], places, max_chars
    )
    if starts[first] + max_chars >= starts[last] - 1:
        return _trimmed(lines, first, last, start_line)
    line = lines[first]  # too long for a window
    inside = [
        (term, start - starts[first], end - starts[first])
        for term, start, end in places
        if start >= starts[first]
    ]
    text = _stretch(line, [place for place in inside if place[2] <= len(line)], max_chars)
    return Window(start_line + first, start_line + first, text)


def _line_starts(text: str) -> list[int]:
    """Return the offset of each line, and the offset after the last one."""
    return [0, *accumulate(len(line) + 1 for line in text.split("\n"))]


def _trimmed(lines: list[str], first: int, last: int, start_line: int) -> Window:
    """Return lines[first:last] without blank lines at the ends, but at least one line."""
    while last - first > 1 and not lines[first].strip():
        first += 1
    while last - first > 1 and not lines[last - 1].strip():
        last -= 1
    return Window(start_line + first, start_line + last - 1, "\n".join(lines[first:last]))


def _best(
    starts: list[int], ends: list[int], places: list[tuple[int, int, int]], most: int
) -> tuple[int, int]:
    """Return (first, last) of the run of units, at most `most` characters, with the most weight of distinct terms.

    A term weighs 1 / (its number of occurrences). Among equal runs, the one with its terms most in the middle is chosen,
    then the first. A unit longer than the limit is a run by itself.
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
    """Return the stretch of a long line with the most terms; it begins at a word if one begins nearby."""
    starts = sorted({0, *(max(0, place[1] - most // 3) for place in places)})
    first, _ = _best(starts, [min(len(line), start + most) for start in starts], places, most)
    start = safe_end(line, starts[first])
    if start:
        space = line.find(" ", start, start + most // 8)
        start = space + 1 if space >= 0 else start
    return line[start : start + (safe_end(line[start : start + most + 1], most))].rstrip()


# The identity of a line: (path, line number) or, in a transcript, whose turns have one line number each, (path, number,
# text of the turn in the chunk, line within the turn).
Place = tuple[str, int] | tuple[str, int, str, int]


class ShownPart(msgspec.Struct, frozen=True):
    """The part of a chunk that a hit shows."""

    window: Window  # with line numbers of the file
    first: int  # index of its first line within the chunk, from 0
    lines: tuple[str, ...]  # the shown text of each line


class _Run(msgspec.Struct, frozen=True):
    """Consecutive lines of a chunk."""

    line: int  # index of the first one within the chunk, from 0
    text: str
    closest: Span | None  # the part closest to the question, if the run contains all of it


class ShownLines:
    """The lines that earlier hits show."""

    def __init__(self) -> None:
        """Start with no lines."""
        self._lines: dict[Place, list[str]] = {}
        self._paths: set[str] = set()

    def add(self, chunk: StoredChunk, part: ShownPart) -> None:
        """Add the shown lines of a chunk."""
        self._paths.add(chunk.path)
        places = line_places(chunk)[part.first : part.first + len(part.lines)]
        for place, line in zip(places, part.lines, strict=True):
            self._lines.setdefault(place, []).append(line)

    def has_any_of(self, chunk: StoredChunk) -> bool:
        """Return whether a line of the file of a chunk was shown."""
        return chunk.path in self._paths

    def has(self, place: Place, line: str) -> bool:
        """Return whether a line was shown. A long line is in several chunks: only the same part of it counts."""
        return any(line in earlier for earlier in self._lines.get(place, ()))


def fresh_part(
    chunk: StoredChunk, shown: ShownLines, query: Query, max_chars: int, closest: Span | None = None
) -> ShownPart | None:
    """Return the best run of a chunk's lines that were not shown yet.

    If the run begins inside a turn, the header of that turn is put before it.

    Args:
        chunk: The chunk of a hit.
        shown: The lines that other hits show.
        query: The question.
        max_chars: The most characters of a hit.
        closest: The span in the chunk whose vector is closest to the question; None: unknown.

    Returns:
        None if all lines were shown, or the others are blank.
    """
    lines = chunk.text.split("\n")
    runs = [run for run in _fresh(chunk, shown, lines, closest) if run.text.strip()]
    if not runs:
        return None
    best = runs[0]
    if len(runs) > 1:
        best = max(
            runs,
            key=lambda run: (
                len(held([run.text], query.words)) + (run.closest is not None),
                len(run.text),
                -run.line,
            ),
        )
    if chunk.numbers is None:
        inside = window(best.text, best.line, query.terms, max_chars, best.closest, query.synonyms)
        first, last = inside.start_line + chunk.start_line, inside.end_line + chunk.start_line
        return ShownPart(Window(first, last, inside.text), inside.start_line, tuple(inside.text.split("\n")))
    return _turns(chunk, chunk.numbers, lines, best, query, max_chars)


def _fresh(chunk: StoredChunk, shown: ShownLines, lines: list[str], closest: Span | None) -> Iterator[_Run]:
    """Yield the runs of lines that were not shown."""
    if not shown.has_any_of(chunk):
        yield _Run(0, chunk.text, _within(closest, 0, len(chunk.text)))
        return
    begin, text = 0, 0  # the current run: its first line, and the offset of that line
    at = 0
    for line, (place, words) in enumerate(zip([*line_places(chunk), None], [*lines, ""], strict=True)):
        if place is None or shown.has(place, words):
            if line > begin:
                yield _Run(begin, chunk.text[text : at - 1], _within(closest, text, at - 1))
            begin, text = line + 1, at + len(words) + 1
        at += len(words) + 1


def _within(closest: Span | None, begin: int, end: int) -> Span | None:
    """Return a span relative to a run, if the run contains all of it."""
    if closest is None or not begin <= closest[0] <= closest[1] <= end:
        return None
    return closest[0] - begin, closest[1] - begin


def _turns(
    chunk: StoredChunk,
    numbers: tuple[int, ...],
    lines: list[str],
    run: _Run,
    query: Query,
    max_chars: int,
) -> ShownPart:
    """Return the shown part of a chunk of turns, with a header that says who speaks and when."""
    text, closest = brief(run.text), run.closest
    if closest is not None:
        closest = len(brief(run.text[: closest[0]])), len(brief(run.text[: closest[1]]))
    inside = window(text, run.line, query.terms, max_chars, closest, query.synonyms)
    head = _left_out(numbers, lines, inside)
    if head and len(inside.text) + len(head) > max_chars and 2 * len(head) <= max_chars:
        inside = window(text, run.line, query.terms, max_chars - len(head), closest, query.synonyms)
        head = _left_out(numbers, lines, inside)
    if len(inside.text) + len(head) > max_chars:
        head = ""
    first, last = inside.start_line, inside.end_line
    # All lines of a turn have the number of its first one: where a turn ends is known only of the chunk's last one.
    end_line = chunk.end_line if numbers[last] == numbers[-1] else numbers[last]
    shown = Window(numbers[first], end_line, head + inside.text, numbers[first : last + 1])
    # Lines that are shown whole count with the times of their headers: other chunks may show them without.
    in_brief = text.split("\n")[first - run.line :]
    whole = zip(lines[first:], in_brief, inside.text.split("\n"), strict=False)
    return ShownPart(shown, first, tuple(line if known == said else said for line, known, said in whole))


def _left_out(numbers: tuple[int, ...], lines: list[str], inside: Window) -> str:
    """Return what a window lacks of the header of the turn in which it begins: all of it, its time, or nothing."""
    first = inside.start_line
    while first > 0 and not header_in(lines[first]) and numbers[first - 1] == numbers[first]:
        first -= 1
    head = header_in(lines[first])
    shown = header_in(inside.text) if first == inside.start_line else ""
    if not head or shown:
        return head.removesuffix(shown)
    return head + CONTINUED


def line_places(chunk: StoredChunk) -> list[Place]:
    """Return the identity of each line of a chunk."""
    if chunk.numbers is None:
        count = chunk.text.count("\n") + 1
        return [(chunk.path, number) for number in range(chunk.start_line, chunk.start_line + count)]
    lines = chunk.text.split("\n")
    places: list[Place] = []
    begin = 0
    for end in range(1, len(lines) + 1):
        # One line of a transcript may hold several turns.
        if end == len(lines) or chunk.numbers[end] != chunk.numbers[begin] or header_in(lines[end]):
            turn = "\n".join(lines[begin:end])
            places += [(chunk.path, chunk.numbers[begin], turn, at) for at in range(end - begin)]
            begin = end
    return places
