"""Lines of any pieces, and what is kept between two readings."""

import codecs

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import Turn
from memd.sources.transcripts.format import SessionFacts
from memd.sources.transcripts.read_position import (
    EDGE_BYTES,
    MAX_LINE_BYTES,
    VERSION,
    LineContinued,
    LineSplitter,
    ReadProgress,
    decoded,
    encoded,
    mark_of,
)

Lines = list[tuple[int, bytes]]


def _cut(cutter: LineSplitter, *pieces: bytes) -> Lines:
    return [line for piece in pieces for line in cutter.feed(piece)]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a", []),
        (b"a\n", [(1, b"a")]),
        (b"a\nb", [(1, b"a")]),
        (b"\n\na\r\n\r\nb\n", [(3, b"a"), (5, b"b")]),
        (b" \t a \t\n", [(1, b"a")]),
        (b"\0\0\n\0a\0b\0\n", [(2, b"a\0b")]),
        (b"a\rb\n", [(1, b"a\rb")]),
        ("a\u2028b\u0085c\n".encode(), [(1, "a\u2028b\u0085c".encode())]),
    ],
)
def test_lines_end_at_newlines_alone(content: bytes, lines: Lines) -> None:
    """With their numbers, without blanks around them, whatever else may look like an end."""
    assert _cut(LineSplitter(), content) == lines


@given(st.binary(max_size=60).map(lambda raw: raw.replace(b"\x01", b"\n")), st.integers(1, 60))
def test_pieces_make_no_difference(content: bytes, size: int) -> None:
    """The same lines, at the same offset with the same mark, in pieces of any size."""
    whole, parts = LineSplitter(), LineSplitter()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    assert _cut(whole, content) == _cut(parts, *pieces)
    assert (whole.offset, whole.lines, whole.mark) == (parts.offset, parts.lines, parts.mark)
    assert whole.finish() == parts.finish()


@pytest.mark.parametrize("size", [10, EDGE_BYTES - 1, EDGE_BYTES, EDGE_BYTES + 1, 3 * EDGE_BYTES])
def test_the_mark_is_of_both_ends_of_what_was_taken(size: int) -> None:
    """Not of a line that has not come to its end."""
    line = b"x" * (size - 1) + b"\n"
    cutter = LineSplitter()
    _cut(cutter, b"abc\n", line, b"def")
    taken = b"abc\n" + line
    assert cutter.offset == len(taken)
    assert cutter.mark == mark_of(len(taken), taken[:EDGE_BYTES], taken[-EDGE_BYTES:])


@pytest.mark.parametrize(
    ("rest", "taken"),
    [
        (b'{"a": 1}', True),
        (b'{"a": 1} \r', True),
        (b'\0{"a": "}"}\0\0', True),
        (b"{}", True),
        (b"", False),
        (b"1", False),
        (b'"a"', False),
        (b"[1]", False),
        (b'{"a": 1', False),
        (b'{"a": "}', False),
        (b'{"a": {"b": 1}', False),
        (b"{a}", False),
        (b'{"a": 1}{"b": 2}', False),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, False),
    ],
)
def test_only_a_whole_object_needs_no_end(rest: bytes, taken: bool) -> None:
    """What may be the beginning of something longer does; so does what is nested too deep to tell."""
    cutter = LineSplitter()
    _cut(cutter, b"a\n", rest)
    last = cutter.finish()
    assert last == ((2, rest.strip(b" \r\0")) if taken else None)
    assert (cutter.offset, cutter.lines, cutter.unended) == (2 + taken * len(rest), 1, taken)


def test_an_only_line_may_begin_with_a_byte_order_mark() -> None:
    """It needs no end all the same; further down such a mark is a part of a line."""
    marked = codecs.BOM_UTF8 + b'{"a": 1}'
    cutter = LineSplitter()
    _cut(cutter, marked)
    assert cutter.finish() == (1, marked)
    _cut(later := LineSplitter(), b"a\n", marked)
    assert later.finish() is None


def test_the_end_of_a_line_that_was_taken_is_no_line() -> None:
    """Blanks may come before it, as many as a line may have; anything else makes it another line."""
    for blanks in (b" \r", b" " * MAX_LINE_BYTES):
        assert _cut(LineSplitter(lines=1, unended=True), blanks, b"\n", b"b\n") == [(3, b"b")]
    for more in (b"x", b"x\n", b" \0x\n", b" " * (MAX_LINE_BYTES + 1)):
        with pytest.raises(LineContinued):
            _cut(LineSplitter(lines=1, unended=True), more)


def test_a_long_line_is_let_go_of() -> None:
    """As soon as it is too long, and to its end; then lines count on."""
    cutter = LineSplitter()
    piece = b"x" * (MAX_LINE_BYTES // 2 + 1)
    assert _cut(cutter, b"a\n", piece) == [(1, b"a")]
    assert (cutter.offset, cutter.too_long) == (2, 0)
    assert _cut(cutter, piece, piece) == []
    assert (cutter.offset, cutter.too_long, cutter.skipping) == (2 + 3 * len(piece), 1, True)
    assert cutter.finish() is None
    assert _cut(cutter, b"end\nb\n") == [(3, b"b")]
    assert (cutter.too_long, cutter.skipping) == (1, False)


PROGRESS = ReadProgress(
    inode=2**64 - 1,
    mark=mark_of(5, b"hello", b"hello"),
    format="plain",
    state=b"\x00\xff",
    offset=5,
    lines=1,
    turns=1,
    last=Turn("", "user", 1.5, 1, 1, "你好"),
    learnt=SessionFacts(session_id="a", cwd="/b", started_at=2.5, subagent=False),
    tally={"redacted.token": 3},
)


def test_progress_comes_back_as_it_was() -> None:
    """Through bytes and back."""
    assert decoded(encoded(PROGRESS)) == PROGRESS


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        b"{}",
        encoded(PROGRESS)[:-3],
        msgspec.msgpack.encode({"version": VERSION}),
        msgspec.msgpack.encode({"version": VERSION, "inode": "x"}),
        msgspec.msgpack.encode([1, 2, 3]),
        encoded(msgspec.structs.replace(PROGRESS, version=VERSION + 1)),
        encoded(PROGRESS).replace("你".encode(), b"\xff\xff\xff"),
    ],
)
def test_what_cannot_be_read_counts_as_none(raw: bytes) -> None:
    """Bytes of another version, of another program, or damaged ones."""
    assert decoded(raw) is None


def test_states_of_a_file_are_told_apart() -> None:
    """By length, by beginning and by end, in 32 bytes."""
    marks = [
        mark_of(5, b"a", b"b"),
        mark_of(6, b"a", b"b"),
        mark_of(5, b"b", b"b"),
        mark_of(5, b"a", b"a"),
    ]
    hashes = {msgspec.structs.replace(PROGRESS, mark=mark).content_hash for mark in marks}
    assert len(hashes) == 4
    assert {len(one) for one in hashes} == {32}
