"""What a model gets to read."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client import tool_replies
from memd_client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    MemdClientError,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)
from memd_client.messages import Degraded, Found, Hit, Note
from memd_client.tool_arguments import Unusable
from tests.bounds import shipped

ROOMY = 1_000_000
CODE = "    if retries > 3:\n        give_up()\n\n"


def hit(snippet: str = "three, with jitter", *, cited: bool = True, line: int = 3) -> Hit:
    """A hit of some lines."""
    return Hit(
        path="memory/a.md",
        start_line=line,
        end_line=line + 2,
        score=0.71549,
        snippet=snippet,
        citation=f"memory/a.md#L{line}-L{line + 2}" if cited else None,
    )


def test_a_score_of_another_engine_is_named() -> None:
    """A model compares no such number."""
    other = Found(results=[msgspec.structs.replace(hit(), score=0.0, own_scale=True), hit(line=9)])
    own, usual = tool_replies.search_reply(other, (), ROOMY)["results"]
    assert (own["score"], own["ownScale"]) == (0.0, True)
    assert "ownScale" not in usual


def test_a_hit_tells_where_else_the_same_stands() -> None:
    """The model need not open the copies; a hit without any has no such field."""
    found = Found(results=[msgspec.structs.replace(hit(), copies=["old.md#L3-L9"]), hit(line=9)])
    copied, usual = tool_replies.search_reply(found, (), ROOMY)["results"]
    assert copied["alsoIn"] == ["old.md#L3-L9"]
    assert "alsoIn" not in usual


def test_a_weak_hit_is_named() -> None:
    """A model need not take it for an answer."""
    found = Found(results=[msgspec.structs.replace(hit(), weak=True), hit(line=9)])
    weak, usual = tool_replies.search_reply(found, (), ROOMY)["results"]
    assert weak["weak"] is True
    assert "weak" not in usual


def test_a_search_in_full() -> None:
    """The names are those that a model knows from its tools."""
    found = Found(
        results=[hit()],
        provider="openai",
        model="large",
        citations=True,
        fallback=True,
        fallback_from="gemini",
        fallback_reason="quota",
        stale=True,
        degraded=[Degraded(part="watcher", reason="no watches left")],
    )
    assert tool_replies.search_reply(found, ("maxResults is at most 50",), ROOMY) == {
        "results": [
            {
                "path": "memory/a.md",
                "startLine": 3,
                "endLine": 5,
                "score": 0.7155,
                "snippet": "three, with jitter\n\nSource: memory/a.md#L3-L5",
                "source": "memory",
                "citation": "memory/a.md#L3-L5",
            }
        ],
        "provider": "openai",
        "model": "large",
        "backend": "builtin",
        "mode": "hybrid",
        "fallback": True,
        "citations": True,
        "fallbackFrom": "gemini",
        "fallbackReason": "quota",
        "stale": True,
        "degraded": [{"part": "watcher", "reason": "no watches left"}],
        "remarks": ["maxResults is at most 50"],
    }


def test_without_citations_there_is_no_footer() -> None:
    """Nor a citation."""
    (told,) = tool_replies.search_reply(Found(results=[hit(cited=False)]), (), ROOMY)["results"]
    assert told["snippet"] == "three, with jitter"
    assert "citation" not in told


def test_indentation_is_kept() -> None:
    """Of code and lists the beginning of a line is a part; only the end is tidied."""
    (told,) = tool_replies.search_reply(Found(results=[hit(CODE)]), (), ROOMY)["results"]
    assert told["snippet"] == "    if retries > 3:\n        give_up()\n\nSource: memory/a.md#L3-L5"


def test_hits_without_room_are_left_out_whole() -> None:
    """The first stay as they are, and the reply says how many are missing."""
    found = Found(results=[hit("記" * 600, line=line) for line in range(1, 60, 10)])
    whole = tool_replies.search_reply(found, (), ROOMY)
    reply = tool_replies.search_reply(found, (), 4_000)
    assert 3 <= len(reply["results"]) < 6
    assert reply["results"] == whole["results"][: len(reply["results"])]
    assert reply["omitted"] == 6 - len(reply["results"])
    assert len(tool_replies.encoded(reply)) <= 4_000
    assert "omitted" not in whole


def test_the_only_hit_is_cut_between_characters() -> None:
    """And keeps its footer."""
    reply = tool_replies.search_reply(Found(results=[hit("😀" * 4_000)]), (), 1_500)
    (told,) = reply["results"]
    assert told["snippet"].startswith("😀😀😀")
    assert told["snippet"].endswith("😀…\n\nSource: memory/a.md#L3-L5")
    assert 1_490 < len(tool_replies.encoded(reply)) <= 1_500


def test_a_session_that_may_not_search_is_told_so() -> None:
    """Which is something else than no hits."""
    reply = tool_replies.search_reply(Found(scope_denied=True), (), ROOMY)
    assert (reply["results"], reply["scopeDenied"]) == ([], True)
    assert not {"error", "disabled"} & reply.keys()
    assert "may not search" in reply["remarks"][0]
    assert tool_replies.search_reply(Found(), (), ROOMY)["results"] == []


def test_an_excerpt_in_full() -> None:
    """It tells where to read on only where there is more."""
    note = Note(path="a.md", text="one\ntwo", start_line=3, end_line=4, next_line=5)
    assert tool_replies.get_reply(note, (), ROOMY) == {
        "path": "a.md",
        "text": "one\ntwo",
        "startLine": 3,
        "endLine": 4,
        "nextLine": 5,
    }
    last = Note(path="a.md", text="one", start_line=3, end_line=3)
    assert "nextLine" not in tool_replies.get_reply(last, (), ROOMY)


def test_a_long_excerpt_ends_at_a_line() -> None:
    """From where the next call reads on, so that nothing is lost."""
    lines = [f"{number} {'ß' * 90}" for number in range(1, 101)]
    begin, read = 1, []
    while begin:
        note = Note(path="a.md", text="\n".join(lines[begin - 1 :]), start_line=begin, end_line=100)
        reply = tool_replies.get_reply(note, (), 2_000)
        assert len(tool_replies.encoded(reply)) <= 2_000
        read += reply["text"].split("\n")
        assert reply["endLine"] == len(read)
        begin = reply.get("nextLine", 0)
    assert read == lines


def test_a_line_without_room_is_cut_and_said_to_be() -> None:
    """What follows it can be read."""
    note = Note(path="a.md", text=f"{'é' * 9_000}\nnext", start_line=3, end_line=4)
    reply = tool_replies.get_reply(note, (), 2_000)
    assert (reply["truncated"], reply["endLine"], reply["nextLine"]) == (True, 3, 4)
    assert 1_950 < len(tool_replies.encoded(reply)) <= 2_000
    alone = tool_replies.get_reply(Note(path="a.md", text="é" * 9_000, end_line=1), (), 2_000)
    assert alone["truncated"]
    assert "nextLine" not in alone


def test_turns_that_are_cut_do_not_claim_lines() -> None:
    """A turn of many lines stands on one line of its transcript: what was left out is to be asked for again."""
    text = "\n\n".join(f"User: turn {number}\n{'é' * 90}" for number in range(60))
    turns = Note(path="sessions/codex/a.jsonl", text=text, start_line=7, end_line=125, next_line=127)
    reply = tool_replies.get_reply(turns, ("first",), 2_000)
    assert 1_950 < len(tool_replies.encoded(reply)) <= 2_000
    assert (reply["startLine"], reply["endLine"], reply["truncated"]) == (7, 7, True)
    assert "nextLine" not in reply
    assert reply["remarks"][0] == "first"
    assert "fewer lines" in reply["remarks"][1]
    alone = tool_replies.get_reply(msgspec.structs.replace(turns, end_line=7, next_line=9), (), 2_000)
    assert (alone["endLine"], alone["nextLine"], alone["truncated"]) == (7, 9, True)
    assert "remarks" not in alone


def test_fewer_characters_are_asked_for_until_turns_have_room() -> None:
    """Line ends and quotation marks take more room than they have characters; what has room is not asked for again."""
    turns = Note(path="sessions/codex/a.jsonl", text='"\n' * 4_000, start_line=7, end_line=7)
    chars = tool_replies.shorter(turns, (), 2_000)
    assert chars == sorted(chars, reverse=True)
    fits = msgspec.structs.replace(turns, text=turns.text[: chars[0]], next_line=2**53)
    assert tool_replies.shorter(fits, (), 2_000) == []
    # Lines of a note are left out, but for one that is too long by itself.
    assert tool_replies.shorter(msgspec.structs.replace(turns, path="memory/a.md"), (), 2_000) == []
    line = msgspec.structs.replace(turns, path="memory/a.md", text=f"{'word ' * 4_000}\nnext")
    assert tool_replies.shorter(line, (), 2_000)[0] > 1_500


def test_so_many_characters_are_asked_for_at_least() -> None:
    """The daemon gives no fewer; where there is no room for them, nothing is asked for again."""
    turns = Note(path="sessions/codex/a.jsonl", text="word " * 4_000, start_line=7, end_line=7)
    asked = [chars for most in range(100, 1_000) for chars in tool_replies.shorter(turns, (), most)]
    least = shipped("memd_client.tool_replies._LEAST_EXCERPT")
    assert min(asked) == least == shipped("memd.server.requests.get.LEAST_CHARS")


def test_where_nothing_is_said_nothing_is_asked_for_again() -> None:
    """However long the name of the transcript is."""
    silent = Note(path=f"sessions/paths/{'a' * 3_000}.jsonl", start_line=7)
    assert tool_replies.shorter(silent, (), 1_000) == []


def test_a_missing_note_is_no_error() -> None:
    """Today's is not written yet, most of the time."""
    assert tool_replies.get_reply(Note(path="memory/2026-02-09.md", missing=True), (), ROOMY) == {
        "path": "memory/2026-02-09.md",
        "text": "",
        "missing": True,
    }


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (DaemonNotRunning("/run/s"), "memd-ctl up"),
        (DaemonNotRunning("/run/s", "it is not a socket of memd"), "MEMD_SOCKET"),
        (ConnectionLost("The connection to the daemon broke."), "memd-ctl status"),
        (TimedOut(10), "memd-ctl doctor"),
        (ProtocolMismatch(1, 2), "Upgrade memd-client"),
        (ProtocolMismatch(2, 1), "Upgrade memd-daemon"),
        (RequestFailed("unknown_agent", "there is no agent x"), "memd-ctl status"),
        (RequestFailed("busy", "too many"), "Try again"),
        (RequestFailed("timed_out", "slow"), "memd-ctl status"),
        (RequestFailed("unavailable", "damaged", "memd-ctl reindex"), "memd-ctl reindex"),
        (RequestFailed("unavailable", "memory cannot be asked just now"), "memd-ctl doctor"),
        (RequestFailed("internal", "failed"), "memd-ctl logs"),
        (RequestFailed("unsupported", "unknown request"), "Upgrade memd-daemon"),
        (RequestFailed("denied", "not for this session"), "scope rules"),
        (RequestFailed("protocol", "no frame"), "memd-ctl doctor"),
        (RequestFailed("of_tomorrow", "who knows"), "memd-ctl doctor"),
        (MemdClientError("something else"), "memd-ctl doctor"),
    ],
)
@pytest.mark.parametrize("tool", ["memory_search", "memory_get", "memory_status"])
def test_memory_that_is_unavailable_comes_with_what_to_do(
    tool: str, error: MemdClientError, action: str
) -> None:
    """For a person, whatever the trouble."""
    reply = tool_replies.unavailable(tool, error)
    assert (reply["results"], reply["disabled"]) == ([], True)
    assert reply["error"].startswith(error.message[:50])
    assert action in reply["action"]
    assert reply.get("text", "") == ""


