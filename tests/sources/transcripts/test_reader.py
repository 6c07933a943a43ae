"""Transcripts as they grow, and as they are exchanged."""

import errno
import json
import os
import tempfile
import time
import tracemalloc
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from memd.chunk.markdown import LONGEST
from memd.chunk.turns import chunk_turns
from memd.config.settings import Redact
from memd.domain_types import Stamp, Turn
from memd.redact.redactor import Redactor
from memd.sources.notes import TooLarge
from memd.sources.safe_open import (
    FileHeld,
    FileMissing,
    FileUnreadable,
    OutsideFence,
    ProcessExhausted,
    SourceError,
)
from memd.sources.transcripts import open_transcript as packing
from memd.sources.transcripts import reader
from memd.sources.transcripts.read_position import EDGE_BYTES, MAX_LINE_BYTES, encoded
from memd.sources.transcripts.reader import read_transcript
from memd.text.memory_paths import ExtraDirectory, SessionPaths
from memd.text.tokens import fts_text
from tests.awkward import transcripts as awkward
from tests.awkward.streams import pieces
from tests.bounds import shipped
from tests.sources.transcripts.transcripts import LATER_NS, Follower, Hider, append, noise, replace, said

MIB = 1 << 20
CODEX_META = b'{"timestamp":"2026-08-10T20:02:51.000Z","type":"session_meta","payload":{"id":"019dec85","timestamp":"2026-08-10T20:02:51.000Z","cwd":"/repo","originator":"codex_cli_rs","source":%b}}\n'
CODEX_SAID = b'{"timestamp":"2026-08-10T20:03:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"reduce 429s"}]}}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a transcript will be."""
    return Path(os.path.realpath(tmp_path)) / "a.jsonl"


