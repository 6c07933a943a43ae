"""memd-ctl demo, and what it says of its findings."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from memd.ctl.commands import demo
from memd.ctl.commands.demo import DemoAnswer, EditFound, GroupComparison, IndexingTime
from memd.ctl.daemon_process import find_holder
from memd.ctl.demo import DemoQuestion
from memd.ctl.output.terminal import uncoloured
from memd_client.messages import Health, Hit, Vectors
from tests.bounds import shipped
from tests.ctl.answers import HIT, agent
from tests.ctl.real import TIMEOUT_S, House, house
from tests.wait import until


@pytest.fixture
def ours() -> Iterator[House]:
    """A house without anything."""
    with house() as made:
        yield made


def _find_daemon(ours: House) -> int | None:
    """The pid of the daemon that a demo has started."""
    return next((find_holder(lock) for lock in ours.tmp.glob("*/state/memd.lock")), None)


def _is_group_gone(pid: int) -> bool:
    """Whether the daemon and all it started have ended: it leads a group of its own."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.long
def test_the_demo_shows_what_it_says(ours: House) -> None:
    """Every answer is found, the edit and its hit too, a group sees nothing private, and nothing is left behind."""
    began = time.monotonic()
    ran = ours.run("demo", "--json")
    took_s = time.monotonic() - began
    assert ran.code == 0, ran
    data = json.loads(ran.out)["data"]
    assert (data["indexed"]["files"], data["indexed"]["provider"]) == (8, "local")
    assert len(data["questions"]) == 5
    # On a busy machine a question's vector may come too late, which the answer says.
    whole = [one for one in data["questions"] if not one["degraded"]]
    assert [one["about"] for one in whole if not one["as_it_should"]] == []
    assert {one["mode"] for one in whole} <= {"hybrid"}
    assert {each["part"] for one in data["questions"] for each in one["degraded"]} <= {"query_embedding"}
    assert data["questions"][-1]["hits"] == []
    most = shipped("memd.ctl.commands.demo._MAX_RESULTS")
    assert max(len(one["hits"]) for one in data["questions"]) == most
    assert 0 < data["edit"]["took_ms"] < 10_000
    assert "9:40" in data["edit"]["hits"][0]["snippet"]
    assert data["group"]["sees_private"] is False
    assert data["group"]["owner_paths"][0] == "MEMORY.md"
    assert data["workspace"] is None
    assert took_s < TIMEOUT_S
    assert list(ours.tmp.iterdir()) == []
    assert list(ours.home.iterdir()) == []


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_demo_leaves_nothing_behind(ours: House, number: signal.Signals, code: int) -> None:
    """Neither a process nor a file, whatever ends it, and while the daemon works."""
    demo = ours.start("demo")
    daemon = until(lambda: _find_daemon(ours), 20)
    assert daemon is not None
    demo.send_signal(number)
    ran = ours.ended(demo)
    assert (ran.code, ran.err) == (code, "")
    assert list(ours.tmp.iterdir()) == []
    until(lambda: _is_group_gone(daemon))


def test_a_demo_that_cannot_write_leaves_nothing_behind(ours: House) -> None:
    """It ends like any command whose reader has gone."""
    demo = ours.start("demo")
    assert demo.stdout is not None
    demo.stdout.close()
    assert demo.wait(TIMEOUT_S) == 0
    assert demo.stderr is not None
    assert demo.stderr.read() == b""
    demo.stderr.close()
    assert list(ours.tmp.iterdir()) == []


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
    assert demo.is_answered(DemoQuestion("", "", answer), found) is fine


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
            ".\nVectors of 1 chunk are still being computed: this machine is busy. What needs them is not found yet.",
        ),
    ],
)
def test_vectors_are_complete_or_missed(vectors: Vectors, reason: str | None, text: str) -> None:
    """A machine without a model says so."""
    told = demo.indexing_time(
        agent(vectors=vectors, provider_health=Health(ok=reason is None, reason=reason)), 0.8, 5.0
    )
    assert isinstance(told, IndexingTime)
    beginning = "214 notes, 1,830 chunks: words searchable 0.8 s after the start of the daemon"
    assert demo.index_text(told, uncoloured) == f"{beginning}{text}"


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
    assert demo.question_text(3, asked, uncoloured) == f"3. Nothing: ?\n   {verdict} (6 ms)"


def test_the_first_hit_is_shown_whole() -> None:
    """Of the second only where it is."""
    assert demo.question_text(2, _ASKED, uncoloured) == (
        f"2. An exact id: INC-1\n   found (6 ms)\n{_HIT_TEXT}\nalso memory/2026-02-09.md:3-5  0.715"
    )


def test_an_edit_is_found_or_not() -> None:
    """With the time from the end of writing to the hit."""
    edit = EditFound(path="a.md", line="- x", query="x?", took_ms=31.0, hits=[HIT])
    assert demo.edit_text(edit, uncoloured) == (
        f"An edit: one more line in a.md, then at once: x?\n   found 31 ms after it was written\n{_HIT_TEXT}"
    )
    late = EditFound(path="a.md", line="- x", query="x?", took_ms=None, hits=[HIT])
    assert (
        demo.edit_text(late, uncoloured) == "An edit: one more line in a.md, then at once: x?\n   not found"
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
    assert demo.group_text(group, uncoloured) == (
        "A group chat asks: x?\n"
        "   1 hit, none of MEMORY.md or USER.md; to you the same question gives MEMORY.md, a.md"
    )
    leak = GroupComparison(
        query="x?", session_key="k", owner_paths=[], group_paths=["MEMORY.md"], sees_private=True
    )
    assert "it gets lines of MEMORY.md or USER.md" in demo.group_text(leak, uncoloured)
