"""How the files of one agent are read and cut, by its settings."""

from collections.abc import Sequence
from datetime import tzinfo
from functools import cached_property

import msgspec

from memd.config.check_redaction import require_faultless
from memd.config.settings import AgentSettings, Chunking, Redact, SessionSettings
from memd.runtime.timing import LocalZone, zone_of
from memd.sources.transcripts.parser import RedactedTurn, TurnRedactor
from memd.text.memory_paths import Root


class DeferredRedactor:
    """A Redactor that is built when the first text comes: that takes 0.2 s, and most starts have nothing to redact.

    Args:
        settings: As of the Redactor.

    Raises:
        BadRule: likewise.
    """

    def __init__(self, settings: Redact) -> None:
        require_faultless(settings)
        self._settings = settings

    def redact(self, text: str, asked: str = "") -> RedactedTurn:
        """Redact a text as the Redactor does."""
        return self._redactor.redact(text, asked)

    @cached_property
    def _redactor(self) -> TurnRedactor:
        from memd.redact.redactor import Redactor  # noqa: PLC0415 - as said

        return Redactor(self._settings)


class IndexingRules(msgspec.Struct, frozen=True):
    """What there is to know of an agent to make chunks of its files."""

    roots: Sequence[Root]
    chunking: Chunking
    max_bytes: int  # of a note that is indexed
    notes_redactor: TurnRedactor | None = None  # None: nothing is taken out
    sessions_redactor: TurnRedactor | None = None
    subagents: bool = False
    zone: tzinfo = LocalZone()
    sessions: SessionSettings = SessionSettings()  # when a transcript is due


def rules_of(settings: AgentSettings, roots: Sequence[Root]) -> IndexingRules:
    """The rules that an agent's settings ask for.

    Raises:
        MemdError: a rule of the user for what is secret makes no sense.
    """
    has_sessions = "sessions" in settings.sources
    mode = settings.redact.mode
    redacts = mode == "all" or (mode == "sessions" and has_sessions)
    redactor = DeferredRedactor(settings.redact) if redacts else None
    return IndexingRules(
        roots,
        settings.chunking,
        int(settings.max_file_mb * 1_000_000),
        notes_redactor=redactor if mode == "all" else None,
        sessions_redactor=redactor,
        subagents=settings.sessions.subagents,
        sessions=settings.sessions,
        zone=zone_of(settings.timezone),
    )
