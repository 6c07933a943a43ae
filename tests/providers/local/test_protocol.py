import msgspec
import pytest

from memd.providers.local.protocol import (
    MAX_FRAME_BYTES,
    BrokenFrame,
    Embedded,
    Passages,
    Ready,
    WorkerFrameReader,
    encode,
)

MESSAGES: tuple[Ready | Passages | Embedded, ...] = (
    Ready("0.3.0", 384),
    Passages(1, ["数据库 👩🏽\n"]),
    Embedded(1, bytes(range(256)) * 6),
)


@pytest.mark.parametrize("step", [1, 3, 4, 5, 1000, 65_536])
def test_frames_survive_any_cut(step: int) -> None:
    """Messages come out as they went in, however the bytes are cut on their way."""
    stream = b"".join(encode(message) for message in MESSAGES)
    reader = WorkerFrameReader()
    bodies = [body for at in range(0, len(stream), step) for body in reader.feed(stream[at : at + step])]
    decoded = [msgspec.msgpack.decode(body, type=Ready | Passages | Embedded) for body in bodies]
    assert tuple(decoded) == MESSAGES


def test_a_length_no_message_has_is_refused() -> None:
    """A stray print on the pipe is told from a frame before anything is collected."""
    with pytest.raises(BrokenFrame):
        list(WorkerFrameReader().feed(b"Traceback (most recent call last):"))


def test_the_longest_frame_passes() -> None:
    """The limit itself is allowed."""
    body = bytes(MAX_FRAME_BYTES)
    assert list(WorkerFrameReader().feed(len(body).to_bytes(4, "big") + body)) == [body]
    with pytest.raises(BrokenFrame):
        list(WorkerFrameReader().feed((len(body) + 1).to_bytes(4, "big")))
