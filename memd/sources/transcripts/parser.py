"""The lines of a transcript, heard one after the other: its format told, its speech redacted, its turns kept."""

import codecs
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from memd.runtime.timing import spent
from memd.sources.transcripts import detect
from memd.sources.transcripts.events import Event, Learnt, Said, Unread
from memd.sources.transcripts.format import Format
from memd.sources.transcripts.progress import ReadProgress
from memd.sources.transcripts.turn_builder import TurnBuilder


class RedactedTurn(Protocol):
    """A text without what was secret in it."""

    @property
    def text(self) -> str:
        """What is left, in as many lines."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How often something was taken out, by kind."""


class TurnRedactor(Protocol):
    """Takes out of a text what is secret."""

    def redact(self, text: str) -> RedactedTurn:
        """The text without it."""


class StaleParserState(Exception):
    """The state of a parser cannot be gone on from."""


class TranscriptParser:
    """What a transcript says, line by line."""

    def __init__(self, after: ReadProgress | None, redactor: TurnRedactor | None) -> None:
        """Begin, or go on after an earlier reading.

        After one that left a hidden transcript, nothing is taken in but what is learnt: it may turn out to be none.

        Raises:
            Stale: its format is not known any more, or its state is of another version.
        """
        self.format: Format | None = None
        self.tally = Counter[str]()
        self._state: Any = None
        self._redactor = redactor
        self._untold: list[tuple[int, bytes]] = []
        self._untold_bytes = 0
        self.fold = TurnBuilder()
        if after is not None:
            self.format, self._state = _going_on(after)
            self.fold = TurnBuilder(after.turns, after.last, after.learnt)
            self.tally.update(after.tally)
        self._is_hidden = after is not None and after.hidden

    @property
    def is_hopeless(self) -> bool:
        """Whether nobody can tell its format any more."""
        return self.format is None and (
            len(self._untold) >= detect.LINES_ENOUGH or self._untold_bytes >= detect.BYTES_ENOUGH
        )

    @property
    def is_empty(self) -> bool:
        """Whether it has not said anything, in any format."""
        return self.format is None and not self._untold

    @property
    def state(self) -> bytes:
        """Of the parser, as Progress keeps it."""
        return b"" if self.format is None else msgspec.msgpack.encode(self._state)

    def hear(self, number: int, line: bytes) -> None:
        """Take in the next line.

        Raises:
            Unfollowable: what it means depends on what was read another time.
        """
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if self.format is not None:
            self._take(number, line)
            return
        if self.is_hopeless:
            return
        # Line by line, so that the answer does not depend on how many lines there are yet.
        self._untold.append((number, line))
        self._untold_bytes += len(line)
        told = detect.format_of([line])
        if told is not None:
            self.format, self._state = told, told.State()
            heard, self._untold = self._untold, []
            for at, untold in heard:
                self._take(at, untold)

    def _take(self, number: int, line: bytes) -> None:
        assert self.format is not None
        for event in self.format.parse(line, self._state):
            if not self._is_hidden or isinstance(event, Learnt):
                self.fold.take(number, self._clean(event))

    def _clean(self, event: Event) -> Event:
        """The event as it may be kept."""
        match event:
            case Said():
                return msgspec.structs.replace(event, text=self._redacted(event.text))
            case Learnt(cwd=str(cwd)):
                return msgspec.structs.replace(event, cwd=self._redacted(cwd))
            case Unread():
                self.tally[f"lines.{event.why}"] += 1
                return event
            case _:
                return event

    def _redacted(self, text: str) -> str:
        if self._redactor is None:
            return text
        with spent("redacting"):
            redacted = self._redactor.redact(text)
        for kind, n in redacted.counts.items():
            self.tally[f"redacted.{kind}"] += n
        return redacted.text


def _going_on(after: ReadProgress) -> tuple[Format, Any]:
    told = detect.FORMATS.get(after.format or "")
    if told is None:
        raise StaleParserState
    try:
        return told, msgspec.msgpack.decode(after.state, type=told.State)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StaleParserState from error
