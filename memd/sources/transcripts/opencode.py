"""Parses the lines that opencode_database creates for a session: one about the session, then one for each message.

opencode_database leaves out everything that is no speech: tools, thoughts, and text added by plugins and summaries.
"""

import msgspec

from memd.sources.transcripts import boilerplate, lenient_json
from memd.sources.transcripts.format import Event, Format, SessionFacts, TurnAdded, UnparsedLine


class OpenCodeState(msgspec.Struct):
    """Empty, since each line is complete."""


class OpenCodeLine(msgspec.Struct, omit_defaults=True):
    """A message, or facts about a session."""

    session: str | None = None
    cwd: str | None = None
    id: str = ""
    role: str = ""
    at: int | None = None  # unix time in milliseconds
    texts: list[str] = []


_decode = msgspec.json.Decoder(OpenCodeLine).decode


def _read_line(line: bytes, _: OpenCodeState) -> tuple[Event, ...]:
    said = _decode(line)
    at = None if said.at is None else said.at / 1000
    if said.session is not None:
        return (SessionFacts(session_id=said.session, cwd=said.cwd, started_at=at),)
    role = lenient_json.role(said.role)
    if role is None:
        return (UnparsedLine("unknown"),)
    text = boilerplate.joined(boilerplate.of_any_program(text, role) for text in said.texts)
    return (TurnAdded(id=said.id, role=role, at=at, text=text),) if text else ()


FORMAT = Format("opencode", OpenCodeState, lenient_json.never_raising(_read_line))
