"""No line stops a parser."""

import json
import string
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.sources.transcripts import lenient_json
from memd.sources.transcripts.format import Format, SessionFacts, TurnAdded, UnparsedLine
from memd.sources.transcripts.parser import FORMATS, format_of
from tests.awkward.transcripts import lines
from tests.bounds import shipped
from tests.sources.transcripts.parsing import events
from tests.table import table

LATEST = shipped("memd.sources.transcripts.lenient_json._LATEST")
PLAIN = FORMATS["plain"]
EVERY = pytest.mark.parametrize("kind", FORMATS.values(), ids=list(FORMATS))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\udc00\ud800", "a\ufffd\ufffd"),
        (rb"a\ud83d\ude00", "a\U0001f600"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"a\\ud800", r"a\ud800"),
        (rb"a\\\ud800", "a\\\ufffd"),
        (rb"a\u0000b", "ab"),
        (b"a\0b", "ab"),
        (b"caf\xe9", "caf\ufffd"),
        (b"\xed\xa0\x80a", "\ufffd\ufffd\ufffda"),
        (rb"a\r\nb\rc", "a\nb\nc"),
        ("日记".encode(), "日记"),
    ],
)
def test_awkward_text(content: bytes, text: str) -> None:
    """NUL characters, halves of surrogate pairs and what is no UTF-8 do no harm."""
    line = b'{"role":"user","content":"' + content + b'"}'
    assert events(PLAIN, line) == [TurnAdded("", "user", None, text)]


@EVERY
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{cut sho", "broken"),
        (b"cut", "broken"),
        (b'{"a":1}}', "broken"),
        (b'{"type":"\x01"}', "broken"),
        (b"\0\0\0\0", "broken"),
        (b"[" * 100_000 + b"]" * 100_000, "broken"),
        (b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "broken"),
        (b'{"message":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "broken"),
        (b'{"type":NaN}', "broken"),
        (b"[]", "unknown"),
        (b'"text"', "unknown"),
        (b"null", "unknown"),
        (b"{}", "unknown"),
        (b'{"type":' + b"9" * 5000 + b"}", "unknown"),
        (b'{"type":{"type":{}},"role":[],"id":{},"payload":[],"message":[],"content":{}}', "unknown"),
    ],
)
def test_lines_that_say_nothing(kind: Format, line: bytes, why: str) -> None:
    """What is no JSON is broken, what is no record unknown."""
    assert [each for each in events(kind, line) if isinstance(each, UnparsedLine)] == [UnparsedLine(why)]


@EVERY
@pytest.mark.parametrize("line", [b"", b"\n", b" \t\r\n"])
def test_blank_lines(kind: Format, line: bytes) -> None:
    """A blank line is nothing, and nothing to be counted."""
    assert events(kind, line) == []


KEYS = st.sampled_from(
    [
        "type", "id", "parentId", "uuid", "sessionId", "timestamp", "message", "payload", "role", "content", "text",
        "$set", "$rewindTo", "messages", "num_turns", "isSidechain", "displayContent", "source", "cwd", "ts", "kind",
        "thought", "model", "projectHash",
    ]
)  # fmt: skip
VALUES = st.sampled_from(
    [
        "user", "assistant", "message", "session", "session_meta", "response_item", "event_msg", "user_message",
        "agent_message", "thread_rolled_back", "gemini", "text", "input_text", "output_text", "NO_REPLY", "\0", "", "a",
        "2026-08-10T20:02:51.000Z", None, True, False, 0, -1, 10**30, 1.5, 1e300,
    ]
)  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    VALUES | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)
RECORDS = st.dictionaries(KEYS, JSON, max_size=8).map(lambda record: json.dumps(record).encode())
LINES = RECORDS | JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60)


@EVERY
@given(data=st.data())
def test_no_bytes_make_a_parser_raise(kind: Format, data: st.DataObject) -> None:
    """Whatever the lines, there are events that can be kept, and a state that can be gone on from."""
    state = kind.State()
    for line in data.draw(st.lists(LINES, max_size=8)):
        for event in kind.parse(line, state):
            if isinstance(event, TurnAdded):
                assert event.text.strip()
                assert "\0" not in event.text + event.id
                (event.text + event.id).encode()
        format_of([line])
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=kind.State)