@pytest.fixture
def follower(file: Path) -> Follower:
    """Of a transcript of two turns that has been read."""
    append(file, said("one"), said("two", "assistant"))
    follower = Follower(file)
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["one", "two"]
    return follower


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what has been read of files."""
    read: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        piece = pread(descriptor, size, offset)
        read.append(len(piece))
        return piece

    monkeypatch.setattr(os, "pread", counted)
    return read


# --- growth


def test_what_comes_is_read_once(follower: Follower) -> None:
    """New turns follow the old ones; without new bytes there is nothing new."""
    assert follower.read() == "UnchangedTranscript"
    append(follower.file, said("three"))
    assert follower.read() == "GrownTranscript"
    assert follower.texts == ["one", "two", "three"]
    assert [turn.start_line for turn in follower.turns] == [1, 2, 3]
    assert follower.read() == "UnchangedTranscript"


def test_a_turn_costs_its_own_bytes(file: Path, read_bytes: list[int]) -> None:
    """In a transcript of 20 MB: what is new, with a few bytes of each end."""
    append(file, said("x" * 20_000) * 1000)
    follower = Follower(file)
    follower.read()
    assert sum(read_bytes) == file.stat().st_size
    read_bytes.clear()
    append(file, said("new"))
    assert follower.read() == "GrownTranscript"
    assert follower.texts[-1] == "new"
    assert sum(read_bytes) <= len(said("new")) + 2 * EDGE_BYTES
    read_bytes.clear()
    assert follower.read() == "UnchangedTranscript"
    assert sum(read_bytes) <= 2 * EDGE_BYTES


def test_a_line_that_is_cut_is_read_when_it_is_complete(follower: Follower) -> None:
    """Nothing of it is taken before, wherever it is cut."""
    line = said("三 three")
    for cut in range(1, len(line) - 1):
        append(follower.file, line[:cut])
        assert follower.read() == "UnchangedTranscript", cut
        append(follower.file, line[cut:])
        assert follower.read() == "GrownTranscript", cut
        assert follower.texts[2:] == ["三 three"] * cut


def test_a_last_line_that_lacks_only_its_end_is_read(follower: Follower) -> None:
    """Once: when the end comes, with more lines or alone, nothing is doubled."""
    append(follower.file, said("three", end=b""))
    assert follower.read() == "GrownTranscript"
    assert follower.texts == ["one", "two", "three"]
    assert follower.read() == "UnchangedTranscript"
    append(follower.file, b"\r")
    assert follower.read() == "UnchangedTranscript"
    append(follower.file, b"\n")
    assert follower.read() == "GrownTranscript"
    append(follower.file, said("four", end=b""))
    follower.read()
    append(follower.file, b"\n", said("five"))
    follower.read()
    assert follower.texts == ["one", "two", "three", "four", "five"]
    assert [turn.start_line for turn in follower.turns] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("more", [said("glued"), b"x\n", b"x", b'{"role":'])
def test_what_comes_behind_a_whole_object_makes_its_line_another(follower: Follower, more: bytes) -> None:
    """Then the transcript says what it says to somebody who reads it for the first time."""
    append(follower.file, said("three", end=b""))
    follower.read()
    append(follower.file, more)
    assert follower.read() == "WholeTranscript"
    first = Follower(follower.file)
    first.read()
    assert follower.texts == first.texts == ["one", "two"]
    append(follower.file, b"\n", said("four"))
    follower.read()
    assert follower.texts == ["one", "two", "four"]


def test_any_ends_of_lines_will_do(file: Path) -> None:
    """CRLF, empty lines, a byte order mark."""
    append(file, b"\xef\xbb\xbf", said("one", end=b"\r\n"), b"\r\n\n \n", said("two", end=b"\r\n"))
    follower = Follower(file)
    follower.read()
    assert [(turn.text, turn.start_line) for turn in follower.turns] == [("one", 1), ("two", 5)]
    assert follower.progress.tally == {}


def test_a_byte_order_mark_alone_is_no_line(file: Path) -> None:
    """A line that has nothing else in it is as blank as any."""
    append(file, b"\xef\xbb\xbf\r\n", said("one"))
    follower = Follower(file)
    follower.read()
    assert [(turn.text, turn.start_line) for turn in follower.turns] == [("one", 2)]
    assert follower.progress.tally == {}


def test_nul_bytes_of_a_crash_harm_nothing_else(follower: Follower) -> None:
    """Alone on a line, before one, at the end of the file; and escaped within speech."""
    append(follower.file, b"\0" * 5000, b"\n", b"\0" * 100, said("three"), said("fo\0ur"), b"\0" * 3000)
    follower.read()
    assert follower.texts == ["one", "two", "three", "four"]
    assert follower.read() == "UnchangedTranscript"
    append(follower.file, said("five"))
    follower.read()
    assert follower.texts == ["one", "two", "three", "four", "five"]


def test_broken_lines_are_passed_over_and_counted(follower: Follower) -> None:
    """Each once, however often the transcript is read."""
    append(follower.file, b"{broken\n", said("three"), b"\xff\xfe\n")
    follower.read()
    assert follower.texts == ["one", "two", "three"]
    assert follower.progress.tally == {"lines.broken": 2}
    append(follower.file, b"]\n", said("four"))
    follower.read()
    assert follower.progress.tally == {"lines.broken": 3}
    first = Follower(follower.file)
    first.read()
    assert first.progress.tally == follower.progress.tally


# --- long lines


def test_a_line_of_30_mb_is_passed_over_in_little_memory(follower: Follower) -> None:
    """And counted once; what follows has its right number."""
    append(follower.file, said("x" * (30 * MIB)), said("three"))
    tracemalloc.start()
    try:
        follower.read()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * MAX_LINE_BYTES
    assert follower.texts == ["one", "two", "three"]
    assert follower.turns[-1].start_line == 4
    assert follower.progress.tally == {"lines.too_long": 1}


def test_a_long_line_that_comes_in_parts_is_counted_once(follower: Follower, read_bytes: list[int]) -> None:
    """What was seen of it is not read again."""
    line = said("x" * (30 * MIB))
    size = 7 * MIB
    for begin in range(0, len(line), size):
        append(follower.file, line[begin : begin + size])
        follower.read()
    assert sum(read_bytes) < len(line) + MAX_LINE_BYTES + 20 * EDGE_BYTES
    append(follower.file, said("three"))
    assert follower.read() == "GrownTranscript"
    assert (follower.texts[2:], follower.turns[-1].start_line) == (["three"], 4)
    assert follower.progress.tally == {"lines.too_long": 1}
    first = Follower(follower.file)
    first.read()
    assert (first.turns, first.progress.tally) == (follower.turns, follower.progress.tally)


@pytest.mark.parametrize(("excess", "texts"), [(0, 1), (1, 0)])
def test_a_line_of_just_the_limit_is_read(file: Path, excess: int, texts: int) -> None:
    """One byte more, and it is not."""
    line = said("x" * (MAX_LINE_BYTES + excess - len(said("", end=b""))))
    assert len(line) == MAX_LINE_BYTES + excess + 1
    append(file, said("one"), line)
    follower = Follower(file)
    follower.read()
    assert len(follower.texts) == 1 + texts


# --- another file under the name


def test_a_file_that_was_cut_short_is_read_anew(follower: Follower) -> None:
    """What is gone from it is gone."""
    os.truncate(follower.file, len(said("one")))
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["one"]


def test_a_file_that_is_written_anew_in_its_place_is_read_anew(follower: Follower) -> None:
    """Shorter, as long and longer, by its beginning or its end, with the inode it had."""
    whole = follower.file.read_bytes()
    for other in (
        whole.replace(b"one", b"ONE"),
        whole.replace(b"two", b"TWO"),
        said("0") + whole,
        whole.replace(b"one", b"1") + said("more") * 10,
    ):
        follower.file.write_bytes(other)
        assert follower.read() == "WholeTranscript"
        first = Follower(follower.file)
        first.read()
        assert first.turns == follower.turns
        follower.file.write_bytes(whole)
        follower.read()


def test_another_file_with_the_same_beginning_is_read_anew(follower: Follower) -> None:
    """As programs that write a temporary one and rename it leave it; the bytes may be the same ones."""
    replace(follower.file, follower.file.read_bytes())
    assert follower.read() == "WholeTranscript"
    assert follower.read() == "UnchangedTranscript"
    replace(follower.file, follower.file.read_bytes() + said("three"))
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["one", "two", "three"]


def test_a_file_that_is_replaced_while_it_is_read_is_read_to_its_end(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is open is one state; the next reading sees the other file, as it sees one that was packed meanwhile."""
    before = said("x" * 1000) * 3000
    append(file, before)
    pread = os.pread

    def exchanged(descriptor: int, size: int, offset: int) -> bytes:
        monkeypatch.setattr(os, "pread", pread)
        replace(file, said("other"))
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", exchanged)
    follower = Follower(file)
    follower.read()
    assert len(follower.turns) == 3000
    assert follower.last is not None
    assert follower.last.stamp.size == len(before)
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["other"]


