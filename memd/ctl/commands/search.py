"""memd-ctl search, get and tags: searches memory, reads lines of an indexed file, and lists tags and links."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TypedDict

from memd.ctl.failures import NOT_FOUND, Failed, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output import reply_text
from memd.ctl.output.humanize import as_printed, counted, visible
from memd.ctl.output.terminal import Outcome
from memd_client.blocking import Client
from memd_client.errors import RequestFailed
from memd_client.messages import Note, Sort, Source
from memd_client.tool_arguments import GetCall, is_backwards


class QueryOptions(TypedDict):
    """The arguments of Client.search and Client.explain."""

    query: str
    max_results: int | None
    min_score: float | None
    source: Source | None
    agent: str | None
    session_key: str | None
    now: str | None
    since: str | None
    until: str | None
    sort: Sort
    tags: Sequence[str]
    path: Sequence[str]
    properties: Mapping[str, str]


def question_of(options: argparse.Namespace) -> QueryOptions:
    """Return the question; several words on the command line are one question.

    Raises:
        UsageError: the question is empty.
    """
    query = " ".join(options.query)
    if not query.strip():
        raise UsageError(
            "The question is empty.", 'Ask something, such as: memd-ctl search "which database did we pick?"'
        )
    return QueryOptions(
        query=query,
        max_results=options.max_results,
        min_score=options.min_score,
        source=options.source,
        agent=options.agent,
        session_key=options.session_key,
        now=options.now,
        since=options.since,
        until=options.until,
        sort=options.sort,
        tags=options.tag,
        path=[*options.path, *(path for one in options.path if (path := as_printed(one)) != one)],
        properties=dict(options.property),
    )


def run_search(invocation: Invocation) -> Outcome:
    """Search, and print the hits."""
    with invocation.client() as memd:
        # No limit of characters: a terminal is no context window.
        found = memd.search(**question_of(invocation.options), max_chars=0, strict=invocation.options.strict)
    return Outcome(
        found, reply_text.hits_text(found.results, invocation.screen.paint), reply_text.answer_notes(found)
    )


def run_get(invocation: Invocation) -> Outcome:
    """Read a file, and print its lines unchanged."""
    with invocation.client() as memd:
        note = _read_note(memd, invocation)
    if note.missing:
        raise Failed(
            "not_found",
            f"{visible(invocation.options.path)} is not there, or not for this session.",
            "A path is given as search prints it: relative to the workspace, absolute for an extra path,"
            " and below sessions/ for a transcript.",
            exit_code=NOT_FOUND,
        )
    # A pipe gets the bytes of the note; on a terminal, control characters are escaped.
    text = visible(note.text) if invocation.screen.is_terminal else note.text
    return Outcome(note, text, _note_remarks(note))


def _read_note(memd: Client, invocation: Invocation) -> Note:
    """Read a file, or the lines of it that a citation names.

    Raises:
        UsageError: the citation names no lines.
    """
    options = invocation.options
    # The argument may be the headline of a hit, or its citation, in which characters that command a terminal are spelled out.
    paths = dict.fromkeys((options.path, as_printed(options.path)))
    calls = [GetCall(path, options.start_line or 1, options.lines) for path in paths]
    note = _first_there(memd, calls, options)
    if not note.missing or options.start_line or options.lines:
        return note
    places = [place for call in calls if (place := call.place()) is not None]
    if not places:
        return note
    if is_backwards(options.path):
        raise UsageError(
            f"{visible(options.path)} ends before it begins.",
            f"`memd-ctl get {visible(places[0].path)}` prints all of it.",
        )
    return _first_there(memd, places, options)


def _first_there(memd: Client, calls: Sequence[GetCall], options: argparse.Namespace) -> Note:
    """Return the first note that is there; else the reply to the first call."""
    replies = (
        memd.get(
            call.path,
            start_line=call.start_line,
            lines=call.lines,
            agent=options.agent,
            session_key=options.session_key,
        )
        for call in calls
    )
    first = next(replies)
    return first if not first.missing else next((note for note in replies if not note.missing), first)


def _note_remarks(note: Note) -> tuple[str, ...]:
    if not note.text and not note.end_line:
        has = f": there are {note.total_lines} lines" if note.total_lines else ""
        return (f"Nothing from line {note.start_line} on{has}.",)
    if note.next_line is None:
        return ()
    return (f"Lines {note.start_line}-{note.end_line}; read on with --from {note.next_line}.",)


def run_tags(invocation: Invocation) -> Outcome:
    """Print a line for each tag, and for each note that others link to; as for a search, to be denied is no error."""
    options = invocation.options
    try:
        with invocation.client() as memd:
            report = memd.tags(options.agent, session_key=options.session_key)
    except RequestFailed as failure:
        if failure.code != "denied":
            raise
        return Outcome({"agents": {}, "scope_denied": True}, notes=(reply_text.SCOPE_DENIED,))
    lines: list[str] = []
    for agent, one in report.agents.items():
        names = [
            *((f"#{tag.name}", tag) for tag in one.tags),
            *((f"[[{link.name}]]", link) for link in one.links),
        ]
        if names and len(report.agents) > 1:
            lines += [*([""] if lines else []), visible(agent)]
        lines += [
            f"{count.notes:6,}  {visible(name)}{'  (no such note)' if count.missing else ''}"
            for name, count in names
        ]
    omitted = sum(one.omitted for one in report.agents.values())
    remarks = (
        (f"{counted(omitted, 'more name')} {'is' if omitted == 1 else 'are'} not shown.",) if omitted else ()
    )
    return Outcome(report, "\n".join(lines), remarks if lines else ("No note has tags or links.",))
