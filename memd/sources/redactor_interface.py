"""The interface of a redactor, as the readers of notes and transcripts call it."""

from collections.abc import Mapping
from typing import Protocol


class RedactedTurn(Protocol):
    """A redacted text."""

    @property
    def text(self) -> str:
        """The redacted text; it has as many lines as before."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of removed secrets by kind."""


class TurnRedactor(Protocol):
    """Redacts texts."""

    def redact(self, text: str, asked: str = "") -> RedactedTurn:
        """Redact a text."""
