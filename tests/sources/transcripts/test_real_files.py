"""Transcripts as the programs themselves wrote them, with long texts cut: what was said is read, and nothing else."""

import os
from pathlib import Path

import apsw
import pytest

from memd.sources.transcripts.database_reader import list_sessions
from memd.sources.transcripts.parser import LINES_ENOUGH, format_of
from memd.text.memory_paths import SessionPaths
from tests.sources.transcripts.opencode_store import REAL as OPENCODE
from tests.sources.transcripts.parsing import turns
from tests.sources.transcripts.transcripts import EntryFollower, Follower

SAID = [
    ("user", "On which host is the PostgreSQL of the staging database? SECRET"),
    ("assistant", "It is on heron. Do not show SECRET to anybody."),
    ("user", "And which version is it? SECRET is the key of that host."),
    ("assistant", "It is version 17. The key SECRET is older."),
]
FILES = sorted(Path(__file__).with_name("real").glob("*.jsonl"))
FORMATS = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
}


def test_there_is_a_file_of_each_program() -> None:
    """Each is named for its program and its version."""
    assert {file.name.partition("-")[0] for file in FILES} == set(FORMATS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_was_said_is_read_and_nothing_else(file: Path) -> None:
    """Two questions with their answers: no tool's reply, no hook's text, no prompt of the program, none of them twice."""
    lines = file.read_bytes().splitlines()
    kind = format_of(lines[:LINES_ENOUGH])
    assert kind is not None
    assert kind.name == FORMATS[file.name.partition("-")[0]]
    assert turns(kind, *lines) == SAID


def test_an_older_file_of_gemini_is_one_object(tmp_path: Path) -> None:
    """On many lines, and written anew each time."""
    follower = Follower(Path(os.path.realpath(tmp_path)) / "9f86d081/chats/session-1.json", layout="gemini")
    follower.file.parent.mkdir(parents=True)
    follower.file.write_bytes(Path(__file__).with_name("real").joinpath("gemini-0.20.0.json").read_bytes())
    assert follower.read() == "WholeTranscript"
    assert [(turn.role, turn.text) for turn in follower.turns] == SAID
    assert follower.read() == "UnchangedTranscript"


def test_a_database_of_opencode_is_read_likewise(tmp_path: Path) -> None:
    """It puts what is said on the command line in quotation marks."""
    base = Path(os.path.realpath(tmp_path))
    database = apsw.Connection(str(base / "opencode.db"))
    database.execute(OPENCODE.read_text(encoding="utf-8"))
    database.pragma("journal_mode", "wal")
    database.close()
    (session,) = list_sessions(SessionPaths(base, "opencode", "opencode"), ("opencode.db",)).sessions
    follower = EntryFollower(base, session.id, file="opencode.db", layout="opencode")
    follower.read()
    assert [(turn.role, turn.text.strip('"')) for turn in follower.turns] == SAID
