"""What models write, and what it is taken for."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd_client import tool_arguments
from memd_client.codec import decode_request, encode_request
from memd_client.messages import Get, Request, Search
from memd_client.tool_arguments import GetCall, SearchCall, Unusable
from tests.awkward.programs import ARGUMENTS
from tests.bounds import shipped
from tests.table import table

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["query", "maxResults", "minScore", "since", "sort", "tags", "path", "from", "startLine", "lines"]
)


@table(
    ("arguments", "meant"),
    [
        ({"query": "which?"}, SearchCall("which?")),
        ({"query": "  which? \n"}, SearchCall("which?")),
        ({"query": "我们选了哪个数据库"}, SearchCall("我们选了哪个数据库")),
        ({"query": 42}, SearchCall("42")),
        ({"query": "q", "maxResults": "6"}, SearchCall("q", 6)),
        ({"query": "q", "maxResults": " 6 "}, SearchCall("q", 6)),
        ({"query": "q", "maxResults": 6.0}, SearchCall("q", 6)),
        ({"query": "q", "maxResults": "6.0"}, SearchCall("q", 6)),
        ({"query": "q", "max_results": 6}, SearchCall("q", 6)),
        ({"query": "q", "maxResults": 50}, SearchCall("q", 50)),
        ({"query": "q", "MaxResults": 6, "maxResults": 7}, SearchCall("q", 7)),
        ({"query": "q", "maxResults": None, "minScore": None}, SearchCall("q")),
        ({"query": "q", "maxResults": "", "minScore": " "}, SearchCall("q")),
        ({"query": "q", "minScore": "0.5"}, SearchCall("q", min_score=0.5)),
        ({"query": "q", "minScore": ".5"}, SearchCall("q", min_score=0.5)),
        ({"query": "q", "minScore": 1}, SearchCall("q", min_score=1)),
        ({"query": "half \ud800 a pair"}, SearchCall("half ? a pair")),
        ('{"query": "q", "maxResults": 3}', SearchCall("q", 3)),
        (b'{"query": "q"}', SearchCall("q")),
        (r'{"query": "half \ud83d a pair"}', SearchCall("half ? a pair")),
        (
            {"query": "q", "since": " last week ", "until": "", "sort": "time"},
            SearchCall("q", since="last week", sort="time"),
        ),
        ({"query": "q", "since": None, "sort": None, "tags": None, "path": []}, SearchCall("q")),
        (
            {"query": "q", "tags": "work", "path": ["memory/**", " "]},
            SearchCall("q", tags=("work",), path=("memory/**",)),
        ),
        ({"query": "q", "tags": ["half \ud800", "b"]}, SearchCall("q", tags=("half ?", "b"))),
    ],
)
def test_a_search_is_taken_as_it_is_meant(arguments: object, meant: SearchCall) -> None:
    """Numbers as text, whole numbers with a point, other spellings of names, and null."""
    assert tool_arguments.read(tool_arguments.SEARCH, arguments) == meant


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"path": "MEMORY.md"}, GetCall("MEMORY.md")),
        ({"path": " a b.md "}, GetCall(" a b.md ")),
        ({"path": "a.md", "from": 3, "lines": 9}, GetCall("a.md", 3, 9)),
        ({"path": "a.md", "startLine": "3", "lines": "9"}, GetCall("a.md", 3, 9)),
        ({"path": "a.md", "start_line": 3}, GetCall("a.md", 3)),
        ({"path": "a.md", "from": 3, "startLine": 5}, GetCall("a.md", 3)),
        ({"path": "a.md", "from": 0, "lines": 0}, GetCall("a.md", 1, 1)),
        ({"path": "a.md", "from": -7, "lines": -1}, GetCall("a.md", 1, 1)),
        ({"path": "a.md", "from": 700_000_000_004}, GetCall("a.md", 700_000_000_004)),
        ({"path": "a.md", "from": 10**30}, GetCall("a.md", 2**53 - 1)),
        ({"path": "a.md", "from": None}, GetCall("a.md")),
    ],
)
def test_a_get_is_taken_as_it_is_meant(arguments: object, meant: GetCall) -> None:
    """Lines count from 1; what is below is the least."""
    assert tool_arguments.read(tool_arguments.GET, arguments) == meant


@table(
    ("tool", "arguments", "said"),
    [
        ("memory_search", None, "query is missing or empty."),
        ("memory_search", {}, "query is missing or empty."),
        ("memory_search", "", "query is missing or empty."),
        ("memory_search", {"query": " \n"}, "query is missing or empty."),
        ("memory_search", {"query": None}, "query is missing or empty."),
        ("memory_search", {"query": ["a", "b"]}, "query is a list; it must be the question as text"),
        ("memory_search", {"query": {"text": "a"}}, "query is an object;"),
        ("memory_search", {"query": True}, "query is true;"),
        ("memory_search", {"query": 10**5000}, "query is a number beyond all bounds;"),
        ("memory_search", {"query": float("nan")}, "query is nan;"),
        ("memory_search", {10**5000: "q"}, "query is missing or empty."),
        ("memory_get", {"path": -(10**5000)}, "path is a number beyond all bounds;"),
        (
            "memory_search",
            {"query": "q", "maxResults": "six"},
            'maxResults is "six"; it must be a whole number from 1',
        ),
        ("memory_search", {"query": "q", "maxResults": 6.5}, "maxResults is 6.5;"),
        ("memory_search", {"query": "q", "maxResults": 0}, "maxResults is 0;"),
        (
            "memory_search",
            {"query": "q", "maxResults": -(10**80)},
            "maxResults is a number beyond all bounds;",
        ),
        ("memory_search", {"query": "q", "maxResults": True}, "maxResults is true;"),
        ("memory_search", {"query": "q", "maxResults": [6]}, "maxResults is a list;"),
        ("memory_search", {"query": "q", "maxResults": float("nan")}, "maxResults is nan;"),
        ("memory_search", {"query": "q", "maxResults": "x" * 9999}, 'maxResults is "' + "x" * 60 + '...";'),
        ("memory_search", {"query": "q", "minScore": 35}, "minScore is 35; it must be a number from 0 to 1."),
        ("memory_search", {"query": "q", "minScore": float("inf")}, "minScore is inf;"),
        ("memory_search", {"query": "q", "minScore": object()}, "minScore is of type object;"),
        ("memory_search", "which database?", "The arguments of memory_search are not JSON"),
        ("memory_search", "[" * 100_000, "The arguments of memory_search are not JSON"),
        ("memory_search", b"\xff", "The arguments of memory_search are not JSON"),
        ("memory_search", ["q"], "The arguments of memory_search are a list."),
        ("memory_get", {}, "path is missing or empty."),
        ("memory_get", {"path": 1.5, "lines": "all"}, 'lines is "all";'),
        ("memory_get", {"path": "x" * 5000}, "path has 5,000 characters;"),
        ("memory_write", {"text": "x"}, 'There is no tool "memory_write".'),
        (None, {}, "There is no tool of type NoneType."),
        (["memory_search"], {}, "There is no tool a list."),
    ],
)
def test_what_cannot_be_meant_is_told_with_what_to_do(tool: Any, arguments: object, said: str) -> None:
    """So that the model can call again."""
    with pytest.raises(Unusable) as refused:
        tool_arguments.read(tool, arguments)
    assert refused.value.message.startswith(said)
    assert "memory_" in refused.value.action


@pytest.mark.parametrize(
    ("tool", "arguments"), [("memory_search", {"query": []}), ("memory_get", {"path": {"name": "a.md"}})]
)
def test_what_a_call_needs_is_not_told_to_be_left_out(tool: str, arguments: object) -> None:
    """Without it the next call would fail as well."""
    with pytest.raises(Unusable) as refused:
        tool_arguments.read(tool, arguments)
    assert "without it" not in refused.value.action


def test_a_long_value_is_shown_by_its_beginning() -> None:
    """Of a number with more digits the size is told."""
    shown = shipped("memd_client.tool_arguments._SHOWN")
    for value, told in (
        ("x" * shown, f'"{"x" * shown}"'),
        ("x" * (shown + 1), f'"{"x" * shown}..."'),
        (1 - 10**shown, f"-{'9' * shown}"),
        (-(10**shown), "a number beyond all bounds"),
    ):
        with pytest.raises(Unusable) as refused:
            tool_arguments.read(tool_arguments.SEARCH, {"query": "q", "maxResults": value})
        assert refused.value.message.startswith(f"maxResults is {told};")


def test_unknown_arguments_need_not_be_named_by_text() -> None:
    """A program may pass any dictionary."""
    asked = tool_arguments.read(tool_arguments.SEARCH, {"query": "q", 10**5000: 1, None: 2})
    assert isinstance(asked, SearchCall)
    assert asked.remarks[0].endswith("these were ignored: a number beyond all bounds, of type NoneType")


def test_a_megabyte_of_query_is_cut() -> None:
    """A model that pastes a file still gets an answer, and learns what was asked."""
    asked = tool_arguments.read(tool_arguments.SEARCH, {"query": "which database? " * 65_536})
    assert isinstance(asked, SearchCall)
    assert len(asked.query) == tool_arguments.LONGEST_QUERY
    assert asked.remarks == ("query has 1,048,575 characters; only the first 2,000 were searched for",)


def test_too_many_results_are_as_many_as_there_can_be() -> None:
    """A large number means "all"."""
    asked = tool_arguments.read(tool_arguments.SEARCH, {"query": "q", "maxResults": 10**40})
    most = shipped("memd_client.tool_arguments.MAX_RESULTS")
    assert asked == SearchCall("q", most, remarks=(f"maxResults is at most {most}",))
    assert tool_arguments.read(tool_arguments.SEARCH, {"query": "q", "maxResults": most}) == SearchCall(
        "q", most
    )


def test_unknown_arguments_are_ignored_and_told() -> None:
    """The session key of another conversation among them; a heap of them is told in a line."""
    many = {f"unknown{'x' * 500}{n}": n for n in range(900)}
    asked = tool_arguments.read(
        tool_arguments.SEARCH, {"query": "q", "sessionKey": "agent:main:main", **many}
    )
    assert isinstance(asked, SearchCall)
    (remark,) = asked.remarks
    named = shipped("memd_client.tool_arguments._NAMED") - 1
    names = [name[: shipped("memd_client.tool_arguments._SHOWN")] for name in list(many)[:named]]
    assert remark == (
        "memory_search takes query, maxResults, minScore, since, until, sort, tags, path; "
        f"these were ignored: sessionKey, {', '.join(names)} and {len(many) - named} more"
    )


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (GetCall("memory/a.md#L3-L9"), GetCall("memory/a.md", 3, 7)),
        (GetCall("memory/a.md#L3"), GetCall("memory/a.md", 3, 1)),
        (GetCall("memory/a.md:3-9"), GetCall("memory/a.md", 3, 7)),
        (GetCall("memory/a.md:3"), GetCall("memory/a.md", 3, 1)),
        (GetCall("memory/a.md#L9-L3"), GetCall("memory/a.md", 9, 1)),
        (GetCall("memory/a.md#L3-L9", 5), GetCall("memory/a.md", 5)),
        (GetCall("memory/a.md"), None),
        (GetCall("#L3"), None),
    ],
)
def test_a_citation_names_a_place(asked: GetCall, meant: GetCall | None) -> None:
    """As search gives it, or memd-ctl prints it; lines that are asked for go before those in it."""
    assert asked.place() == meant


@given(
    tool=st.sampled_from([tool_arguments.SEARCH, tool_arguments.GET]),
    arguments=JSON | st.dictionaries(NAMES, JSON),
)
def test_whatever_a_model_writes_is_read_or_refused(tool: str, arguments: Any) -> None:
    """And what is read can be asked."""
    asked: SearchCall | GetCall | None = None
    with suppress(Unusable):
        asked = tool_arguments.read(tool, arguments)
    match asked:
        case SearchCall():
            assert asked.query.strip()
            assert asked.max_results is None or 1 <= asked.max_results <= tool_arguments.MAX_RESULTS
        case GetCall():
            assert asked.path
            assert asked.start_line >= 1
        case None:
            pass


@given(tool=st.sampled_from([tool_arguments.SEARCH, tool_arguments.GET]), passed=ARGUMENTS)
@example(tool_arguments.SEARCH, b'{"query": "which?", "maxResults": "\\ud800"}')
@example(tool_arguments.GET, b'{"path": "a.md", "\\ud800": 1}')
def test_what_is_nearly_a_call_is_read_or_refused(tool: str, passed: bytes) -> None:
    """Arguments missing, doubled, of another name, type or size: a request that can be sent, or words for the model."""
    try:
        arguments = json.loads(passed)
    except (ValueError, RecursionError):
        arguments = passed.decode("utf-8", "replace")
    try:
        meant = tool_arguments.read(tool, arguments)
    except Unusable as refused:
        told = str(refused)
        assert len(told.encode()) < 2000
        return
    sent: Request
    "".join(meant.remarks).encode()
    match meant:
        case SearchCall():
            assert len(meant.query) <= tool_arguments.LONGEST_QUERY
            sent = Search(query=meant.query, max_results=meant.max_results, min_score=meant.min_score)
        case GetCall():
            sent = Get(path=meant.path, start_line=meant.start_line, lines=meant.lines)
    assert decode_request(encode_request(1, sent)) == (1, sent)


def test_a_path_is_no_longer_than_any_can_be() -> None:
    """What is longer is some other text."""
    longest = shipped("memd_client.tool_arguments._LONGEST_PATH")
    assert tool_arguments.read(tool_arguments.GET, {"path": "p" * longest}) == GetCall("p" * longest)
    with pytest.raises(Unusable, match=f"no path has more than {longest:,}"):
        tool_arguments.read(tool_arguments.GET, {"path": "p" * (longest + 1)})


def test_more_lines_than_any_file_has_are_all_of_them() -> None:
    """As many as a request can say."""
    last = shipped("memd_client.tool_arguments._LAST_LINE")
    for start_line in (last, last + 1):
        asked = tool_arguments.read(tool_arguments.GET, {"path": "a.md", "from": start_line})
        assert isinstance(asked, GetCall)
        assert asked.start_line == last
    most = shipped("memd_client.tool_arguments._MOST_LINES")
    for lines in (most, most + 1):
        asked = tool_arguments.read(tool_arguments.GET, {"path": "a.md", "lines": lines})
        assert isinstance(asked, GetCall)
        assert asked.lines == most
