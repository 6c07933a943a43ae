"""Interprets replies of providers: checked vectors, or an error."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
import numpy as np

from memd.errors import MemdError
from memd.providers.provider import Vectors
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

T = TypeVar("T")


def decoded(provider: str, body: bytes, kind: type[T]) -> T:
    """Decode a JSON document of a known type.

    Raises:
        BadReply: it has another form.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
        raise BadReply(f"{provider}: the answer is not what its API promises") from failure


def matrix(rows: Sequence[Sequence[float]], *, count: int, dimensions: int | None) -> Vectors:
    """Convert rows to float32 vectors of length 1.

    Args:
        rows: The rows of the reply.
        count: The expected number of rows.
        dimensions: The expected length of each row; None: all equal.

    Raises:
        BadReply: their number or lengths differ, or a number is missing or not finite.
    """
    if len(rows) != count:
        raise BadReply(f"{count} texts were sent, and {len(rows)} vectors came back")
    if not rows:
        return np.empty((0, dimensions or 0), np.float32)
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise BadReply(f"vectors of different lengths came back: {', '.join(map(str, sorted(lengths)))}")
    [length] = lengths
    if dimensions is not None and length != dimensions:
        raise BadReply(f"vectors of {length} dimensions came back where {dimensions} are expected")
    try:
        wide = np.asarray(rows, np.float64)
    except (TypeError, ValueError) as failure:
        raise BadReply("a vector came back with something in it that is no number") from failure
    if not np.isfinite(wide).all():
        raise BadReply("a vector came back with a number in it that is not finite")
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(wide, axis=1, keepdims=True)
    if (norms < 1e-10).any():
        raise BadReply("a vector of zeros came back")
    if not np.isfinite(norms).all():
        raise BadReply("a vector came back whose numbers are too large")
    units: Vectors = (wide / norms).astype(np.float32)
    return units


LONGEST_MESSAGE = 200
DAY_LIMIT_RETRY_S = 3600.0

_NOT_SUPPORTED = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
# 424: text-embeddings-inference returns it if the model failed.
_TRY_AGAIN = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.FAILED_DEPENDENCY,
    HTTPStatus.TOO_EARLY,
}
_KEY = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_CONTENT = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
_QUOTA_CODES = {"insufficient_quota", "quota_exceeded", "billing_hard_limit_reached", "billing_not_active"}
_KEY_CODES = {"invalid_api_key", "API_KEY_INVALID", "API_KEY_EXPIRED", "account_deactivated"}
_SIZE_CODES = {
    "context_length_exceeded",
    "string_above_max_length",
    "array_above_max_length",
    "max_tokens_per_request",
}
# Most servers have no error code for this, only a message.
_SIZE_WORDS = re.compile(
    r"context (?:length|size|window)|too (?:long|large|many)|at most \d+ (?:requests|inputs|texts)|batch size"
    r"|max(?:imum)?\b.{0,40}\b(?:tokens|inputs|length|array)|exceeds?\b.{0,40}\b(?:limit|max|length|tokens)",
    re.IGNORECASE,
)
# llama-server returns 500 for an input larger than its physical batch.
_SIZE_IN_TROUBLE = re.compile(r"input\b.{0,40}\btoo (?:long|large|big)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}", re.IGNORECASE)
_MOST_CHARS = 2000  # characters of a message that are read
_QUOTED = 12  # characters in a row that also occur in a text are a quotation
_QUOTED_WHOLE = 4  # the same for shorter texts
_SECRET = re.compile(r"\b(?:(?:sk|pa|al|key|gsk|hf|xai)[-_]|AIza)[\w*.-]{12,}", re.IGNORECASE)
_CODE = re.compile(r"[\w.-]{1,64}", re.ASCII)


class ErrorReply(msgspec.Struct, frozen=True):
    """The error of a reply, as far as it has a known form."""

    message: str = ""
    codes: frozenset[str] = frozenset()
    retry_after_s: float | None = None
    is_daily: bool = False  # a daily limit was exceeded


