"""What every version has said is understood, and what this one says is written down."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from memd_client import codec, messages
from memd_client.conversation import __version__
from memd_client.messages import Hello, Reply, Request, WireMessage
from tests.client.golden.samples import CODES, samples
from tests.client.golden.write import DIRECTORY, ID, lines
from tests.table import table

FILES = sorted(DIRECTORY.glob("*.jsonl"))
assert FILES


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _decoded(line: dict[str, Any]) -> tuple[Hello | Request | Reply, bytes]:
    """The message in a frame, and the frame that today's code makes of it again."""
    data = bytes.fromhex(line["frame"])
    reader = codec.FrameReader(codec.REPLY_LIMIT)
    reader.feed(data)
    payload = reader.next_frame()
    assert payload is not None
    assert not reader.is_midway
    match line["way"]:
        case "hello":
            hello = codec.decode_hello(payload)
            return hello, codec.encode_frame(codec.encode_hello(hello), codec.REQUEST_LIMIT)
        case "request":
            number, request = codec.decode_request(payload)
            assert number == ID
            return request, codec.encode_frame(codec.encode_request(ID, request), codec.REQUEST_LIMIT)
        case _:
            number, reply = codec.decode_reply(payload)
            assert number == ID
            return reply, codec.encode_frame(codec.encode_reply(ID, reply), codec.REPLY_LIMIT)


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


def test_the_collection_has_every_kind_and_every_code() -> None:
    """What the protocol can say is in the frames of this version, so that later ones are held to all of it."""
    means = [line["means"] for line in _read(DIRECTORY / f"{__version__}.jsonl")]
    bodies = [body if isinstance(body, dict) else body[1] for body in means]
    kinds = {kind.__struct_config__.tag for kind in (Hello, *get_args(Request), *get_args(Reply))}
    assert {body["type"] for body in bodies} == kinds
    source = Path(messages.__file__).read_text(encoding="utf-8")
    listed = re.search(r"code: str  # (.*)", source)
    assert listed is not None
    assert set(CODES) == set(listed[1].split(" | "))
    assert set(CODES) <= {body["code"] for body in bodies if body["type"] == "failure"}


@table(("way", "message"), list(samples()))
def test_a_peer_that_does_not_know_a_field_yet_is_understood(way: str, message: WireMessage) -> None:
    """Whichever field it leaves out that need not be there, wherever in the message: it has its default then."""
    whole = msgspec.msgpack.encode(message)
    said = msgspec.msgpack.decode(whole)
    kind = type(message)
    for shorter, name in _without_one(said, message):
        read = msgspec.msgpack.decode(msgspec.msgpack.encode(shorter), type=kind)
        assert read != message, (way, name)
    added = {**said, "of_later": {"a": [1, "后来"]}}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(added), type=kind) == message


def _without_one(said: Any, value: Any) -> Iterator[tuple[Any, str]]:
    """What was said without one field that has a default, for each such field; and the name of it."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            if field.encode_name in said and not field.required:
                yield {name: one for name, one in said.items() if name != field.encode_name}, field.name
    for key, one in _parts(value):
        if isinstance(said, list):
            yield from (
                ([*said[:key], shorter, *said[key + 1 :]], name) for shorter, name in _within(said, key, one)
            )
        else:
            yield from (
                ({**said, key: shorter}, f"{key}.{name}") for shorter, name in _within(said, key, one)
            )


def _within(said: Any, key: Any, value: Any) -> Iterator[tuple[Any, str]]:
    is_there = isinstance(said, list) or key in said
    return _without_one(said[key], value) if is_there else iter(())


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """What a value is made of, each with what it is called there."""
    match value:
        case msgspec.Struct():
            return [
                (field.encode_name, getattr(value, field.name)) for field in msgspec.structs.fields(value)
            ]
        case list() | tuple():
            return list(enumerate(value))
        case dict():
            return list(value.items())
        case _:
            return []


def test_something_that_was_lost_would_be_noticed() -> None:
    """The comparison can fail."""
    assert _holds({"a": 1, "new": 2}, {"a": 1})
    assert not _holds({"new": 2}, {"a": 1})
    assert not _holds([[1]], [[1], [2]])
