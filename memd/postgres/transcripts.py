"""Encodes published transcripts: one JSON line per turn, without secrets. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from memd.domain_types import Role, Turn
from memd.postgres.connection import SharedUnavailable
from memd.store.sessions import TurnSpan


class _TurnLine(msgspec.Struct, frozen=True, array_like=True):
    """A turn on the server."""

    id: str
    role: Role
    at: float | None
    start_line: int
    end_line: int
    text: str


def turn_lines(turns: Iterable[Turn]) -> list[str]:
    """Return the published lines of a transcript, in the order of its turns."""
    lines = (_TurnLine(*(getattr(turn, name) for name in _TurnLine.__struct_fields__)) for turn in turns)
    return [msgspec.json.encode(line).decode() for line in lines]


def turns_in(content: str) -> list[Turn]:
    """Decode published turns.

    Raises:
        SharedUnavailable: they are invalid.
    """
    try:
        read = [msgspec.json.decode(line, type=_TurnLine) for line in content.split("\n") if line]
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        # The error's own message is left out, since it may quote a value.
        raise SharedUnavailable("a transcript on the server is not what a memd publishes") from error
    return [Turn(**msgspec.structs.asdict(one)) for one in read]


def stretch_of(turns: Sequence[Turn], start_line: int, lines: int, most_chars: int) -> TurnSpan:
    """Return the turns that begin on some lines of a transcript, as memd.store.sessions.stretch does for an index.

    Args:
        turns: All turns.
        start_line: The first line, from 1.
        lines: The number of lines.
        most_chars: The span ends at the end of a line once its texts exceed this many characters.
    """
    # The sort is stable: turns on one line keep their order.
    ordered = sorted(turns, key=lambda turn: turn.start_line)
    following = [turn for turn in ordered if turn.start_line >= start_line]
    before = [turn for turn in ordered if turn.start_line < start_line][-1:]
    found = [turn for turn in before if turn.end_line >= start_line]
    if not following:
        return TurnSpan(tuple(found), None)
    begin = following[0].start_line
    if begin == start_line:
        found = []
    elif begin >= start_line + lines:
        if found:
            return TurnSpan(tuple(found), begin)
        start_line = begin
    chars = sum(len(turn.text) for turn in found)
    for turn in following:
        if turn.start_line >= start_line + lines or (
            chars >= most_chars and turn.start_line != found[-1].start_line
        ):
            return TurnSpan(tuple(found), turn.start_line)
        found.append(turn)
        chars += len(turn.text)
    return TurnSpan(tuple(found), None)
