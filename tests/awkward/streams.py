"""Bytes that are nearly a sequence of whole things: cut, doubled, put together anew, with a few of them changed."""

from collections.abc import Sequence

from hypothesis import strategies as st

# The boundaries of lengths and encodings, marks, ends of lines, beginnings of values.
_BITS = (
    b"\0", b"\0\0\0\0", b"\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\x10\0\0", b"\0\x10\0\1", b"\x80", b"\xc3", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"\r", b"\r\n", b"\xe2\x80\xa8", b"\x0c", b"\x85", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"\x1b[31m",
)  # fmt: skip

_ENDS = frozenset(b"\n}")
_LOOKED_AT = 20_000  # bytes


@st.composite
def spoilt(draw: st.DrawFn, streams: st.SearchStrategy[bytes], *, most: int = 3) -> bytes:
    """Streams of which some bytes are gone, doubled or others."""
    stream = draw(streams)
    for _ in range(draw(st.integers(0, most))):
        begin = draw(st.integers(0, len(stream)))
        end = min(len(stream), begin + draw(st.sampled_from([0, 1, 2, 4, 9, 70, 4096, 1 << 20])))
        middle = draw(
            st.sampled_from(_BITS) | st.binary(max_size=5) | st.just(stream[begin:end] * 2) | st.just(b"")
        )
        stream = stream[:begin] + middle + stream[end:]
    return stream


@st.composite
def pieces(draw: st.DrawFn, stream: bytes, *, most: int = 6) -> list[bytes]:
    """A stream in some pieces, at any places, above all behind what may be an end; a piece may be empty."""
    ends = [at + 1 for at, byte in enumerate(stream[:_LOOKED_AT]) if byte in _ENDS]
    anywhere = st.integers(0, len(stream))
    cuts = sorted(draw(st.lists(st.sampled_from(ends) | anywhere if ends else anywhere, max_size=most)))
    return [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@st.composite
def shuffled(draw: st.DrawFn, things: st.SearchStrategy[Sequence[bytes]]) -> list[bytes]:
    """Some of them missing, doubled, elsewhere, or the half of one within another."""
    made = list(draw(things))
    for _ in range(draw(st.integers(0, 3)) if made else 0):
        at, to = draw(st.integers(0, len(made) - 1)), draw(st.integers(0, len(made) - 1))
        match draw(st.sampled_from(["drop", "double", "move", "tear", "half"])):
            case "drop":
                made[at : at + 1] = []
            case "double":
                made.insert(to, made[at])
            case "move":
                made.insert(to, made.pop(at))
            case "tear":  # two programs write to one file
                half = draw(st.integers(0, len(made[at])))
                made[at : at + 1] = [made[at][:half] + made[to] + made[at][half:]]
            case _:
                made[at] = made[at][: draw(st.integers(0, len(made[at])))]
        if not made:
            break
    return made
