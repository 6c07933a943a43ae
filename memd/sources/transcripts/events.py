"""What a line of a transcript amounts to, whichever agent wrote it."""

import msgspec

from memd.model import Role


class Said(msgspec.Struct, frozen=True, gc=False):
    """Somebody said something: a new turn, unless it belongs to one that was said before."""

    id: str  # empty: the format has none
    role: Role
    at: float | None  # unix time
    text: str  # without scaffolding, not redacted yet, never blank
    joins: bool = False  # another part of the turn with this id, if that is the last one
    again: bool = False  # takes the place of the earlier turn with this id


class Passed(msgspec.Struct, frozen=True, gc=False):
    """A record that is no turn, but that a later event may refer to."""

    id: str


class Rewound(msgspec.Struct, frozen=True, gc=False):
    """The turn or record of this id is gone, and all that came after it. Where it never was, all is gone."""

    id: str


class Branched(msgspec.Struct, frozen=True, gc=False):
    """The conversation goes on after this record, with what led to it. None: it begins anew."""

    after: str | None  # the id of a record, be it a turn or none


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """The last turns of the user are gone, with all that came after the first of them."""

    turns: int


class Cleared(msgspec.Struct, frozen=True, gc=False):
    """All turns are gone; those that stay are said again."""


class Learnt(msgspec.Struct, frozen=True, gc=False):
    """Something about the session as a whole; None: nothing about that."""

    session_id: str | None = None
    cwd: str | None = None  # where the agent worked
    started_at: float | None = None  # unix time
    subagent: bool | None = None  # it worked for another session


class Unread(msgspec.Struct, frozen=True, gc=False):
    """The line says nothing that is understood."""

    why: str  # broken | unknown


Event = Said | Passed | Rewound | Branched | Dropped | Cleared | Learnt | Unread
