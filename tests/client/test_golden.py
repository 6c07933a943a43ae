"""What every version has said is understood, and what this one says is written down."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd_client import codec, frames
from memd_client.messages import Hello, Reply, Request
from memd_client.version import __version__
from tests.client.golden.write import DIRECTORY, ID, lines

FILES = sorted(DIRECTORY.glob("*.jsonl"))


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _decoded(line: dict[str, Any]) -> tuple[Hello | Request | Reply, bytes]:
    """The message in a frame, and the frame that today's code makes of it again."""
    data = bytes.fromhex(line["frame"])
    reader = frames.FrameReader(frames.REPLY_LIMIT)
    reader.feed(data)
    payload = reader.next_frame()
    assert payload is not None
    assert not reader.is_midway
    match line["way"]:
        case "hello":
            hello = codec.decode_hello(payload)
            return hello, frames.encode(codec.encode_hello(hello), frames.REQUEST_LIMIT)
        case "request":
            number, request = codec.decode_request(payload)
            assert number == ID
            return request, frames.encode(codec.encode_request(ID, request), frames.REQUEST_LIMIT)
        case _:
            number, reply = codec.decode_reply(payload)
            assert number == ID
            return reply, frames.encode(codec.encode_reply(ID, reply), frames.REPLY_LIMIT)


def _holds(now: Any, then: Any) -> bool:
    """Whether everything that was said is there; what is there beside it has come since."""
    match then:
        case dict():
            return all(name in now and _holds(now[name], value) for name, value in then.items())
        case list():
            return len(now) == len(then) and all(map(_holds, now, then))
        case _:
            return bool(now == then)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_version_said_is_understood(file: Path) -> None:
    """To the last field: what today's code would say in its place holds all of it."""
    said = _read(file)
    assert len(said) > 30
    for line in said:
        _, again = _decoded(line)
        now, then = msgspec.msgpack.decode(again[4:]), line["means"]
        assert msgspec.msgpack.decode(bytes.fromhex(line["frame"])[4:]) == then
        assert _holds(now, then), then


def test_what_this_version_says_is_written_down() -> None:
    """Byte by byte; after a message has gained a field: python -m tests.client.golden.write."""
    assert (DIRECTORY / f"{__version__}.jsonl").read_text(encoding="utf-8").splitlines() == lines()


def test_what_this_version_says_is_the_same_when_it_is_said_again() -> None:
    """Decoding and encoding lose and add nothing."""
    for line in _read(DIRECTORY / f"{__version__}.jsonl"):
        _, again = _decoded(line)
        assert again.hex() == line["frame"]


def test_something_that_was_lost_would_be_noticed() -> None:
    """The comparison can fail."""
    assert _holds({"a": 1, "new": 2}, {"a": 1})
    assert not _holds({"new": 2}, {"a": 1})
    assert not _holds([[1]], [[1], [2]])
