"""memd-ctl demo: what memd does, on a workspace made for it."""

import time
from datetime import date

from memd.ctl.call import Call
from memd.ctl.daemon import catch_up
from memd.ctl.demo import findings
from memd.ctl.demo.findings import DemoAnswer, EditFound, Findings, GroupComparison, IndexingTime
from memd.ctl.demo.temporary_daemon import DemoDirectory, daemon, scratch
from memd.ctl.demo.workspace import (
    EDIT,
    EDIT_QUESTION,
    GROUP_KEY,
    GROUP_QUESTION,
    QUESTIONS,
    DemoQuestion,
    daily_note_path,
    write_notes,
)
from memd.ctl.output.humanize import counted
from memd.ctl.output.terminal import Outcome
from memd.text.memory_paths import is_curated
from memd_client.blocking import Client
from memd_client.messages import Hit

_MAX_RESULTS = 2
_CALL_S = 30.0
_EDIT_S = 20.0  # until an edit must be found


def run(call: Call) -> Outcome:
    """Make a workspace, index it, ask, edit, and leave nothing behind."""
    keep = call.options.keep
    today = date.today()  # noqa: DTZ011  notes are named by the local day
    with scratch(call.places.home, keep=keep) as made:
        number = write_notes(made.workspace, today)
        call.screen.say(f"{counted(number, 'note')} in English and Chinese, with a daemon of their own.")
        began = time.monotonic()
        with daemon(made.places, call.environ):
            found = _show(call, made, today, began)
    if keep:
        call.screen.say(f"Kept: {made.workspace}")
    call.screen.say("\nThe daemon of the demo is gone. For your own notes: memd-ctl up DIR")
    return Outcome(found)


def _show(call: Call, made: DemoDirectory, today: date, began: float) -> Findings:
    screen = call.screen
    with Client(made.places.socket, timeout=_CALL_S) as memd:
        indexed = _index(call, made, memd, began)
        screen.say(findings.index_text(indexed, screen.paint))
        asked = []
        for number, question in enumerate(QUESTIONS, 1):
            asked.append(_ask(memd, question))
            screen.say(f"\n{findings.question_text(number, asked[-1], screen.paint)}")
        edit = _edit(memd, made, today)
        screen.say(f"\n{findings.edit_text(edit, screen.paint)}")
        group = _ask_as_group(memd)
        screen.say(f"\n{findings.group_text(group, screen.paint)}")
    kept = str(made.workspace) if call.options.keep else None
    return Findings(indexed=indexed, questions=asked, edit=edit, group=group, workspace=kept)


def _index(call: Call, made: DemoDirectory, memd: Client, began: float) -> IndexingTime:
    def connect(timeout_s: float | None) -> Client:
        return Client(made.places.socket, timeout_s)

    catch_up.sync_text(connect, call.screen, agent=None, timeout_s=_CALL_S)
    text_s = time.monotonic() - began
    catch_up.sync_vectors(connect, call.screen, agent=None, timeout_s=call.options.timeout)
    vectors_s = time.monotonic() - began
    return findings.indexed(memd.status().agents["main"], text_s, vectors_s)


def _ask(memd: Client, question: DemoQuestion) -> DemoAnswer:
    began = time.perf_counter()
    found = memd.search(question.text, max_results=_MAX_RESULTS)
    took_ms = (time.perf_counter() - began) * 1000
    return DemoAnswer(
        about=question.about,
        query=question.text,
        took_ms=round(took_ms, 2),
        mode=found.mode,
        as_it_should=findings.is_answered(question, found.results),
        has_answer=question.answer is not None,
        hits=found.results,
        degraded=found.degraded,
    )


def _edit(memd: Client, made: DemoDirectory, today: date) -> EditFound:
    path = daily_note_path(today)
    with (made.workspace / path).open("a", encoding="utf-8") as note:
        note.write(EDIT)
    written = time.monotonic()
    took_ms: float | None = None
    found: list[Hit] = []
    while took_ms is None and time.monotonic() - written < _EDIT_S:
        found = memd.search(EDIT_QUESTION.text, max_results=1).results
        if findings.is_answered(EDIT_QUESTION, found):
            took_ms = round((time.monotonic() - written) * 1000, 1)
    return EditFound(path=path, line=EDIT.strip(), query=EDIT_QUESTION.text, took_ms=took_ms, hits=found)


def _ask_as_group(memd: Client) -> GroupComparison:
    owner = memd.search(GROUP_QUESTION.text, max_results=_MAX_RESULTS).results
    group = memd.search(GROUP_QUESTION.text, max_results=_MAX_RESULTS, session_key=GROUP_KEY).results
    return GroupComparison(
        query=GROUP_QUESTION.text,
        session_key=GROUP_KEY,
        owner_paths=[hit.path for hit in owner],
        group_paths=[hit.path for hit in group],
        sees_private=any(is_curated(hit.path) for hit in group),
    )
