"""The interface of a transcript format, and the events that its parser makes of each line."""

from collections.abc import Callable
from typing import Any

import msgspec

from memd.domain_types import Role


class TurnAdded(msgspec.Struct, frozen=True, gc=False):
    """A message: a new turn, or a part of an earlier one."""

    id: str  # "": the format has none
    role: Role
    at: float | None  # unix time
    text: str  # without boilerplate, not redacted yet, not blank
    joins: bool = False  # a further part of the turn with this id, if that is the last one
    again: bool = False  # replaces the earlier turn with this id


class RecordAdded(msgspec.Struct, frozen=True, gc=False):
    """A record that is no turn, but may be referred to by a later event."""

    id: str


class Rewound(msgspec.Struct, frozen=True, gc=False):
    """The turn or record with this id is removed, with everything after it."""

    id: str
    or_all: bool = True  # if it does not exist, everything is removed, otherwise nothing


class Branched(msgspec.Struct, frozen=True, gc=False):
    """The conversation continues after this record and its ancestors; None: from its beginning."""

    after: str | None  # the id of a turn or another record


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """The last turns of the user are removed, with everything after the first of them."""

    turns: int


class Cleared(msgspec.Struct, frozen=True, gc=False):
    """All turns are removed; kept ones are added again."""


class SessionFacts(msgspec.Struct, frozen=True, gc=False):
    """Facts about the session; None: unchanged."""

    session_id: str | None = None
    cwd: str | None = None  # the working directory of the agent
    started_at: float | None = None  # unix time
    subagent: bool | None = None  # whether it worked for another session


class UnparsedLine(msgspec.Struct, frozen=True, gc=False):
    """A line that could not be parsed."""

    why: str  # broken | unknown


Event = TurnAdded | RecordAdded | Rewound | Branched | Dropped | Cleared | SessionFacts | UnparsedLine


# Of the parsers and of what counts as speech. To be raised where the same lines would give other turns: transcripts
# that are in an index already are read again then.
VERSION = 3


class Format(msgspec.Struct, frozen=True):
    """One format of transcripts.

    A parser never raises, whatever the bytes, and takes time linear in them. It reads only the line and the state, and changes the
    state in place. A state is a msgspec struct, so that it can be stored between two lines.
    """

    name: str  # as in parser.FORMATS
    State: type[msgspec.Struct]  # State() is the one before the first line
    # (a line with or without its end, a State) -> what it says.
    parse: Callable[[bytes, Any], tuple[Event, ...]]
