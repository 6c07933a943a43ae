"""Cuts the turns of a session into chunks; each turn has a header with its speaker and time."""

import hashlib
import re
from collections.abc import Sequence
from datetime import tzinfo

import msgspec

from memd.chunk.context import context_of, day_names
from memd.chunk.markdown import LONGEST
from memd.chunk.split import ChunkSize, fit_end, parts_of, piece_end
from memd.domain_types import Chunk, TextHash, Turn, embedded_text
from memd.text.time_spans import TimeSpan
from memd.text.turn_header import CONTINUED, brief, day_of, header, local_time, quote_headers
from memd_client.token_estimate import quarter_tokens

# A smaller chunk would consist of headers.
_MIN_TOKENS = 32
_MIN_CHARS = 128
# The last turn of a chunk is repeated before the next one if it is at most 1/3 of a chunk, whatever the overlap: most
# turns answer the one before. Moving it there, so that the previous chunk is shorter, loses.
_REPEATED = 3
_SPACE = re.compile(r"\s*")


class ChunkedTurns(msgspec.Struct, frozen=True):
    """Turns as chunks."""

    chunks: tuple[Chunk, ...]
    # Index of the turn from which to cut again once the last turn has changed or others were added: chunks
    # that begin before it stay as they are, the others are made anew.
    resume: int


class _At(msgspec.Struct, frozen=True):
    """The position at which a chunk begins."""

    turn: int
    offset: int = 0  # in the text of the turn; not 0 within a turn that is longer than a chunk


class _Part(msgspec.Struct, frozen=True):
    """The part of one turn that is in a chunk."""

    turn: int
    head: str
    text: str


class _Step(msgspec.Struct, frozen=True):
    """One chunk, and the position of the next."""

    parts: list[_Part]
    then: _At
    looked: int  # last turn that influenced this chunk; len(turns): the end of the session did


class _Talk(msgspec.Struct, frozen=True):
    """Turns, prepared for cutting."""

    turns: Sequence[Turn]
    heads: Sequence[str]  # the turns' headers
    texts: Sequence[str]
    # Cost of each turn with its header and a line end, where it begins a chunk, and where it follows the turn before it:
    # its header is then shown without the time if that is of the same hour.
    costs: Sequence[int]
    following: Sequence[int]
    room: ChunkSize
    carried: int  # cost of the overlap
    zone: tzinfo | None

    def is_long(self, turn: int) -> bool:
        """Return whether a turn does not fit into a chunk."""
        return self.costs[turn] > self.room.most


