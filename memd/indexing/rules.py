"""How the files of one agent are read, redacted and chunked, from its settings."""

from collections.abc import Sequence
from datetime import tzinfo
from functools import cached_property

import msgspec

from memd.config.check_redaction import require_faultless
from memd.config.settings import AgentSettings, Chunking, Redact, SessionSettings
from memd.runtime.time_zones import LocalZone, zone_of
from memd.sources.origins import RootOrigin
from memd.sources.redactor_interface import RedactedTurn, TurnRedactor
from memd.text.memory_paths import Root


class DeferredRedactor:
    """A Redactor that is built on first use: building takes 0.2 s, and most starts redact nothing.

    Args:
        settings: See Redactor.

    Raises:
        BadRule: see Redactor.
    """

    def __init__(self, settings: Redact) -> None:
        require_faultless(settings)
        self._settings = settings

    def redact(self, text: str, asked: str = "") -> RedactedTurn:
        """Redact a text as the Redactor does."""
        return self._redactor.redact(text, asked)

    @cached_property
    def _redactor(self) -> TurnRedactor:
        from memd.redact.redactor import Redactor  # noqa: PLC0415 - see the class

        return Redactor(self._settings)


class IndexingRules(msgspec.Struct, frozen=True):
    """The rules for turning files of an agent into chunks."""

    roots: Sequence[Root]
    chunking: Chunking
    max_bytes: int  # larger notes are not indexed
    notes_redactor: TurnRedactor | None = None  # None: notes are not redacted
    sessions_redactor: TurnRedactor | None = None
    zone: tzinfo = LocalZone()
    sessions: SessionSettings = SessionSettings()
    origins: Sequence[RootOrigin] = ()  # where the files of the roots come from


def rules_of(
    settings: AgentSettings, roots: Sequence[Root], origins: Sequence[RootOrigin] = ()
) -> IndexingRules:
    """Create the rules from an agent's settings, and its roots with their origins.

    Raises:
        MemdError: a redaction rule of the user is invalid.
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
        sessions=settings.sessions,
        zone=zone_of(settings.timezone),
        origins=origins,
    )
