"""Lines in, events or turns out."""

import json
from typing import Any

from memd.sources.transcripts.format import Event, Format
from memd.sources.transcripts.turn_builder import TurnBuilder


def events(kind: Format, *records: Any) -> list[Event]:
    """What a parser makes of these lines: bytes as they are, all else as JSON."""
    state = kind.State()
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in records]
    return [event for line in lines for event in kind.parse(line, state)]


def turns(kind: Format, *records: Any) -> list[tuple[str, str]]:
    """Who said what, in these lines."""
    builder = TurnBuilder()
    for event in events(kind, *records):
        builder.take(1, event)
    return [(turn.role, turn.text) for turn in builder.turns]
