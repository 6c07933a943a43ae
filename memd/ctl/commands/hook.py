"""memd-ctl hook: bring memory into a session of an agent's program, such as Claude Code.

A hook must never be the reason that an agent waits or fails. It takes a second at most, and whatever is wrong, it ends
with status 0 and says nothing.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypedDict

import msgspec

from memd.ctl.integrations import hook_context
from memd.ctl.invocation import Invocation
from memd.ctl.output.terminal import Outcome
from memd_client.blocking import Client
from memd_client.errors import TimedOut
from memd_client.messages import PLACES_FROM, Hit, Note, Source

_TIMEOUT_S = 1.0  # in all; what starts before and ends after it has the rest of 1.5 s, also on a busy machine
_WARM_S = 0.6  # of it for the index to catch up
_HITS = 6
# Nobody asked for it, so it must be closer than what a search finds. With the bundled model and 100 notes in two languages,
# eight of eight requests that need no memory ("run the tests") have a hit above the usual .35, five above this and three
# above .6; of 103 answers among the first three hits 97 are above this, and 67 above .6. With seven notes one request is.
_CLOSE = 0.45
_PIECES = 8  # of the end of a daily note; one is 120 lines or 12,000 characters
_END_LINES = 120
_YESTERDAY = -1


class _Identity(TypedDict):
    agent: str | None
    session_key: str | None


def run_hook(invocation: Invocation) -> Outcome:
    """Answer an event of an agent's program; install and uninstall work like any other command."""
    if invocation.options.event in {"install", "uninstall"}:
        from memd.ctl.integrations import hooks  # noqa: PLC0415  a hook does not need it

        return hooks.change_hooks(invocation)
    answer = None
    with suppress(Exception):  # a hook must not fail the agent: see above
        answer = _answer(invocation, time.monotonic() + _TIMEOUT_S)
        if answer is not None and not invocation.options.json:
            _write_reply(answer)
    return Outcome(answer)


def _answer(invocation: Invocation, until: float) -> dict[str, Any] | None:
    """The reply in the form that the program expects; None for no reply."""
    hook_input = hook_context.parse_input(b"" if os.isatty(0) else hook_context.read_input(0, until))
    match invocation.options.event:
        case "session-start":
            return _reply(
                "SessionStart",
                hook_input,
                hook_context.format_notes(list(_daily_notes(invocation, hook_input, until))),
            )
        case "user-prompt" if (asked := hook_context.query_of(hook_input.prompt)) is not None:
            return _reply(
                "UserPromptSubmit", hook_input, hook_context.format_hits(_search(invocation, asked, until))
            )
        case "pre-compact" | "session-end":
            with _client(invocation, until) as memd:
                memd.sync(wait=False, vectors=False, **_identity(invocation))
            return None
        case _:
            return None


def _daily_notes(
    invocation: Invocation, hook_input: hook_context.HookInput, until: float
) -> Iterator[hook_context.DailyNote]:
    """Today's and yesterday's notes, once what was written to them is indexed."""
    key = _identity(invocation)["session_key"]
    # A session on the owner's own machine; the name keeps one session from standing for another.
    session = key if key is not None else f"explicit:{_session_name(hook_input.session) or 'session'}"
    with suppress(TimedOut), _client(invocation, min(until, time.monotonic() + _WARM_S)) as memd:
        memd.warm(session, agent=_identity(invocation)["agent"])
    with suppress(TimedOut):
        for day in (0, _YESTERDAY):
            yield _note(invocation, f"memory/{_date(time.localtime(), day)}.md", until)


def _note(invocation: Invocation, path: str, until: float) -> hook_context.DailyNote:
    """The note, or of a long one its last lines."""
    with _client(invocation, until) as memd:
        beginning = memd.get(path, **_identity(invocation))
        if beginning.next_line is None:
            return hook_context.DailyNote(path, beginning.text)
        last_line = beginning.total_lines or 1
        from_end = last_line - _END_LINES + 1
        if from_end <= beginning.next_line:
            whole = _read_on(invocation, memd, path, beginning.next_line)
            if whole.is_to_end:
                return hook_context.DailyNote(path, f"{beginning.text}{_end(beginning)}{whole.text}")
        # Of lines that are so long that there are too many pieces, the last alone.
        for line in (from_end, last_line):
            end = _read_on(invocation, memd, path, max(line, 1))
            if end.is_to_end:
                break
        return msgspec.structs.replace(end, is_from_start=False)


def _read_on(invocation: Invocation, memd: Client, path: str, line: int) -> hook_context.DailyNote:
    """What stands from a line on, in so many pieces at most."""
    pieces: list[str] = []
    following: int | None = line
    for _ in range(_PIECES):
        if following is not None:
            note = memd.get(path, start_line=following, **_identity(invocation))
            pieces += [note.text, _end(note)]
            following = note.next_line
    return hook_context.DailyNote(path, "".join(pieces).removesuffix("\n"), is_to_end=following is None)


def _end(note: Note) -> str:
    """What stands between a piece and the next one: nothing where a long line goes on."""
    return "" if note.next_line is not None and note.next_line > PLACES_FROM else "\n"


def _search(invocation: Invocation, asked: str, until: float) -> list[Hit]:
    source: Source | None = None if invocation.options.sessions else "memory"
    with _client(invocation, until) as memd:
        return memd.search(
            asked,
            max_results=_HITS,
            min_score=_CLOSE if invocation.options.min_score is None else invocation.options.min_score,
            source=source,
            strict=True,
            **_identity(invocation),
        ).results


def _identity(invocation: Invocation) -> _Identity:
    """Whose memory, and for whom: a flag, else the environment, else the owner's.

    A key that is there and empty names a conversation that nobody knows, as a variable that was never filled does.
    """
    return _Identity(
        agent=invocation.options.agent or invocation.environ.get("MEMD_AGENT") or None,
        session_key=invocation.environ.get("MEMD_SESSION_KEY")
        if invocation.options.session_key is None
        else invocation.options.session_key,
    )


def _client(invocation: Invocation, until: float) -> Client:
    return Client(invocation.places.socket, max(until - time.monotonic(), 0.01))


def _reply(event: str, hook_input: hook_context.HookInput, block: str | None) -> dict[str, Any] | None:
    if block is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": hook_input.event or event, "additionalContext": block}}


def _write_reply(answer: dict[str, Any]) -> None:
    data = msgspec.json.encode(answer) + b"\n"
    while data:  # past Python's own buffer: it would complain at the end if nobody reads
        data = data[os.write(1, data) :]


def _date(now: time.struct_time, days: int) -> str:
    """The date so many days from a moment, in its time zone."""
    # At noon: a day may have 23 hours, or 25.
    noon = time.mktime((now.tm_year, now.tm_mon, now.tm_mday + days, 12, 0, 0, 0, 0, -1))
    return time.strftime("%Y-%m-%d", time.localtime(noon))


def _session_name(session: str) -> str:
    """A session's id as a part of a session key."""
    return "".join(letter for letter in session if letter.isascii() and (letter.isalnum() or letter in "-_"))
