"""Keys that a service manager hands over as files."""

from pathlib import Path

import pytest

from memd.providers.api_keys.key_file import read_small
from memd.providers.api_keys.systemd_credentials import with_credentials


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