def complaint(body: bytes) -> ErrorReply:
    """Parse the body of an error: OpenAI's, Google's, Ollama's {"error": "..."}, or {"detail": "..."}; otherwise empty."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ErrorReply()
    if isinstance(document, list) and document:
        [document, *_] = document
    if not isinstance(document, dict):
        return ErrorReply()
    error: Any = document.get("error", document)
    if not isinstance(error, dict):
        return ErrorReply(message=str(error)[:_MOST_CHARS])
    details = [each for each in _list(error.get("details")) if isinstance(each, dict)]
    codes = {str(error.get(name)) for name in ("code", "type", "status", "param") if error.get(name)}
    codes |= {str(each["reason"]) for each in details if each.get("reason")}
    violations = [one for each in details for one in _list(each.get("violations")) if isinstance(one, dict)]
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    return ErrorReply(
        message=str(message)[:_MOST_CHARS],
        codes=frozenset(codes),
        retry_after_s=next(
            (_seconds(each["retryDelay"]) for each in details if each.get("retryDelay")), None
        ),
        is_daily=any("PerDay" in str(one.get("quotaId", "")) for one in violations),
    )


def failure(
    answer: HttpAnswer, dialect: Dialect, *, key: str | None = None, texts: Sequence[str] = ()
) -> MemdError:
    """Convert a reply without success to an error with a message for the user.

    The provider's message is included only if it neither is about the texts sent nor quotes them, and without anything that looks
    like a key.

    Args:
        answer: The whole answer.
        dialect: The dialect of the API; the message names its provider and model.
        key: The key, which must not be quoted.
        texts: The texts sent, and anything else that must not be quoted.
    """
    provider, model = dialect.provider, dialect.model
    said = complaint(answer.body)
    status, words = answer.status, _words(said, key, texts)
    if said.codes & _QUOTA_CODES or status == HTTPStatus.PAYMENT_REQUIRED:
        return Refused(f"{provider}: the quota is used up, or nothing is left to pay with{words}")
    if said.codes & _KEY_CODES or status in _KEY:
        # Some providers refuse whole networks and countries with 403.
        why = ", or not from this network" if status == HTTPStatus.FORBIDDEN else ""
        return KeyRefused(f"{provider}: the key was not accepted{why} (HTTP {status}{_codes(said)})")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimited(
            f"{provider}: too many requests (HTTP 429){words}",
            retry_after_s=_wait_s(said, answer.headers),
        )
    if status == HTTPStatus.INTERNAL_SERVER_ERROR and _SIZE_IN_TROUBLE.search(said.message):
        return RequestTooLarge(f"{provider}: the request is too large (HTTP {status}{_codes(said)})")
    if status in _TRY_AGAIN or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NOT_SUPPORTED):
        return ServerFailed(
            f"{provider}: the server has trouble (HTTP {status}){words}",
            retry_after_s=retry_after_s(answer.headers),
        )
    return _refusal(status, said, words, provider, model)


def _refusal(status: int, said: ErrorReply, words: str, provider: str, model: str) -> MemdError:
    """Return the error for a refused request, which another request to the provider may not meet."""
    seen = f"(HTTP {status}{_codes(said)})"
    is_size = said.codes & _SIZE_CODES or _SIZE_WORDS.search(said.message)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or (status in _CONTENT and is_size):
        return RequestTooLarge(f"{provider}: the request is too large {seen}")
    if status in _CONTENT:
        return ContentRefused(f"{provider}: the request was refused {seen}")
    if status in _NOT_SUPPORTED:
        return NotSupported(f"{provider}: there is no model {model} at this address (HTTP {status}){words}")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Refused(f"{provider}: the server sends elsewhere (HTTP {status}): check remote.base_url")
    return Refused(f"{provider}: the request was refused {seen}{words}")


def _wait_s(said: ErrorReply, headers: Mapping[str, str]) -> float | None:
    wait_s = said.retry_after_s if said.retry_after_s is not None else retry_after_s(headers)
    return max(wait_s or 0.0, DAY_LIMIT_RETRY_S) if said.is_daily else wait_s


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a provider asks to wait; RFC 9110, 10.2.3: a number of seconds or a date.

    Args:
        headers: Headers with lower-case names. A date is relative to the server's Date header, since clocks differ.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    then, now = _date(value), _date(headers.get("date", ""))
    return None if then is None or now is None else max(0.0, then - now)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _date(text: str) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few replies have a date, and no start needs it

    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):  # of a year or an hour that no calendar has, too
        return None


def _seconds(duration: object) -> float | None:
    """Parse a duration of protobuf's JSON form, such as "34.5s"."""
    return _number(duration.removesuffix("s")) if isinstance(duration, str) else None


def _words(said: ErrorReply, key: str | None, texts: Sequence[str]) -> str:
    """Return the provider's message without secrets; "" if it may quote texts."""
    text = " ".join(said.message.split())
    if _is_quoting(text[: LONGEST_MESSAGE + _QUOTED], texts):
        return ""
    if key:
        text = text.replace(key, "[key]")
    text = _SECRET.sub("[key]", text)
    if not text:
        return ""
    return f": {text[:LONGEST_MESSAGE]}{'…' if len(text) > LONGEST_MESSAGE else ''}"


def _is_quoting(message: str, texts: Sequence[str]) -> bool:
    """Return whether a message quotes any of the texts; True if it contains escape sequences."""
    if _ESCAPED.search(message):
        return True
    runs = {message[at : at + _QUOTED] for at in range(len(message) - _QUOTED + 1)}
    return any(
        (_QUOTED_WHOLE <= len(flat) < _QUOTED and flat in message) or any(run in flat for run in runs)
        for flat in (" ".join(text.split()) for text in texts)
    )


def _codes(said: ErrorReply) -> str:
    shown = sorted(code for code in said.codes if _CODE.fullmatch(code) and not code.isdigit())
    return f", {', '.join(shown)}" if shown else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
