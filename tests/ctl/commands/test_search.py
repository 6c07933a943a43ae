"""memd-ctl search and get."""

import json
from pathlib import Path

import msgspec
import pytest

from memd.ctl import arguments
from memd.ctl.commands.search import question_of
from memd.ctl.failures import UsageError
from memd_client.messages import (
    AgentTags,
    Degraded,
    Explanation,
    Failure,
    Found,
    Get,
    NameCount,
    Note,
    Reply,
    Request,
    Search,
    Tags,
    TagsReport,
)
from tests.client.scripted_server import serving
from tests.ctl.answers import FOUND, answering
from tests.ctl.conftest import Run
from tests.ctl.pages import check_page


def test_all_options_reach_the_question() -> None:
    """Several words are one question."""
    argv = [
        "search",
        "which",
        "database?",
        "-n",
        "3",
        "--min-score",
        "0.5",
        "--source",
        "memory",
        "--now",
        "2026-02-09",
        "--since",
        "last week",
        "--until",
        "today",
        "--sort",
        "time",
        "--tag",
        "work",
        "--tag",
        "ops",
        "--path",
        "memory/**",
        "--property",
        "status=done",
    ]
    assert question_of(arguments.parse([*argv, "--agent", "a", "--session-key", "agent:a:main"])) == {
        "query": "which database?",
        "max_results": 3,
        "min_score": 0.5,
        "source": "memory",
        "agent": "a",
        "session_key": "agent:a:main",
        "now": "2026-02-09",
        "since": "last week",
        "until": "today",
        "sort": "time",
        "tags": ["work", "ops"],
        "path": ["memory/**"],
        "properties": {"status": "done"},
    }


@pytest.mark.parametrize("words", [[""], ["  ", "\t"]])
def test_nothing_is_no_question(words: list[str]) -> None:
    """It is refused here: the daemon need not be asked."""
    with pytest.raises(UsageError, match="empty"):
        question_of(arguments.parse(["search", *words]))


def test_hits_and_remarks_are_pages(run: Run, address: Path) -> None:
    """Hits on stdout alone; no hits are no error, and a session that may not search is told so."""
    degraded = [Degraded(part="query_embedding", reason="the provider is down.")]
    answers = (
        FOUND,
        Found(),
        Found(scope_denied=True),
        msgspec.structs.replace(FOUND, stale=True, degraded=degraded),
        msgspec.structs.replace(FOUND, fallback=True, fallback_from="qmd", fallback_reason="it hangs"),
    )
    pages = []
    for found in answers:
        with serving(address, answering(found)):
            code, out, err = run("search", "how many retries?")
        assert code == 0
        pages.append(f"stdout:\n{out}stderr:\n{err}")
    check_page("search", "\n".join(pages))


def test_all_options_reach_the_daemon(run: Run, address: Path) -> None:
    """As they were typed."""
    heard: list[Request] = []
    with serving(address, answering(FOUND, heard=heard)):
        run(
            "search",
            "q",
            "-n",
            "3",
            "--min-score",
            "0",
            "--source",
            "sessions",
            "--agent",
            "a",
            "--session-key",
            "k",
        )
    assert heard == [
        Search(
            query="q",
            max_results=3,
            min_score=0.0,
            source="sessions",
            agent="a",
            session_key="k",
            max_chars=0,  # whoever asks for thirty hits in a terminal is to see them
        )
    ]


def test_json_gives_the_whole_answer(run: Run, address: Path) -> None:
    """Every field, those with their default too."""
    with serving(address, answering(FOUND)):
        code, out, err = run("search", "q", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["ok"] is True
    assert answer["data"]["results"][0]["path"] == "memory/2026-02-09.md"
    assert answer["data"]["stale"] is False
    assert answer["data"]["degraded"] == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Failure(code="unavailable", message="later", hint="wait"), 75),
        (Failure(code="unknown_agent", message="who?"), 2),
        (Failure(code="internal", message="a bug"), 1),
    ],
)
def test_a_failure_of_the_daemon_has_its_status(run: Run, address: Path, failure: Failure, code: int) -> None:
    """Message and hint are the daemon's."""
    with serving(address, answering(failure)):
        assert run("search", "q") == (
            code,
            "",
            f"memd-ctl: {failure.message}\n" + (f"{failure.hint}\n" if failure.hint else ""),
        )
    with serving(address, answering(failure)):
        ended, out, _ = run("search", "q", "--json")
    assert ended == code
    assert json.loads(out) == {
        "ok": False,
        "error": {"type": failure.code, "message": failure.message, "hint": failure.hint},
    }


