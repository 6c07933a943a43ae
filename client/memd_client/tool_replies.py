"""Builds the replies of the memory tools to a model: camelCase JSON of limited length. Pure.

As an agent's context window is limited, so is a reply: hits that do not fit are left out whole, the last
first, and an excerpt ends at a line. An error that the model can correct has ``error`` and ``action``; one
that a person must correct also has ``disabled``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from memd_client.errors import ConnectionLost, MemdClientError, RequestFailed
from memd_client.messages import Found, Hit, Note
from memd_client.tool_arguments import GET, Unusable

Reply = dict[str, Any]

LEAST_CHARS = 1_000  # smallest limit of a reply; every error message fits into it
_STUMP_CHARS = 40  # a shorter part of a snippet is useless
_NAME_CHARS = 80
_REASON_CHARS = 200
_LEAST_EXCERPT = 100  # smallest excerpt, in characters, that the daemon accepts
_FAR = 2**53  # no nextLine is larger
_LOOK = "`memd-ctl status` says how memd is, `memd-ctl doctor` what is wrong and how to fix it."

# What a person can do, if the daemon gives no hint.
_ACTIONS = {
    "unknown_agent": "`memd-ctl status` lists the agents; give the tools the name of one, or add it to the configuration.",
    "busy": "Try again in a moment.",
    "timed_out": "Try again in a moment; `memd-ctl status` tells what memd is busy with.",
    "unavailable": f"Try again in a moment. {_LOOK}",
    "internal": "`memd-ctl logs` has the details; `memd-ctl doctor` tells what is wrong with the installation.",
    "unsupported": "Upgrade memd-daemon to the version of memd-client, then restart it.",
    "denied": "The scope rules of memd's configuration decide which conversations may search.",
}
_DENIED = "This conversation may not search this memory: its owner decides who may, in memd's scope rules. Answer without it."
_SESSIONS = "sessions/"  # prefix of the paths of transcripts
_FEWER = "text is only the beginning of these lines; ask for fewer lines to read all of them"
# Errors of one request, after which another may succeed.
_OF_THE_REQUEST = frozenset({"bad_request", "too_large"})


def encoded(reply: Reply) -> str:
    """Return the reply as JSON, in the form whose length is limited."""
    return msgspec.json.encode(reply).decode()


def search_reply(found: Found, remarks: Sequence[str], max_chars: int) -> Reply:
    """Return the reply of memory_search.

    Args:
        found: The daemon's reply.
        remarks: Remarks on the arguments of the call.
        max_chars: The most characters of the encoded reply, LEAST_CHARS or more.
    """
    if found.scope_denied:
        # Not an error: the owner wants it so, and the agent continues.
        return {"results": [], "scopeDenied": True, **_remarked([*remarks, _DENIED])}
    head = _head(found, remarks, max_chars)
    kept: list[Reply] = []
    in_all = len(found.results) + found.omitted
    for hit in found.results:
        if not _fits(_with(head, [*kept, _hit(hit)], in_all), max_chars):
            break
        kept.append(_hit(hit))
    if not kept and found.results:
        kept = _cut(found.results[0], lambda hit: _fits(_with(head, [hit], in_all), max_chars))
    return _with(head, kept, in_all)


def get_reply(note: Note, remarks: Sequence[str], max_chars: int) -> Reply:
    """Return the reply of memory_get; the arguments are those of search_reply."""
    if note.missing:
        # No error: models often ask for a note that is not written yet.
        return {"path": note.path[:_REASON_CHARS], "text": "", "missing": True, **_remarked(remarks)}
    whole = _excerpt(note, note.text, note.end_line, note.next_line, remarks)
    if _fits(whole, max_chars):
        return whole
    if note.path.startswith(_SESSIONS):
        return _cut_turns(note, remarks, max_chars)
    lines = note.text.split("\n")

    def of_lines(count: int) -> Reply:
        end_line = note.start_line + count - 1
        return _excerpt(note, "\n".join(lines[:count]), end_line, end_line + 1, remarks)

    count = _most(len(lines) - 1, lambda some: _fits(of_lines(some), max_chars))
    if count:
        return of_lines(count)
    following = note.start_line + 1 if len(lines) > 1 or note.next_line is not None else None

    def of_chars(count: int) -> Reply:
        text = f"{lines[0][:count]}…"
        return {**_excerpt(note, text, note.start_line, following, remarks), "truncated": True}

    return of_chars(_most(len(lines[0]), lambda some: _fits(of_chars(some), max_chars)))


def shorter(note: Note, remarks: Sequence[str], max_chars: int) -> list[int]:
    """Return the excerpt lengths to ask for if the reply is too long, largest first; empty if it fits.

    Lines of a note can be left out here. Only the daemon knows where a line continues that is too long by
    itself, and on which lines of a transcript its turns are.
    """
    text = note.text if note.path.startswith(_SESSIONS) else note.text.partition("\n")[0]
    shown = _excerpt(note, text, note.end_line, note.next_line, remarks)
    if not text or _fits(shown, max_chars):
        return []
    around = len(encoded({**shown, "text": "", "nextLine": _FAR}))
    # Line ends and quotation marks take two characters in JSON.
    written = len(encoded({"text": text})) / len(text)
    room = (max_chars - around) / written
    return [chars for share in (0.95, 0.7, 0.4) if (chars := int(room * share)) >= _LEAST_EXCERPT]


def _cut_turns(note: Note, remarks: Sequence[str], max_chars: int) -> Reply:
    """Return the beginning of some turns; the lines of the transcript on which the rest is are unknown here."""
    is_alone = note.end_line <= note.start_line  # all turns are on one line, so fewer cannot be requested
    following = note.next_line if is_alone else None
    shown_remarks = remarks if is_alone else [*remarks, _FEWER]

    def of_chars(count: int) -> Reply:
        text = f"{note.text[:count]}…"
        return {**_excerpt(note, text, note.start_line, following, shown_remarks), "truncated": True}

    return of_chars(_most(len(note.text), lambda some: _fits(of_chars(some), max_chars)))


def invalid_arguments(tool: str, unusable: Unusable) -> Reply:
    """Return the reply to a call with invalid arguments, which the model can correct."""
    return _trouble(tool, unusable.message, unusable.action, disabled=False)


def unavailable(tool: str, error: MemdClientError) -> Reply:
    """Return the reply for an error of the daemon or the connection, with what a person can do."""
    match error:
        case RequestFailed(code=code) if code in _OF_THE_REQUEST:
            action = error.hint or f"Call {tool} again, with other arguments."
            return _trouble(tool, error.message, action, disabled=False)
        case RequestFailed():
            action = error.hint or _ACTIONS.get(error.code, _LOOK)
        case ConnectionLost():
            action = error.hint or f"Try again. {_LOOK}"
        case _:
            action = error.hint or _LOOK
    return _trouble(tool, error.message, action)


def _trouble(tool: str, error: str, action: str, *, disabled: bool = True) -> Reply:
    empty: Reply = {"results": []} if tool != GET else {"results": [], "text": ""}
    if disabled:
        empty["disabled"] = True
    return {**empty, "error": _short(error), "action": _short(action)}


def _head(found: Found, remarks: Sequence[str], max_chars: int) -> Reply:
    """Return the reply without its hits; details are dropped if they take more than half of the room."""
    head: Reply = {
        "provider": found.provider[:_NAME_CHARS],
        "model": found.model[:_NAME_CHARS],
        "backend": found.backend[:_NAME_CHARS],
        "mode": found.mode[:_NAME_CHARS],
        "fallback": found.fallback,
        "citations": found.citations,
    }
    if found.fallback_from is not None:
        head["fallbackFrom"] = found.fallback_from[:_NAME_CHARS]
    if found.fallback_reason is not None:
        head["fallbackReason"] = _short(found.fallback_reason)
    if found.stale:
        head["stale"] = True
    if found.degraded:
        head["degraded"] = [
            {"part": one.part[:_NAME_CHARS], "reason": _short(one.reason)} for one in found.degraded
        ]
    head.update(_remarked(remarks))
    for name in ("degraded", "remarks", "fallbackReason", "fallbackFrom"):
        if len(encoded(head)) > max_chars // 2:
            head.pop(name, None)
    return head


def _with(head: Reply, hits: Sequence[Reply], in_all: int) -> Reply:
    left_out = {"omitted": in_all - len(hits)} if len(hits) < in_all else {}
    return {"results": list(hits), **head, **left_out}


def _hit(hit: Hit, snippet: str | None = None) -> Reply:
    # Leading spaces may belong to code or a list, so only the end is stripped.
    text = (hit.snippet if snippet is None else snippet).rstrip()
    fields: Reply = {
        "path": hit.path,
        "startLine": hit.start_line,
        "endLine": hit.end_line,
        "score": round(hit.score, 4),
        "snippet": text if hit.citation is None else f"{text}\n\nSource: {hit.citation}",
        "source": hit.source,
    }
    if hit.date is not None and hit.date not in hit.path:
        fields["date"] = f"{hit.date} (of the file)" if hit.file_date else hit.date
    if hit.own_scale:
        fields["ownScale"] = True
    if hit.weak:
        fields["weak"] = True
    if hit.superseded:
        fields["superseded"] = hit.superseded_by or True
    if hit.copies:
        fields["alsoIn"] = hit.copies
    if hit.memory is not None:
        fields["memory"] = hit.memory
    return fields if hit.citation is None else {**fields, "citation": hit.citation}


def _cut(hit: Hit, fits: Callable[[Reply], bool]) -> list[Reply]:
    """Return the hit with as much of its snippet as fits, or no hit if that is too little."""
    count = _most(len(hit.snippet), lambda some: fits(_hit(hit, f"{hit.snippet[:some]}…")))
    return [_hit(hit, f"{hit.snippet[:count]}…")] if count >= _STUMP_CHARS else []


def _excerpt(note: Note, text: str, end_line: int, next_line: int | None, remarks: Sequence[str]) -> Reply:
    fields: Reply = {
        "path": note.path,
        "text": text,
        "startLine": note.start_line,
    }
    if end_line:
        fields["endLine"] = end_line
    elif note.total_lines is not None:
        fields["totalLines"] = note.total_lines
    if next_line is not None:
        fields["nextLine"] = next_line
    return {**fields, **_remarked(remarks)}


def _remarked(remarks: Sequence[str]) -> Reply:
    return {"remarks": [_short(remark) for remark in remarks]} if remarks else {}


def _fits(reply: Reply, max_chars: int) -> bool:
    return len(encoded(reply)) <= max_chars


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `most` that fits, if all smaller ones do; 0 if none does."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if fits(middle):
            least = middle
        else:
            most = middle - 1
    return least


def _short(text: str) -> str:
    """Return the beginning of a text for people, without characters that JSON encodes in six."""
    text = text[: _REASON_CHARS + 1]
    plain = text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)
    return plain if len(plain) <= _REASON_CHARS else f"{plain[: _REASON_CHARS - 1]}…"
