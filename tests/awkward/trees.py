"""Values of JSON and msgpack in which any node may be gone, doubled, or of another name, type or size."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import strategies as st

Tree = Any  # None, bool, int, float, str, bytes, Verbatim, Pairs or a list of trees
Place = tuple[int, ...]  # the way to a node: the place of each child in the one before


class Verbatim(bytes):
    """A node that is written as it stands, be it a value or none."""

    def __repr__(self) -> str:
        return f"Verbatim({super().__repr__()})" if len(self) < 99 else f"<{len(self)} bytes>"


class Pairs(list[tuple[Tree, Tree]]):
    """A map in its order, in which a key may stand twice."""


def tree_of(value: Any) -> Tree:
    """A value of plain dicts and lists as a tree."""
    match value:
        case dict():
            return Pairs((key, tree_of(each)) for key, each in value.items())
        case list() | tuple():
            return [tree_of(each) for each in value]
        case _:
            return value


def as_json(tree: Tree) -> bytes:
    """A tree as JSON, on one line unless a verbatim node has line ends."""
    match tree:
        case Verbatim():
            return bytes(tree)
        case Pairs():
            return b"{" + b",".join(as_json(key) + b":" + as_json(value) for key, value in tree) + b"}"
        case list():
            return b"[" + b",".join(map(as_json, tree)) + b"]"
        case bytes():
            return json.dumps(tree.decode("latin-1")).encode()
        case str():
            # Half of them as most programs write them; half a surrogate pair has no other form than an escape.
            is_plain = len(tree) % 2 == 0 and not any("\ud800" <= sign <= "\udfff" for sign in tree)
            return json.dumps(tree, ensure_ascii=not is_plain).encode()
        case _:
            return json.dumps(tree).encode()


def as_msgpack(tree: Tree) -> bytes:
    """A tree as msgpack; a text with half a surrogate pair becomes bytes that are no UTF-8."""
    match tree:
        case Verbatim():
            return bytes(tree)
        case Pairs():
            members = b"".join(as_msgpack(key) + as_msgpack(value) for key, value in tree)
            return struct.pack(">BI", 0xDF, len(tree)) + members
        case list():
            return struct.pack(">BI", 0xDD, len(tree)) + b"".join(map(as_msgpack, tree))
        case str():
            raw = tree.encode("utf-8", "surrogatepass")
            return struct.pack(">BI", 0xDB, len(raw)) + raw
        case int() if not -(2**63) <= tree < 2**64:
            return as_msgpack(float(tree)) if abs(tree) < 2**1000 else b"\xcb\x7f\xf0" + bytes(6)
        case _:
            return msgspec.msgpack.encode(tree)


_NUMBERS = (0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**30, 1e308, -0.0, 0.1)
_TEXTS = (
    "", " ", "\0", "a\0b", "\n", "\r\n", "\ud800", "\udc00a", "\u2028", "\ufeff", "\u202e", "e\u0301", "👩\u200d👧", "数据库", "x" * 3000,
    "user", "assistant", "message", "text", "null", "2026-08-10T20:02:51.000Z", "0000-00-00T00:00:00Z", "NO_REPLY",
)  # fmt: skip
_ODD_TEXTS = st.sampled_from(_TEXTS)
PLAIN: st.SearchStrategy[Tree] = (
    st.sampled_from([None, True, False, float("nan"), float("inf"), *_NUMBERS, *_TEXTS])
    | st.builds(list)
    | st.builds(Pairs)
    | st.text(max_size=6)
)
"""Values that any format can carry."""


def _nested(opening: bytes, inside: bytes, closing: bytes) -> st.SearchStrategy[Verbatim]:
    return st.sampled_from([3, 60, 600, 1200, 20_000]).map(
        lambda depth: Verbatim(opening * depth + inside + closing * depth)
    )


ODD_JSON = (
    PLAIN
    | st.sampled_from(
        [
            Verbatim(raw)
            for raw in (
                b"", b"NaN", b"-Infinity", b"1e999", b"-", b"00", b"9" * 5000, b"0." + b"1" * 5000, b"'", b'"', b"{", b"]", b"nul",
                b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\\ud83d"', b'"\\u0000a"', b'"\\x"', b'"\\', b'"a\nb"', b'"a\rb"', b'"\0"', b"// no",
                b"true true",
            )
        ]
    )
    | _nested(b"[", b"1", b"]")
    | _nested(b'{"type":', b"1", b"}")
)  # fmt: skip
"""What may stand where JSON has a value."""

ODD_MSGPACK = (
    PLAIN
    | st.binary(max_size=6)
    | st.sampled_from(
        [
            Verbatim(raw)
            for raw in (
                b"", b"\xc1", b"\xc7\xff\xff", b"\xd6\xff\0\0\0\0", b"\xd8\xff" + b"\xff" * 16, b"\xdb\xff\xff\xff\xff", b"\xdc\xff\xff",
                b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xde\x80\x00", b"\xc6\xff\xff\xff\xff", b"\xcc\x05",
                b"\xd3" + b"\xff" * 8, b"\xa3\xff\xfe\xfd", b"\xd9\x02\xed\xa0", b"\x81\xa4type", b"\x82\xa4type\xa6status\xa4type\xa6search",
            )
        ]
    )
    | _nested(b"\x91", b"\xc0", b"")
    | _nested(b"\x81\xa4type", b"\xc0", b"")
)  # fmt: skip
"""What may stand where msgpack has a value."""

_CHANGES = ("put", "put", "drop", "drop", "double", "rename", "wrap", "name", "swap", "put back")


@st.composite
def mutated(
    draw: st.DrawFn, trees: st.SearchStrategy[Tree], odd: st.SearchStrategy[Tree], *, most: int = 3
) -> Tree:
    """Trees with some nodes changed, often with none.

    Args:
        draw: Of Hypothesis.
        trees: What is right.
        odd: What may take the place of a node.
        most: So many changes at most.
    """
    tree = draw(trees)
    for _ in range(draw(st.integers(0, most))):
        places = list(_places(tree))
        place = places[draw(st.integers(0, len(places) - 1))]
        change = draw(st.sampled_from(_CHANGES))
        other = _at(tree, places[draw(st.integers(0, len(places) - 1))])
        # A text by another odd text, more often than not: what is of a wrong type is looked at no further.
        value = draw(odd | _ODD_TEXTS | _ODD_TEXTS if isinstance(_at(tree, place), str) else odd)
        tree = _changed(tree, place, change, other if change == "swap" else value)
    return tree


def _places(tree: Tree, above: Place = ()) -> Iterator[Place]:
    yield above
    children: list[Tree] = [value for _, value in tree] if isinstance(tree, Pairs) else []
    if isinstance(tree, list) and not isinstance(tree, Pairs):
        children = tree
    for at, child in enumerate(children):
        yield from _places(child, (*above, at))


def _at(tree: Tree, place: Place) -> Tree:
    for at in place:
        tree = tree[at][1] if isinstance(tree, Pairs) else tree[at]
    return tree


def _changed(tree: Tree, place: Place, change: str, value: Tree) -> Tree:
    """The tree with its node at a place changed; the root can only be replaced or wrapped."""
    if not place:
        return [tree] if change == "wrap" else value if change in {"put", "put back"} else tree
    at, *rest = place
    if rest:
        inside = tree[at][1] if isinstance(tree, Pairs) else tree[at]
        changed = _changed(inside, tuple(rest), change, value)
        return _replaced(tree, at, [(tree[at][0], changed)] if isinstance(tree, Pairs) else [changed])
    if isinstance(tree, Pairs):
        key, old = tree[at]
        return _replaced(tree, at, _pairs(key, old, change, value))
    old = tree[at]
    return _replaced(tree, at, {"drop": [], "double": [old, old], "wrap": [[old]]}.get(change, [value]))


def _pairs(key: Tree, old: Tree, change: str, value: Tree) -> list[tuple[Tree, Tree]]:
    match change:
        case "drop":
            return []
        case "double":
            return [(key, value), (key, old)]
        case "put back":
            return [(key, old), (key, value)]
        case "rename":
            return [(f"{key}x", old)]
        case "name":
            # A key of another type is none in JSON, and a fault in msgpack.
            return [(value, old)]
        case "wrap":
            return [(key, [old])]
        case _:
            return [(key, value)]


def _replaced(tree: Tree, at: int, members: list[Any]) -> Tree:
    return type(tree)([*tree[:at], *members, *tree[at + 1 :]])
