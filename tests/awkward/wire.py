"""What may come through the socket: messages with any values, nearly right ones, and streams of frames of them."""

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from memd_client import codec
from memd_client.messages import PROTOCOL, Hello, Reply, Request, Stop, WireMessage
from tests.awkward.streams import shuffled, spoilt
from tests.awkward.trees import ODD_MSGPACK, Tree, as_msgpack, mutated, tree_of

WORDS = st.sampled_from(
    ["", "main", "memory/a.md", "agent:main:main", "数据库", "../x", "\0", "x" * 300]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.sampled_from([0, 1, -1, 50, 2**31, 2**63 - 1, -(2**63), 2**64 - 1]) | st.integers(-5, 200)


_SIMPLE: Mapping[type[inspect.Type], st.SearchStrategy[Any]] = MappingProxyType(
    {
        inspect.NoneType: st.none(),
        inspect.BoolType: st.booleans(),
        inspect.IntType: NUMBERS,
        inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
        inspect.StrType: WORDS,
    }
)


def _values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """The values of a type that the protocol has."""
    match kind:
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.UnionType():
            return st.one_of(*map(_values, kind.types))
        case inspect.ListType():
            return st.lists(_values(kind.item_type), max_size=2)
        case inspect.TupleType():
            return st.tuples(*map(_values, kind.item_types))
        case inspect.DictType():
            return st.dictionaries(_values(kind.key_type), _values(kind.value_type), max_size=2)
        case inspect.StructType():
            return _fields(kind).map(lambda fields: kind.cls(**fields))
        case _:
            return _SIMPLE[type(kind)]


def _fields(kind: inspect.StructType) -> st.SearchStrategy[dict[str, Any]]:
    """Those that must be there, and some of the others."""
    must = {field.name: _values(field.type) for field in kind.fields if field.required}
    may = {field.name: _values(field.type) for field in kind.fields if not field.required}
    return st.fixed_dictionaries(must, optional=may)


def _any_of(union: Any) -> st.SearchStrategy[Any]:
    return st.one_of(*(_values(inspect.type_info(kind)) for kind in get_args(union)))


REQUESTS: st.SearchStrategy[Request] = _any_of(Request)
REPLIES: st.SearchStrategy[Reply] = _any_of(Reply)
HELLOS: st.SearchStrategy[Hello] = _values(inspect.type_info(Hello))
IDS = st.sampled_from([1, 2, 2**32, 2**63 - 1, 2**64 - 1]) | st.integers(1, 99)


def tree_of_message(number: int, message: WireMessage) -> Tree:
    """An envelope as a tree that can be changed."""
    return tree_of([number, msgspec.to_builtins(message)])


def payloads(messages: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Envelopes of messages that are right or nearly."""
    trees = st.builds(tree_of_message, IDS, messages)
    return spoilt(mutated(trees, ODD_MSGPACK).map(as_msgpack), most=1)


@st.composite
def _framed(draw: st.DrawFn, of: st.SearchStrategy[bytes]) -> bytes:
    """A frame, of which the header may lie."""
    payload = draw(of)
    length = draw(
        st.sampled_from(
            [len(payload)] * 8 + [len(payload) + 1, max(0, len(payload) - 1), 0, 2**20, 2**20 + 1, 2**32 - 1]
        )
    )
    return struct.pack(">I", length) + payload


GREETING = codec.encode_hello(Hello(protocol=PROTOCOL, version="9"))
_GREETINGS = st.just(GREETING) | st.just(GREETING) | st.just(GREETING) | HELLOS.map(codec.encode_hello)
# Whoever listens lives on: the key of a session, which keeps it from stopping anything, is soon spoilt.
_LASTING = REQUESTS.filter(lambda one: not isinstance(one, Stop))
# Most of what follows a greeting is right, so that what comes late is reached.
_FRAMES = _framed(
    st.builds(codec.encode_request, st.integers(1, 99), _LASTING)
    | st.builds(codec.encode_request, st.integers(1, 99), _LASTING)
    | payloads(_LASTING)
)
STREAMS = spoilt(
    st.builds(
        lambda greeting, rest: b"".join([greeting, *rest]),
        _framed(_GREETINGS),
        shuffled(st.lists(_FRAMES, max_size=6)),
    ),
    most=2,
)
"""All that a client says on one connection, except stop."""
