"""The notes of the demo, and its temporary daemon."""

import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from memd.config.load import load
from memd.ctl.daemon_process import find_holder, is_gone
from memd.ctl.demo import EDIT, EDIT_QUESTION, QUESTIONS, DemoQuestion, demo_directory, notes, write_notes
from memd.search.query import parse
from memd.search.terms import held
from memd.text.tokens import is_mostly_cjk

_LINES = [line for _, text in notes(date(2026, 3, 2)) for line in text.splitlines()]


@pytest.mark.parametrize("question", [one for one in QUESTIONS if one.answer is not None])
def test_one_line_of_the_notes_has_the_answer(question: DemoQuestion) -> None:
    """So a hit that holds it is the right one."""
    assert question.answer is not None
    assert len([line for line in _LINES if question.answer in line]) == 1


def test_other_words_are_other_words() -> None:
    """The questions that are to show what vectors do share no word with the line that answers them."""
    for question in (QUESTIONS[0], QUESTIONS[3]):
        assert question.answer is not None
        line = next(line for line in _LINES if question.answer in line)
        assert held([line], parse(question.text).terms) == set()


def test_what_has_no_answer_has_none() -> None:
    """Not one word of that question stands in any note."""
    assert held(_LINES, parse(QUESTIONS[4].text).terms) == set()


def test_the_edit_is_news() -> None:
    """Before it, nothing answers its question."""
    assert EDIT_QUESTION.answer is not None
    assert EDIT_QUESTION.answer in EDIT
    assert not any(EDIT_QUESTION.answer in line for line in _LINES)


_TODAY = date(2026, 3, 2)


def test_daily_notes_are_of_the_last_days() -> None:
    """Each says its own day, across the end of a month."""
    paths = dict(notes(_TODAY))
    assert list(paths) == [
        "MEMORY.md",
        "USER.md",
        "memory/2026-03-02.md",
        "memory/2026-03-01.md",
        "memory/2026-02-28.md",
        "memory/2026-02-26.md",
        "memory/2026-02-24.md",
        "memory/2026-02-21.md",
    ]
    for path, text in paths.items():
        assert "{" not in text
        if path.startswith("memory/"):
            assert text.startswith(f"# {path[7:-3]}\n")


def test_about_half_of_the_lines_are_chinese() -> None:
    """A line in each language for one in the other, more or less."""
    lines = [line for _, text in notes(_TODAY) for line in text.splitlines() if line.startswith("- ")]
    chinese = sum(map(is_mostly_cjk, lines))
    assert 0.35 < chinese / len(lines) < 0.65


@pytest.mark.parametrize("directory", ["workspace", "deep/workspace"])
def test_they_are_written_as_they_are(tmp_path: Path, directory: str) -> None:
    """And counted."""
    assert write_notes(tmp_path / directory, _TODAY) == len(list((tmp_path / directory).rglob("*.md"))) == 8
    for path, text in notes(_TODAY):
        assert (tmp_path / directory / path).read_text(encoding="utf-8") == text


_HOLDER = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, b"%d\\n" % os.getpid())
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def tmp(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr("tempfile.tempdir", str(short))
    return short


def test_the_configuration_is_right(short: Path) -> None:
    """It names the workspace beside it."""
    with demo_directory(short, keep=False) as made:
        config = load(made.places.config, {}, short)
        assert config.agents["main"].workspace == made.workspace
        assert made.workspace.is_dir()


def test_nothing_is_left(short: Path, tmp: Path) -> None:
    """However it ends."""
    with demo_directory(short, keep=False) as made:
        made.places.state.mkdir()
        (made.workspace / "a.md").touch()
    assert list(tmp.iterdir()) == []
    with pytest.raises(ValueError, match="no"), demo_directory(short, keep=False):
        raise ValueError("no")
    assert list(tmp.iterdir()) == []


def test_the_workspace_may_be_kept(short: Path) -> None:
    """With its configuration, but without an index."""
    with demo_directory(short, keep=True) as made:
        made.places.state.mkdir()
    assert sorted(path.name for path in made.workspace.parent.iterdir()) == ["config.toml", "workspace"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_by_the_door(short: Path, tmp: Path, number: signal.Signals) -> None:
    """So that what stands behind is cleared; afterwards the signal means what it meant before."""
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as left, demo_directory(short, keep=False):
        os.kill(os.getpid(), number)
    assert left.value.code == 128 + number
    assert list(tmp.iterdir()) == []
    assert signal.getsignal(number) is before


def test_a_daemon_that_is_nobodys_is_ended(short: Path, tmp: Path) -> None:
    """One that was started in the moment of the interruption."""
    with demo_directory(short, keep=False) as made:
        made.places.state.mkdir()
        command = [sys.executable, "-c", _HOLDER, str(made.places.lock)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        assert find_holder(made.places.lock) == child.pid
    assert is_gone(child.pid)
    child.communicate()
    assert list(tmp.iterdir()) == []


def test_a_deep_temporary_directory_leaves_room_for_the_socket(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of the system is taken instead."""
    deep = short / ("x" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with demo_directory(short, keep=False) as made:
        assert not made.workspace.is_relative_to(deep)
        assert list(deep.iterdir()) == []
    assert not made.workspace.exists()
