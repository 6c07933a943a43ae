"""Builds the list of turns from the events of a transcript."""

import msgspec

from memd.domain_types import Turn
from memd.sources.transcripts.format import (
    Branched,
    Cleared,
    Dropped,
    Event,
    RecordAdded,
    Rewound,
    SessionFacts,
    TurnAdded,
    UnparsedLine,
)


class UnresolvedReference(Exception):
    """An event refers to a turn that is not in memory, so the transcript must be read from its first line."""


class _StoredTurns:
    """The end of the chain in memory: `height` turns come before it, which only the index has."""

    __slots__ = ("height",)

    def __init__(self, height: int) -> None:
        self.height = height


class _Node:
    """A turn, linked to the turn before it.

    A branch is a second node on the same node, so going back to an earlier branch costs nothing.
    """

    __slots__ = ("below", "is_gone", "turn")

    def __init__(self, turn: Turn, below: "_Node | _StoredTurns") -> None:
        self.turn = turn
        self.below = below
        self.is_gone = False


class TurnBuilder:
    """Builds the turns of a transcript, event by event.

    Continued after an earlier reading, it gives the same turns as a reading from the first line on, or raises UnresolvedReference. A
    reading from the first line on never raises it.
    """

    def __init__(
        self, before: int | None = None, last: Turn | None = None, learnt: SessionFacts | None = None
    ) -> None:
        """Begin with the first line of a transcript, or continue after an earlier reading.

        Args:
            before: The number of turns of the earlier reading; None: there was none.
            last: The last of these turns; None: there is none, or it is unknown.
            learnt: Facts about the session from the earlier reading.
        """
        self._goes_on = before is not None
        held = 0 if last is None else 1
        self._nothing = _StoredTurns(0)
        self._last = last
        self._top: _Node | _StoredTurns = _StoredTurns(max((before or 0) - held, 0))
        self._places: dict[
            str, _Node | _StoredTurns
        ] = {}  # by record id: its node or, if it is no turn, that of the turn before it
        self.learnt = learnt or SessionFacts()
        if last is not None:
            self._put(last)

    def take(self, number: int, event: Event) -> None:
        """Apply one event of the line of this number, from 1.

        Raises:
            UnresolvedReference: the transcript must be read from its first line on; this builder is unusable now.
        """
        match event:
            case TurnAdded():
                self._say(number, event)
            case RecordAdded(id=identity):
                if identity:
                    self._places[identity] = self._top
            case Rewound(id=identity, or_all=or_all):
                self._rewind(identity, or_all=or_all)
            case Branched(after=identity):
                self._top = self._nothing if identity is None else self._place(identity) or self._top
            case Dropped(turns=turns):
                self._drop(turns)
            case Cleared():
                self._truncate_to(self._nothing)
            case SessionFacts():
                self.learnt = both(self.learnt, event)
            case UnparsedLine():
                pass

    @property
    def last_text(self) -> str:
        """The text of the last turn; "" if there is none, or it is not in memory."""
        return self._top.turn.text if isinstance(self._top, _Node) else ""

    @property
    def turns_from(self) -> int:
        """The index of the first of `turns` in the session; stored turns from there on are replaced."""
        return self._result()[0]

    @property
    def turns(self) -> list[Turn]:
        """The new and changed turns, and all turns after them, in order."""
        return self._result()[1]

    def _result(self) -> tuple[int, list[Turn]]:
        turns: list[Turn] = []
        at = self._top
        while isinstance(at, _Node):
            turns.append(at.turn)
            at = at.below
        turns.reverse()
        if turns and turns[0] is self._last:
            return at.height + 1, turns[1:]
        return at.height, turns

    def _say(self, number: int, said: TurnAdded) -> None:
        if said.joins and self._join(number, said):
            return
        if said.again and self._replace(number, said):
            return
        self._put(
            Turn(id=said.id, role=said.role, at=said.at, start_line=number, end_line=number, text=said.text)
        )

    def _put(self, turn: Turn) -> None:
        self._top = _Node(turn, self._top)
        if turn.id:
            self._places[turn.id] = self._top

    def _join(self, number: int, said: TurnAdded) -> bool:
        top = self._top
        if isinstance(top, _StoredTurns):
            if top.height:
                raise UnresolvedReference
            return False
        if top.turn.id != said.id or top.turn.role != said.role:
            return False
        text = f"{top.turn.text}\n\n{said.text}"
        top.turn = msgspec.structs.replace(top.turn, text=text, end_line=number)
        return True

    def _replace(self, number: int, said: TurnAdded) -> bool:
        node = self._place(said.id)
        if not isinstance(node, _Node) or node.is_gone or node.turn.id != said.id:
            return False
        # Later turns keep their lines, so an earlier one keeps its own: turns stay in the order of their lines.
        end_line = number if node is self._top else node.turn.end_line
        node.turn = msgspec.structs.replace(
            node.turn, role=said.role, at=said.at, text=said.text, end_line=end_line
        )
        return True

    def _rewind(self, identity: str, *, or_all: bool) -> None:
        place = self._place(identity)
        if place is None and not or_all:
            return
        if not isinstance(place, _Node):
            self._truncate_to(place or self._nothing)
        elif not place.is_gone:
            self._truncate_to(place.below if place.turn.id == identity else place)

    def _drop(self, turns: int) -> None:
        at, to = self._top, self._top
        while turns > 0 and isinstance(at, _Node):
            if at.turn.role == "user":
                to = at.below
                turns -= 1
            at = at.below
        if turns > 0 and isinstance(at, _StoredTurns) and at.height:
            raise UnresolvedReference
        self._truncate_to(to)

    def _truncate_to(self, to: _Node | _StoredTurns) -> None:
        """Make this node the top, and remove the nodes above it."""
        at = self._top
        while isinstance(at, _Node) and at is not to:
            at.is_gone = True
            at = at.below
        self._top = to

    def _place(self, identity: str) -> _Node | _StoredTurns | None:
        """Return the node of a record, or of the turn before it; None: there is none."""
        place = self._places.get(identity)
        if place is None and self._goes_on:
            raise UnresolvedReference
        return place


def both(earlier: SessionFacts, later: SessionFacts) -> SessionFacts:
    """Merge facts about a session; later ones win."""
    return SessionFacts(
        session_id=earlier.session_id if later.session_id is None else later.session_id,
        cwd=earlier.cwd if later.cwd is None else later.cwd,
        started_at=earlier.started_at if later.started_at is None else later.started_at,
        subagent=earlier.subagent if later.subagent is None else later.subagent,
    )
