"""What answers mean, with vectors and without."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.config.settings import Remote
from memd.errors import MemdError
from memd.providers.remote import gemini, ollama, openai
from memd.providers.remote.dialect import (
    BadReply,
    ContentRefused,
    Dialect,
    HttpAnswer,
    KeyRefused,
    NotSupported,
    RateLimited,
    Refused,
    RequestTooLarge,
    ServerFailed,
)
from memd.providers.remote.replies import complaint, decoded, failure, matrix, retry_after_s
from tests.bounds import shipped
from tests.fakes import embedding_server as says
from tests.fakes.http import Response


def test_rows_become_unit_vectors() -> None:
    """float32, each of length 1."""
    rows = matrix([[3, 4], [0, 2]], count=2, dimensions=2)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, np.array([[0.6, 0.8], [0, 1]], np.float32))


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 0.0]],
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
        [[1.0, 0.0], [1.0]],
        [[1.0], [1.0]],
        [[], []],
        [[1.0, float("nan")], [1.0, 0.0]],
        [[1.0, float("inf")], [1.0, 0.0]],
        [[0.0, 0.0], [1.0, 0.0]],
        [[1e200, 1e200], [1.0, 0.0]],
        [[1.0, "x"], [1.0, 0.0]],
        [[1.0, None], [1.0, 0.0]],
    ],
)
def test_what_cannot_be_trusted_is_refused(rows: list[list[float]]) -> None:
    """Too few, too many, of other lengths, or with something in them that is no number."""
    with pytest.raises(BadReply):
        matrix(rows, count=2, dimensions=2)


def test_without_a_known_length_all_must_be_alike() -> None:
    """The first answer of a model tells how long its vectors are."""
    assert matrix([[1, 0, 0]], count=1, dimensions=None).shape == (1, 3)
    with pytest.raises(BadReply):
        matrix([[1, 0], [1, 0, 0]], count=2, dimensions=None)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data": 1}', b"[" * 3000, b"\xff"])
def test_another_document_is_refused(body: bytes) -> None:
    """By name of the provider."""
    with pytest.raises(BadReply, match="example"):
        decoded("example", body, dict[str, list[int]])


MADE: dict[str, Callable[[str, Remote], Dialect]] = {
    "openai": openai.openai,
    "gemini": gemini.gemini,
    "voyage": openai.voyage,
    "ollama": ollama.ollama,
}
PROVIDERS = [*MADE]


def meant(response: Response, provider: str = "openai", key: str | None = None) -> MemdError:
    answer = HttpAnswer(response.status, dict(response.headers), response.body)
    return failure(answer, MADE[provider]("a-model", Remote()), key=key)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (says.too_long, RequestTooLarge),
        (says.too_many, RequestTooLarge),
        (says.bad_text, ContentRefused),
        (says.too_fast, RateLimited),
        (says.broken, ServerFailed),
    ],
)
def test_each_provider_is_understood(provider: str, say: object, kind: type[MemdError]) -> None:
    """The documented forms of each failure, whoever words it."""
    assert callable(say)
    assert type(meant(say(provider), provider)) is kind


@pytest.mark.parametrize("provider", ["openai", "gemini", "voyage"])
def test_a_wrong_key_is_final(provider: str) -> None:
    """Google says so with status 400."""
    assert type(meant(says.wrong_key(provider), provider)) is KeyRefused


@pytest.mark.parametrize("provider", ["openai", "voyage"])
def test_an_empty_purse_is_final(provider: str) -> None:
    """It is told apart from going too fast, though OpenAI gives both status 429."""
    refusal = meant(says.no_quota(provider), provider)
    assert type(refusal) is Refused
    assert "quota" in str(refusal)


def test_a_daily_limit_is_waited_out() -> None:
    """Google's free tier is full again tomorrow: that is no reason to give up, nor to ask every second."""
    limited = meant(says.no_quota("gemini"), "gemini")
    assert isinstance(limited, RateLimited)
    assert limited.retry_after_s == shipped("memd.providers.remote.replies.DAY_LIMIT_RETRY_S")


@pytest.mark.parametrize("provider", ["openai", "gemini", "ollama"])
def test_a_model_that_is_not_there_is_told_apart(provider: str) -> None:
    """And its name is in the message."""
    missing = meant(says.unknown_model(provider, "a-model"), provider)
    assert type(missing) is NotSupported
    assert "a-model" in str(missing)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Refused),
        (402, Refused),
        (403, KeyRefused),
        (404, NotSupported),
        (405, NotSupported),
        (408, ServerFailed),
        (409, ServerFailed),
        (413, RequestTooLarge),
        (418, Refused),
        (422, ContentRefused),
        (424, ServerFailed),
        (425, ServerFailed),
        (429, RateLimited),
        (500, ServerFailed),
        (501, NotSupported),
        (502, ServerFailed),
        (503, ServerFailed),
        (504, ServerFailed),
        (529, ServerFailed),
    ],
)
@pytest.mark.parametrize(
    "body", [b"", b"<html>nginx</html>", b'{"error": null}', b"[]", b"\xff\xfe", b"[" * 5000]
)
def test_a_status_speaks_for_itself(status: int, kind: type[MemdError], body: bytes) -> None:
    """Whatever a proxy put into the body."""
    assert type(meant(Response(status, body))) is kind


def test_digits_in_a_message_are_no_status() -> None:
    """A refusal that mentions 429 or 500 is still a refusal."""
    body = b'{"error": {"message": "429 of 500 inputs are fine", "code": null}}'
    assert type(meant(Response(400, body))) is ContentRefused


