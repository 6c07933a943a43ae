"""The client's side of the protocol on one connection, without I/O: bytes in, replies out."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

import msgspec

from memd_client import codec
from memd_client.errors import ConnectionLost, ProtocolMismatch, RequestFailed
from memd_client.messages import (
    PROTOCOL,
    Explain,
    Failure,
    Found,
    Hello,
    Reply,
    Request,
    Search,
    Sort,
    Sync,
    WireMessage,
)

__version__ = "0.1.0"
"""The version of this distribution; to read it from the installed metadata takes longer than the import."""

IN_FLIGHT = 64  # open requests per connection, beyond which the daemon stops reading
CLOSED = "This client is closed."

_SAME_VERSIONS = "Install the same version of memd-client and memd-daemon, then restart the daemon."

R = TypeVar("R", bound=WireMessage)
T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True):
    """The daemon's reply to one request."""

    request_id: int
    reply: Reply


class ConnectionEnded(Exception):
    """The connection ended between two replies. A request may be sent twice, so the client can retry on a new connection."""


class Conversation:
    """The protocol state of one connection.

    Send the bytes of ``hello`` and feed what arrives until ``next_hello`` returns the daemon's hello. From
    then on send the bytes of ``ask``, and after each piece that is fed call ``next_answer`` until it returns
    None. Once ``next_hello`` or ``next_answer`` has raised, the connection is unusable.
    """

    def __init__(self) -> None:
        self._frames = codec.FrameReader(codec.REPLY_LIMIT)
        self._is_greeted = False
        self._last_id = 0

    def hello(self) -> bytes:
        """Return the first bytes to send."""
        greeting = codec.encode_hello(Hello(protocol=PROTOCOL, version=__version__))
        return codec.encode_frame(greeting, codec.REQUEST_LIMIT)

    def ask(self, request: Request, left_s: float | None) -> tuple[int, bytes]:
        """Return a new request id, and the bytes to send.

        Args:
            request: A message of memd_client.messages.
            left_s: Seconds until the caller gives up; None: never.

        Raises:
            RequestFailed: the request cannot be encoded; nothing was sent.
        """
        if isinstance(request, Sync):
            request = msgspec.structs.replace(request, patience_ms=patience_ms(left_s))
        request_id = self._last_id + 1
        try:
            data = codec.encode_frame(codec.encode_request(request_id, request), codec.REQUEST_LIMIT)
        except codec.Unencodable as error:
            raise RequestFailed("bad_request", f"The request cannot be sent: {error}.") from error
        except codec.FrameTooLarge as error:
            raise RequestFailed("too_large", f"The request cannot be sent: {error}.") from error
        self._last_id = request_id
        return request_id, data

    def feed(self, data: bytes) -> None:
        """Add bytes received from the daemon."""
        self._frames.feed(data)

    def next_hello(self) -> Hello | None:
        """Return the daemon's hello; None until it is complete.

        Raises:
            ConnectionLost: the bytes are not memd's protocol.
            ProtocolMismatch: the daemon has another version of the protocol.
            RequestFailed: the daemon refuses the connection, and says why.
        """
        hello = self._next(_read_hello)
        if hello is None:
            return None
        if hello.protocol != PROTOCOL:
            raise ProtocolMismatch(PROTOCOL, hello.protocol)
        self._is_greeted = True
        return hello

    def next_answer(self) -> Answer | None:
        """Return the next reply, in the daemon's order; None until it is complete.

        Raises:
            ConnectionLost: the bytes are not memd's protocol.
            RequestFailed: the daemon ends the connection, and says why.
        """
        return self._next(_read_answer)

    @property
    def is_quiet(self) -> bool:
        """Whether all bytes received have been returned as messages."""
        return not self._frames.is_midway

    def end(self) -> ConnectionLost | ConnectionEnded:
        """Return the error that the end of the stream means at this point."""
        if not self._is_greeted:
            return ConnectionLost("The daemon closed the connection without a greeting.")
        if self._frames.is_midway:
            return ConnectionLost("The connection to the daemon broke in the middle of an answer.")
        return ConnectionEnded("The daemon closed the connection without an answer.")

    def _next(self, read: Callable[[bytes], T]) -> T | None:
        try:
            payload = self._frames.next_frame()
            return None if payload is None else read(payload)
        except (codec.InvalidPayload, codec.FrameTooLarge) as error:
            raise ConnectionLost(f"What answers is no memd daemon, or a broken one: {error}.") from error


