"""The configuration to start from."""

from pathlib import Path

import pytest

from memd.config.load import parse
from memd.config.settings import PresetName
from memd.ctl.config.edit import example
from memd.ctl.config.installed_agents import InstalledAgent
from memd.ctl.config.starter import SourceChoice, starter

FOUND = (InstalledAgent("claude-code", 3, 214), InstalledAgent("codex", 0, 1), InstalledAgent("gemini", 1, 0))
HOME = Path("/home/li")


def test_nothing_found_is_the_example() -> None:
    """And so is a no to all of it."""
    assert starter(example(), SourceChoice(), ()) == example()
    assert starter(example(), SourceChoice((), ()), FOUND) == example()


@pytest.mark.parametrize(
    ("memory", "sessions"),
    [((), ("codex",)), (("claude-code", "gemini"), ()), (("codex",), ("claude-code", "codex"))],
)
def test_a_choice_is_in_force(memory: tuple[PresetName, ...], sessions: tuple[PresetName, ...]) -> None:
    """Sessions are a source only if some were chosen."""
    agent = parse(starter(example(), SourceChoice(memory, sessions), FOUND), HOME / "x.toml", HOME).agents[
        "main"
    ]
    assert agent.memory_presets == memory
    assert agent.sessions.presets == sessions
    assert agent.sources == (("memory", "sessions") if sessions else ("memory",))


def test_transcripts_that_nobody_was_asked_about_are_named_in_a_comment() -> None:
    """Nothing changes until somebody takes the mark away."""
    text = starter(example(), SourceChoice(("gemini",), None), FOUND)
    assert (
        '\n# Found here: Claude Code (214 transcripts), Codex (1 transcript). With "sessions" in sources above:\n'
        '#presets = ["claude-code", "codex"]\n'
    ) in text
    agent = parse(text, HOME / "x.toml", HOME).agents["main"]
    assert (agent.memory_presets, agent.sources, agent.sessions.presets) == (("gemini",), ("memory",), ())
