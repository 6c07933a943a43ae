"""How much has come to a transcript."""

import io
import os
from pathlib import Path
from typing import cast

import pytest
import zstandard

from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileMissing
from memd.sources.transcripts import open_transcript
from memd.sources.transcripts.open_transcript import Growth, growth, unpacked_stream
from tests.bounds import shipped
from tests.sources.transcripts.transcripts import Follower, append, replace, said

MANY = 1 << 30


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    """Of a transcript that has been read to its end."""
    directory = Path(os.path.realpath(tmp_path))
    file = directory / "a.jsonl"
    file.write_bytes(said("one") + said("two"))
    follower = Follower(file)
    follower.read()
    return follower


def _growth(follower: Follower, at_most: int = MANY) -> Growth:
    return growth(follower.found, follower.roots, follower.progress, at_most=at_most)


def test_what_was_never_read_is_new(follower: Follower) -> None:
    """All of it, with its lines."""
    size = follower.file.stat().st_size
    assert growth(follower.found, follower.roots, None, at_most=MANY) == Growth(size, 2)


def test_only_what_came_since_is_new(follower: Follower) -> None:
    """In bytes and in lines that are complete."""
    assert _growth(follower) == Growth(0, 0)
    more = said("three") + said("four") + b'{"role":'
    append(follower.file, more)
    assert _growth(follower) == Growth(len(more), 2)


def test_what_was_left_of_the_last_line_is_still_new(follower: Follower) -> None:
    """A part of a line that was seen and not taken counts until it is."""
    append(follower.file, b'{"role":')
    assert follower.read() == "UnchangedTranscript"
    assert _growth(follower) == Growth(8, 0)


def test_another_file_is_new_as_a_whole(follower: Follower) -> None:
    """One that took its place, and one that was cut short."""
    follower.file.write_bytes(said("one"))
    assert _growth(follower) == Growth(len(said("one")), 1)
    follower.read()
    replace(follower.file, said("one") + said("2"))
    assert _growth(follower) == Growth(len(said("one") + said("2")), 2)


def test_no_more_is_read_than_is_needed(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many new bytes on, their lines do not count; of fewer, only the new ones are read."""
    more = said("x" * 1000) * 300
    append(follower.file, more)
    read: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        piece = pread(descriptor, size, offset)
        read.append(len(piece))
        return piece

    monkeypatch.setattr(os, "pread", counted)
    assert _growth(follower, at_most=len(more)) == Growth(len(more), 0)
    assert read == []
    assert _growth(follower, at_most=len(more) + 1) == Growth(len(more), 300)
    assert sum(read) == len(more)


def test_a_compressed_transcript_is_new_when_it_changes(follower: Follower) -> None:
    """By its bytes alone; the same ones are nothing new."""
    packed = follower.file.with_name("a.jsonl.zst")
    packed.write_bytes(zstandard.compress(follower.file.read_bytes()))
    follower.file = packed
    size = packed.stat().st_size
    assert _growth(follower) == Growth(size, 0)
    follower.read()
    assert _growth(follower) == Growth(0, 0)
    append(packed, zstandard.compress(said("three")))
    assert _growth(follower) == Growth(packed.stat().st_size, 0)


def test_a_file_that_is_gone_is_an_error(follower: Follower) -> None:
    """Of that file."""
    follower.file.unlink()
    with pytest.raises(FileMissing):
        _growth(follower)


def test_so_much_may_be_unpacked_and_no_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small file as many bytes as of any, of a larger one so many times its own, and of none more than the most."""
    monkeypatch.setattr(open_transcript, "_ALWAYS_BYTES", 1000)
    monkeypatch.setattr(open_transcript, "_MOST_TIMES", 10)
    monkeypatch.setattr(open_transcript, "MAX_UNPACKED_BYTES", 5000)
    for length, most in ((1, 1000), (100, 1000), (200, 2000), (500, 5000), (600, 5000)):
        for over in (0, 1):
            stream = io.BytesIO(zstandard.compress(b"x" * (most + over)))
            given = unpacked_stream(cast("io.RawIOBase", stream), length, "a.zst")
            if over:
                with pytest.raises(TooLarge):
                    list(given)
            else:
                assert sum(map(len, given)) == most


def test_a_file_holds_no_more_than_so_many_times_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ratio that no transcript has."""
    monkeypatch.setattr(open_transcript, "_ALWAYS_BYTES", 0)
    length, times = 10, shipped("memd.sources.transcripts.open_transcript._MOST_TIMES")
    for over in (0, 1):
        stream = io.BytesIO(zstandard.compress(b"x" * (length * times + over)))
        given = unpacked_stream(cast("io.RawIOBase", stream), length, "a.zst")
        if over:
            with pytest.raises(TooLarge):
                list(given)
        else:
            assert sum(map(len, given)) == length * times
