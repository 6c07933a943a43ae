"""The interface of a transcript format."""

from collections.abc import Callable
from typing import Any

import msgspec

from memd.sources.transcripts.events import Event

# Of the parsers and of what counts as speech. To be raised where the same lines would give other turns: transcripts
# that are in an index already are read again then.
VERSION = 2


class Format(msgspec.Struct, frozen=True):
    """One format of transcripts.

    A parser never raises, whatever the bytes, and takes time linear in them. It reads only the line and the state, and changes the
    state in place. A state is a msgspec struct, so that it can be stored between two lines.
    """

    name: str  # as in detect.FORMATS
    State: type[msgspec.Struct]  # State() is the one before the first line
    parse: Callable[
        [bytes, Any], tuple[Event, ...]
    ]  # (a line with or without its end, a State) -> what it says