def chunk_turns(
    turns: Sequence[Turn],
    first: int,
    place: str,
    *,
    tokens: int,
    overlap: int,
    zone: tzinfo | None,
    longest: int = LONGEST,
) -> ChunkedTurns:
    """Cut a session into chunks of at most `tokens` estimated tokens.

    Short turns share a chunk, above all a question and its answer. A chunk repeats the last turns of the
    previous one, whole or not at all. A turn that is longer than a chunk is cut after a paragraph, a line or
    a sentence, and each of its parts has its header.

    Where a chunk ends depends on where it begins and on what follows, never on what precedes: cutting from
    ``resume`` on gives the same as cutting everything.

    Args:
        turns: In the order of the session.
        first: Index of the first of them among all turns of the session, from 0.
        place: Title of the session, for the context of its chunks.
        tokens: The most estimated tokens of a chunk, without its context; below 32 counts as 32.
        overlap: How many estimated tokens of a chunk the next one repeats at most; never more than half a
            chunk.
        zone: The time zone of turn headers; None: UTC.
        longest: The most characters of a chunk; below 128 counts as 128. The overlap shrinks in proportion.
    """
    tokens = max(_MIN_TOKENS, tokens)
    room = ChunkSize(4 * tokens, max(_MIN_CHARS, longest))
    carried = min(room.capacity * max(0, overlap) // tokens, room.capacity // 2)
    heads = [header(turn.role, turn.at, zone) for turn in turns]
    texts = [quote_headers(turn.text) for turn in turns]
    costs: list[int] = []
    following: list[int] = []
    for above, head, text in zip(["", *heads], heads, texts, strict=False):
        quarters, chars = quarter_tokens(head + text), len(head + text)
        left_out = len(above + head) - len(brief(f"{above}\n{head}").replace("\n", ""))
        costs.append(room.cost_of(quarters, chars) + room.line_end)
        following.append(room.cost_of(quarters, chars - left_out) + room.line_end)
    talk = _Talk(turns, heads, texts, costs, following, room, carried, zone)
    chunks: list[Chunk] = []
    at, resume, is_settled = _At(0), 0, True
    while at.turn < len(turns):
        if is_settled and not at.offset:
            resume = at.turn
        step = _step(talk, at)
        chunks.append(_chunk(talk, step.parts, first, place))
        is_settled = is_settled and step.looked < len(turns) - 1  # the last turn may still grow
        at = step.then
    return ChunkedTurns(tuple(chunks), first + resume)


def _step(talk: _Talk, start: _At) -> _Step:
    """Return the chunk that begins at a position."""
    room, costs, at = talk.room, talk.following, start.turn
    parts: list[_Part] = []
    left = room.most
    if start.offset:
        part, after = _piece(talk, at, start.offset, room.capacity)
        parts.append(part)
        if after is not None:
            return _Step(parts, _At(at, after), at)
        left -= room.cost(part.head + part.text) + room.line_end
        at += 1
    while at < len(costs) and (cost := costs[at] if parts else talk.costs[at]) <= left:
        parts.append(_Part(at, talk.heads[at], talk.texts[at]))
        left -= cost
        at += 1
    if at == len(costs):
        return _Step(parts, _At(at), at)
    # A chunk that begins within a long turn ends before the next turn, so that the next chunk begins with a
    # whole turn.
    if not start.offset and talk.is_long(at) and 2 * (room.most - left) <= room.capacity:
        part, after = _piece(talk, at, 0, left - room.line_end)
        if after is not None:
            return _Step([*parts, part], _At(at, after), at)
    return _Step(parts, _At(_overlap(talk, start.turn, at)), at)


def _overlap(talk: _Talk, first: int, end: int) -> int:
    """Return the first turn of the next chunk: one of the last of this chunk, or the one after them.

    Args:
        talk: The turns.
        first: The first turn of this chunk; the next chunk begins after it.
        end: The turn after its last one.
    """
    begin, after = end, 0  # after: the cost of the turns from `begin` on, if all of them follow another
    while begin - 1 > first:
        turn = begin - 1
        cost = talk.costs[turn] + after
        most = max(talk.carried, talk.room.capacity // _REPEATED) if begin == end else talk.carried
        # At most half of a chunk: a part of a long turn has room after it.
        if cost > most or not (talk.is_long(end) or cost + talk.following[end] <= talk.room.most):
            break
        begin, after = turn, after + talk.following[turn]
    return begin


def _piece(talk: _Talk, turn: int, offset: int, most: int) -> tuple[_Part, int | None]:
    """Return a part of a long turn, and the offset of the next; None: this was the last."""
    room, text = talk.room, talk.texts[turn]
    head = talk.heads[turn] + (CONTINUED if offset else "")
    most -= room.cost(head)
    if len(text) - offset <= 2 * room.chars:
        rest = room.cost(text[offset:])
        if rest <= most:
            return _Part(turn, head, text[offset:]), None
        # Two parts of about the same size: a few words in a chunk of their own would match anything and be
        # useless.
        most = min(most, max(rest * 5 // 8, rest - most))
    end = fit_end(text, offset, most, room)
    half = offset + (end - offset) // 2
    line = max(text.rfind("\n\n", half, end), 0) or text.rfind("\n", half, end)
    end = line if line > offset else piece_end(text, offset, most, room)
    after = _SPACE.match(text, end)
    begin = after.end() if after else end
    return _Part(turn, head, text[offset:end].rstrip()), begin if begin < len(text) else None


def _chunk(talk: _Talk, parts: Sequence[_Part], first: int, place: str) -> Chunk:
    turns = [talk.turns[part.turn] for part in parts]
    text = "\n".join(part.head + part.text for part in parts)
    said = "\n".join(part.text for part in parts)
    days = dict.fromkeys(day_of(turn.at, talk.zone) for turn in (turns[0], turns[-1]))
    dates = [each for day in days if day is not None for each in day_names(day, said)]
    context = context_of(place, (), dates)
    numbers = tuple(
        turn.start_line
        for turn, part in zip(turns, parts, strict=True)
        for _ in range(part.text.count("\n") + 1)
    )
    digest = hashlib.sha256(embedded_text(context, text).encode("utf-8", "replace")).digest()
    return Chunk(
        turns[0].start_line,
        turns[-1].end_line,
        text,
        context,
        TextHash(digest),
        numbers,
        first + parts[0].turn,
        parts_of(text),
        _when(turns, talk.zone),
    )


def _when(turns: Sequence[Turn], zone: tzinfo | None) -> TimeSpan | None:
    """Return the span from the first turn's time to the last one's, if they have times."""
    times = [at for turn in turns if (at := local_time(turn.at, zone)) is not None]
    return TimeSpan(min(times), max(times)) if times else None
