"""Which agents have files on this machine, and how many: told by names alone, nothing is read."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import get_args

import msgspec

from memd.config.settings import PresetName
from memd.sources.roots import notes_of, transcripts_of
from memd.sources.safe_open import ProcessExhausted
from memd.sources.scan import scan
from memd.text.memory_paths import Root

NAMES: Mapping[PresetName, str] = MappingProxyType(
    {"openclaw": "OpenClaw", "claude-code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI"}
)
"""What people call the agents."""

_ANY_SIZE = 1 << 62


class InstalledAgent(msgspec.Struct, frozen=True):
    """One agent with files here."""

    preset: PresetName
    notes: int
    transcripts: int


def installed(environ: Mapping[str, str]) -> tuple[InstalledAgent, ...]:
    """The agents that have notes or transcripts here.

    Args:
        environ: May say where they have them.
    """
    found = (
        InstalledAgent(preset, _count(notes_of(preset, environ)), _count(transcripts_of(preset, environ)))
        for preset in get_args(PresetName)
    )
    return tuple(one for one in found if one.notes or one.transcripts)


def _count(roots: Iterable[Root]) -> int:
    try:
        return len(scan(tuple(roots), max_bytes=_ANY_SIZE).found)
    except ProcessExhausted:
        return 0