def test_what_only_begins_like_a_key_is_told() -> None:
    """Words are no keys."""
    body = b'{"error": {"message": "parameterization and keyboard-interrupts"}}'
    assert str(meant(Response(500, body))).endswith(": parameterization and keyboard-interrupts")


def test_no_message_tells_a_key() -> None:
    """Neither the one that was sent nor what looks like one."""
    body = b'{"error": {"message": "key sk-secretsecretsecret of hush-hush-hush is broke"}}'
    told = str(meant(Response(500, body), key="hush-hush-hush"))
    assert "secret" not in told
    assert "hush" not in told


@pytest.mark.parametrize(
    ("message", "is_told"),
    [
        ("out of memory on device 0", True),
        ("cannot embed 'the vault is behind the clock'", False),
        ("cannot embed: the   vault is\tbehind", False),
        ("cannot embed \\\\u79d8\\\\u5bc6", False),
        ("no vault here", True),
        ("what is pin 12?", False),
        ("x" * 190 + " the vault is behind the clock", False),
    ],
)
def test_no_message_quotes_a_text(message: str, is_told: bool) -> None:
    """A dozen characters in a row are a quotation, and so is a short text as a whole."""
    answer = HttpAnswer(500, {}, f'{{"error": "{message}"}}'.replace("\t", "\\t").encode())
    texts = ["Remember:\nthe vault\nis behind the clock.", "pin 12", "a"]
    told = str(failure(answer, ollama.ollama("m", Remote()), texts=texts))
    assert (message[:20] in told) is is_told


def test_how_much_in_common_is_a_quotation() -> None:
    """So many characters in a row of a longer text, or all of a shorter one unless that is very short."""
    run = shipped("memd.providers.remote.replies._QUOTED")
    whole = shipped("memd.providers.remote.replies._QUOTED_WHOLE")
    said = "abcdefghijklmnopqrstuvwxyz"
    for text, is_quoted in (
        (f"1{said[:run]}2", True),
        (f"1{said[: run - 1]}2", False),
        (said[: run - 1], True),
        (said[:whole], True),
        (said[: whole - 1], False),
    ):
        answer = HttpAnswer(500, {}, f'{{"error": "{said}"}}'.encode())
        told = str(failure(answer, ollama.ollama("m", Remote()), texts=[text]))
        assert (said in told) is not is_quoted


def test_what_was_refused_for_its_content_is_not_quoted() -> None:
    """The provider's message may hold the text that was sent."""
    body = b'{"error": {"message": "invalid text: my diary", "type": "invalid_request_error"}}'
    told = str(meant(Response(400, body)))
    assert "diary" not in told
    assert "invalid_request_error" in told


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, None),
        ({"retry-after": "1 Jan 2030 99999999999999999999:1:1 GMT"}, None),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359", "date": "Mon, 01 Jan 2035 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 99 Jan 2030 99:99:99 +99999999"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds, or a date by the server's own clock; anything else is nothing."""
    assert retry_after_s(headers) == seconds


def test_google_asks_for_a_wait_in_the_body() -> None:
    """As a duration among the details."""
    assert complaint(says.too_fast("gemini", "34.5").body).retry_after_s == 34.5


@given(
    st.text(st.characters(codec="latin-1"), max_size=60), st.text(st.characters(codec="latin-1"), max_size=60)
)
def test_no_header_is_more_than_a_wait(wait: str, date: str) -> None:
    """Whatever a server sends."""
    seconds = retry_after_s({"retry-after": wait, "retry-after-ms": date, "date": date})
    assert seconds is None or seconds >= 0


@given(
    st.sampled_from(["Mon, {} {} {} {}:{}:{} {}", "{} {} {} {}:{}:{} {}", "{}-{}-{}T{}:{}:{}{}"]),
    st.lists(
        st.one_of(st.integers(-1, 10**20), st.sampled_from(["Jan", "Feb", "GMT", "+9999", "-99999999", ""])),
        min_size=7,
        max_size=7,
    ),
)
def test_no_date_is_more_than_a_wait(form: str, parts: list[object]) -> None:
    """Whatever stands where its numbers should."""
    headers = {"retry-after": form.format(*parts), "date": "Mon, 01 Jan 2035 00:00:00 GMT"}
    seconds = retry_after_s(headers)
    assert seconds is None or seconds >= 0


def test_of_long_words_the_beginning_is_repeated() -> None:
    """A provider may explain itself at any length."""
    most = shipped("memd.providers.remote.replies.LONGEST_MESSAGE")
    text = "down again " * most
    for count, end in ((most, ""), (most + 1, "…")):
        body = msgspec.json.encode({"error": {"message": text[:count]}})
        assert str(meant(Response(500, body))).endswith(f": {text[:count][:most]}{end}")


@pytest.mark.parametrize("wrapped", [str, lambda message: {"message": message}])
def test_of_a_message_the_beginning_is_read(wrapped: Callable[[str], object]) -> None:
    """It may repeat all that was sent."""
    most = shipped("memd.providers.remote.replies._MOST_CHARS")
    for length in (most, most + 1):
        body = msgspec.json.encode({"error": wrapped("x" * length)})
        assert complaint(body).message == "x" * most


def test_of_codes_those_are_told_that_are_words() -> None:
    """A number is the status once more, and anything else may be a part of what was sent."""
    codes = {"code": "no_such_thing", "type": 17, "status": "what was sent", "param": "é"}
    answer = HttpAnswer(400, {}, msgspec.json.encode({"error": codes}))
    told = str(failure(answer, ollama.ollama("", Remote())))
    assert told.endswith("(HTTP 400, no_such_thing)")
