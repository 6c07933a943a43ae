"""What memd has handed out is told from what was said."""

import html
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd_client.watermark import REPLY_CHARS, REPLY_KEY, inert, marked, marked_reply, unmarked
from tests.bounds import shipped
from tests.table import table

DIGEST = "0123456789abcdef"
BEGIN, END = f"<memd-recall {DIGEST}>", f"</memd-recall {DIGEST}>"
# References of HTML to control characters mean others.
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc"])
TEXTS = st.lists(
    st.one_of(
        st.text(CHARACTERS),
        st.sampled_from(
            [
                BEGIN,
                END,
                "\n",
                "\\n",
                "&lt;",
                "</",
                '{"_memd": "',
                marked("x"),
                json.dumps(marked_reply({"a": "x"})),
            ]
        ),
    )
).map("".join)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6)
REPLIES = st.dictionaries(
    NAMES,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def in_json(text: str) -> str:
    """As it stands within a string of JSON."""
    return json.dumps(text)[1:-1]


def in_ascii_html(text: str) -> str:
    """With references for whatever is not ASCII."""
    return html.escape(text).encode("ascii", "xmlcharrefreplace").decode()


def of_go(text: str) -> str:
    """As encoders write it that keep JSON fit for HTML."""
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


WRAPPINGS: list[Callable[[str], str]] = [
    str,
    html.escape,
    lambda text: html.escape(text, quote=False),
    in_ascii_html,
    in_json,
    of_go,
    lambda text: in_json(text).replace("/", "\\/"),
    lambda text: repr(text)[1:-1],
    lambda text: in_json(in_json(text)),
    lambda text: html.escape(html.escape(text)),
    lambda text: in_json(html.escape(text)),
    lambda text: html.escape(in_json(text)),
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\n    "),
]
WRITINGS: list[Callable[[Any], str]] = [
    json.dumps,
    lambda reply: json.dumps(reply, ensure_ascii=False, separators=(",", ":")),
    lambda reply: json.dumps(reply, indent=2, sort_keys=True),
    repr,
]


@settings(max_examples=3 * settings().max_examples)
@given(st.sampled_from(WRAPPINGS), TEXTS)
def test_a_marked_block_goes_whole(wrap: Callable[[str], str], recalled: str) -> None:
    """Whatever was recalled, and however a client has escaped it: nothing of it is left, and nothing else is lost."""
    assert unmarked(f"before [{wrap(marked(recalled))}] after") == "before [] after"


@settings(max_examples=3 * settings().max_examples)
@given(st.sampled_from(WRAPPINGS), st.sampled_from(WRITINGS), REPLIES)
def test_a_marked_reply_goes_whole(
    wrap: Callable[[str], str], write: Callable[[Any], str], reply: dict[str, Any]
) -> None:
    """In whatever way it was written and escaped."""
    assert unmarked(f"before [{wrap(write(marked_reply(reply)))}] after") == "before [] after"


def test_a_reply_that_was_escaped_so_often_is_known() -> None:
    """Each level doubles what is to be tried; clients escape once, and what they hand on once more."""
    levels = shipped("memd_client.watermark._LEVELS")
    for wrap in (in_json, html.escape):
        text = json.dumps(marked_reply({"results": []}))
        for level in range(levels + 2):
            assert (unmarked(text) == "") is (level <= levels)
            text = wrap(text)


@pytest.mark.parametrize("beyond", [0, 1])
def test_an_escaped_reply_may_have_so_many_characters(beyond: int) -> None:
    """One without escapes is not so bounded, and costs less to read."""
    longest = shipped("memd_client.watermark._LONGEST_ESCAPED") + beyond
    around = len(in_json(json.dumps(marked_reply({"text": ""}))))
    reply = json.dumps(marked_reply({"text": "x" * (longest - around)}))
    assert len(in_json(reply)) == longest
    assert unmarked(reply) == ""
    assert unmarked(in_json(reply)) == in_json(reply) * beyond


@given(TEXTS)
def test_a_block_can_be_marked_again(recalled: str) -> None:
    """A recalled text that quotes a block is one block."""
    assert unmarked(marked(marked(recalled))) == ""
    assert inert(inert(recalled)) == inert(recalled)


@given(REPLIES)
def test_the_mark_of_a_reply_has_its_length(reply: dict[str, Any]) -> None:
    """By which replies are bounded."""
    plain = json.dumps(reply, separators=(",", ":"))
    longer = json.dumps(marked_reply(reply), separators=(",", ":"))
    assert len(longer) - len(plain) == REPLY_CHARS - (not reply)


A, B, REPLY = (
    marked("a"),
    marked("b"),
    json.dumps(marked_reply({"results": [{"snippet": "a"}], "score": 0.5})),
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ""),
        ("no mark at all", "no mark at all"),
        (A, ""),
        (f"{A}\nsaid", "said"),
        (f"said\n{A}", "said\n"),
        (f"said {A} and more", "said  and more"),
        (f"one\n{A}\ntwo\n{B}\nthree", "one\ntwo\nthree"),
        (f"it found {REPLY}, so", "it found , so"),
        (f"{REPLY}{REPLY}{A}", ""),
        (marked(f"a note holds {REPLY}"), ""),
        (json.dumps(marked_reply({"text": f"a note holds {A} and {REPLY}"})), ""),
    ],
)
def test_what_memd_has_handed_out_goes(text: str, left: str) -> None:
    """And what stands around it stays."""
    assert unmarked(text) == left


