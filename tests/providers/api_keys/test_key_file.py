"""What is read as a file with a key."""

import os
from pathlib import Path

import pytest

from memd.providers.api_keys.key_file import LONGEST, read_small


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    """As it is, line end and all; through a link, too."""
    (tmp_path / "key").write_bytes("schlüssel\n".encode())
    (tmp_path / "link").symlink_to("key")
    assert read_small(tmp_path / "link") == "schlüssel\n"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_small(tmp_path / "pipe")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    """It is said so."""
    with pytest.raises(OSError, match=r"directory|not a regular file"):
        read_small(tmp_path)


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    """A disk image that was named by mistake does not fill the memory."""
    (tmp_path / "large").write_bytes(b"x" * (LONGEST + 1))
    with pytest.raises(OSError, match="too large"):
        read_small(tmp_path / "large")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """By the error of the system."""
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "none")


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    """By an error that the one who reads keys knows."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        read_small(tmp_path / "binary")
