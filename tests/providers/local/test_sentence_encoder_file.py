"""The unpacked file of the sentence encoder: whole or not there, and read as it was written."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from memd.providers.local import bundled_model, sentence_encoder_file
from memd.providers.local.e5_file import UnreadableModel
from memd.providers.local.sentence_encoder_file import (
    FILES,
    TABLE,
    Arrays,
    WordVectors,
    read,
    unpack,
    weights,
    write,
)
from tests.bounds import shipped

PACKAGE = Path("package")
SMALL: Arrays = {
    "numbers": np.arange(6, dtype=np.float32).reshape(2, 3),
    TABLE: np.arange(12, dtype=np.uint8).reshape(4, 3),
    "odd": np.arange(5, dtype=np.uint8),
    "bounds": np.array([0, 2**31], np.uint32),
    "one": np.array(0.5, np.float32),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place in a state directory; the package's files are replaced by SMALL."""
    monkeypatch.setattr(sentence_encoder_file, "unpack", lambda _: dict(SMALL))
    return tmp_path / "state" / "encoder-1.0.safetensors"


def small(read: tuple[Arrays, WordVectors]) -> bool:
    """Return whether names, types and values are those of SMALL."""
    arrays, words = read
    found = arrays | {TABLE: words(range(4))}
    return found.keys() == SMALL.keys() and all(
        array.dtype == SMALL[name].dtype and np.array_equal(array, SMALL[name])
        for name, array in found.items()
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Of each type and shape; and word vectors by their ids."""
    write(tmp_path / "some" / "file", SMALL)
    found = read(tmp_path / "some" / "file")
    assert small(found)
    assert found[1]([2, 0, 2]).tolist() == [[6, 7, 8], [0, 1, 2], [6, 7, 8]]
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["file"]


@pytest.mark.parametrize(("left", "added"), [(0, 0), (300, 0), (300, 56), (356, 100)])
def test_a_file_that_is_written_to_is_told_and_made_again(file: Path, left: int, added: int) -> None:
    """Whether it is cut off or has as many bytes as before; a mapping would end the process."""
    _, words = weights(PACKAGE, file)
    content, written = file.read_bytes(), file.stat().st_mtime
    assert len(content) == 356
    with file.open("r+b") as opened:
        opened.truncate(left)
        opened.seek(left)
        opened.write(bytes(added))
    os.utime(file, (written, written + 1))
    with pytest.raises(UnreadableModel, match="is no unpacked sentence encoder"):
        words([1])
    assert small(weights(PACKAGE, file, anew=True))
    assert file.read_bytes() == content


def test_a_file_that_is_replaced_is_read_on(file: Path) -> None:
    """As by another process, or when a newer memd removes it."""
    read = weights(PACKAGE, file)
    file.unlink()
    file.write_bytes(b"another")
    assert small(read)


def test_the_first_who_needs_it_unpacks_it_for_all(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the user alone; files of other versions go, and what a process has left that was killed an hour ago."""
    assert small(weights(PACKAGE, file))
    assert file.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(sentence_encoder_file, "unpack", lambda _: {TABLE: SMALL[TABLE]})
    assert small(weights(PACKAGE, file))
    left, new = (file.with_name(f".{file.with_name('encoder-1.1.safetensors').name}-{name}") for name in "ab")
    hour = shipped("memd.providers.local.sentence_encoder_file._LEFT_S")
    for path, ago_s in ((left, hour + 60), (new, hour - 60)):
        path.touch()
        os.utime(path, (time.time() - ago_s,) * 2)
    other, mine = (file.with_name(f"{name}.safetensors") for name in ("encoder-1.1", "mine"))
    mine.touch()  # by somebody who keeps other things in that directory, too
    assert weights(PACKAGE, other)[0] == {}  # it is written
    left.touch()
    os.utime(left, (time.time() - hour - 60,) * 2)
    assert weights(PACKAGE, other)[0] == {}  # it is read
    assert sorted(file.parent.iterdir()) == sorted([new, other, mine])


@pytest.mark.parametrize("size", [0, 7, 50, 300, 350])
def test_a_file_that_was_cut_off_is_made_again(file: Path, size: int) -> None:
    """Whatever is left of it."""
    weights(PACKAGE, file)
    whole = file.read_bytes()
    assert size < len(whole)
    file.write_bytes(whole[:size])
    with pytest.raises(UnreadableModel, match="no unpacked sentence encoder"):
        read(file)
    assert small(weights(PACKAGE, file))
    assert file.read_bytes() == whole


def test_only_a_file_that_differs_is_damaged(file: Path) -> None:
    """Else a machine that computes something else would write the file at every start."""
    assert not sentence_encoder_file.is_damaged(PACKAGE, file)
    weights(PACKAGE, file)
    assert not sentence_encoder_file.is_damaged(PACKAGE, file)
    content = file.read_bytes()
    for damaged in (content.replace(np.float32(5).tobytes(), np.float32(6).tobytes()), content[:50]):
        file.write_bytes(damaged)
        assert sentence_encoder_file.is_damaged(PACKAGE, file)


def test_without_room_or_right_to_write_it_is_used_from_memory(file: Path) -> None:
    """Nothing is left behind."""
    file.parent.write_text("no directory")
    assert small(weights(PACKAGE, file))


def test_a_write_that_fails_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a file would be read by the next process."""

    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    assert small(weights(PACKAGE, file))
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("broken", FILES)
def test_a_broken_package_is_told(tmp_path: Path, broken: str) -> None:
    """By the name of its directory."""
    for name in FILES:
        shutil.copy(bundled_model.encoder_folder() / name, tmp_path / name)
    with (tmp_path / broken).open("r+b") as file:
        file.truncate(1000)
    with pytest.raises((UnreadableModel, OSError)) as told:
        unpack(tmp_path)
    assert broken != FILES[0] or str(tmp_path) in str(told.value)
