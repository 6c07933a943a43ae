"""Encodes and decodes messages and frames.

A frame is a length of 4 bytes, big-endian, then that many bytes of payload.

The first payload in each direction is a bare Hello. Each later one is a msgpack array ``[id, message]``, in
which a reply has the id of its request; id 0 is used by the daemon only, for a Failure of the connection. An
envelope is decoded in two steps, so that an unknown message can still be answered with its id.
"""

import math
import struct
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw

from memd_client.messages import Hello, Reply, Request, WireMessage

_LONGEST_COMPLAINT = 300  # characters; a complaint may quote what the peer has sent

M = TypeVar("M")


class InvalidPayload(Exception):
    """The payload is not a message of this protocol, so the connection must be closed."""


class InvalidMessage(Exception):
    """The envelope is valid but its message is not: it can be answered with its id, and the connection stays open.

    Attributes:
        request_id: The id in the envelope.
        code: As in Failure: "unsupported" for an unknown type of message, "bad_request" for a known one with
            a field that is missing or of the wrong type.
        message: What is wrong, with the name of the field, for a person.
    """

    def __init__(self, request_id: int, code: str, message: str) -> None:
        super().__init__(request_id, code, message)
        self.request_id = request_id
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class Unencodable(Exception):
    """A message contains what msgpack cannot encode: a lone surrogate, an integer of over 64 bits, ..."""


class _Asked(msgspec.Struct, frozen=True, array_like=True):
    id: Annotated[int, Meta(ge=1)]
    body: Raw


class _Answered(msgspec.Struct, frozen=True, array_like=True):
    id: Annotated[int, Meta(ge=0)]
    body: Raw


class _Kind(msgspec.Struct, frozen=True):
    # Decoded as text or not at all: any other value could take 70 times the memory of its bytes.
    type: Raw = Raw()


_ENCODER = msgspec.msgpack.Encoder()
_HELLO = msgspec.msgpack.Decoder(Hello)
_ASKED = msgspec.msgpack.Decoder(_Asked)
_ANSWERED = msgspec.msgpack.Decoder(_Answered)
_REQUEST: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_REPLY: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_KIND = msgspec.msgpack.Decoder(_Kind)
_TEXT = msgspec.msgpack.Decoder(str)


def encode_hello(hello: Hello) -> bytes:
    """Return the payload of a hello."""
    return _encode(hello)


def decode_hello(payload: bytes) -> Hello:
    """Decode the hello in the first payload of a connection.

    Raises:
        InvalidPayload: it is something else.
    """
    return _decode_sound(_HELLO, payload)


def encode_request(request_id: int, request: Request) -> bytes:
    """Return the payload of a request; the client chooses the id, at least 1.

    Raises:
        Unencodable: a field has a value that msgpack cannot encode.
    """
    return _encode((request_id, request))


def decode_request(payload: bytes) -> tuple[int, Request]:
    """Return the id and the request in a payload. Numbers are finite; their ranges are checked by the handler.

    Raises:
        InvalidPayload: it is not an envelope with an id.
        InvalidMessage: the request is unknown, or has a field that is missing or invalid.
    """
    envelope = _decode_sound(_ASKED, payload)
    request = _decode_body(_REQUEST, envelope)
    for field in request.__struct_fields__:
        value = getattr(request, field)
        # Every comparison with NaN is false, so it would pass later checks of a range.
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidMessage(envelope.id, "bad_request", f"Expected a finite number - at `$.{field}`")
    return envelope.id, request


def encode_reply(request_id: int, reply: Reply) -> bytes:
    """Return the payload of a reply; the id is that of the request, 0 for a Failure of the connection.

    Raises:
        Unencodable: a field has a value that msgpack cannot encode.
    """
    return _encode((request_id, reply))


def decode_reply(payload: bytes) -> tuple[int, Reply]:
    """Return the id and the reply in a payload.

    Raises:
        InvalidPayload: it is not an envelope with an id.
        InvalidMessage: the reply is unknown, or has a field that is missing or invalid.
    """
    envelope = _decode_sound(_ANSWERED, payload)
    return envelope.id, _decode_body(_REPLY, envelope)