def iso_time(now: date | str | None) -> str | None:
    """Convert a day or time to ISO 8601; a text is returned unchanged."""
    return now.isoformat() if isinstance(now, date) else now


def filters(
    since: date | str | None,
    until: date | str | None,
    sort: Sort,
    tags: Sequence[str] | str,
    path: Sequence[str] | str,
    properties: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Return filters and order of a search in the form of a request."""
    return {
        "since": iso_time(since),
        "until": iso_time(until),
        "sort": sort,
        "only": [
            *(f"tag:{tag}" for tag in ([tags] if isinstance(tags, str) else tags)),
            *(f"property:{key}={value}" for key, value in (properties or {}).items()),
            *(f"path:{glob}" for glob in ([path] if isinstance(path, str) else path)),
        ],
    }


def checked_filters(request: Search | Explain, found: Found) -> None:
    """Check that the daemon has applied the filters of a request.

    Raises:
        RequestFailed: the daemon is too old to know them.
    """
    plain = type(request)(query="")
    names = ("since", "until", "sort", "only")
    asked = [name for name in names if getattr(request, name) != getattr(plain, name)]
    if asked and not (found.filtered or found.scope_denied):
        raise RequestFailed("unsupported", f"This daemon is too old for {', '.join(asked)}.", _SAME_VERSIONS)


def checked_reply(reply: Reply, kind: type[R]) -> R:
    """Return the reply if it has the expected type.

    Raises:
        RequestFailed: it is a failure, or of another type.
    """
    if isinstance(reply, Failure):
        raise _failed(reply)
    if not isinstance(reply, kind):
        came, expected = type(reply).__name__, kind.__name__
        raise RequestFailed(
            "protocol", f"The daemon answered with {came} instead of {expected}.", _SAME_VERSIONS
        )
    return reply


def _read_hello(payload: bytes) -> Hello:
    try:
        _read_answer(payload)
    except codec.InvalidPayload:
        return codec.decode_hello(payload)
    raise ConnectionLost("The daemon answered before it greeted.")


def _read_answer(payload: bytes) -> Answer:
    try:
        request_id, reply = codec.decode_reply(payload)
    except codec.InvalidMessage as error:
        complaint = f"The daemon's answer was not understood: {error}."
        request_id, reply = error.request_id, Failure(code="protocol", message=complaint, hint=_SAME_VERSIONS)
    if request_id:
        return Answer(request_id, reply)
    if isinstance(reply, Failure):
        raise _failed(reply)
    raise ConnectionLost("The daemon sent an answer without the id of a request.")


def _failed(failure: Failure) -> RequestFailed:
    return RequestFailed(failure.code, failure.message, failure.hint)


# The longest timeout of threads and sockets on every platform: 2**63 nanoseconds, nearly 300 years.
_LONGEST_S = 9_000_000_000


def checked_timeout(timeout: float | None) -> float | None:
    """Return a timeout in seconds if it is valid; None means no limit.

    Raises:
        ValueError: it is not positive, or too large.
    """
    if timeout is None or 0 < timeout <= _LONGEST_S:
        return timeout
    raise ValueError(f"a timeout is None, or more than 0 and at most {_LONGEST_S} seconds, not {timeout!r}")


def patience_ms(left_s: float | None) -> int | None:
    """Return how long the daemon may take for a sync, so that its report arrives before the caller gives up."""
    return None if left_s is None else max(0, math.floor(left_s * 950) - 200)
