"""The transcripts that are measured are what they are said to be."""

from pathlib import Path

import pytest

from memd.sources.transcripts.parser import format_of
from tests.benchmarks.transcripts import AGENTS, lay_out


@pytest.mark.long
def test_transcripts_are_as_large_as_asked_for_and_mostly_no_speech(tmp_path: Path) -> None:
    """Of all four agents, in both languages, with images; the same for the same seed."""
    one, other = (
        lay_out(tmp_path / name / "home", total_bytes=3e6, files=24, seed=5) for name in ("one", "other")
    )
    assert 3e6 < one.bytes < 4.5e6
    assert 0.05 < one.speech / one.bytes < 0.2
    assert [len(session.turns) for session in one.sessions] == [
        len(session.turns) for session in other.sessions
    ]
    contents = [session.path.read_bytes() for session in one.sessions]
    formats = [format_of(content.splitlines()[:3]) for content in contents]
    assert {found.name for found in formats if found} == set(AGENTS)
    text = b"".join(contents)
    assert b"data:image/png;base64," in text
    said = "".join(turn.text for session in one.sessions for turn in session.turns)
    assert 0.05 < sum("\u4e00" <= letter < "\ua000" for letter in said) / len(said) < 0.6