def _encode(message: WireMessage | tuple[int, WireMessage]) -> bytes:
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:
        raise Unencodable("a text in it is not valid Unicode: it holds half of a surrogate pair") from None
    except (OverflowError, TypeError, RecursionError) as error:
        raise Unencodable(_shortened(str(error))) from None


def _decode_sound(decoder: msgspec.msgpack.Decoder[M], payload: bytes) -> M:
    try:
        return decoder.decode(payload)
    # msgspec raises Python's own errors for deep nesting and, before version 0.23, for invalid UTF-8.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidPayload(_shortened(str(error))) from None


def _decode_body(decoder: msgspec.msgpack.Decoder[M], envelope: _Asked | _Answered) -> M:
    try:
        return decoder.decode(envelope.body)
    except msgspec.ValidationError as error:
        raise _not_understood(envelope, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if _is_of_text(error):
            raise InvalidMessage(
                envelope.id, "bad_request", "A text in the message is not valid UTF-8"
            ) from None
        raise InvalidPayload(_shortened(str(error))) from None


def _is_of_text(error: Exception) -> bool:
    """Return whether an error is of invalid UTF-8, for which msgspec has no class of its own from version 0.23 on."""
    return isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error)


def _not_understood(envelope: _Asked | _Answered, complaint: str) -> InvalidMessage:
    kinds = Request if isinstance(envelope, _Asked) else Reply
    try:
        kind = _TEXT.decode(_KIND.decode(envelope.body).type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        kind = None
    if kind is not None and kind not in {message.__struct_config__.tag for message in kinds.__args__}:
        return InvalidMessage(
            envelope.id, "unsupported", f"Unknown type of message: {_shortened(repr(kind))}"
        )
    return InvalidMessage(envelope.id, "bad_request", _shortened(complaint))


def _shortened(complaint: str) -> str:
    return complaint if len(complaint) <= _LONGEST_COMPLAINT else complaint[:_LONGEST_COMPLAINT] + "..."


REQUEST_LIMIT = 1 << 20  # bytes of payload from a client
REPLY_LIMIT = 8 << 20  # bytes of payload from the daemon

_HEADER = struct.Struct(">I")


class FrameTooLarge(Exception):
    """A frame is longer than its direction allows; nothing after it can be read, so the connection must be closed.

    Attributes:
        length: The announced size of the payload, in bytes.
        limit: The largest allowed size, in bytes.
    """

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(length, limit)
        self.length = length
        self.limit = limit

    def __str__(self) -> str:
        return f"a frame of {self.length} bytes where {self.limit} are allowed"


def encode_frame(payload: bytes, limit: int) -> bytes:
    """Return a frame with this payload.

    Raises:
        FrameTooLarge: the payload has more than limit bytes.
    """
    if len(payload) > limit:
        raise FrameTooLarge(len(payload), limit)
    return _HEADER.pack(len(payload)) + payload


class FrameReader:
    """Splits a stream of bytes into frames.

    After each ``feed`` call ``next_frame`` until it returns None. A frame over the limit is refused as soon as its
    header has arrived, so at most one frame within the limit and the last piece are kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    @property
    def is_midway(self) -> bool:
        """Whether the stream has ended within a frame."""
        return bool(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add the next bytes of the stream."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the payload of the next frame, which may be empty; None until the frame is complete.

        Raises:
            FrameTooLarge: the next frame is over the limit. The rest of the stream cannot be read.
        """
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(buffer)
        if length > self._limit:
            raise FrameTooLarge(length, self._limit)
        end = _HEADER.size + length
        if len(buffer) < end:
            return None
        with memoryview(buffer) as view:
            payload = bytes(view[_HEADER.size : end])
        # A bytearray drops its beginning without moving the rest, so many frames at once are not slower.
        del buffer[:end]
        return payload
