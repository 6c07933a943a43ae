import re
import types
import typing
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from memd.search.fuse_scores import PART
from memd.server.acceptor import AdmissionPolicy
from memd.server.connection import ConnectionLimits
from memd.server.requests.get import LEAST_CHARS
from memd.server.requests.search import MAX_RESULTS
from memd_client import codec, messages
from memd_client.conversation import IN_FLIGHT
from memd_client.messages import PROTOCOL, Hello, Reply, Request, WireMessage
from tests.table import table

PAGE = (Path(__file__).parents[2] / "client" / "PROTOCOL.md").read_text(encoding="utf-8")

STRUCTS: list[type[msgspec.Struct]] = [
    struct
    for struct in vars(messages).values()
    if isinstance(struct, type)
    and issubclass(struct, msgspec.Struct)
    and struct not in {msgspec.Struct, WireMessage}
]
EXAMPLES = re.findall(r"```hex\n(.*?)```\n```json\n(.*?)```", PAGE, flags=re.DOTALL)


def section(title: str) -> str:
    """What stands under a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert found, f"no section {title}"
    return found.group(1)


def rows(title: str) -> list[tuple[str, ...]]:
    """Name, type and default of each field in the table of a section."""
    table = re.search(r"^\| field \|.*\n\|---.*\n((?:\|.*\n)*)", section(title), flags=re.MULTILINE)
    assert table, f"no table of fields under {title}"
    return [tuple(cell.strip() for cell in row.split("|")[1:4]) for row in table.group(1).splitlines()]


def named(kind: Any) -> str:
    """A type as the page writes it."""
    match typing.get_origin(kind):
        case types.UnionType | typing.Union:
            return ", ".join(named(one) for one in get_args(kind))
        case typing.Literal:
            return ", ".join(f'"{word}"' for word in get_args(kind))
        case origin if origin is list:
            return f"list of {named(get_args(kind)[0])}"
        case origin if origin is dict:
            key, value = get_args(kind)
            return f"map of {named(key)} to {named(value)}"
        case origin if origin is tuple:
            return f"[{', '.join(named(one) for one in get_args(kind))}]"
        case _:
            return "nil" if kind is types.NoneType else str(kind.__name__)


def default(field: msgspec.structs.FieldInfo) -> str:
    """The default of a field as the page writes it."""
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT:
        assert not field.default_factory()
        return "empty"
    match field.default:
        case None:
            return "nil"
        case bool():
            return str(field.default).lower()
        case str():
            return f'"{field.default}"'
        case messages.Health(ok=True, reason=None):
            return "ok"
        case _:
            return str(field.default)


@table("struct", STRUCTS)
def test_fields(struct: type[msgspec.Struct]) -> None:
    """The page has every message and part, with all its fields in order, their types and defaults."""
    tag = struct.__struct_config__.tag
    title = f"`{tag}`" if tag else struct.__name__
    fields = msgspec.structs.fields(struct)
    assert rows(title) == [(f"`{field.encode_name}`", named(field.type), default(field)) for field in fields]


def test_every_message_is_tried() -> None:
    """No message is left out of the test above."""
    assert {Hello, *get_args(Request), *get_args(Reply)} < set(STRUCTS)


def test_no_other_fields() -> None:
    """The page tells of no message that does not exist."""
    titles = set(re.findall(r"^###+ `(\w+)`$", PAGE, flags=re.MULTILINE))
    assert titles == {struct.__struct_config__.tag for struct in STRUCTS if struct.__struct_config__.tag}


def test_failure_codes() -> None:
    """The page explains every code that the definition of a failure lists."""
    source = Path(messages.__file__).read_text(encoding="utf-8")
    listed = re.search(r"code: str  # (.*)", source)
    assert listed
    for code in listed.group(1).split(" | "):
        assert f"\n| `{code}` |" in section("`failure`")


def test_numbers() -> None:
    """The numbers on the page are those of the code."""
    assert f"This is protocol **{PROTOCOL}**" in PAGE
    assert f"{codec.REQUEST_LIMIT:,} bytes" in section("Frames")
    assert f"{codec.REPLY_LIMIT:,} bytes" in section("Frames")
    assert f"at most {IN_FLIGHT} requests" in section("Envelopes")
    bounds, closes = ConnectionLimits(), section("What closes a connection")
    assert bounds.in_flight == IN_FLIGHT
    assert f"`hello` has not arrived {bounds.hello_s:g} s after" in closes
    assert f"a whole frame has not arrived {bounds.frame_s:g} s after" in closes
    assert f"64 KiB of answers for {bounds.unread_s:g} s" in closes
    assert f"more than {AdmissionPolicy().resting_s:g} s, the longest silent first" in closes
    refuses = section("What a request refuses")
    assert f"less than 1, more than {MAX_RESULTS} |" in refuses
    assert f"of `get` less than {LEAST_CHARS} |" in refuses


@pytest.mark.parametrize(("depth", "is_taken"), [(1, True), (500, True), (5_000, False), (200_000, False)])
def test_depth(depth: int, is_taken: bool) -> None:
    """What the page promises of values in values, in a field that nobody knows."""
    field = msgspec.msgpack.encode("of_later") + b"\x91" * depth + b"\xc0"
    status = msgspec.msgpack.encode({"type": "status"})
    request = b"\x92\x01\x82" + status[1:] + field
    if is_taken:
        assert codec.decode_request(request) == (1, messages.Status())
    else:
        with pytest.raises(codec.InvalidPayload):
            codec.decode_request(request)


@pytest.mark.parametrize(("digits", "payload"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_decode(digits: str, payload: str) -> None:
    """Each frame of the example carries what is written under it."""
    reader = codec.FrameReader(codec.REPLY_LIMIT)
    reader.feed(bytes.fromhex(digits))
    carried = reader.next_frame()
    assert carried is not None
    assert not reader.is_midway
    assert msgspec.msgpack.decode(carried) == msgspec.json.decode(payload)


def test_examples_are_a_conversation() -> None:
    """The example is what the client and the daemon really send, byte by byte."""
    assert len(EXAMPLES) == 6
    wires = [bytes.fromhex(digits)[4:] for digits, _ in EXAMPLES]
    assert [codec.encode_hello(codec.decode_hello(wire)) for wire in wires[:2]] == wires[:2]
    for asked, answered in (wires[2:4], wires[4:6]):
        request_id, request = codec.decode_request(asked)
        reply_id, reply = codec.decode_reply(answered)
        assert request_id == reply_id
        assert codec.encode_request(request_id, request) == asked
        assert codec.encode_reply(reply_id, reply) == answered


def test_the_page_tells_the_weights_of_a_part() -> None:
    """They are in no message: a reader computes the closeness of a candidate by them."""
    assert messages.Explanation.__doc__ is not None
    for text in (PAGE, messages.Explanation.__doc__):
        told = re.search(r"Its closeness is (\.\d+) x `?cosine`? \+ (\.\d+) x `?part`?", text)
        assert told is not None
        assert (1 - float(told[1]), float(told[2])) == pytest.approx((PART, PART))
