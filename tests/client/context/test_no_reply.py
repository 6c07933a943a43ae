import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.no_reply import NO_REPLY, NoReplyFilter, is_no_reply

SILENT = [
    "NO_REPLY",
    "no_reply",
    " \n NO_REPLY \n",
    "NO_REPLY.",
    "NO_REPLY\n\nNothing to store.",
    "NO_REPLY没有什么要记的",
    "**NO_REPLY**",
    "`NO_REPLY`",
    '"No_Reply"',
    "\ufeffNO_REPLY",
    "NO_REPLY NO_REPLY",
]
HEARD = [
    "",
    "   ",
    "N",
    "NO",
    "NO_REPL",
    "NO REPLY",
    "NO_REPLYING is a word",
    "NO_REPLY_TO: nobody",
    "NO_REPLY2",
    "Now, NO_REPLY",
    "没有 NO_REPLY",
    "**bold** text",
    "_NO_REPLY_",
    "ﬁ NO_REPLY",
]

near_the_token = st.lists(
    st.sampled_from(
        [
            "NO_REPLY",
            "NO",
            "_",
            "REPLY",
            "no_reply",
            "N",
            "O",
            " ",
            "\n",
            "*",
            "`",
            "ING",
            ".",
            "数据",
            "x",
            "ß",
        ]
    ),
    max_size=8,
).map("".join)


def passed(chunks: list[str]) -> tuple[str, bool]:
    """What gets through in all, and whether the reply was silent."""
    no_reply = NoReplyFilter()
    shown = "".join(no_reply.feed(chunk) for chunk in chunks) + no_reply.end()
    return shown, no_reply.is_no_reply


@pytest.mark.parametrize("reply", SILENT)
def test_a_silent_reply_is_recognised(reply: str) -> None:
    """The token at the beginning makes a reply silent, however it is dressed."""
    assert is_no_reply(reply)
    assert passed(list(reply)) == ("", True)


@pytest.mark.parametrize("reply", HEARD)
def test_any_other_reply_gets_through_whole(reply: str) -> None:
    """Longer words, halves of the token and the token further on are ordinary text."""
    assert not is_no_reply(reply)
    assert passed(list(reply)) == (reply, False)


@given(near_the_token | st.text(max_size=30), st.lists(st.integers(0, 40), max_size=10))
def test_any_split_of_a_reply_gives_the_same(reply: str, cuts: list[int]) -> None:
    """Where a stream is cut makes no difference, and what gets through is the reply or nothing."""
    places = [0, *sorted(min(cut, len(reply)) for cut in cuts), len(reply)]
    chunks = [reply[start:end] for start, end in itertools.pairwise(places)]
    assert passed(chunks) == passed([reply]) == ("" if is_no_reply(reply) else reply, is_no_reply(reply))


@given(near_the_token | st.text(max_size=30))
def test_nothing_is_held_back_longer_than_needed(reply: str) -> None:
    """Whatever is held back could still become the token; whatever is shown could not."""
    no_reply = NoReplyFilter()
    shown = ""
    for end, character in enumerate(reply, 1):
        shown += no_reply.feed(character)
        begun = reply[:end]
        could_be_silent = any(is_no_reply(begun + NO_REPLY[kept:]) for kept in range(len(NO_REPLY) + 1))
        if shown:
            assert shown == begun
            assert not could_be_silent
        else:
            assert could_be_silent


def test_ordinary_text_is_passed_on_at_once() -> None:
    """The first letter that cannot be of the token lets everything through, and later chunks pass as they are."""
    no_reply = NoReplyFilter()
    assert no_reply.feed("  No") == ""
    assert no_reply.feed("b") == "  Nob"
    assert no_reply.feed("ody NO_REPLY") == "ody NO_REPLY"
    assert no_reply.end() == ""


def test_a_silent_reply_shows_nothing_afterwards() -> None:
    """What a model adds after the token is not shown either."""
    no_reply = NoReplyFilter()
    assert [no_reply.feed(chunk) for chunk in ("NO_", "RE", "PLY", "\n", "I saved it.")] == [""] * 5
    assert no_reply.is_no_reply
    assert no_reply.end() == ""


def test_a_long_run_of_blanks_costs_no_more_than_its_length() -> None:
    """A hundred thousand blanks, one by one, are held and let go."""
    no_reply = NoReplyFilter()
    for _ in range(100_000):
        assert no_reply.feed(" ") == ""
    assert len(no_reply.feed("x")) == 100_001
