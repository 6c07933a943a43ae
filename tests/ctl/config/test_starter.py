"""The configuration to start from."""

import io
import os
import pty
import sys
from pathlib import Path

import pytest

from memd.config.load import parse
from memd.config.settings import PresetName
from memd.ctl.config.edit import example
from memd.ctl.config.starter import (
    InstalledAgent,
    SourceChoice,
    ask_yes_no,
    find_installed_agents,
    starter_config,
)
from memd.ctl.failures import Failed
from tests.bounds import shipped
from tests.ctl.conftest import Run
from tests.sources.homes import write_homes


def test_nothing_is_installed(home: Path) -> None:
    """An empty home, and one with empty directories."""
    assert find_installed_agents({}) == ()
    (home / ".codex" / "sessions" / "2026").mkdir(parents=True)
    assert find_installed_agents({}) == ()


def test_all_four_are(home: Path) -> None:
    """With how much they keep: each session once, and notes apart."""
    write_homes(home)
    assert find_installed_agents({}) == (
        InstalledAgent("openclaw", 3, 8),
        InstalledAgent("claude-code", 2, 1),
        InstalledAgent("codex", 2, 2),
        InstalledAgent("gemini", 2, 1),
    )
    assert find_installed_agents({"CODEX_HOME": str(home / "elsewhere")})[2].preset == "gemini"


FOUND = (InstalledAgent("claude-code", 3, 214), InstalledAgent("codex", 0, 1), InstalledAgent("gemini", 1, 0))
HOME = Path("/home/li")


def test_nothing_found_is_the_example() -> None:
    """And so is a no to all of it."""
    assert starter_config(example(), SourceChoice(), ()) == example()
    assert starter_config(example(), SourceChoice((), ()), FOUND) == example()


@pytest.mark.parametrize(
    ("memory", "sessions"),
    [((), ("codex",)), (("claude-code", "gemini"), ()), (("codex",), ("claude-code", "codex"))],
)
def test_a_choice_is_in_force(memory: tuple[PresetName, ...], sessions: tuple[PresetName, ...]) -> None:
    """Sessions are a source only if some were chosen."""
    agent = parse(
        starter_config(example(), SourceChoice(memory, sessions), FOUND), HOME / "x.toml", HOME
    ).agents["main"]
    assert agent.memory_presets == memory
    assert agent.sessions.presets == sessions
    assert agent.sources == (("memory", "sessions") if sessions else ("memory",))


def test_transcripts_that_nobody_was_asked_about_are_named_in_a_comment() -> None:
    """Nothing changes until somebody takes the mark away."""
    text = starter_config(example(), SourceChoice(("gemini",), None), FOUND)
    assert (
        '\n# Found here: Claude Code (214 transcripts), Codex (1 transcript). With "sessions" in sources above:\n'
        '#presets = ["claude-code", "codex"]\n'
    ) in text
    agent = parse(text, HOME / "x.toml", HOME).agents["main"]
    assert (agent.memory_presets, agent.sources, agent.sessions.presets) == (("gemini",), ("memory",), ())


