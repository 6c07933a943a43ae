"""memd-ctl demo: shows what memd does, on a temporary workspace."""

import time
from datetime import date

import msgspec

from memd.ctl import demo
from memd.ctl.commands import indexing
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, duration, one_line
from memd.ctl.output.reply_text import hit_headline, hits_text
from memd.ctl.output.terminal import Outcome, Paint
from memd.text.memory_paths import is_curated
from memd_client.blocking import Client
from memd_client.messages import AgentStatus, Degraded, Hit


class IndexingTime(msgspec.Struct, frozen=True):
    """The time that indexing took."""

    files: int
    chunks: int
    text_s: float  # from the start of the daemon until all text was searchable
    vectors_s: float | None  # likewise for all vectors; None: they were not complete in time
    provider: str
    model: str
    waiting: int  # chunks without a vector when the demo continued
    reason: str | None  # why there are no vectors


class DemoAnswer(msgspec.Struct, frozen=True):
    """A question and its answer."""

    about: str
    query: str
    took_ms: float
    mode: str
    as_it_should: bool  # the hits contain the answer; without an answer, there are no hits
    has_answer: bool  # whether the notes contain an answer
    hits: list[Hit]
    degraded: list[Degraded]


class EditFound(msgspec.Struct, frozen=True):
    """An edit, and how soon a search found it."""

    path: str
    line: str
    query: str
    took_ms: float | None  # from the end of writing to the hit; None: it was not found in time
    hits: list[Hit]


class GroupComparison(msgspec.Struct, frozen=True):
    """The hits of one question for the owner and in a group."""

    query: str
    session_key: str
    owner_paths: list[str]
    group_paths: list[str]
    sees_private: bool  # whether the group got a line of MEMORY.md or USER.md


class Findings(msgspec.Struct, frozen=True):
    """The results of the demo, as --json prints them."""

    indexed: IndexingTime
    questions: list[DemoAnswer]
    edit: EditFound
    group: GroupComparison
    workspace: str | None  # None: it was removed


def is_answered(question: demo.DemoQuestion, found: list[Hit]) -> bool:
    """Return whether the hits contain the answer; without an answer, whether there are no hits."""
    if question.answer is None:
        return not found
    return any(question.answer in hit.snippet for hit in found)


def indexing_time(status: AgentStatus, text_s: float, vectors_s: float) -> IndexingTime:
    """Return the time of indexing from a status report."""
    return IndexingTime(
        files=status.files,
        chunks=status.chunks,
        text_s=round(text_s, 3),
        vectors_s=round(vectors_s, 3) if status.vectors.done and not status.vectors.waiting else None,
        provider=status.provider,
        model=status.model,
        waiting=status.vectors.waiting,
        reason=status.provider_health.reason or status.vector.reason,
    )


def index_text(found: IndexingTime, paint: Paint) -> str:
    """Format the time that indexing took."""
    start = f"{counted(found.files, 'note')}, {counted(found.chunks, 'chunk')}"
    words = f"words searchable {duration(found.text_s)} after the start of the daemon"
    if found.vectors_s is not None:
        return f"{start}: {words}, vectors complete after {duration(found.vectors_s)} ({found.model})."
    if found.waiting and not found.reason:
        waiting = (
            f"Vectors of {counted(found.waiting, 'chunk')} are still being computed: this machine is busy"
        )
        return f"{start}: {words}.\n{paint(f'{waiting}. What needs them is not found yet.', 'yellow')}"
    reason = f": {one_line(found.reason)}" if found.reason else ""
    return f"{start}: {words}.\n{paint(f'No vectors here{reason}. What needs them will not be found.', 'yellow')}"


def question_text(number: int, asked: DemoAnswer, paint: Paint) -> str:
    """Format a question with its hits."""
    if asked.has_answer:
        verdict = paint("found", "green") if asked.as_it_should else paint("not found", "yellow")
    elif asked.as_it_should:
        verdict = paint("nothing comes back, and nothing should", "green")
    else:
        verdict = paint("nothing should come back, and yet", "yellow")
    head = f"{paint(f'{number}. {asked.about}', 'bold')}: {asked.query}\n   {verdict} ({duration(asked.took_ms / 1000)})"
    return "\n".join([head, *_shown(asked.hits, paint)])


def edit_text(edit: EditFound, paint: Paint) -> str:
    """Format an edit, and how soon it was found."""
    head = f"{paint('An edit', 'bold')}: one more line in {edit.path}, then at once: {edit.query}"
    if edit.took_ms is None:
        return f"{head}\n   {paint('not found', 'yellow')}"
    verdict = f"{paint('found', 'green')} {duration(edit.took_ms / 1000)} after it was written"
    return "\n".join([head, f"   {verdict}", *_shown(edit.hits, paint)])


