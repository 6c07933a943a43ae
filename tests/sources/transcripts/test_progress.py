"""What is kept between two readings."""

import msgspec
import pytest

from memd.model import Turn
from memd.sources.transcripts.format import Learnt
from memd.sources.transcripts.progress import VERSION, ReadProgress, decoded, encoded, mark_of

PROGRESS = ReadProgress(
    inode=2**64 - 1,
    mark=mark_of(5, b"hello", b"hello"),
    format="plain",
    state=b"\x00\xff",
    offset=5,
    lines=1,
    turns=1,
    last=Turn("", "user", 1.5, 1, 1, "你好"),
    learnt=Learnt(session_id="a", cwd="/b", started_at=2.5, subagent=False),
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
