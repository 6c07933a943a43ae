"""The comparison with OpenClaw's own memory: what it makes of notes, and how it counts."""

import json
from datetime import date
from pathlib import Path

from tests.client.javascript.compare import near, score, undated

QUESTIONS = [
    {
        "question": "What of 2026-01-30?",
        "evidence": [{"text": "heron", "path": "memory/2026-01-30.md", "line": 1}],
    },
    {"question": "Who?", "evidence": [{"text": "Ada", "path": "MEMORY.md", "line": 1}]},
    {"question": "Nothing?", "evidence": []},
]


def directory_in(scratch: Path) -> Path:
    """Notes of two days, and questions."""
    made = scratch / "notes"
    (made / "memory" / "travel").mkdir(parents=True)
    (made / "MEMORY.md").write_text("Ada was born on 1990-05-01, not 1990-02-31.\n")
    (made / "memory" / "2026-01-30.md").write_text("heron, after 2026-01-02\n")
    (made / "memory" / "travel" / "2026-01-02-oslo.md").write_text("Oslo\n")
    (made / "questions.json").write_text(json.dumps(QUESTIONS))
    return made


def test_dates_are_moved_by_whole_weeks(tmp_path: Path) -> None:
    """In names, texts and questions; the newest is of the last seven days, and what is no date stays."""
    near(directory_in(tmp_path), tmp_path / "near", date(2026, 3, 3))
    moved = tmp_path / "near"
    assert (moved / "memory" / "2026-02-27.md").read_text() == "heron, after 2026-01-30\n"
    assert (moved / "memory" / "travel" / "2026-01-30-oslo.md").read_text() == "Oslo\n"
    assert (moved / "MEMORY.md").read_text() == "Ada was born on 1990-05-29, not 1990-02-31.\n"
    questions = json.loads((moved / "questions.json").read_text())
    assert questions[0]["question"] == "What of 2026-02-27?"
    assert questions[0]["evidence"][0]["path"] == "memory/2026-02-27.md"


def test_names_without_dates_lead_to_the_same_texts(tmp_path: Path) -> None:
    """Only what has a date gets another name."""
    source = directory_in(tmp_path)
    undated(source, tmp_path / "bare")
    questions = json.loads((tmp_path / "bare" / "questions.json").read_text())
    paths = [each["path"] for one in questions for each in one["evidence"]]
    assert paths[1] == "MEMORY.md"
    assert "2026" not in paths[0]
    assert (tmp_path / "bare" / paths[0]).read_text() == "heron, after 2026-01-02\n"
    assert not list((tmp_path / "bare").rglob("*2026*"))


def test_evidence_is_seen_in_what_an_agent_reads_and_recalled_by_its_line() -> None:
    """Behind 4,000 characters, and after six hits, nothing counts."""
    hit = {"path": "a.md", "startLine": 1, "endLine": 9, "snippet": "The  Heron."}
    wanted = [
        {"text": "the heron", "path": "a.md", "line": 9},
        {"text": "walrus", "path": "a.md", "line": 10},
    ]
    assert score([hit], wanted) == (0.5, 0.5, 1.0)
    other = {**hit, "path": "b.md", "snippet": "x" * 3995}
    assert score([other, hit], wanted[:1]) == (0.0, 1.0, 0.5)
    assert score([*[{**other, "snippet": ""}] * 6, hit], wanted[:1]) == (0.0, 0.0, 0.0)
