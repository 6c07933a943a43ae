"""Creates the first configuration: finds the agents on this machine, asks which to search, and fills in the example."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TextIO, get_args

import msgspec

from memd.config.settings import PresetName
from memd.ctl.failures import Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted
from memd.sources.roots import notes_of, transcripts_of
from memd.sources.safe_open import ProcessExhausted
from memd.sources.scan import scan
from memd.text.memory_paths import Root

NAMES: Mapping[PresetName, str] = MappingProxyType(
    {
        "openclaw": "OpenClaw",
        "claude-code": "Claude Code",
        "codex": "Codex",
        "gemini": "Gemini CLI",
        "qwen": "Qwen Code",
        "opencode": "opencode",
        "copilot": "Copilot CLI",
    }
)
"""The names of the agents, for people."""

_ANY_SIZE = 1 << 62


class InstalledAgent(msgspec.Struct, frozen=True):
    """An agent that has files on this machine."""

    preset: PresetName
    notes: int
    transcripts: int


def find_installed_agents(environ: Mapping[str, str]) -> tuple[InstalledAgent, ...]:
    """Return the agents that have notes or transcripts on this machine.

    Args:
        environ: The environment, whose variables may name the agents' directories.
    """
    found = (
        InstalledAgent(preset, _count(notes_of(preset, environ)), _count(transcripts_of(preset, environ)))
        for preset in get_args(PresetName)
    )
    return tuple(one for one in found if one.notes or one.transcripts)


def _count(roots: Iterable[Root]) -> int:
    try:
        return len(scan(tuple(roots), max_bytes=_ANY_SIZE).found)
    except ProcessExhausted:
        return 0


class SourceChoice(msgspec.Struct, frozen=True):
    """The sources to search besides the workspace; sessions None: the user was not asked."""

    memory: tuple[PresetName, ...] = ()
    sessions: tuple[PresetName, ...] | None = None


def starter_config(example: str, choice: SourceChoice, found: Sequence[InstalledAgent]) -> str:
    """Return the example with the chosen sources filled in.

    Transcripts are private: if the user was not asked, a comment names those that were found.

    Args:
        example: A configuration with every key in a comment.
        choice: The sources to search.
        found: The agents with files on this machine.
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
    """Return a text such as ``Claude Code (214 transcripts)``."""
    return f"{NAMES[one.preset]} ({counted(one.transcripts, 'transcript')})"


def notes_in_words(one: InstalledAgent) -> str:
    """Return a text such as ``Claude Code (3 notes)``."""
    return f"{NAMES[one.preset]} ({counted(one.notes, 'note')})"


def _set(text: str, key: str, default: list[str], value: list[str]) -> str:
    """Replace the comment with a key's default by a setting."""
    return _replaced(text, f"#{key} = {json.dumps(default)}", f"{key} = {json.dumps(value)}")


def _replaced(text: str, line: str, by: str) -> str:
    assert f"\n{line}\n" in text, "the example has every key"
    return text.replace(f"\n{line}\n", f"\n{by}\n", 1)


_MOST_ATTEMPTS = 3


def choose_sources(invocation: Invocation, there: Sequence[InstalledAgent]) -> SourceChoice:
    """Ask the user which of the found sources to search.

    Notes are searched unless the user says no; transcripts only if the user says yes.

    Raises:
        Failed: a question was not answered.
    """
    memory: tuple[PresetName, ...] | None = invocation.options.memory
    sessions: tuple[PresetName, ...] | None = invocation.options.sessions
    asks = not invocation.screen.json and sys.stdin.isatty() and invocation.screen.err.isatty()
    if memory is None:
        found = [one for one in there if one.notes and one.preset != "openclaw"]
        memory = tuple(
            one.preset
            for one in found
            if not asks
            or ask_yes_no(
                invocation.screen.err,
                f"Search the {counted(one.notes, 'note')} of {NAMES[one.preset]} too?",
                usual=True,
            )
        )
    if sessions is None and asks:
        kept = [one for one in there if one.transcripts]
        if kept:
            invocation.screen.note(
                "Transcripts are what you and an agent said to each other. They stay on this machine unless a remote "
                "embedding provider is configured; keys and passwords are taken out first."
            )
        sessions = tuple(
            one.preset
            for one in kept
            if ask_yes_no(
                invocation.screen.err,
                f"Search the {counted(one.transcripts, 'transcript')} of {NAMES[one.preset]}?",
                usual=False,
            )
        )
    return SourceChoice(memory, sessions)


def ask_yes_no(err: TextIO, question: str, *, usual: bool) -> bool:
    """Ask at the terminal until there is a valid answer on standard input; an empty line means `usual`.

    Raises:
        Failed: there is no answer.
    """
    for _ in range(_MOST_ATTEMPTS):
        err.write(f"{question} [{'Y/n' if usual else 'y/N'}] ")
        err.flush()
        line = sys.stdin.readline()
        if not line:
            break  # the terminal is closed
        answer = line.strip().lower()
        if answer in {"", "y", "yes", "n", "no"}:
            return usual if not answer else answer[0] == "y"
        err.write("Answer y or n.\n")
    raise Failed("declined", "Nothing was written: a question was not answered.")
