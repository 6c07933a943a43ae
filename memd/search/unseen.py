"""What a chunk shows beside what earlier hits show."""

import msgspec

from memd.model import Window
from memd.search.query import Query
from memd.search.snippet import window
from memd.search.terms import held
from memd.speech import CONTINUED, header_in
from memd.store.chunks import StoredChunk

# Where a line is: its number in a file; in a transcript, where all lines of a turn have one number, the turn as it is in
# the chunk, and which of its lines it is.
Place = tuple[str, int] | tuple[str, int, str, int]


class Part(msgspec.Struct, frozen=True):
    """Some lines of a chunk."""

    window: Window  # as it is shown, in lines of the file
    first: int  # of the lines of the chunk, from 0
    lines: tuple[str, ...]  # what of them is shown


class Shown:
    """The lines that hits have shown."""

    def __init__(self) -> None:
        """None yet."""
        self._lines: dict[Place, list[str]] = {}

    def add(self, chunk: StoredChunk, part: Part) -> None:
        """Remember what is shown of a chunk."""
        places = _places(chunk)[part.first : part.first + len(part.lines)]
        for place, line in zip(places, part.lines, strict=True):
            self._lines.setdefault(place, []).append(line)

    def has(self, place: Place, line: str) -> bool:
        """Whether a line was shown. A long one is in several chunks in part: only the part that was shown counts."""
        return any(line in earlier for earlier in self._lines.get(place, ()))


def fresh_part(chunk: StoredChunk, shown: Shown, query: Query, max_chars: int) -> Part | None:
    """What a chunk shows beside the lines that are shown already: the best run of its other lines.

    A run that begins inside a turn has the header of that turn before it.

    Returns:
        None where all its lines were shown, or the others are blank.
    """
    runs: list[tuple[int, list[str]]] = []
    lines = chunk.text.split("\n")
    open_run = False
    for at, (place, line) in enumerate(zip(_places(chunk), lines, strict=True)):
        fresh = not shown.has(place, line)
        if fresh and open_run:
            runs[-1][1].append(line)
        elif fresh:
            runs.append((at, [line]))
        open_run = fresh
    texts = [(at, text) for at, run in runs if (text := "\n".join(run)).strip()]
    if not texts:
        return None
    at, text = texts[0]
    if len(texts) > 1:
        at, text = max(texts, key=lambda run: (len(held([run[1]], query.words)), len(run[1]), -run[0]))
    inside = window(text, at, query.terms, max_chars)
    if chunk.numbers is None:
        first, last = inside.start_line + chunk.start_line, inside.end_line + chunk.start_line
        return Part(Window(first, last, inside.text), inside.start_line, tuple(inside.text.split("\n")))
    return _turns(chunk, chunk.numbers, lines, (at, text), inside, query, max_chars)


def _turns(
    chunk: StoredChunk,
    numbers: tuple[int, ...],
    lines: list[str],
    run: tuple[int, str],
    inside: Window,
    query: Query,
    max_chars: int,
) -> Part:
    """The part of a chunk of turns that a window shows, which says who speaks and when."""
    head = _header_above(numbers, lines, inside)
    if head and len(inside.text) + len(head) > max_chars and 2 * len(head) <= max_chars:
        at, text = run
        inside = window(text, at, query.terms, max_chars - len(head))
        head = _header_above(numbers, lines, inside)
    if len(inside.text) + len(head) > max_chars:
        head = ""
    first, last = inside.start_line, inside.end_line
    # All lines of a turn have the number of its first one: only the last turn of a chunk tells where it ends.
    end_line = chunk.end_line if numbers[last] == numbers[-1] else numbers[last]
    shown = Window(numbers[first], end_line, head + inside.text, numbers[first : last + 1])
    return Part(shown, first, tuple(inside.text.split("\n")))


def _header_above(numbers: tuple[int, ...], lines: list[str], inside: Window) -> str:
    """The header of the turn in which a window begins, if the window does not have it."""
    first = inside.start_line
    while first > 0 and not header_in(lines[first]) and numbers[first - 1] == numbers[first]:
        first -= 1
    head = header_in(lines[first])
    is_whole = not head or (first == inside.start_line and header_in(inside.text))
    return "" if is_whole else head + CONTINUED


def _places(chunk: StoredChunk) -> list[Place]:
    """Where each line of a chunk is."""
    if chunk.numbers is None:
        count = chunk.text.count("\n") + 1
        return [(chunk.path, number) for number in range(chunk.start_line, chunk.start_line + count)]
    lines = chunk.text.split("\n")
    places: list[Place] = []
    begin = 0
    for end in range(1, len(lines) + 1):
        # Several turns may stand on one line of a transcript.
        if end == len(lines) or chunk.numbers[end] != chunk.numbers[begin] or header_in(lines[end]):
            turn = "\n".join(lines[begin:end])
            places += [(chunk.path, chunk.numbers[begin], turn, at) for at in range(end - begin)]
            begin = end
    return places
