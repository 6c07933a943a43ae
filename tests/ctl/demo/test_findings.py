"""What the demo saw, as text."""

import pytest

from memd.ctl.demo import findings
from memd.ctl.demo.findings import DemoAnswer, EditFound, GroupComparison, IndexingTime
from memd.ctl.demo.workspace import DemoQuestion
from memd.ctl.output.terminal import uncoloured
from memd_client.messages import Health, Hit, Vectors
from tests.ctl.answers import HIT, agent

_ASKED = DemoAnswer(
    about="An exact id",
    query="INC-1",
    took_ms=6.2,
    mode="hybrid",
    as_it_should=True,
    has_answer=True,
    hits=[HIT, HIT],
    degraded=[],
)
_HIT_TEXT = "memory/2026-02-09.md:3-5  0.715\n    # Retries\n\n    three, with jitter"


@pytest.mark.parametrize(
    ("answer", "found", "fine"),
    [
        ("jitter", [HIT], True),
        ("jitter", [], False),
        ("other", [HIT], False),
        (None, [], True),
        (None, [HIT], False),
    ],
)
def test_an_answer_is_in_what_comes_back(answer: str | None, found: list[Hit], *, fine: bool) -> None:
    """Or nothing comes back, where there is none."""
    assert findings.is_answered(DemoQuestion("", "", answer), found) is fine


@pytest.mark.parametrize(
    ("vectors", "reason", "text"),
    [
        (
            Vectors(done=1830),
            None,
            ", vectors complete after 5 s (e5).",
        ),
        (
            Vectors(),
            "no model\nfor this platform",
            ".\nNo vectors here: no model; for this platform. What needs them will not be found.",
        ),
        (
            Vectors(done=3, waiting=1),
            None,
            ".\nNo vectors here. What needs them will not be found.",
        ),
    ],
)
def test_vectors_are_complete_or_missed(vectors: Vectors, reason: str | None, text: str) -> None:
    """A machine without a model says so."""
    told = findings.indexed(
        agent(vectors=vectors, provider_health=Health(ok=reason is None, reason=reason)), 0.8, 5.0
    )
    assert isinstance(told, IndexingTime)
    beginning = "214 notes, 1,830 chunks: words searchable 0.8 s after the start of the daemon"
    assert findings.index_text(told, uncoloured) == f"{beginning}{text}"


@pytest.mark.parametrize(
    ("has_answer", "as_it_should", "verdict"),
    [
        (True, True, "found"),
        (True, False, "not found"),
        (False, True, "nothing comes back, and nothing should"),
        (False, False, "nothing should come back, and yet"),
    ],
)
def test_a_question_is_told_with_what_came_of_it(
    *, has_answer: bool, as_it_should: bool, verdict: str
) -> None:
    """Whether that is what should have come."""
    asked = DemoAnswer(
        about="Nothing",
        query="?",
        took_ms=6.2,
        mode="hybrid",
        as_it_should=as_it_should,
        has_answer=has_answer,
        hits=[],
        degraded=[],
    )
    assert findings.question_text(3, asked, uncoloured) == f"3. Nothing: ?\n   {verdict} (6 ms)"


def test_the_first_hit_is_shown_whole() -> None:
    """Of the second only where it is."""
    assert findings.question_text(2, _ASKED, uncoloured) == (
        f"2. An exact id: INC-1\n   found (6 ms)\n{_HIT_TEXT}\nalso memory/2026-02-09.md:3-5  0.715"
    )


def test_an_edit_is_found_or_not() -> None:
    """With the time from the end of writing to the hit."""
    edit = EditFound(path="a.md", line="- x", query="x?", took_ms=31.0, hits=[HIT])
    assert findings.edit_text(edit, uncoloured) == (
        f"An edit: one more line in a.md, then at once: x?\n   found 31 ms after it was written\n{_HIT_TEXT}"
    )
    late = EditFound(path="a.md", line="- x", query="x?", took_ms=None, hits=[HIT])
    assert (
        findings.edit_text(late, uncoloured)
        == "An edit: one more line in a.md, then at once: x?\n   not found"
    )


def test_a_leak_would_be_loud() -> None:
    """What a group sees is told by what came back."""
    group = GroupComparison(
        query="x?",
        session_key="k",
        owner_paths=["MEMORY.md", "a.md", "a.md"],
        group_paths=["a.md"],
        sees_private=False,
    )
    assert findings.group_text(group, uncoloured) == (
        "A group chat asks: x?\n"
        "   1 hit, none of MEMORY.md or USER.md; to you the same question gives MEMORY.md, a.md"
    )
    leak = GroupComparison(
        query="x?", session_key="k", owner_paths=[], group_paths=["MEMORY.md"], sees_private=True
    )
    assert "it gets lines of MEMORY.md or USER.md" in findings.group_text(leak, uncoloured)