def test_a_file_that_is_cut_short_while_it_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could be read was there; the next reading sees what is left."""
    append(file, said("x" * 1000) * 3000)
    pread = os.pread
    calls = iter(range(100))

    def shrinking(descriptor: int, size: int, offset: int) -> bytes:
        if next(calls) == 1:
            os.truncate(file, 5 * len(said("x" * 1000)))
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", shrinking)
    follower = Follower(file)
    follower.read()
    assert len(follower.turns) == MIB // len(said("x" * 1000))
    assert follower.read() == "WholeTranscript"
    assert len(follower.turns) == 5


@pytest.mark.parametrize(("code", "error"), [(errno.EIO, FileUnreadable), (errno.ENOMEM, ProcessExhausted)])
def test_a_disk_that_fails_while_it_is_read_is_told(
    follower: Follower, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    """As an error of the one file, with its path, or of the process; the next reading goes on where the last one ended."""
    append(follower.file, said("three"))
    with monkeypatch.context() as system:

        def failing(descriptor: int, size: int, offset: int) -> bytes:
            raise OSError(code, os.strerror(code))

        system.setattr(os, "pread", failing)
        with pytest.raises(error, match=os.strerror(code)) as raised:
            follower.read()
        assert error is ProcessExhausted or "sessions/here/a.jsonl" in str(raised.value)
    assert follower.read() == "GrownTranscript"
    assert follower.texts == ["one", "two", "three"]


def test_what_is_written_while_it_is_read_is_for_the_next_reading(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that never stops cannot keep a reader for ever."""
    append(file, said("one"))
    pread = os.pread

    def growing(descriptor: int, size: int, offset: int) -> bytes:
        append(file, said("more"))
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", growing)
    follower = Follower(file)
    follower.read()
    assert follower.texts == ["one"]
    monkeypatch.setattr(os, "pread", pread)
    follower.read()
    assert set(follower.texts[1:]) == {"more"}


def test_progress_that_cannot_be_gone_on_from_is_not(follower: Follower) -> None:
    """Of a format that is not there any more, or with a state that is no such thing."""
    for change in ({"format": "gone"}, {"state": b"\xc1"}):
        follower.kept = encoded(msgspec.structs.replace(follower.progress, **change))
        append(follower.file, said("three"))
        assert follower.read() == "WholeTranscript"
    assert follower.texts == ["one", "two", "three", "three"]


# --- stamps


def test_the_stamp_is_that_of_what_was_read(follower: Follower) -> None:
    """From before the first byte."""
    status = follower.file.stat()
    assert follower.last is not None
    assert follower.last.stamp == Stamp.of(status)


def test_a_file_that_was_just_written_is_looked_at_again(file: Path) -> None:
    """Its stamp may stay what it is through another write; a time far ahead of the clock tells nothing of that kind."""
    append(file, said("one"))
    follower = Follower(file)
    status = file.stat()

    def stamp(now_ns: int) -> Stamp:
        reading = read_transcript(
            follower.found, follower.roots, None, redactor=None, subagents=False, now_ns=now_ns
        )
        return reading.stamp

    assert stamp(status.st_mtime_ns).mtime_ns == -1
    assert stamp(status.st_mtime_ns - 3600 * 10**9).mtime_ns == status.st_mtime_ns
    assert stamp(status.st_mtime_ns + 3600 * 10**9).mtime_ns == status.st_mtime_ns


