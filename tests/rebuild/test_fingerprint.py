"""What an index has to be built for, by the settings of its agent."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config.settings import AgentSettings, Chunking, Redact, SessionSettings, UserRule
from memd.providers.provider import Identity
from memd.rebuild.fingerprint import embeds_parts, wanted_fingerprint
from memd.rebuild.follow_model import why
from memd.redact.rule import rules_key
from memd.store.meta import Fingerprint, usable_part, why_rebuild

_SETTINGS = AgentSettings(workspace=Path("/ws"))
_IDENTITY = Identity("local", "m", "k", 384)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"workspace": Path("/other")}, None),
        ({"chunking": Chunking(tokens=200, overlap=40)}, "chunking changed"),
        ({"chunking": Chunking(max_chars=701)}, "chunking changed"),
        ({"chunking": Chunking(tokens=400, overlap=80, max_chars=700)}, None),
        ({"redact": Redact(mode="all")}, "redaction changed"),
        # Of transcripts there are none.
        ({"sessions": SessionSettings(subagents=True)}, None),
        ({"redact": Redact(mode="off")}, None),
        ({"redact": Redact(allow=("a",))}, None),
    ],
)
def test_only_what_shapes_chunks_asks_for_another_index(changed: dict[str, Any], reason: str | None) -> None:
    """Where the notes lie does not."""
    stored = wanted_fingerprint(_SETTINGS, _IDENTITY)
    wanted = wanted_fingerprint(msgspec.structs.replace(_SETTINGS, **changed), _IDENTITY)
    assert why_rebuild(stored, wanted) == reason


_BOTH = msgspec.structs.replace(_SETTINGS, sources=("memory", "sessions"))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sessions": SessionSettings(presets=("codex",), paths=(Path("/t"),), delta_bytes=1)}, None),
        ({"sources": ("sessions", "memory")}, None),
        ({"sources": ("memory",)}, "sources and sessions changed"),
        ({"sources": ("sessions",)}, "sources changed"),
        ({"sessions": SessionSettings(subagents=True)}, "sessions changed"),
        ({"redact": Redact(mode="off")}, "sessions changed"),
        ({"redact": Redact(mode="all")}, "redaction changed"),
        ({"redact": Redact(extra=(UserRule("badge", "B[0-9]+"),))}, "sessions changed"),
        ({"redact": Redact(allow=("B1",))}, "sessions changed"),
    ],
)
def test_what_is_taken_out_of_transcripts_asks_for_another_index(
    changed: dict[str, Any], reason: str | None
) -> None:
    """Their places and how often they are read do not."""
    stored = wanted_fingerprint(_BOTH, _IDENTITY)
    wanted = wanted_fingerprint(msgspec.structs.replace(_BOTH, **changed), _IDENTITY)
    assert why_rebuild(stored, wanted) == reason


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"redact": Redact(mode="off")}, None),
        ({"redact": Redact(mode="all")}, "sources and redaction and sessions changed"),
        ({"chunking": Chunking(tokens=200, overlap=40)}, "chunking and sources and sessions changed"),
    ],
)
def test_transcripts_are_added_to_an_index_that_has_none(changed: dict[str, Any], reason: str | None) -> None:
    """What it has of notes stays good for as long as they are treated alike."""
    stored = wanted_fingerprint(_SETTINGS, _IDENTITY)
    wanted = wanted_fingerprint(msgspec.structs.replace(_BOTH, **changed), _IDENTITY)
    assert why_rebuild(stored, wanted) == reason


def test_better_rules_ask_for_another_index() -> None:
    """Transcripts that were read by other rules, or by an earlier parser, are read again."""
    wanted = wanted_fingerprint(_BOTH, _IDENTITY)
    assert f"redacted: {rules_key(Redact())}" in wanted.sessions
    before = msgspec.structs.replace(wanted, sessions=wanted.sessions.replace(rules_key(Redact()), "0:0"))
    assert why_rebuild(before, wanted) == "sessions changed"
    earlier = msgspec.structs.replace(wanted, sessions=f"0{wanted.sessions}")
    assert why_rebuild(earlier, wanted) == "sessions changed"


def test_an_index_that_serves_until_it_is_built_anew_fits_nothing_from_then_on() -> None:
    """Files that changed meanwhile were cut, or redacted, for the new settings: the old ones do not fit any more either."""
    before, wanted = (
        wanted_fingerprint(msgspec.structs.replace(_BOTH, chunking=Chunking(tokens=tokens)), _IDENTITY)
        for tokens in (200, 300)
    )
    serving = usable_part(before, wanted)
    assert serving.text_part == before.text_part
    assert serving.space == before.space
    kept = msgspec.json.decode(msgspec.json.encode(serving), type=Fingerprint)
    assert why_rebuild(kept, wanted) == "chunking changed"
    assert why_rebuild(kept, before) == "the settings changed, and changed back before it was built anew"
    assert why_rebuild(usable_part(kept, before), before) is not None
    assert why_rebuild(usable_part(None, wanted), wanted) is not None


def test_an_index_from_before_there_were_transcripts_fits() -> None:
    """What it says of itself lacks the words for them, and means none."""
    wanted = wanted_fingerprint(_SETTINGS, _IDENTITY)
    told = msgspec.json.decode(msgspec.json.encode(wanted), type=dict[str, Any])
    del told["redaction"], told["sessions"]
    assert msgspec.convert(told, Fingerprint) == wanted


def test_the_provider_is_part_of_it() -> None:
    """Where there is one."""
    wanted = wanted_fingerprint(_SETTINGS, _IDENTITY)
    assert wanted.vector_part == ("local", "m", "k", 384)
    assert wanted_fingerprint(_SETTINGS, None).vector_part == (None, None, None, None)


def test_why_other_vectors_are_wanted_is_told_as_it_is() -> None:
    """A change of the address alone is none from a model to itself."""
    before = Fingerprint("c", "t", ("memory",), "openai", "m", "k", 384)
    assert why(before, msgspec.structs.replace(before, model="n")).endswith(
        "changed from openai/m to openai/n"
    )
    assert why(None, before).endswith("changed from another one to openai/m")
    same = why(before, msgspec.structs.replace(before, key="l"))
    assert same.startswith("openai/m gives other vectors than before: its address")


@pytest.mark.parametrize(
    ("parts", "provider", "expected"),
    [
        ("on", "local", True),
        ("on", "openai", True),
        ("auto", "local", True),
        ("auto", "openai", False),
        ("off", "local", False),
        ("off", "openai", False),
    ],
)
def test_parts_have_vectors_where_they_cost_nothing_or_are_wished(
    parts: str, provider: str, *, expected: bool
) -> None:
    """As many tokens again are paid for only by who asks for it."""
    chunking = msgspec.convert({"parts": parts}, Chunking)
    how = msgspec.structs.replace(_SETTINGS, chunking=chunking)
    assert embeds_parts(how, provider) is expected
    identity = msgspec.structs.replace(_IDENTITY, provider=provider)
    assert wanted_fingerprint(how, identity).parts is expected
    assert wanted_fingerprint(how, None).parts is False


def test_what_transcripts_are_read_with_is_told() -> None:
    """Subagents, redaction and a time zone that is set; none of it of who has no transcripts."""
    assert wanted_fingerprint(_SETTINGS, None).sessions == ""
    plain = wanted_fingerprint(_BOTH, None).sessions
    assert ", without subagents, redacted: " in plain
    assert ", times of" not in plain
    there = msgspec.structs.replace(_BOTH, timezone="Asia/Shanghai", redact=Redact(mode="off"))
    told = wanted_fingerprint(
        msgspec.structs.replace(there, sessions=SessionSettings(subagents=True)), None
    ).sessions
    assert told.endswith(", with subagents, redacted: nothing, times of Asia/Shanghai")
