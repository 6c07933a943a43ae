"""Keys in files."""

import os
from pathlib import Path

import pytest

from memd.providers.api_keys.key_file import LONGEST, read_small, with_credentials


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


def _credentials(directory: Path) -> dict[str, str]:
    for name, text in {
        "OPENAI_API_KEY": "sk-1\n",
        "GEMINI_API_KEY": "g-1",
        "vault.key": "v",
        "_X": "x",
    }.items():
        (directory / name).write_text(text, encoding="utf-8")
    (directory / "BROKEN").write_bytes(b"\xff")
    (directory / "FOLDER").mkdir()
    return {"CREDENTIALS_DIRECTORY": str(directory), "HOME": "/home/ann"}


def test_credentials_that_are_named_like_variables_are_variables(tmp_path: Path) -> None:
    """Without the end of their line; other files, and what cannot be read, are none."""
    environ = _credentials(tmp_path)
    assert with_credentials(environ, read_small) == {
        **environ,
        "OPENAI_API_KEY": "sk-1",
        "GEMINI_API_KEY": "g-1",
    }


def test_a_variable_that_is_set_goes_before(tmp_path: Path) -> None:
    """One that is empty is not set."""
    environ = _credentials(tmp_path) | {"OPENAI_API_KEY": "sk-2", "GEMINI_API_KEY": " "}
    found = with_credentials(environ, read_small)
    assert (found["OPENAI_API_KEY"], found["GEMINI_API_KEY"]) == ("sk-2", "g-1")


@pytest.mark.parametrize("directory", [None, "", "relative", "/none/there"])
def test_without_credentials_the_environment_is_as_it_was(directory: str | None) -> None:
    """As with every other way to start it."""
    environ = {"A": "b"} if directory is None else {"CREDENTIALS_DIRECTORY": directory}
    assert with_credentials(environ, read_small) == environ