@given(
    st.sampled_from(sorted(FORMATS)).flatmap(
        lambda name: st.tuples(st.just(name), st.lists(lines(name), max_size=6))
    )
)
def test_what_is_nearly_a_line_is_read_or_counted(described: tuple[str, list[bytes]]) -> None:
    """Any field missing, doubled, of another name, type or size: events that can be kept, of as much text as there is."""
    name, content = described
    for kind in (FORMATS[name], PLAIN):
        state = kind.State()
        for line in content:
            said = kind.parse(line, state)
            assert sum(len(each.text) for each in said if isinstance(each, TurnAdded)) <= 2 * len(line)
            for each in said:
                if isinstance(each, TurnAdded | SessionFacts):  # as it is kept
                    assert msgspec.msgpack.decode(msgspec.msgpack.encode(each), type=type(each)) == each
                assert not isinstance(each, TurnAdded) or (
                    each.text.strip() and "\0" not in each.text + each.id
                )
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=kind.State)
        format_of(content)


UNITS = [
    "[",
    "{",
    '{"content":',
    '"',
    "\\",
    "\\ud800",
    "[[",
    '{"role":"user","content":[',
    "\\u",
    "0",
    "-",
    "1e",
    "\0",
    "\xff",
    " ",
]


@EVERY
@given(unit=st.lists(st.sampled_from([*UNITS, *string.punctuation]), min_size=1, max_size=3).map("".join))
def test_time_is_linear(kind: Format, unit: str) -> None:
    """However a line of 500 kB repeats itself, it is done in a fraction of a second."""
    inside = unit * (500_000 // len(unit))
    for line in (inside, f'{{"type":"user","role":"user","id":"a","content":"{inside}"}}'):
        raw = line.encode("latin-1")
        began = time.process_time()
        kind.parse(raw, kind.State())
        assert time.process_time() - began < 3


@table(
    ("values", "at"),
    [
        ([1786363200], 1786363200.0),
        ([1786363200.25], 1786363200.25),
        ([1786363200250], 1786363200.25),
        ([1786363200250000], 1786363200.25),
        (["1786363200"], 1786363200.0),
        (["20260810"], 1786320000.0),
        (["2026-08-10T12:00:00Z"], 1786363200.0),
        (["2026-08-10T12:00:00.250Z"], 1786363200.25),
        (["2026-08-10T12:00:00.123456789Z"], 1786363200.123456),
        (["2026-08-10T14:00:00+02:00"], 1786363200.0),
        (["2026-08-10T12:00:00"], 1786363200.0),
        (["2026-08-10 12:00:00"], 1786363200.0),
        (["0001-01-01T00:00:00+23:59"], None),
        (["nan"], None),
        (["-inf"], None),
        (["soon"], None),
        ([""], None),
        (["1" * 100_000], None),
        ([10**400], None),
        ([-5], None),
        ([True], None),
        ([None, 5], 5.0),
        ([(LATEST - 1) * 1e6], LATEST - 1),
        ([LATEST * 1e6], None),
        ([{}, [], "x"], None),
        ([], None),
    ],
)
def test_instant(values: list[Any], at: float | None) -> None:
    """Times come as ISO 8601 and as numbers of three units; anything else is none."""
    assert lenient_json.instant(*(msgspec.Raw(json.dumps(value).encode()) for value in values)) == at


@EVERY
def test_what_is_no_speech_costs_next_to_nothing(kind: Format) -> None:
    """Results of tools and images go by at more than 200 MB in a second."""
    noise = 'a result of a tool, \\"quoted\\" and broken\\n' * 40_000
    lines = [
        f'{{"type":"message","id":"a","parentId":null,"message":{{"role":"toolResult","content":[{{"type":"text","text":"{noise}"}}]}}}}',
        f'{{"type":"user","uuid":"u","message":{{"content":[{{"type":"tool_result","content":"{noise}"}}]}},"toolUseResult":"{noise}"}}',
        f'{{"type":"response_item","payload":{{"type":"function_call_output","output":"{noise}"}}}}',
        f'{{"id":"m","type":"gemini","content":"","toolCalls":[{{"result":"{noise}"}}]}}',
        f'{{"role":"tool","content":"{noise}"}}',
    ]
    raw = [line.encode() for line in lines]
    size = sum(len(line) for line in raw)
    # The best of some: the machine may be busy with other things.
    rates = []
    for _ in range(5):
        began = time.process_time()
        for line in raw:
            kind.parse(line, kind.State())
        rates.append(size / (time.process_time() - began))
    assert max(rates) > 200e6


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_time_has_so_many_characters(beyond: int) -> None:
    """What is longer is some other text, and is not read as a time."""
    longest = shipped("memd.sources.transcripts.lenient_json._LONGEST_TIME")
    written = f"{'0' * (longest + beyond - 10)}1700000000"
    record = {"role": "user", "content": "which one?", "timestamp": written}
    [told] = [event for event in events(PLAIN, record) if isinstance(event, TurnAdded)]
    assert (told.at is None) == (beyond > 0)
