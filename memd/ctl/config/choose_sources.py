"""What besides the workspace is to be searched: as the command line says, or as a person answers."""

import sys
from collections.abc import Callable, Sequence

from memd.config.settings import PresetName
from memd.ctl.call import Call
from memd.ctl.config.installed_agents import NAMES, InstalledAgent
from memd.ctl.config.starter import SourceChoice
from memd.ctl.failures import Failed
from memd.ctl.output.humanize import counted

_MOST_ATTEMPTS = 3


def chosen(call: Call, there: Sequence[InstalledAgent]) -> SourceChoice:
    """The choice of a person for what there is.

    Notes are searched unless somebody says no. Transcripts are searched only if somebody says yes.

    Raises:
        Failed: a question was not answered.
    """
    memory: tuple[PresetName, ...] | None = call.options.memory
    sessions: tuple[PresetName, ...] | None = call.options.sessions
    asks = not call.screen.json and sys.stdin.isatty() and call.screen.err.isatty()
    if memory is None:
        found = [one for one in there if one.notes and one.preset != "openclaw"]
        memory = tuple(
            one.preset
            for one in found
            if not asks
            or _says_yes(
                call, f"Search the {counted(one.notes, 'note')} of {NAMES[one.preset]} too?", usual=True
            )
        )
    if sessions is None and asks:
        kept = [one for one in there if one.transcripts]
        if kept:
            call.screen.note(
                "Transcripts are what you and an agent said to each other. They stay on this machine unless a remote "
                "embedding provider is configured; keys and passwords are taken out first."
            )
        sessions = tuple(
            one.preset
            for one in kept
            if _says_yes(
                call,
                f"Search the {counted(one.transcripts, 'transcript')} of {NAMES[one.preset]}?",
                usual=False,
            )
        )
    return SourceChoice(memory, sessions)


def _says_yes(call: Call, question: str, *, usual: bool) -> bool:
    return answered(question, call.screen.err.write, call.screen.err.flush, sys.stdin.readline, usual=usual)


def answered(
    question: str,
    write: Callable[[str], object],
    flush: Callable[[], object],
    read: Callable[[], str],
    *,
    usual: bool,
) -> bool:
    """Ask until it is answered; an empty line is the usual answer.

    Raises:
        Failed: there is no answer.
    """
    for _ in range(_MOST_ATTEMPTS):
        write(f"{question} [{'Y/n' if usual else 'y/N'}] ")
        flush()
        line = read()
        if not line:
            break  # the terminal is closed
        answer = line.strip().lower()
        if answer in {"", "y", "yes", "n", "no"}:
            return usual if not answer else answer[0] == "y"
        write("Answer y or n.\n")
    raise Failed("declined", "Nothing was written: a question was not answered.")
