"""Joins hits whose lines are adjacent in their file into one hit."""

from collections.abc import Iterable, Iterator

import msgspec

from memd.domain_types import FoundHit
from memd.search.rank import Verdict
from memd.search.snippet import Place, ShownPart, line_places
from memd.store.chunks import StoredChunk
from memd.text.turn_header import brief

# The first hits that are considered, independent of how many are wanted: a larger number must not change the first hits.
LOOKED_AT = 6
TIMES = 2  # factor on the characters of a hit that shows several chunks

_Line = tuple[Place, str]


class _Run(msgspec.Struct, frozen=True):
    """Hits that are adjacent in their file."""

    at: int  # index of the verdict about the best of them
    hit: FoundHit
    first: "_Shown"  # in file order
    last: "_Shown"


class _Shown(msgspec.Struct, frozen=True):
    """A chunk, and the part of it that is shown."""

    chunk: StoredChunk
    part: ShownPart

    def lines(self) -> tuple[list[_Line], list[_Line], list[_Line]]:
        """Return the lines before the shown part, in it, and after it; without blank lines."""
        every = list(zip(line_places(self.chunk), self.chunk.text.split("\n"), strict=True))
        first, end = self.part.first, self.part.first + len(self.part.lines)
        before, shown, after = (
            [line for line in some if line[1].strip()]
            for some in (every[:first], every[first:end], every[end:])
        )
        return before, shown, after

    @property
    def has_whole_lines(self) -> bool:
        """Whether no shown line is truncated."""
        first = self.part.first
        whole = self.chunk.text.split("\n")[first : first + len(self.part.lines)]
        return whole == list(self.part.lines)


def joined(verdicts: Iterable[Verdict], max_chars: int) -> Iterator[Verdict]:
    """Join hits whose lines are adjacent into one hit, in the place and with the score of the best of them.

    A topic longer than a chunk then takes one place and is read in its order; the next hits take the freed places.

    Args:
        verdicts: The verdicts about candidates, the best first.
        max_chars: The most characters of a hit that shows one chunk.
    """
    rest = iter(verdicts)
    read: list[Verdict] = []
    count = 0
    while count < LOOKED_AT and (one := next(rest, None)) is not None:
        read.append(one)
        count += one.hit is not None
    runs: list[_Run] = []
    for at, one in enumerate(read):
        if one.hit is None or one.part is None:
            continue
        alone = _Run(at, one.hit, shown := _Shown(one.chunk, one.part), shown)
        longer = ((n, _longer(run, alone, TIMES * max_chars)) for n, run in enumerate(runs))
        n, run = next(((n, run) for n, run in longer if run is not None), (len(runs), alone))
        runs[n : n + 1] = [run]
        if run is not alone:
            best = read[run.at]
            read[run.at] = msgspec.structs.replace(best, hit=run.hit)
            read[at] = msgspec.structs.replace(
                one, hit=None, cut="joined", joined_to=best.chunk.id, owed=False
            )
    yield from read
    yield from rest


def _longer(run: _Run, one: _Run, most: int) -> _Run | None:
    """Return a run extended by one hit, or None if the hit is not adjacent to it."""
    is_alike = (run.hit.path, run.hit.superseded, run.hit.weak) == (
        one.hit.path,
        one.hit.superseded,
        one.hit.weak,
    )
    if not is_alike or len(run.hit.snippet) + len(one.hit.snippet) >= most:
        return None
    if _follows(run.last, one.first):
        above, below = run, one
    elif _follows(one.last, run.first):
        above, below = one, run
    else:
        return None
    # In a note, the lines between are blank. In a transcript they are other entries.
    between = 1 if run.first.chunk.numbers else below.hit.start_line - above.hit.end_line
    text = above.hit.snippet + "\n" * between + below.hit.snippet
    if run.first.chunk.numbers:
        text = brief(text)
    if len(text) > most:
        return None
    hit = msgspec.structs.replace(
        run.hit,
        start_line=above.hit.start_line,
        end_line=max(above.hit.end_line, below.hit.end_line),
        snippet=text,
        when=_both(above.hit.when, below.hit.when),
        copies=(*run.hit.copies, *one.hit.copies),
    )
    return _Run(run.at, hit, above.first, below.last)


def _follows(above: _Shown, below: _Shown) -> bool:
    """Return whether only blank lines are between the shown parts of two chunks."""
    one, other = above.chunk, below.chunk
    begin, end = below.part.window.start_line, above.part.window.end_line
    if one.start_line > other.start_line or begin < end or (begin == end and one.numbers is None):
        return False
    if one.numbers is None and other.start_line > one.end_line + 1:
        return False
    if not (above.has_whole_lines and below.has_whole_lines):
        return False
    _, shown_above, after = above.lines()
    before, shown_below, _ = below.lines()
    if one.numbers is not None and not {*shown_above, *after} & {*before, *shown_below}:
        return False  # turns are known to be adjacent only if both chunks contain them
    return set(after) <= set(shown_below) and set(before) <= set(shown_above)


def _both(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))
