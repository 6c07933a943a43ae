"""Parses a transcript line by line: detects its format, redacts its text, builds its turns."""

import codecs
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from memd.runtime.timing import spent
from memd.sources.transcripts import detect
from memd.sources.transcripts.format import Event, Format, Learnt, Said, Unread
from memd.sources.transcripts.progress import ReadProgress
from memd.sources.transcripts.turn_builder import TurnBuilder


class RedactedTurn(Protocol):
    """A redacted text."""

    @property
    def text(self) -> str:
        """The redacted text, with as many lines."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many secrets were removed, by kind."""


class TurnRedactor(Protocol):
    """Removes secrets from a text."""

    def redact(self, text: str) -> RedactedTurn:
        """Redact a text."""


class StaleParserState(Exception):
    """The stored state of a parser cannot be used any more."""


class TranscriptParser:
    """Turns the lines of a transcript into turns."""

    def __init__(self, after: ReadProgress | None, redactor: TurnRedactor | None) -> None:
        """Begin, or continue after an earlier reading.

        If that found a hidden transcript, only facts about the session are read: the transcript may turn out to be visible.

        Raises:
            StaleParserState: its format is not known any more, or its state is of another version.
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
        """Whether the format cannot be detected any more."""
        return self.format is None and (
            len(self._untold) >= detect.LINES_ENOUGH or self._untold_bytes >= detect.BYTES_ENOUGH
        )

    @property
    def is_empty(self) -> bool:
        """Whether no line has said anything, in any format."""
        return self.format is None and not self._untold

    @property
    def state(self) -> bytes:
        """The state of the parser, as ReadProgress stores it."""
        return b"" if self.format is None else msgspec.msgpack.encode(self._state)

    def hear(self, number: int, line: bytes) -> None:
        """Parse the next line.

        Raises:
            UnresolvedReference: the line refers to something that an earlier reading has read.
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
        """The event with redacted text."""
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
