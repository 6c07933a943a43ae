"""The configuration to start from, with what a person chose to have searched. Pure."""

import json
from collections.abc import Sequence

import msgspec

from memd.config.settings import PresetName
from memd.ctl.config.installed_agents import NAMES, InstalledAgent
from memd.ctl.output.humanize import counted


class SourceChoice(msgspec.Struct, frozen=True):
    """What is to be searched besides the workspace; None: nobody was asked."""

    memory: tuple[PresetName, ...] = ()
    sessions: tuple[PresetName, ...] | None = None


def starter(example: str, choice: SourceChoice, found: Sequence[InstalledAgent]) -> str:
    """The example with a choice made in it.

    Transcripts are private: where nobody was asked, those that were found are named in a comment.

    Args:
        example: A configuration with every key in a comment.
        choice: What is searched.
        found: What there is.
    """
    text = example
    if choice.memory:
        text = _set(text, "memory_presets", [], list(choice.memory))
    if choice.sessions:
        text = _set(text, "sources", ["memory"], ["memory", "sessions"])
        text = _set(text, "presets", [], list(choice.sessions))
    elif choice.sessions is None and (there := [one for one in found if one.transcripts]):
        line = f"#presets = {json.dumps([one.preset for one in there])}"
        remark = (
            f'# Found here: {", ".join(map(transcripts_in_words, there))}. With "sessions" in sources above:'
        )
        text = _replaced(text, "#presets = []", f"{remark}\n{line}")
    return text


def transcripts_in_words(one: InstalledAgent) -> str:
    """Claude Code (214 transcripts)."""
    return f"{NAMES[one.preset]} ({counted(one.transcripts, 'transcript')})"


def notes_in_words(one: InstalledAgent) -> str:
    """Claude Code (3 notes)."""
    return f"{NAMES[one.preset]} ({counted(one.notes, 'note')})"


def _set(text: str, key: str, default: list[str], value: list[str]) -> str:
    """The value in place of the comment that holds the default."""
    return _replaced(text, f"#{key} = {json.dumps(default)}", f"{key} = {json.dumps(value)}")


def _replaced(text: str, line: str, by: str) -> str:
    assert f"\n{line}\n" in text, "the example has every key"
    return text.replace(f"\n{line}\n", f"\n{by}\n", 1)
