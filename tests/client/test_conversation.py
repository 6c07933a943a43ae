import math
from datetime import UTC, date, datetime

import pytest

from memd_client import codec
from memd_client.conversation import (
    Answer,
    ConnectionEnded,
    Conversation,
    checked_filters,
    checked_reply,
    checked_timeout,
    filters,
    iso_time,
    patience_ms,
)
from memd_client.errors import ConnectionLost, ProtocolMismatch, RequestFailed
from memd_client.messages import Failure, Found, Hello, Note, Reply, Search, Status, Sync
from tests.bounds import shipped
from tests.client.surface import BROKEN, FOUND, HELLO, REFUSAL, UNFIT, frame, packed


def greeted(*answers: bytes) -> Conversation:
    """A conversation whose greetings are over, and to which these bytes came."""
    talk = Conversation()
    talk.feed(frame(HELLO) + b"".join(answers))
    assert talk.next_hello() == Hello(protocol=2, version="9.9")
    return talk


def said(data: bytes) -> bytes:
    """The payload of the one frame in these bytes."""
    reader = codec.FrameReader(codec.REQUEST_LIMIT)
    reader.feed(data)
    payload = reader.next_frame()
    assert payload is not None
    assert not reader.is_midway
    return payload


def test_hello() -> None:
    """A conversation begins with a greeting of this protocol."""
    assert codec.decode_hello(said(Conversation().hello())).protocol == 2


def test_filters_are_as_a_request_has_them() -> None:
    """One text is a list of one; a date is a text."""
    given = filters(
        date(2026, 2, 9), datetime(2026, 2, 9, 18, tzinfo=UTC), "time", "work", ["a/**", "b"], {"k": "v"}
    )
    assert given == {
        "since": "2026-02-09",
        "until": "2026-02-09T18:00:00+00:00",
        "sort": "time",
        "only": ["tag:work", "property:k=v", "path:a/**", "path:b"],
    }
    assert Search(query="q", **filters(None, None, "relevance", (), (), None)) == Search(query="q")


def test_an_answer_without_the_filters_is_refused() -> None:
    """Of an older daemon, which has passed over what it does not know; what was not asked for is not missed."""
    asked = Search(query="q", since="7d", only=["tag:a"])
    with pytest.raises(RequestFailed, match="too old for since, only") as refused:
        checked_filters(asked, Found())
    assert refused.value.code == "unsupported"
    checked_filters(asked, Found(filtered=True))
    checked_filters(asked, Found(scope_denied=True))
    checked_filters(Search(query="q"), Found())


def test_ids_count_up() -> None:
    """Every request gets an id of its own, from 1; one that cannot be sent uses none up."""
    talk = greeted()
    assert codec.decode_request(said(talk.ask(Status(), None)[1])) == (1, Status())
    with pytest.raises(RequestFailed):
        talk.ask(Search(query="\ud800"), None)
    request_id, data = talk.ask(Search(query="x"), None)
    assert codec.decode_request(said(data)) == (request_id, Search(query="x"))
    assert request_id == 2


@pytest.mark.parametrize(("left_s", "patience_ms"), [(None, None), (10.0, 9300), (0.001, 0)])
def test_patience(left_s: float | None, patience_ms: int | None) -> None:
    """A sync carries the time that is left to its caller, whatever it was made with."""
    for asked in (Sync(), Sync(patience_ms=5)):
        _, data = greeted().ask(asked, left_s)
        assert codec.decode_request(said(data)) == (1, Sync(patience_ms=patience_ms))


def test_answers_in_any_order() -> None:
    """Answers come out under their ids, as the daemon gave them."""
    talk = greeted(frame(codec.encode_reply(7, FOUND)), frame(codec.encode_reply(3, Note(path="a")))[:-1])
    assert talk.next_answer() == Answer(7, FOUND)
    assert talk.next_answer() is None
    assert not talk.is_quiet
    talk.feed(frame(codec.encode_reply(3, Note(path="a")))[-1:])
    assert talk.next_answer() == Answer(3, Note(path="a"))
    assert talk.is_quiet


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken(data: bytes) -> None:
    """What is not memd's protocol ends the conversation, however much of it there is."""
    talk = greeted(data)
    with pytest.raises(ConnectionLost):
        talk.next_answer()