def test_a_daemon_that_does_not_run_is_an_unavailable_service(run: Run) -> None:
    """The message tells how to start it."""
    code, out, err = run("search", "q")
    assert (code, out) == (69, "")
    assert "memd-ctl up" in err


def test_a_daemon_that_does_not_answer_is_given_up(run: Run, address: Path) -> None:
    """After the time that was asked for."""
    with serving(address, lambda peer: peer.wait_for_end()):
        code, _, err = run("search", "q", "--timeout", "0.1")
    assert code == 75
    assert "did not answer within 0.1 s" in err


def test_an_empty_question_is_not_sent(run: Run) -> None:
    """There is no daemon here that could complain."""
    assert run("search", " ")[0] == 2


def test_a_question_that_is_no_text_is_refused(run: Run, address: Path) -> None:
    """Bytes that are not UTF-8 come from a shell as lone surrogates."""
    with serving(address, answering()):
        assert run("search", "\udcff")[0] == 2


_NOTE = Note(path="a.md", text="one\n\x1b[1mtwo", start_line=1, end_line=2)
_MISSING = Note(path="a.md", missing=True)


def test_lines_are_printed_as_they_are(run: Run, address: Path) -> None:
    """A pipe gets the bytes of the note."""
    heard: list[Request] = []
    with serving(address, answering(_NOTE, heard=heard)):
        assert run("get", "a.md", "--from", "3", "--lines", "9", "--agent", "x", "--session-key", "k") == (
            0,
            "one\n\x1b[1mtwo\n",
            "",
        )
    assert heard == [Get(path="a.md", start_line=3, lines=9, agent="x", session_key="k")]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (Note(path="a.md", text="x", end_line=120, next_line=121), "Lines 1-120; read on with --from 121.\n"),
        (Note(path="a.md", text="", start_line=90), "Nothing from line 90 on.\n"),
        (
            Note(path="a.md", text="", start_line=90, total_lines=7),
            "Nothing from line 90 on: there are 7 lines.\n",
        ),
        (Note(path="a.md", text="", start_line=3, end_line=3), ""),
    ],
)
def test_where_to_read_on_is_a_remark(run: Run, address: Path, note: Note, said: str) -> None:
    """It is no part of the note."""
    with serving(address, answering(note)):
        assert run("get", "a.md").err == said


def test_a_missing_path_is_not_found(run: Run, address: Path) -> None:
    """With a status of its own; denied and missing look the same."""
    with serving(address, answering(_MISSING)):
        code, out, err = run("get", "a.md")
    assert (code, out) == (3, "")
    assert err.startswith("memd-ctl: a.md is not there, or not for this session.\n")
    with serving(address, answering(_MISSING)):
        code, out, _ = run("get", "a.md", "--json")
    assert code == 3
    assert json.loads(out)["error"]["type"] == "not_found"


@pytest.mark.parametrize(
    ("argument", "start_line", "lines"),
    [
        ("a:b.md:3-5", 3, 3),
        ("a:b.md:3", 3, 1),
        ("a:b.md#L3-L5", 3, 3),
        ("a:b.md#L3-5", 3, 3),
        ("a:b.md#L3", 3, 1),
    ],
)
def test_the_headline_or_the_citation_of_a_hit_may_be_copied(
    run: Run, address: Path, argument: str, start_line: int, lines: int
) -> None:
    """A path with lines behind it is tried as a path first."""
    heard: list[Request] = []
    with serving(address, answering(_MISSING, _NOTE, heard=heard)):
        assert run("get", argument).code == 0
    assert heard == [Get(path=argument), Get(path="a:b.md", start_line=start_line, lines=lines)]