def test_a_clock_that_goes_backwards_changes_nothing(follower: Follower) -> None:
    """The times of the file are not asked."""
    append(follower.file, said("three"))
    os.utime(follower.file, ns=(0, 0))
    assert follower.read() == "GrownTranscript"
    os.utime(follower.file, ns=(LATER_NS, LATER_NS))
    assert follower.read() == "UnchangedTranscript"
    assert follower.texts == ["one", "two", "three"]


# --- compressed


@pytest.fixture
def packed(follower: Follower) -> Follower:
    """Of the same transcript, after it was compressed."""
    file = follower.file.with_name("a.jsonl.zst")
    file.write_bytes(zstandard.compress(follower.file.read_bytes()))
    follower.file.unlink()
    follower.file = file
    return follower


def test_a_compressed_transcript_says_what_it_said(packed: Follower) -> None:
    """Its turns are those of the plain one; the same bytes are not read twice."""
    before = list(packed.turns)
    assert packed.read() == "WholeTranscript"
    assert packed.turns == before
    assert packed.read() == "UnchangedTranscript"
    assert packed.progress.packed


def test_a_transcript_that_is_unpacked_again_goes_on(packed: Follower) -> None:
    """The plain file is another one."""
    packed.read()
    raw = zstandard.ZstdDecompressor().decompress(packed.file.read_bytes())
    packed.file = packed.file.with_name("a.jsonl")
    append(packed.file, raw, said("three"))
    assert packed.read() == "WholeTranscript"
    append(packed.file, said("four"))
    assert packed.read() == "GrownTranscript"
    assert packed.texts == ["one", "two", "three", "four"]


def test_frames_follow_one_another(packed: Follower) -> None:
    """With lines across them, and with what is to be passed over."""
    line = said("three")
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    append(packed.file, zstandard.compress(line[:9]), skippable, zstandard.compress(line[9:] + said("four")))
    packed.read()
    assert packed.texts == ["one", "two", "three", "four"]


def test_a_compressed_file_cut_short_gives_what_it_can(packed: Follower) -> None:
    """Complete lines, at any point; the whole when it is there."""
    lines = b"".join(said(f"{n} {noise(500).decode()}") for n in range(2000))
    whole = zstandard.ZstdCompressor(level=1).compress(lines)
    counts = []
    for cut in (0, 3, len(whole) // 3, len(whole) // 2, len(whole) - 3, len(whole)):
        packed.file.write_bytes(whole[:cut])
        packed.read()
        counts.append(len(packed.turns))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 2000)
    assert packed.texts[7].startswith("7 ")


def test_a_damaged_compressed_file_is_an_error_of_that_file(packed: Follower) -> None:
    """What is known stays: it may be mended, and what it said is not unsaid."""
    packed.read()
    kept = packed.kept
    raw = zstandard.ZstdCompressor(write_checksum=True).compress(said("x" + noise(9000).decode()) * 3)
    for damaged in (
        b"no zstd at all",
        said("plain"),
        raw + b"garbage",
        raw[:2000] + bytes(byte ^ 1 for byte in raw[2000:2010]) + raw[2010:],
    ):
        packed.file.write_bytes(damaged)
        with pytest.raises(FileUnreadable, match="decompress"):
            packed.read()
    assert packed.kept == kept


