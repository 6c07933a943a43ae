"""What the demo saw, as values and as text. Pure."""

import msgspec

from memd.ctl.demo.workspace import DemoQuestion
from memd.ctl.output.humanize import counted, duration, one_line
from memd.ctl.output.reply_text import hit_headline, hits_text
from memd.ctl.output.terminal import Paint
from memd_client.messages import AgentStatus, Degraded, Hit


class IndexingTime(msgspec.Struct, frozen=True):
    """How long the workspace took."""

    files: int
    chunks: int
    text_s: float  # until all text was searchable, from the start of the daemon on
    vectors_s: float | None  # until all vectors were there; None: they never were
    provider: str
    model: str
    reason: str | None  # why there are no vectors


class DemoAnswer(msgspec.Struct, frozen=True):
    """One question, and what came back."""

    about: str
    query: str
    took_ms: float
    mode: str
    as_it_should: bool  # the hits hold the answer; or nothing came back where there is none
    has_answer: bool  # whether there is one in the notes
    hits: list[Hit]
    degraded: list[Degraded]


class EditFound(msgspec.Struct, frozen=True):
    """An edit, and how soon it was found."""

    path: str
    line: str
    query: str
    took_ms: float | None  # from the end of writing to the hit; None: it was not found in time
    hits: list[Hit]


class GroupComparison(msgspec.Struct, frozen=True):
    """The same question of the owner and of a group."""

    query: str
    session_key: str
    owner_paths: list[str]
    group_paths: list[str]
    sees_private: bool  # whether the group got a line of MEMORY.md or USER.md


class Findings(msgspec.Struct, frozen=True):
    """Everything the demo found, as --json prints it."""

    indexed: IndexingTime
    questions: list[DemoAnswer]
    edit: EditFound
    group: GroupComparison
    workspace: str | None  # where it is kept


def is_answered(question: DemoQuestion, found: list[Hit]) -> bool:
    """Whether what came back is what should."""
    if question.answer is None:
        return not found
    return any(question.answer in hit.snippet for hit in found)


def indexed(status: AgentStatus, text_s: float, vectors_s: float) -> IndexingTime:
    """What the status says at the end of indexing."""
    return IndexingTime(
        files=status.files,
        chunks=status.chunks,
        text_s=round(text_s, 3),
        vectors_s=round(vectors_s, 3) if status.vectors.done and not status.vectors.waiting else None,
        provider=status.provider,
        model=status.model,
        reason=status.provider_health.reason or status.vector.reason,
    )


def index_text(found: IndexingTime, paint: Paint) -> str:
    """How long the workspace took."""
    start = f"{counted(found.files, 'note')}, {counted(found.chunks, 'chunk')}"
    words = f"words searchable {duration(found.text_s)} after the start of the daemon"
    if found.vectors_s is not None:
        return f"{start}: {words}, vectors complete after {duration(found.vectors_s)} ({found.model})."
    reason = f": {one_line(found.reason)}" if found.reason else ""
    return f"{start}: {words}.\n{paint(f'No vectors here{reason}. What needs them will not be found.', 'yellow')}"


def question_text(number: int, asked: DemoAnswer, paint: Paint) -> str:
    """A question with its hits."""
    if asked.has_answer:
        verdict = paint("found", "green") if asked.as_it_should else paint("not found", "yellow")
    elif asked.as_it_should:
        verdict = paint("nothing comes back, and nothing should", "green")
    else:
        verdict = paint("nothing should come back, and yet", "yellow")
    head = f"{paint(f'{number}. {asked.about}', 'bold')}: {asked.query}\n   {verdict} ({duration(asked.took_ms / 1000)})"
    return "\n".join([head, *_shown(asked.hits, paint)])


def edit_text(edit: EditFound, paint: Paint) -> str:
    """The edit, and how soon it was found."""
    head = f"{paint('An edit', 'bold')}: one more line in {edit.path}, then at once: {edit.query}"
    if edit.took_ms is None:
        return f"{head}\n   {paint('not found', 'yellow')}"
    verdict = f"{paint('found', 'green')} {duration(edit.took_ms / 1000)} after it was written"
    return "\n".join([head, f"   {verdict}", *_shown(edit.hits, paint)])


def group_text(group: GroupComparison, paint: Paint) -> str:
    """What the same question finds in a private chat and in a group."""
    head = f"{paint('A group chat', 'bold')} asks: {group.query}"
    if group.sees_private:
        return f"{head}\n   {paint('it gets lines of MEMORY.md or USER.md', 'red')}"
    seen = f"{counted(len(group.group_paths), 'hit')}, none of MEMORY.md or USER.md"
    yours = ", ".join(dict.fromkeys(group.owner_paths)) or "nothing"
    return f"{head}\n   {paint(seen, 'green')}; to you the same question gives {yours}"


def _shown(found: list[Hit], paint: Paint) -> list[str]:
    """The first hit as search prints it, of the others where they are."""
    if not found:
        return []
    return [
        hits_text(found[:1], paint),
        *(f"also {hit_headline(hit, paint)}" for hit in found[1:]),
    ]
