"""Decides which workspace files go into a system prompt, and how much of each.

All sizes are in characters. The limits are those of OpenClaw 2026.9, and so is the rule that the beginning of a file that is
too long gets three quarters of the room. A shared session never gets MEMORY.md, USER.md or a daily note; an unknown kind of
session counts as shared.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from memd_client.context.session_kind import SessionKind
from memd_client.context.truncate import ends, head
from memd_client.watermark import inert, marked

FILE_CHARS = 20_000
TOTAL_CHARS = 60_000
USER_CHARS = 4_000
NOTE_CHARS = 1_200
NOTES_CHARS = 2_800

_HEAD_SHARE = 0.75
_NOTE_HEAD_SHARE = 0.2  # entries are appended to a note, so its end is the most recent
_LEAST_CHARS = 64  # less of a file than this is not worth a heading
_APART = "\n\n"
MARK_CHARS = len(marked("", "workspace"))

PRIVATE = ("MEMORY.md", "memory.md", "USER.md")  # only for the owner
# Likewise, but in any directory: what Gemini CLI and Codex store about their user.
PRIVATE_ELSEWHERE = (
    "GEMINI.md",
    "memory_summary.md",
)

_SHARED_FILES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md")
_ALL_FILES = (*_SHARED_FILES, "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md")
_FILES: Mapping[SessionKind, tuple[str, ...]] = MappingProxyType(
    {
        "main": _ALL_FILES,
        "direct": _ALL_FILES,
        "cron": (*_SHARED_FILES, "USER.md"),
        "subagent": ("AGENTS.md", "TOOLS.md"),
        "group": _SHARED_FILES,
        "channel": _SHARED_FILES,
        "unknown": _SHARED_FILES,
    }
)
_WITH_NOTES: frozenset[SessionKind] = frozenset({"main", "direct"})


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most characters of the workspace in a system prompt."""

    file_chars: int = FILE_CHARS
    total_chars: int = TOTAL_CHARS  # headings included
    user_chars: int = USER_CHARS  # of USER.md
    note_chars: int = NOTE_CHARS  # of a daily note
    notes_chars: int = NOTES_CHARS  # of all of them, headings included


class Whole(msgspec.Struct, frozen=True):
    """A file that was read as a whole."""

    name: str  # its path in the workspace
    text: str


class Ends(msgspec.Struct, frozen=True):
    """A file of which only the beginning and the end were read, since no more can be shown."""

    name: str
    beginning: str  # at least as many characters as may be shown
    end: str
    size_bytes: int


class Missing(msgspec.Struct, frozen=True):
    """A file that does not exist."""

    name: str


class Unreadable(msgspec.Struct, frozen=True):
    """A file that exists but cannot be read."""

    name: str
    reason: str


WorkspaceFile = Whole | Ends | Missing | Unreadable
State = Literal["whole", "truncated", "missing", "unreadable", "empty", "left_out"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One file, as it is in the prompt."""

    name: str
    state: State  # left_out: the total was used up
    raw: int  # its size in characters, or in bytes if it was not read as a whole
    raw_unit: Literal["characters", "bytes"] = "characters"
    text: str = ""  # in the prompt, heading included


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """The workspace, as it is in a system prompt."""

    # A marked block (memd_client.watermark), at most total_chars; empty if no file has content.
    text: str
    parts: tuple[Part, ...]


def file_names(kind: SessionKind) -> tuple[str, ...]:
    """Return the workspace files that a kind of session gets, in the order of the prompt; daily notes are not among them."""
    return _FILES.get(kind, _SHARED_FILES)


def is_given(name: str, kind: SessionKind) -> bool:
    """Return whether a kind of session gets a file; memory.md is the older name of MEMORY.md."""
    return ("MEMORY.md" if name == "memory.md" else name) in file_names(kind)


def gets_notes(kind: SessionKind) -> bool:
    """Return whether a kind of session gets the notes of today and yesterday."""
    return kind in _WITH_NOTES


def bootstrap(
    files: Sequence[WorkspaceFile],
    kind: SessionKind,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> Bootstrap:
    """Format the files of a workspace as one text for the system prompt.

    Files that the kind of session does not get are ignored. A missing file is named in the prompt if an agent needs it
    (AGENTS.md, SOUL.md, TOOLS.md, IDENTITY.md), so that the model can report it; other files are optional. The middle of a
    file that is too long is replaced by a mark that names the file.

    Args:
        files: The files in the order of the prompt; memd_client.context.workspace reads them from the disk.
        kind: See memd_client.context.session_kind.
        limits: The most characters of a file, and of all files together.
    """
    parts: list[Part] = []
    left, left_for_notes = max(0, limits.total_chars - MARK_CHARS), max(0, limits.notes_chars)
    for file in files:
        is_note = file.name.startswith("memory/")
        if not (gets_notes(kind) if is_note else is_given(file.name, kind)):
            continue
        part = _part(file, _cap(file.name, limits), min(left, left_for_notes) if is_note else left)
        left -= len(part.text)
        left_for_notes -= len(part.text) if is_note else 0
        parts.append(part)
    text = "".join(part.text for part in parts)
    return Bootstrap(text=marked(text, "workspace") if text else "", parts=tuple(parts))


def _cap(name: str, limits: Limits) -> int:
    if name.startswith("memory/"):
        return limits.note_chars
    return min(limits.user_chars, limits.file_chars) if name == "USER.md" else limits.file_chars


def _part(file: WorkspaceFile, cap: int, room: int) -> Part:
    """Format a file in at most `cap` characters, and in at most `room` characters with its heading."""
    raw, unit = _size(file)
    heading = f"## {file.name}\n\n"
    space = room - len(heading) - len(_APART)
    state, body = _shown(file, cap)
    if body and len(body) > space:
        if space >= _LEAST_CHARS:
            state, body = _shown(file, space)
        else:
            state, body = "left_out" if raw else state, ""
    text = f"{heading}{body}{_APART}" if body else ""
    return Part(name=file.name, state=state, raw=raw, raw_unit=unit, text=text)


def _size(file: WorkspaceFile) -> tuple[int, Literal["characters", "bytes"]]:
    match file:
        case Whole():
            return len(file.text), "characters"
        case Ends():
            return file.size_bytes, "bytes"
        case Missing() | Unreadable():
            return 0, "characters"


def _shown(file: WorkspaceFile, cap: int) -> tuple[State, str]:
    """Return the state of a file, and at most `cap` characters to show."""
    cap = max(0, cap)
    match file:
        case Missing():
            notice = f"[MISSING] Expected at: {file.name}" if file.name in _SHARED_FILES else ""
            return "missing", head(notice, cap)
        case Unreadable():
            return "unreadable", head(f"[UNREADABLE] {file.name}: {file.reason}", cap)
        case Whole():
            text = inert(file.text.strip("\r\n").rstrip())
            if not text.strip():
                return "empty", ""
            if len(text) <= cap:
                return "whole", text
            return "truncated", _both_ends(file.name, text, text, f"{len(text):,} characters", cap)
        case Ends():
            size = f"{file.size_bytes:,} bytes"
            return "truncated", _both_ends(file.name, inert(file.beginning), inert(file.end), size, cap)


def _both_ends(name: str, beginning: str, end: str, size: str, cap: int) -> str:
    mark = (
        f"\n\n[... {name} has {size}, too many to be shown here; read the file for what is missing ...]\n\n"
    )
    share = _NOTE_HEAD_SHARE if name.startswith("memory/") else _HEAD_SHARE
    return ends(beginning, end, cap, head_share=share, mark=mark)