def test_a_bomb_is_refused(packed: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would unpack to more than anybody says is no transcript, whatever it begins with."""
    monkeypatch.setattr(packing, "MAX_UNPACKED_BYTES", 50 * MIB)
    bomb = zstandard.compress(said("one")) + zstandard.compress(b" " * MIB) * 60
    packed.file.write_bytes(bomb)
    assert len(bomb) < MIB
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="50 MiB"):
            packed.read()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * MAX_LINE_BYTES


def test_a_small_file_may_not_hold_very_much(packed: Follower) -> None:
    """Even if each line of it is one that somebody may have said."""
    lines = zstandard.compress(said("x" * 1000) * 1000)
    most = shipped("memd.sources.transcripts.open_transcript._ALWAYS_BYTES")
    packed.file.write_bytes(lines * (most // len(said("x" * 1000) * 1000) + 1))
    assert packed.file.stat().st_size * shipped("memd.sources.transcripts.open_transcript._MOST_TIMES") < most
    with pytest.raises(TooLarge, match=f"{most >> 20} MiB"):
        packed.read()
    packed.file.write_bytes(lines * 20)
    assert packed.read() == "WholeTranscript"
    assert len(packed.turns) == 20_000


# --- what is no session of its own


def test_an_unknown_format_says_nothing_and_is_counted(file: Path) -> None:
    """It is looked at again when it grows: the first lines may have been too few to tell."""
    append(file, b'{"some":"thing"}\n')
    follower = Follower(file)
    assert follower.read() == "WholeTranscript"
    assert (follower.turns, follower.progress.tally) == ([], {"sessions.unknown_format": 1})
    assert follower.read() == "UnchangedTranscript"
    append(file, said("one"))
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["one"]
    assert "sessions.unknown_format" not in follower.progress.tally


def test_nothing_at_all_is_no_unknown_format(file: Path) -> None:
    """A transcript begins empty."""
    append(file, b"")
    follower = Follower(file)
    follower.read()
    assert follower.progress.tally == {}
    append(file, b"\n", b'{"role":')
    follower.read()
    assert follower.progress.tally == {}
    append(file, said("x")[8:])
    follower.read()
    assert len(follower.turns) == 1


def test_a_large_file_of_an_unknown_format_is_not_read_to_its_end(file: Path, read_bytes: list[int]) -> None:
    """Neither the first time, nor when it grows."""
    append(file, b'{"some":"thing"}\n' * (8 * MIB // 17))
    follower = Follower(file)
    follower.read()
    append(file, b'{"more":"things"}\n')
    follower.read()
    assert sum(read_bytes) < 3 * MIB


def test_a_subagent_says_nothing_unless_it_is_asked(file: Path) -> None:
    """What another agent was told is known from the transcript itself."""
    append(file, CODEX_META % b'{"subagent":"review"}', CODEX_SAID)
    follower = Follower(file)
    follower.read()
    assert (follower.turns, follower.progress.tally) == ([], {"sessions.subagent": 1})
    assert follower.read() == "UnchangedTranscript"
    append(file, CODEX_SAID)
    follower.read()
    assert follower.turns == []
    asked = Follower(file, subagents=True)
    asked.read()
    assert asked.texts == ["reduce 429s"] * 2
    assert asked.progress.learnt.subagent


def test_a_subagent_costs_no_more_than_what_came(file: Path, read_bytes: list[int]) -> None:
    """What it does not say is not read twice."""
    append(file, CODEX_META % b'{"subagent":"review"}', CODEX_SAID * 20_000)
    follower = Follower(file)
    follower.read()
    read_bytes.clear()
    append(file, CODEX_SAID)
    follower.read()
    assert sum(read_bytes) <= len(CODEX_SAID) + 2 * EDGE_BYTES
    assert follower.read() == "UnchangedTranscript"


def test_whether_subagents_count_is_asked_at_each_reading(file: Path) -> None:
    """What is known under another setting is read again, though the file is the same."""
    append(file, CODEX_META % b'{"subagent":"review"}', CODEX_SAID)
    follower = Follower(file)
    follower.read()
    follower.subagents = True
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["reduce 429s"]
    follower.subagents = False
    assert follower.read() == "WholeTranscript"
    assert follower.turns == []
    assert follower.read() == "UnchangedTranscript"


def test_a_session_that_only_began_like_a_subagent_is_heard(file: Path) -> None:
    """What comes later shows what it is; all that was said from then on counts."""
    line = (
        b'{"type":"user","uuid":"u%d","sessionId":"s","cwd":"/repo","isSidechain":%b,'
        b'"timestamp":"2026-08-10T12:00:00.000Z","message":{"role":"user","content":"said %d"}}\n'
    )
    append(file, line % (1, b"true", 1))
    follower = Follower(file)
    follower.read()
    assert follower.progress.tally == {"sessions.subagent": 1}
    append(file, line % (2, b"false", 2), line % (3, b"false", 3))
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["said 2", "said 3"]
    assert follower.progress.tally == {}
    append(file, line % (4, b"false", 4))
    assert follower.read() == "GrownTranscript"


def test_a_session_of_the_owner_says_who_it_is(file: Path) -> None:
    """Its id, where it worked and since when, kept through later readings."""
    append(file, CODEX_META % b'"cli"', CODEX_SAID)
    follower = Follower(file)
    follower.read()
    append(file, CODEX_SAID)
    assert follower.read() == "GrownTranscript"
    learnt = follower.progress.learnt
    assert (learnt.session_id, learnt.cwd, bool(learnt.subagent)) == ("019dec85", "/repo", False)


# --- secrets


def test_nothing_that_is_secret_leaves_the_reader(file: Path) -> None:
    """Neither in turns nor in what is kept for the next reading; what was taken out is counted once."""
    append(file, said("one"), said("the word is hunter2, hunter2"), b'{"role":"user","content":"hunter2')
    follower = Follower(file, redactor=Hider("hunter2"))
    follower.read()
    append(file, b'"}\n', said("hunter2 again", "assistant"))
    follower.read()
    assert follower.texts == [
        "one",
        "the word is [REDACTED:word], [REDACTED:word]",
        "[REDACTED:word]",
        "[REDACTED:word] again",
    ]
    assert follower.progress.tally == {"redacted.word": 4}
    assert follower.kept is not None
    assert b"hunter2" not in follower.kept
    assert "hunter2" not in repr(follower.last)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_password_that_answers_a_question_leaves_no_turn(file: Path, *, at_once: bool) -> None:
    """Whether question and answer are read together, or the answer when the question has been read."""
    follower = Follower(file, redactor=Redactor(Redact()))
    append(file, said("and the wifi password at the cabin?"))
    if not at_once:
        follower.read()
    append(file, said("snowdrift1987", "assistant"), said("snowdrift1987"))
    follower.read()
    assert follower.texts == ["and the wifi password at the cabin?", "[REDACTED:password]", "snowdrift1987"]


# --- the fence


def test_only_transcripts_of_a_root_are_opened(follower: Follower) -> None:
    """By no other root, under no other name, and through no link."""
    directory = follower.file.parent

    def read(found: object = None, *roots: object) -> None:
        read_transcript(
            follower.found if found is None else found,  # type: ignore[arg-type]
            roots or follower.roots,  # type: ignore[arg-type]
            None,
            redactor=None,
            subagents=False,
            now_ns=LATER_NS,
        )

    read()
    with pytest.raises(FileMissing):
        read(None, ExtraDirectory(directory))
    with pytest.raises(FileMissing):
        read(None, SessionPaths(directory, "elsewhere", "plain"))
    with pytest.raises(FileMissing):
        read(msgspec.structs.replace(follower.found, path="sessions/here/b.jsonl"))
    secret = directory / "secret.txt"
    secret.write_bytes(said("secret"))
    with pytest.raises(FileMissing):
        read(msgspec.structs.replace(follower.found, location=str(secret)))
    follower.file.unlink()
    follower.file.symlink_to(secret)
    with pytest.raises(OutsideFence):
        read()
    follower.file.unlink()
    with pytest.raises(FileMissing):
        read()
    os.mkfifo(follower.file)
    with pytest.raises(SourceError):
        read()


# --- all of it together

_LINES = st.one_of(
    st.builds(
        said,
        st.text(max_size=20).filter(lambda text: bool(text.replace("\0", "").strip())),
        st.sampled_from(["user", "assistant"]),
        st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    ),
    st.sampled_from([b"{broken\n", b"\0\0\0\n", b'{"type":"other"}\n', b"\n", b"[1]\n", b"\xff\n"]),
    st.just(said("x" * 3000)),
)


@given(st.lists(_LINES, max_size=12), st.lists(st.integers(0, 1 << 16), max_size=8))
def test_however_a_transcript_grows_it_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int]
) -> None:
    """Read at any points of its growth, the turns, lines and counts are those of one reading of the whole."""
    content = b"".join(lines)
    file = Path(os.path.realpath(tmp_path_factory.mktemp("grow"))) / "a.jsonl"
    file.touch()
    follower = Follower(file)
    ends = [*sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    begin = 0
    for end in ends:
        append(file, content[begin:end])
        follower.read()
        begin = end
    first = Follower(file)
    first.read()
    assert follower.turns == first.turns
    assert follower.progress.tally == first.progress.tally
    if first.progress.followed:
        assert (follower.progress.lines, follower.progress.offset) == (
            first.progress.lines,
            first.progress.offset,
        )
    assert follower.read() == "UnchangedTranscript"


_IDS = st.sampled_from(["a", "b", "c", "d", "e"])
_PARENTS = st.sampled_from(["null", '"a"', '"b"', '"c"', '"d"', '"x"'])
_TIMES = "2026-08-10T12:00:00.000Z"


def _openclaw(identity: str, parent: str, role: str, n: int) -> bytes:
    content = f'"message":{{"role":"{role}","content":"said {n}"}}'
    return f'{{"type":"message","id":"{identity}","parentId":{parent},"timestamp":"{_TIMES}",{content}}}\n'.encode()


def _gemini(identity: str, role: str, n: int) -> bytes:
    kind = "user" if role == "user" else "gemini"
    return f'{{"id":"{identity}","timestamp":"{_TIMES}","type":"{kind}","content":"said {n}"}}\n'.encode()


def _claude(identity: str, side: str, role: str, n: int) -> bytes:
    message = (
        f'"message":{{"id":"m{identity}","role":"{role}","content":[{{"type":"text","text":"said {n}"}}]}}'
    )
    head = f'"type":"{role}","uuid":"{identity}{n}","sessionId":"s","cwd":"/r","isSidechain":{side}'
    return f'{{{head},"timestamp":"{_TIMES}",{message}}}\n'.encode()


def _codex(role: str, kind: str, n: int) -> bytes:
    payload = {
        "sent": f'{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"said {n}"}}]}}',
        "shown": f'{{"type":"{"user" if role == "user" else "agent"}_message","message":"said {n}"}}',
        "dropped": f'{{"type":"thread_rolled_back","num_turns":{n % 3}}}',
    }[kind]
    outer = "response_item" if kind == "sent" else "event_msg"
    return f'{{"timestamp":"{_TIMES}","type":"{outer}","payload":{payload}}}\n'.encode()


_ROLES = st.sampled_from(["user", "user", "assistant"])
_SMALL = st.integers(0, 6)
_BY_FORMAT = {
    "openclaw": st.one_of(
        st.builds(_openclaw, _IDS, _PARENTS, _ROLES, _SMALL),
        st.builds(_openclaw, _IDS, _PARENTS, _ROLES, _SMALL),
        st.builds(
            lambda identity, parent: (
                f'{{"type":"compaction","id":"{identity}","parentId":{parent}}}\n'.encode()
            ),
            _IDS,
            _PARENTS,
        ),
    ),
    "gemini": st.one_of(
        st.builds(_gemini, _IDS, _ROLES, _SMALL),
        st.builds(_gemini, _IDS, _ROLES, _SMALL),
        st.builds(lambda identity: f'{{"$rewindTo":"{identity}"}}\n'.encode(), _IDS),
        st.just(b'{"$set":{"messages":[{"id":"a","type":"user","content":"again"}]}}\n'),
        st.just(b'{"$set":{"lastUpdated":"2026-08-21T10:00:00Z"}}\n'),
    ),
    "claude-code": st.builds(_claude, _IDS, st.sampled_from(["false", "false", "true"]), _ROLES, _SMALL),
    "codex": st.builds(_codex, _ROLES, st.sampled_from(["sent", "sent", "shown", "dropped"]), _SMALL),
}


@pytest.mark.parametrize("format_name", list(_BY_FORMAT))
@given(st.data())
def test_a_transcript_of_any_format_says_the_same_however_it_grows(
    tmp_path_factory: pytest.TempPathFactory, format_name: str, data: st.DataObject
) -> None:
    """Also where messages are said again, taken back, or left for another branch."""
    lines = data.draw(st.lists(_BY_FORMAT[format_name], min_size=1, max_size=14))
    lengths = [0]
    for line in lines:
        lengths.append(lengths[-1] + len(line))
    content = b"".join(lines)
    cuts = data.draw(st.lists(st.sampled_from(lengths) | st.integers(0, len(content)), max_size=6))
    file = Path(os.path.realpath(tmp_path_factory.mktemp("grow"))) / "a.jsonl"
    file.touch()
    follower = Follower(file, redactor=Hider("3"))
    begin = 0
    for end in [*sorted(cuts), len(content)]:
        append(file, content[begin:end])
        follower.read()
        begin = end
    first = Follower(file, redactor=Hider("3"))
    first.read()
    assert follower.turns == first.turns
    assert follower.progress.tally == first.progress.tally
    assert follower.progress.learnt == first.progress.learnt
    assert follower.read() == "UnchangedTranscript"


_REDACTOR = Redactor(Redact())


@given(awkward.FILES, st.data())
def test_whatever_is_in_a_transcript_it_says_the_same_however_it_grows(
    content: bytes, data: st.DataObject
) -> None:
    """Of lines nearly as agents write them, torn and out of order: what is read on is what is read at once, redacted once."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(os.path.realpath(directory)) / "a.jsonl"
        file.touch()
        follower, first = Follower(file, redactor=_REDACTOR), Follower(file, redactor=_REDACTOR)
        for piece in data.draw(pieces(content)):
            append(file, piece)
            follower.read()
        first.read()
        assert follower.turns == first.turns
        assert follower.progress.tally == first.progress.tally
        assert follower.progress.learnt == first.progress.learnt
        assert follower.progress.content_hash == first.progress.content_hash
        assert follower.read() == first.read() == "UnchangedTranscript"
    _are_sound(first.turns, content)


@given(awkward.PACKED)
def test_whatever_is_in_a_compressed_transcript_it_is_read_or_refused(content: bytes) -> None:
    """Frames cut anywhere, put together or with other bytes in them: turns as of any file, or one typed error."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(os.path.realpath(directory)) / "a.jsonl.zst"
        file.write_bytes(content)
        follower = Follower(file, redactor=_REDACTOR)
        try:
            follower.read()
        except (FileUnreadable, TooLarge):
            return
        assert follower.read() == "UnchangedTranscript"
    _are_sound(follower.turns)


@given(st.lists(awkward.FILES, min_size=1, max_size=3))
def test_a_compressed_transcript_says_what_it_said_before(frames: list[bytes]) -> None:
    """However many frames it is in."""
    with tempfile.TemporaryDirectory() as directory:
        plain, packed = (Path(os.path.realpath(directory)) / name for name in ("a.jsonl", "b.jsonl.zst"))
        plain.write_bytes(b"".join(frames))
        packed.write_bytes(awkward.packed(frames))
        one, other = Follower(plain), Follower(packed)
        one.read()
        other.read()
    assert one.turns == other.turns
    assert one.progress.tally == other.progress.tally


def _are_sound(turns: list[Turn], content: bytes | None = None) -> None:
    """That turns can be kept and cut: in the order of their lines, valid, redacted, and whole in their chunks."""
    for turn in turns:
        assert turn.text.strip()
        assert "\0" not in turn.text
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(turn), type=Turn) == turn
        assert _REDACTOR.redact(turn.text).text == turn.text
        assert 1 <= turn.start_line <= turn.end_line
        assert content is None or turn.end_line <= content.count(b"\n") + 1
    assert [turn.start_line for turn in turns] == sorted(turn.start_line for turn in turns)
    cut = chunk_turns(turns, 0, "Session", tokens=400, overlap=80, zone=None)
    for chunk in cut.chunks:
        assert len(chunk.text) <= LONGEST
        assert chunk.numbers is not None
        assert len(chunk.numbers) == chunk.text.count("\n") + 1
        fts_text(chunk.text).encode()
    said = "".join(chunk.text for chunk in cut.chunks)
    assert all(turn.text.split()[0][:40] in said for turn in turns)


def test_reading_is_fast(file: Path) -> None:
    """Cutting 60 MB into lines takes a fraction of what parsing them takes."""
    line = b'{"role":"tool","content":"%b"}\n' % noise(3000)
    append(file, said("one"), line * (60_000_000 // len(line)))
    begin = time.process_time()
    follower = Follower(file)
    follower.read()
    assert follower.texts == ["one"]
    assert time.process_time() - begin < 6


def gemini_object(*said: str, end: str = "\n}") -> bytes:
    """A session as older versions of Gemini CLI wrote it."""
    messages = [
        {"id": f"m{n}", "type": ("user", "gemini")[n % 2], "content": text} for n, text in enumerate(said)
    ]
    text = json.dumps({"sessionId": "s", "projectHash": "9f", "messages": messages}, indent=2)
    return (text.removesuffix("\n}") + end).encode()


@pytest.fixture
def old(file: Path) -> Follower:
    """Of an older file of Gemini CLI with two turns that has been read."""
    place = file.parent / "9f86d081/chats/session-1.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(gemini_object("one", "two"))
    follower = Follower(place, layout="gemini")
    assert follower.read() == "WholeTranscript"
    assert follower.texts == ["one", "two"]
    return follower


def test_an_object_is_read_whole_when_it_is_written_anew(old: Follower) -> None:
    """How much of it is new, its lines do not tell."""
    old.file.write_bytes(gemini_object("one", "two", "three"))
    assert packing.growth(old.found, old.roots, old.progress, at_most=10_000).lines == 0
    assert old.read() == "WholeTranscript"
    assert old.texts == ["one", "two", "three"]
    old.file.write_bytes(gemini_object("ONE", "two", "three"))
    assert old.read() == "WholeTranscript"
    assert old.texts == ["ONE", "two", "three"]


def test_an_object_that_is_being_written_is_waited_for(old: Follower) -> None:
    """What is indexed stays, as it does while the file is too long."""
    old.file.write_bytes(gemini_object("one", "two", "three", end=""))
    with pytest.raises(FileHeld):
        old.read()
    os.truncate(old.file, reader.MAX_OBJECT_BYTES + 1)
    with pytest.raises(TooLarge):
        old.read()
    old.file.write_bytes(b'{"other": 1}\n')
    old.read()
    assert old.texts == []
    assert old.progress.tally == {"sessions.unknown_format": 1}
