"""Lines of MCP: each is passed on as sound JSON, or refused."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.mcp.lines import INVALID_REQUEST, PARSE_ERROR, Refusal, messages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
LINES = st.one_of(
    JSON.map(json.dumps),
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result"]), JSON).map(json.dumps),
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0"), "method": st.text(st.characters(exclude_categories=()))},
        optional={"id": st.integers() | st.text(st.characters(exclude_categories=())), "params": JSON},
    ).map(json.dumps),
    st.text(),
)


def taken(line: str) -> list[dict[str, Any]]:
    """The messages of a line, none of which is refused."""
    found = list(messages(line))
    assert not [one for one in found if isinstance(one, Refusal)]
    return [one for one in found if not isinstance(one, Refusal)]


@given(LINES)
def test_whatever_comes_something_is_to_be_said(line: str) -> None:
    """Of each line that is not blank; a refusal can always be sent."""
    said = list(messages(line))
    assert bool(said) == bool(line.strip())
    for one in said:
        if isinstance(one, Refusal):
            assert json.loads(one.encoded())["error"]["code"] in {PARSE_ERROR, INVALID_REQUEST}
        else:
            json.dumps(one, ensure_ascii=False).encode()  # no half of a character is left
            assert one["jsonrpc"] == "2.0"


@given(JSON, st.integers(0, 10**17) | st.text(st.characters(codec="utf-8")), st.integers(0, 40))
def test_a_line_that_breaks_off_is_refused_under_its_id(params: Any, identity: int | str, cut: int) -> None:
    """If that has come whole."""
    line = json.dumps({"jsonrpc": "2.0", "id": identity, "method": "m", "params": {"p": params}})
    ((refusal),) = messages(line[: -1 - min(cut, len(line) - line.index('"method"'))])
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.id) == (PARSE_ERROR, identity)


@pytest.mark.parametrize(
    ("escaped", "sound"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"a \ud83d", "a \ufffd"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\uD83D\n", "\ufffd\n"),
    ],
)
def test_halves_of_characters_are_replaced(escaped: str, sound: str) -> None:
    """And nothing that only looks like one."""
    call = f'{{"jsonrpc": "2.0", "method": "m", "params": {{"query": "{escaped}"}}}}'
    for line, count in ((call, 1), (f"[{call}, {call}]", 2)):
        assert [message["params"] for message in taken(line)] == [{"query": sound}] * count


@pytest.mark.parametrize("piece", ['"', '\\"', '{"id":', '{"id":"', '"id":7,', "[", "\\"])
def test_a_long_line_that_is_broken_costs_little(piece: str) -> None:
    """Whatever it is full of."""
    started = time.process_time()
    ((refusal),) = messages('{"a":"' + piece * (1_000_000 // len(piece)))
    assert isinstance(refusal, Refusal)
    assert time.process_time() - started < 5
