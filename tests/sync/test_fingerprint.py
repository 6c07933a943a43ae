"""What an index has to be built for, by the settings of its agent."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config import AgentSettings, Chunking
from memd.embed.provider import Identity
from memd.store.meta import why_rebuild
from memd.sync.fingerprint import wanted_fingerprint

_SETTINGS = AgentSettings(workspace=Path("/ws"))
_IDENTITY = Identity("local", "m", "k", 384)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"workspace": Path("/other")}, None),
        ({"chunking": Chunking(tokens=200, overlap=40)}, "chunking changed"),
        ({"sources": ("memory", "sessions")}, "sources changed"),
    ],
)
def test_only_what_shapes_chunks_asks_for_another_index(changed: dict[str, Any], reason: str | None) -> None:
    """Where the notes lie does not."""
    stored = wanted_fingerprint(_SETTINGS, _IDENTITY)
    wanted = wanted_fingerprint(msgspec.structs.replace(_SETTINGS, **changed), _IDENTITY)
    assert why_rebuild(stored, wanted) == reason


def test_the_provider_is_part_of_it() -> None:
    """Where there is one."""
    wanted = wanted_fingerprint(_SETTINGS, _IDENTITY)
    assert wanted.vector_part == ("local", "m", "k", 384)
    assert wanted_fingerprint(_SETTINGS, None).vector_part == (None, None, None, None)