@pytest.mark.parametrize("code", ["bad_request", "too_large"])
def test_a_request_that_is_refused_leaves_memory_there(code: str) -> None:
    """The model can ask otherwise."""
    reply = tool_replies.unavailable("memory_search", RequestFailed(code, "max_results is 51"))
    assert "disabled" not in reply
    assert reply["error"] == "max_results is 51"
    assert "memory_search" in reply["action"]


def test_a_call_that_makes_no_sense_leaves_memory_there() -> None:
    """That is for what a person has to mend."""
    assert tool_replies.invalid_arguments("memory_search", Unusable("query is missing.", "Call again.")) == {
        "results": [],
        "error": "query is missing.",
        "action": "Call again.",
    }


TEXTS = st.text(max_size=400) | st.text(alphabet='\n"\\\x00😀 ', max_size=900)
REASONS = st.lists(st.builds(Degraded, part=st.text(max_size=20), reason=TEXTS), max_size=7)
HITS = st.lists(st.builds(hit, TEXTS, cited=st.booleans(), line=st.integers(1, 10**6)), max_size=8)


@given(
    found=st.builds(
        Found, results=HITS, provider=TEXTS, model=TEXTS, fallback_reason=st.none() | TEXTS, degraded=REASONS
    ),
    remarks=st.lists(TEXTS, max_size=3),
    max_chars=st.integers(tool_replies.LEAST_CHARS, 3_000),
)
def test_a_search_is_never_longer_than_it_may_be(found: Found, remarks: list[str], max_chars: int) -> None:
    """Whatever is in it, and it is JSON."""
    text = tool_replies.encoded(tool_replies.search_reply(found, remarks, max_chars))
    assert len(text) <= max_chars
    reply: dict[str, Any] = json.loads(text)
    assert len(reply["results"]) + reply.get("omitted", 0) == len(found.results)