@pytest.mark.parametrize("body", UNFIT.values(), ids=UNFIT)
def test_unfit(body: object) -> None:
    """An answer that is not understood is an answer all the same, and fails when it is checked."""
    answer = greeted(packed([5, body])).next_answer()
    assert answer is not None
    assert answer.request_id == 5
    with pytest.raises(RequestFailed) as failed:
        checked_reply(answer.reply, Found)
    assert failed.value.code == "protocol"


def test_refusal_before_and_after_the_greeting() -> None:
    """A failure about the connection is raised wherever it comes."""
    refusal = frame(codec.encode_reply(0, REFUSAL))
    talk = Conversation()
    talk.feed(refusal)
    with pytest.raises(RequestFailed, match="somebody else"):
        talk.next_hello()
    with pytest.raises(RequestFailed, match="somebody else"):
        greeted(refusal).next_answer()


def test_refusal_in_words_of_a_later_version() -> None:
    """A failure about the connection that is not understood still ends the conversation."""
    with pytest.raises(RequestFailed, match="not understood"):
        greeted(packed([0, {"type": "farewell"}])).next_answer()


def test_mismatch() -> None:
    """A greeting of another protocol is the end, for the greeting alone is the same in all of them."""
    talk = Conversation()
    talk.feed(packed({"type": "hello", "protocol": 3, "version": "2.0"}))
    with pytest.raises(ProtocolMismatch) as mismatch:
        talk.next_hello()
    assert (mismatch.value.ours, mismatch.value.theirs) == (2, 3)


def test_end_of_the_stream() -> None:
    """Only a stream that ends between two answers may be opened anew without a word."""
    assert isinstance(Conversation().end(), ConnectionLost)
    assert isinstance(greeted().end(), ConnectionEnded)
    assert isinstance(greeted(b"\0").end(), ConnectionLost)
    assert isinstance(greeted(frame(codec.encode_reply(1, FOUND))[:-1]).end(), ConnectionLost)


@pytest.mark.parametrize(
    ("reply", "code"),
    [(Failure(code="busy", message="no"), "busy"), (Note(path="a"), "protocol")],
)
def test_settle(reply: Reply, code: str) -> None:
    """A failure, or an answer to something else, is raised; the expected answer is given back."""
    assert checked_reply(FOUND, Found) is FOUND
    with pytest.raises(RequestFailed) as failed:
        checked_reply(reply, Found)
    assert failed.value.code == code


def test_the_day_of_a_question_is_sent_in_iso_8601() -> None:
    """A day, a moment, or what somebody has written; nothing stays nothing."""
    assert iso_time(date(2026, 2, 9)) == "2026-02-09"
    assert iso_time(datetime(2026, 2, 9, 18, 30, tzinfo=UTC)) == "2026-02-09T18:30:00+00:00"
    assert iso_time("2026-02-09") == "2026-02-09"
    assert iso_time(None) is None


@pytest.mark.parametrize(
    ("left_s", "expected"),
    [
        (None, None),
        (10.0, 9300),
        (1.0, 750),
        (0.3, 85),
        (0.2, 0),
        (0.01, 0),
        (0.0, 0),
        (-5.0, 0),
        (3600.0, 3_419_800),
    ],
)
def test_a_daemon_gets_less_time_than_its_caller_has(left_s: float | None, expected: int | None) -> None:
    """The daemon gets a little less time than the caller has left, never less than none."""
    assert patience_ms(left_s) == expected


@pytest.mark.parametrize("timeout", [None, 0.001, 1, 10.0, shipped("memd_client.conversation._LONGEST_S")])
def test_possible_timeouts(timeout: float | None) -> None:
    """Any time that can pass is a timeout, and so is none."""
    assert checked_timeout(timeout) == timeout


@pytest.mark.parametrize(
    "timeout", [0, 0.0, -1, math.nan, math.inf, -math.inf, shipped("memd_client.conversation._LONGEST_S") + 1]
)
def test_impossible_timeouts(timeout: float) -> None:
    """A time in which nothing could be answered, or that no operating system can wait, is refused."""
    with pytest.raises(ValueError, match="timeout"):
        checked_timeout(timeout)