@pytest.mark.parametrize(
    ("argument", "asked"),
    [
        (r"memory/\u202egnp.md", [(r"memory/\u202egnp.md", 1), ("memory/\u202egnp.md", 1)]),
        (
            r"memory/\u202egnp.md:3-5",
            [
                (r"memory/\u202egnp.md:3-5", 1),
                ("memory/\u202egnp.md:3-5", 1),
                (r"memory/\u202egnp.md", 3),
                ("memory/\u202egnp.md", 3),
            ],
        ),
        (r"memory/\u0041\x41.md", [(r"memory/\u0041\x41.md", 1)]),
    ],
)
def test_a_path_may_be_copied_as_it_was_printed(
    run: Run, address: Path, argument: str, asked: list[tuple[str, int]]
) -> None:
    """With the characters that are spelled out because a terminal would obey them; first as it is given."""
    heard: list[Request] = []
    with serving(address, answering(*[_MISSING] * (len(asked) - 1), _NOTE, heard=heard)):
        assert run("get", argument).code == 0
    assert [(one.path, one.start_line) for one in heard if isinstance(one, Get)] == asked


def test_a_filter_may_be_copied_as_it_was_printed(run: Run, address: Path) -> None:
    """Beside what it says as it is given."""
    heard: list[Request] = []
    with serving(address, answering(Found(filtered=True), heard=heard)):
        run("search", "heron", "--path", r"memory/\u202egnp.md", "--path", "memory/**")
    assert [one.only for one in heard if isinstance(one, Search)] == [
        [r"path:memory/\u202egnp.md", "path:memory/**", "path:memory/\u202egnp.md"]
    ]


@pytest.mark.parametrize(
    "argv", [["a.md:3-5", "--from", "1"], ["a.md#L3-L5", "--lines", "2"], ["a.md:x"], ["a.md#3"], [":3-5"]]
)
def test_other_paths_are_only_paths(run: Run, address: Path, argv: list[str]) -> None:
    """Nothing is guessed into them."""
    with serving(address, answering(_MISSING)):
        assert run("get", *argv).code == 3


@pytest.mark.parametrize("argument", ["a.md:3-2", "a.md#L3-L2"])
def test_lines_that_end_before_they_begin_are_wrong_usage(run: Run, address: Path, argument: str) -> None:
    """Unless a file has that name."""
    with serving(address, answering(_MISSING)):
        code, out, err = run("get", argument)
    assert (code, out) == (2, "")
    assert err == f"memd-ctl: {argument} ends before it begins.\n`memd-ctl get a.md` prints all of it.\n"
    with serving(address, answering(_NOTE)):
        assert run("get", argument).code == 0


@pytest.mark.parametrize("words", [("search", "x"), ("explain", "x"), ("tags",)])
def test_a_conversation_that_may_see_nothing_is_told_so_alike(
    run: Run, address: Path, words: tuple[str, ...]
) -> None:
    """Nothing failed: the rules are as somebody wrote them."""
    denied = Found(scope_denied=True)
    replies: dict[str, Reply] = {
        "search": denied,
        "explain": Explanation(found=denied),
        "tags": Failure(code="denied", message="this session may not use this memory"),
    }
    with serving(address, answering(replies[words[0]])):
        code, out, err = run(*words, "--session-key", "agent:main:telegram:group:7")
    assert (code, out.strip()) == (0, "")
    assert err == (
        "This session may not search this agent's memory: the scope rules of the configuration deny it.\n"
    )
    with serving(address, answering(replies[words[0]])):
        data = json.loads(run(*words, "--json").out)["data"]
    assert data.get("found", data)["scope_denied"] is True


def test_tags_are_listed_with_how_many_notes_have_them(run: Run, address: Path) -> None:
    """Of several agents under the name of each; what would move the cursor is shown."""
    one = AgentTags(
        tags=[NameCount(name="work", notes=1200), NameCount(name="\x1b[2J", notes=1)],
        links=[NameCount(name="plan", notes=2, missing=True)],
        omitted=1,
    )
    heard: list[Request] = []
    with serving(address, answering(TagsReport(agents={"main": one, "none": AgentTags()}), heard=heard)):
        code, out, err = run("tags", "--agent", "main", "--session-key", "k")
    assert heard == [Tags(agent="main", session_key="k")]
    assert (code, err) == (0, "1 more name is not shown.\n")
    assert out == "main\n 1,200  #work\n     1  #\\x1b[2J\n     2  [[plan]]  (no such note)\n"
    with serving(address, answering(TagsReport(agents={"main": one}))):
        assert run("tags")[1].startswith(" 1,200  #work\n")
    with serving(address, answering(TagsReport(agents={"main": AgentTags()}))):
        assert run("tags") == (0, "", "No note has tags or links.\n")
