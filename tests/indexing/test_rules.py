from pathlib import Path

import msgspec
import pytest

from memd.config.settings import AgentSettings, Chunking, Redact, SessionSettings, UserRule
from memd.errors import MemdError
from memd.indexing.rules import rules_of

SETTINGS = AgentSettings(
    workspace=Path("/ws"),
    max_file_mb=2,
    chunking=Chunking(tokens=200, overlap=10),
    sessions=SessionSettings(subagents=True, delta_bytes=7),
)


def test_it_says_what_the_settings_say() -> None:
    """Sizes, and whether subagents count."""
    rules = rules_of(SETTINGS, ())
    assert (rules.max_bytes, rules.chunking.tokens, rules.sessions.subagents) == (2_000_000, 200, True)


@pytest.mark.parametrize(
    ("mode", "sources", "format_notes", "of_sessions"),
    [
        ("sessions", ("memory",), False, False),
        ("sessions", ("memory", "sessions"), False, True),
        ("all", ("memory",), True, True),
        ("all", ("memory", "sessions"), True, True),
        ("off", ("memory", "sessions"), False, False),
    ],
)
def test_what_is_redacted_is_as_the_mode_has_it(
    mode: str, sources: tuple[str, ...], format_notes: bool, of_sessions: bool
) -> None:
    """Transcripts unless it is off, notes in mode all; there is one redactor for both."""
    redact = msgspec.convert({"mode": mode}, Redact)
    settings = msgspec.structs.replace(SETTINGS, sources=sources, redact=redact)
    rules = rules_of(settings, ())
    assert (rules.notes_redactor is not None) == format_notes
    assert (rules.sessions_redactor is not None) == of_sessions
    assert rules.notes_redactor in {None, rules.sessions_redactor}


def test_a_rule_that_makes_no_sense_is_an_error() -> None:
    """Nothing is indexed by half of the rules."""
    redact = Redact(mode="all", extra=(UserRule("badge", "(B[0-9]+"),))
    with pytest.raises(MemdError, match=r"redact\.extra"):
        rules_of(msgspec.structs.replace(SETTINGS, redact=redact), ())
