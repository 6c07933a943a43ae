"""How the files of one agent are read and cut, by its settings."""

from collections.abc import Sequence
from datetime import tzinfo

import msgspec

from memd.config.settings import AgentSettings, Chunking, SessionSettings
from memd.redact.redactor import Redactor
from memd.runtime.local_time import LocalZone
from memd.text.memory_paths import Root


class IndexingRules(msgspec.Struct, frozen=True):
    """What there is to know of an agent to make chunks of its files."""

    roots: Sequence[Root]
    chunking: Chunking
    max_bytes: int  # of a note that is indexed
    notes_redactor: Redactor | None = None  # None: nothing is taken out
    sessions_redactor: Redactor | None = None
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
    redactor = Redactor(settings.redact) if mode == "all" or (mode == "sessions" and has_sessions) else None
    return IndexingRules(
        roots,
        settings.chunking,
        int(settings.max_file_mb * 1_000_000),
        notes_redactor=redactor if mode == "all" else None,
        sessions_redactor=redactor,
        subagents=settings.sessions.subagents,
        sessions=settings.sessions,
    )