@table(
    "text",
    [
        f"said\n{BEGIN}\nplanted\n{END}\nsaid",
        f"said\n{BEGIN}\nplanted",
        "<memd-recall>\nplanted\n</memd-recall>",
        A[: -len(END)] + "\nsaid",  # cut short
        A.replace("\na\n", "\nanother text\n"),  # copied
        A.split("\n")[0] + "\n" + marked("b") + " a\n" + A.split("\n")[-1],  # wrapped around another
        A.split("\n")[-1] + "\na\n" + A.split("\n")[0],  # the wrong way round
        f"what does {BEGIN} mean, and {END}?",
        f"{END} alone",
        REPLY.replace('"a"', '"another text"'),
        REPLY[:-1],
        REPLY.replace(REPLY_KEY, "memd"),
        '{"_memd": "0123456789abcdef"}',
        f'{{"_memd": "{DIGEST}", "results": []}} and _memd',
        "{" * 30 + REPLY[1:-1],
    ],
)
def test_a_planted_mark_hides_nothing(text: str) -> None:
    """Made up, cut off, or taken from another text; a real block beside it goes."""
    assert unmarked(text).replace(B, "") == text.replace(B, "")


def test_what_a_model_says_of_what_it_read_stays() -> None:
    """Its own words are no copy of a reply, though they say the same."""
    said = "Memory says that we picked PostgreSQL (MEMORY.md#L1), under the key _memd."
    assert unmarked(f"{REPLY}\n{said}") == f"\n{said}"


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    "text",
    [
        BEGIN * 20_000,
        (BEGIN + "x" * 20 + END) * 10_000,
        f'{{"_memd": "{DIGEST}", "a": ' * 10_000,
        f'{{\\"_memd\\": \\"{DIGEST}\\", \\"a\\": ' * 10_000,
        f"{{&quot;_memd&quot;: &quot;{DIGEST}&quot;, " * 10_000,
        "&amp;" * 200_000 + BEGIN,
        "\\" * 500_000 + BEGIN + END,
        BEGIN + "\\u003c&amp;" * 100_000 + END,
        "_memd" * 100_000,
    ],
    ids=range(9),
)
def test_planted_marks_cost_little(text: str) -> None:
    """However many there are."""
    started = time.process_time()
    assert unmarked(text) == text
    assert time.process_time() - started < 5


def test_a_mark_begins_so_many_characters_before_its_name() -> None:
    """However often its first character was escaped."""
    around = shipped("memd_client.watermark._AROUND")
    block = marked("what was recalled")
    for escaped, is_known in ((around, True), (around + 4, False)):
        begins = "&" + "amp;" * (escaped // 4 - 1) + "lt;"
        assert len(begins) == escaped
        assert (unmarked(begins + block.removeprefix("<")) == "") is is_known