@given(
    text=st.lists(TEXTS, min_size=1, max_size=8).map("\n".join),
    remarks=st.lists(TEXTS | st.just("\x00" * 300), max_size=1),
    path=st.sampled_from(["memory/a.md", "sessions/codex/a.jsonl"]),
    max_chars=st.integers(tool_replies.LEAST_CHARS, 3_000),
)
def test_an_excerpt_is_never_longer_than_it_may_be(
    text: str, remarks: list[str], path: str, max_chars: int
) -> None:
    """Whatever is in it."""
    note = Note(path=path, text=text, start_line=7, end_line=6 + len(text.split("\n")))
    assert len(tool_replies.encoded(tool_replies.get_reply(note, remarks, max_chars))) <= max_chars


def test_names_and_reasons_have_a_length() -> None:
    """What a daemon says of itself leaves room for what was found."""
    name, reason = (
        shipped("memd_client.tool_replies._NAME_CHARS"),
        shipped("memd_client.tool_replies._REASON_CHARS"),
    )
    found = Found(
        results=[hit()],
        provider="p" * (name + 1),
        fallback_from="q" * name,
        fallback_reason="r" * reason,
        degraded=[Degraded(part="vector", reason="s" * (reason + 1))],
    )
    reply = tool_replies.search_reply(found, (), ROOMY)
    assert (reply["provider"], reply["fallbackFrom"]) == ("p" * name, "q" * name)
    assert reply["fallbackReason"] == "r" * reason
    assert reply["degraded"][0]["reason"] == "s" * (reason - 1) + "…"


def test_a_stump_of_a_hit_is_left_out() -> None:
    """A reply that has room for a few characters more shows the beginning."""
    stump = shipped("memd_client.tool_replies._STUMP_CHARS")
    found = Found(results=[hit("x" * 5_000)])
    shown = {
        len(told[0]["snippet"].partition("…")[0])
        if (told := tool_replies.search_reply(found, (), room)["results"])
        else 0
        for room in range(200, 700)
    }
    assert min(shown - {0}) == stump
    assert 0 in shown