@pytest.mark.parametrize(
    ("typed", "usual", "answer"),
    [
        ("y\n", False, True),
        ("YES\n", False, True),
        ("n\n", True, False),
        ("\n", True, True),
        ("  \n", False, False),
        ("what?\ny\n", False, True),
    ],
)
def test_an_answer(typed: str, usual: bool, answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty line is the usual one; what is neither yes nor no is asked again."""
    asked = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert ask_yes_no(asked, "Well?", usual=usual) is answer
    assert asked.getvalue().startswith("Well? [Y/n] " if usual else "Well? [y/N] ")
    assert asked.getvalue().count("Answer y or n.") == typed.count("?")


def test_a_question_is_asked_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the last attempt counts like the first."""
    most = shipped("memd.ctl.config.starter._MOST_ATTEMPTS")
    monkeypatch.setattr(sys, "stdin", io.StringIO("what?\n" * (most - 1) + "y\n"))
    assert ask_yes_no(io.StringIO(), "Well?", usual=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("what?\n" * most + "y\n"))
    with pytest.raises(Failed, match="was not answered"):
        ask_yes_no(io.StringIO(), "Well?", usual=False)


@pytest.mark.parametrize("typed", ["", "a\nb\nc\ny\n"])
def test_no_answer(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed terminal is no consent, nor is a fourth attempt."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    with pytest.raises(Failed, match="was not answered"):
        ask_yes_no(io.StringIO(), "Well?", usual=True)


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _main(file: Path, home: Path) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    agent = parse(file.read_text(encoding="utf-8"), file, home).agents["main"]
    return agent.sources, agent.memory_presets, agent.sessions.presets


@pytest.fixture
def file(home: Path) -> Path:
    """Where the configuration will be, in a home with four agents."""
    write_homes(home)
    return home / ".config" / "memd" / "config.toml"


def test_without_a_terminal_notes_are_searched_and_transcripts_are_not(
    run: Run, home: Path, file: Path
) -> None:
    """What was found of them is named in a comment, and said."""
    code, out, err = run("config", "init")
    assert (code, err) == (0, "")
    assert (
        "memd will also search the notes of Claude Code (2 notes), Codex (2 notes) and Gemini CLI (2 notes)"
        in out
    )
    assert "Not searched are the transcripts of OpenClaw (8 transcripts), Claude Code (1 transcript)" in out
    assert _main(file, home) == (("memory",), ("claude-code", "codex", "gemini"), ())
    assert '#presets = ["openclaw", "claude-code", "codex", "gemini"]\n' in file.read_text()


def test_flags_answer_for_scripts(run: Run, home: Path, file: Path) -> None:
    """By the names of agents, or with none of them."""
    assert run("config", "init", "--sessions", "codex, claude-code", "--no-memory").code == 0
    assert _main(file, home) == (("memory", "sessions"), (), ("codex", "claude-code"))
    out = run("config", "init", "--force", "--no-sessions", "--memory=openclaw", "--json").out
    assert '"session_presets":[]' in out
    assert '"memory_presets":["openclaw"]' in out
    assert _main(file, home) == (("memory",), ("openclaw",), ())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--sessions", "claude"),
            "claude is none of openclaw, claude-code, codex, gemini, qwen, opencode, copilot; did you mean claude-code?",
        ),
        (("--memory", ","), "names no agent"),
        (("--sessions", "codex", "--no-sessions"), "not allowed with"),
    ],
)
def test_wrong_flags(run: Run, file: Path, flags: tuple[str, ...], said: str) -> None:
    """The nearest name is told, and nothing is written."""
    code, _, err = run("config", "init", *flags)
    assert code == 2
    assert said in err
    assert not file.exists()


def _written(leader: int, *, until: bytes) -> str:
    """Read the terminal up to a text: one read returns only what the terminal has processed so far."""
    read = b""
    while until not in read:
        read += os.read(leader, 1 << 16)
    return read.decode()


def test_a_person_is_asked(home: Path, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes: yes unless no. Transcripts: no unless yes, and what they are is said first."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w", closefd=False) as err:
        monkeypatch.setattr(sys, "stdin", _Terminal("n\n\n\n" + "\ny\nn\n\n"))
        monkeypatch.setattr(sys, "stderr", err)
        assert run("config", "init").code == 0
    asked = _written(leader, until=b"Search the 1 transcript of Gemini CLI?")
    os.close(follower)
    os.close(leader)
    assert _main(file, home) == (("memory", "sessions"), ("codex", "gemini"), ("claude-code",))
    assert asked.index("Search the 2 notes of Claude Code too? [Y/n]") < asked.index(
        "Transcripts are what you"
    )
    assert "Search the 1 transcript of Claude Code? [y/N]" in asked
    assert "OpenClaw too?" not in asked
