"""memd-ctl hook: adds memory to sessions of an agent's program, such as Claude Code.

A hook must never make an agent wait or fail. It takes at most a second, and after any error it ends with
status 0 and without output.
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

_TIMEOUT_S = 1.0  # in total; start and end of the process have the rest of 1.5 s, even on a busy machine
_WARM_S = 0.6  # of it, for indexing recent changes
_HITS = 6
# Higher than the usual minimum, as nobody has asked for it. With the bundled model and 100 notes in two
# languages, eight of eight requests that need no memory ("run the tests") have a hit above the usual .35,
# five above this and three above .6; of 103 answers among the first three hits 97 are above this, and 67
# above .6. With seven notes one request is.
_CLOSE = 0.45
_PIECES = 8  # requests for the end of a daily note; each returns up to 120 lines or 12,000 characters
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
    """Return the reply in the program's form; None for no reply."""
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
    """Yield today's and yesterday's notes, after recent changes to them were indexed."""
    key = _identity(invocation)["session_key"]
    # A session on the owner's machine; its id is cleaned, so that it cannot imitate another session's key.
    session = key if key is not None else f"explicit:{_session_name(hook_input.session) or 'session'}"
    timezone = ""
    with suppress(TimedOut), _client(invocation, min(until, time.monotonic() + _WARM_S)) as memd:
        timezone = memd.warm(session, agent=_identity(invocation)["agent"]).timezone
    now = _now(timezone)
    with suppress(TimedOut):
        for day in (0, _YESTERDAY):
            yield _note(invocation, f"memory/{_date(now, day)}.md", until)


def _note(invocation: Invocation, path: str, until: float) -> hook_context.DailyNote:
    """Return a note, or the last lines of a long one."""
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
        # If lines are so long that too many requests would be needed, only the last line.
        for line in (from_end, last_line):
            end = _read_on(invocation, memd, path, max(line, 1))
            if end.is_to_end:
                break
        return msgspec.structs.replace(end, is_from_start=False)


def _read_on(invocation: Invocation, memd: Client, path: str, line: int) -> hook_context.DailyNote:
    """Return the text from a line on, from at most _PIECES requests."""
    pieces: list[str] = []
    following: int | None = line
    for _ in range(_PIECES):
        if following is not None:
            note = memd.get(path, start_line=following, **_identity(invocation))
            pieces += [note.text, _end(note)]
            following = note.next_line
    return hook_context.DailyNote(path, "".join(pieces).removesuffix("\n"), is_to_end=following is None)


def _end(note: Note) -> str:
    """Return what separates a piece from the next: nothing if a long line continues."""
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
    """Return agent and session key: from a flag, else from the environment, else the owner's.

    A key that is present but empty counts as an unknown conversation, as a variable that was never filled in
    has it.
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
    while data:  # bypasses Python's buffer, which would fail at exit if nobody reads
        data = data[os.write(1, data) :]


def _now(timezone: str) -> time.struct_time:
    """Return the time in a time zone, by which the agent's notes have their names; "": that of the machine."""
    if not timezone:
        return _machine_time()
    from datetime import datetime  # noqa: PLC0415 - most hooks need neither
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - as above

    try:
        return datetime.now(ZoneInfo(timezone)).timetuple()
    except (OSError, ValueError, LookupError):  # this machine does not know it
        return _machine_time()


def _machine_time() -> time.struct_time:
    """Return the time in the zone of the machine; in UTC, as the daemon takes it, if that is 24 hours or more away."""
    now = time.localtime()
    return time.gmtime() if abs(now.tm_gmtoff) >= 24 * 3600 else now


def _date(now: time.struct_time, days: int) -> str:
    """Return the date `days` days after a time, in its time zone."""
    # Computed at noon, as a day may have 23 or 25 hours.
    noon = time.mktime((now.tm_year, now.tm_mon, now.tm_mday + days, 12, 0, 0, 0, 0, -1))
    return time.strftime("%Y-%m-%d", time.localtime(noon))


def _session_name(session: str) -> str:
    """Return a session's id without characters that are special in a session key."""
    return "".join(letter for letter in session if letter.isascii() and (letter.isalnum() or letter in "-_"))