def group_text(group: GroupComparison, paint: Paint) -> str:
    """Format the hits of the same question in a private chat and in a group."""
    head = f"{paint('A group chat', 'bold')} asks: {group.query}"
    if group.sees_private:
        return f"{head}\n   {paint('it gets lines of MEMORY.md or USER.md', 'red')}"
    seen = f"{counted(len(group.group_paths), 'hit')}, none of MEMORY.md or USER.md"
    yours = ", ".join(dict.fromkeys(group.owner_paths)) or "nothing"
    return f"{head}\n   {paint(seen, 'green')}; to you the same question gives {yours}"


def _shown(found: list[Hit], paint: Paint) -> list[str]:
    """Return the first hit as search prints it, and only the positions of the others."""
    if not found:
        return []
    return [
        hits_text(found[:1], paint),
        *(f"also {hit_headline(hit, paint)}" for hit in found[1:]),
    ]


_MAX_RESULTS = 2
_CALL_S = 30.0
_EDIT_S = 20.0  # until an edit must be found


def run_demo(invocation: Invocation) -> Outcome:
    """Create a workspace, index it, search it, edit it, and remove it."""
    keep = invocation.options.keep
    today = date.today()  # noqa: DTZ011  notes are named by the local day
    with demo.demo_directory(invocation.places.home, keep=keep) as made:
        number = demo.write_notes(made.workspace, today)
        invocation.screen.say(
            f"{counted(number, 'note')} in English and Chinese, with a daemon of their own."
        )
        began = time.monotonic()
        with demo.temporary_daemon(made.places, invocation.environ):
            found = _show(invocation, made, today, began)
    if keep:
        invocation.screen.say(f"Kept: {made.workspace}")
    invocation.screen.say("\nThe daemon of the demo is gone. For your own notes: memd-ctl up DIR")
    return Outcome(found)


def _show(invocation: Invocation, made: demo.DemoDirectory, today: date, began: float) -> Findings:
    screen = invocation.screen
    with Client(made.places.socket, timeout=_CALL_S) as memd:
        indexed = _index(invocation, made, memd, began)
        screen.say(index_text(indexed, screen.paint))
        asked = []
        for number, question in enumerate(demo.QUESTIONS, 1):
            asked.append(_ask(memd, question))
            screen.say(f"\n{question_text(number, asked[-1], screen.paint)}")
        edit = _edit(memd, made, today)
        screen.say(f"\n{edit_text(edit, screen.paint)}")
        group = _ask_as_group(memd)
        screen.say(f"\n{group_text(group, screen.paint)}")
    kept = str(made.workspace) if invocation.options.keep else None
    return Findings(indexed=indexed, questions=asked, edit=edit, group=group, workspace=kept)


def _index(invocation: Invocation, made: demo.DemoDirectory, memd: Client, began: float) -> IndexingTime:
    def connect(timeout_s: float | None) -> Client:
        return Client(made.places.socket, timeout_s)

    indexing.sync_text(connect, invocation.screen, agent=None, timeout_s=_CALL_S)
    text_s = time.monotonic() - began
    indexing.sync_vectors(connect, invocation.screen, agent=None, timeout_s=invocation.options.timeout)
    vectors_s = time.monotonic() - began
    return indexing_time(memd.status().agents["main"], text_s, vectors_s)


def _ask(memd: Client, question: demo.DemoQuestion) -> DemoAnswer:
    began = time.perf_counter()
    found = memd.search(question.text, max_results=_MAX_RESULTS)
    took_ms = (time.perf_counter() - began) * 1000
    return DemoAnswer(
        about=question.about,
        query=question.text,
        took_ms=round(took_ms, 2),
        mode=found.mode,
        as_it_should=is_answered(question, found.results),
        has_answer=question.answer is not None,
        hits=found.results,
        degraded=found.degraded,
    )


def _edit(memd: Client, made: demo.DemoDirectory, today: date) -> EditFound:
    path = demo.daily_note_path(today)
    with (made.workspace / path).open("a", encoding="utf-8") as note:
        note.write(demo.EDIT)
    written = time.monotonic()
    took_ms: float | None = None
    found: list[Hit] = []
    while took_ms is None and time.monotonic() - written < _EDIT_S:
        found = memd.search(demo.EDIT_QUESTION.text, max_results=1).results
        if is_answered(demo.EDIT_QUESTION, found):
            took_ms = round((time.monotonic() - written) * 1000, 1)
    return EditFound(
        path=path, line=demo.EDIT.strip(), query=demo.EDIT_QUESTION.text, took_ms=took_ms, hits=found
    )


def _ask_as_group(memd: Client) -> GroupComparison:
    owner = memd.search(demo.GROUP_QUESTION.text, max_results=_MAX_RESULTS).results
    group = memd.search(
        demo.GROUP_QUESTION.text, max_results=_MAX_RESULTS, session_key=demo.GROUP_KEY
    ).results
    return GroupComparison(
        query=demo.GROUP_QUESTION.text,
        session_key=demo.GROUP_KEY,
        owner_paths=[hit.path for hit in owner],
        group_paths=[hit.path for hit in group],
        sees_private=any(is_curated(hit.path) for hit in group),
    )
