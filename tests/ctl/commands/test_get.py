"""memd-ctl get."""

import json
from pathlib import Path

import pytest

from memd_client.messages import Get, Note, Request
from tests.client.scripted_server import serving
from tests.ctl.answers import answering
from tests.ctl.conftest import Run

_NOTE = Note(path="a.md", text="one\n\x1b[1mtwo", start_line=1, end_line=2)
_MISSING = Note(path="a.md", missing=True)


def test_lines_are_printed_as_they_are(run: Run, address: Path) -> None:
    """A pipe gets the bytes of the note."""
    heard: list[Request] = []
    with serving(address, answering(_NOTE, heard=heard)):
        assert run("get", "a.md", "--from", "3", "--lines", "9", "--agent", "x", "--session-key", "k") == (
            0,
            "one\n\x1b[1mtwo\n",
            "",
        )
    assert heard == [Get(path="a.md", start_line=3, lines=9, agent="x", session_key="k")]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (Note(path="a.md", text="x", end_line=120, next_line=121), "Lines 1-120; read on with --from 121.\n"),
        (Note(path="a.md", text="", start_line=90), "Nothing from line 90 on.\n"),
        (
            Note(path="a.md", text="", start_line=90, total_lines=7),
            "Nothing from line 90 on: there are 7 lines.\n",
        ),
        (Note(path="a.md", text="", start_line=3, end_line=3), ""),
    ],
)
def test_where_to_read_on_is_a_remark(run: Run, address: Path, note: Note, said: str) -> None:
    """It is no part of the note."""
    with serving(address, answering(note)):
        assert run("get", "a.md").err == said


def test_a_missing_path_is_not_found(run: Run, address: Path) -> None:
    """With a status of its own; denied and missing look the same."""
    with serving(address, answering(_MISSING)):
        code, out, err = run("get", "a.md")
    assert (code, out) == (3, "")
    assert err.startswith("memd-ctl: a.md is not there, or not for this session.\n")
    with serving(address, answering(_MISSING)):
        code, out, _ = run("get", "a.md", "--json")
    assert code == 3
    assert json.loads(out)["error"]["type"] == "not_found"


def test_the_headline_of_a_hit_may_be_copied(run: Run, address: Path) -> None:
    """A path with lines behind it is tried as a path first."""
    heard: list[Request] = []
    with serving(address, answering(_MISSING, _NOTE, heard=heard)):
        assert run("get", "a:b.md:3-5").code == 0
    assert heard == [Get(path="a:b.md:3-5"), Get(path="a:b.md", start_line=3, lines=3)]


@pytest.mark.parametrize(
    "argv", [["a.md:3-5", "--from", "1"], ["a.md:3-5", "--lines", "2"], ["a.md:3"], [":3-5"]]
)
def test_other_paths_are_only_paths(run: Run, address: Path, argv: list[str]) -> None:
    """Nothing is guessed into them."""
    with serving(address, answering(_MISSING)):
        assert run("get", *argv).code == 3
