import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.frames import REPLY_LIMIT, REQUEST_LIMIT, FrameReader, FrameTooLarge, encode
from tests.awkward.streams import pieces
from tests.awkward.wire import STREAMS
from tests.work import calls, peak_bytes

PAYLOADS = [b"", b"a", b"\0" * 4, bytes(range(256)), b"x" * 100_000]


def drained(reader: FrameReader) -> list[bytes]:
    return list(iter(reader.next_frame, None))


def test_limits() -> None:
    """Requests may have one mebibyte, replies eight."""
    assert (REQUEST_LIMIT, REPLY_LIMIT) == (1_048_576, 8_388_608)


def test_frame_layout() -> None:
    """A frame is four bytes of length, the highest first, then the payload."""
    assert encode(b"abc", 10) == b"\x00\x00\x00\x03abc"
    assert encode(b"", 0) == b"\x00\x00\x00\x00"


def test_one_byte_at_a_time() -> None:
    """Frames are found in whatever pieces they arrive, each as soon as its last byte is there."""
    reader = FrameReader(1 << 20)
    for payload in PAYLOADS:
        *most, last = encode(payload, 1 << 20)
        for byte in most:
            reader.feed(bytes([byte]))
            assert reader.next_frame() is None
            assert reader.is_midway
        reader.feed(bytes([last]))
        assert reader.next_frame() == payload
        assert not reader.is_midway


def test_many_frames_at_once() -> None:
    """All the frames of one piece come out in order, then None."""
    reader = FrameReader(1 << 20)
    reader.feed(b"".join(encode(payload, 1 << 20) for payload in PAYLOADS * 100))
    assert drained(reader) == PAYLOADS * 100
    assert reader.next_frame() is None


def test_limit_is_inclusive() -> None:
    """A payload as long as the limit passes in both directions, one byte more does not."""
    reader = FrameReader(5)
    reader.feed(encode(b"12345", 5))
    assert reader.next_frame() == b"12345"
    with pytest.raises(FrameTooLarge) as too_large:
        encode(b"123456", 5)
    assert (too_large.value.length, too_large.value.limit) == (6, 5)


@pytest.mark.parametrize("length", [6, 1 << 31, (1 << 32) - 1])
def test_refused_by_the_header(length: int) -> None:
    """A frame over the limit is refused before any of its payload came, and as often as it is asked for."""
    reader = FrameReader(5)
    reader.feed(encode(b"fine", 5) + struct.pack(">I", length))
    assert reader.next_frame() == b"fine"
    for _ in range(2):
        with pytest.raises(FrameTooLarge, match=f"{length} bytes where 5"):
            reader.next_frame()


def test_incomplete_header() -> None:
    """Three bytes of a header decide nothing yet."""
    reader = FrameReader(5)
    reader.feed(b"\xff\xff\xff")
    assert reader.next_frame() is None
    assert reader.is_midway


@given(
    st.lists(st.binary(max_size=200), max_size=20),
    st.lists(st.integers(1, 50)),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_any_cut(payloads: list[bytes], cuts: list[int], kind: type) -> None:
    """However the stream is cut, the payloads that went in come out."""
    stream = b"".join(encode(payload, 200) for payload in payloads)
    reader = FrameReader(200)
    came: list[bytes] = []
    for cut in cuts:
        reader.feed(kind(stream[:cut]))
        stream = stream[cut:]
        came += drained(reader)
    reader.feed(kind(stream))
    assert came + drained(reader) == payloads


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_noise(pieces: list[bytes]) -> None:
    """Bytes that are no frames give frames within the limit, or the one error, and nothing else."""
    reader = FrameReader(30)
    with suppress(FrameTooLarge):
        for piece in pieces:
            reader.feed(piece)
            assert all(len(payload) <= 30 for payload in drained(reader))


def heard(pieces: list[bytes], limit: int) -> tuple[list[bytes], object]:
    """The payloads of a stream, and how it ended: with a length that is refused, or midway or not."""
    reader = FrameReader(limit)
    came: list[bytes] = []
    try:
        for piece in pieces:
            reader.feed(piece)
            came.extend(iter(reader.next_frame, None))
    except FrameTooLarge as error:
        return came, error.length
    return came, reader.is_midway


@given(
    st.lists(st.binary(max_size=12) | st.binary(max_size=30).map(lambda one: encode(one, 30)), max_size=8),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_a_stream_means_the_same_however_it_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    """Frames and noise in any order give the same frames and the same end, in whatever pieces they come."""
    rest = stream = b"".join(parts)
    pieces = []
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    assert heard([*pieces, rest], 30) == heard([stream], 30)


def test_a_stream_takes_no_more_memory_than_a_frame() -> None:
    """Of a thousand frames that came, nothing is kept."""
    frame, reader = encode(b"x" * 1000, 1000), FrameReader(1000)

    def read() -> None:
        for _ in range(1000):
            reader.feed(frame[:700])
            assert reader.next_frame() is None
            reader.feed(frame[700:])
            assert reader.next_frame() is not None

    assert peak_bytes(read) < 20_000


def test_work_grows_with_the_stream_alone() -> None:
    """Twice as many bytes, one by one, are twice the work, whether they make one frame or many."""

    def read(payload: int, count: int) -> int:
        pieces = [bytes([byte]) for byte in encode(b"x" * payload, 1 << 20) * count]
        return calls(lambda: heard(pieces, 1 << 20))

    assert read(20_000, 1) < 2.2 * read(10_000, 1)
    assert read(100, 200) < 2.2 * read(100, 100)


@given(STREAMS, st.data())
def test_what_a_client_may_say_means_the_same_however_it_is_cut(stream: bytes, data: st.DataObject) -> None:
    """Frames of messages, with headers that lie: the same payloads, each within the limit, for as much work as there is."""
    cut = data.draw(pieces(stream))
    came, end = heard([stream], REQUEST_LIMIT)
    assert heard(cut, REQUEST_LIMIT) == (came, end)
    assert sum(len(payload) + 4 for payload in came) <= len(stream)
    assert all(len(payload) <= REQUEST_LIMIT for payload in came)
    assert calls(lambda: heard(cut, REQUEST_LIMIT)) <= 20 * (len(came) + len(cut) + 1)
    if end is False:  # it came to its end, so nothing is missing
        assert b"".join(encode(payload, REQUEST_LIMIT) for payload in came) == stream
