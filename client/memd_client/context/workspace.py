"""Reads the workspace files of a system prompt, and of each file no more than can be shown."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import date, datetime, tzinfo

from memd_client.context.bootstrap import (
    PRIVATE,
    PRIVATE_ELSEWHERE,
    Bootstrap,
    Ends,
    Limits,
    Missing,
    Unreadable,
    Whole,
    WorkspaceFile,
    bootstrap,
    file_names,
    gets_notes,
    is_given,
)
from memd_client.context.daily_note import NOTES_DIRECTORY, local_day, recent_notes
from memd_client.context.safe_open import (
    Identity,
    opened_directory,
    opened_file,
    opened_to_read,
    opened_workspace,
)
from memd_client.context.session_kind import SessionKind
from memd_client.note_encoding import decode_ends, decode_note

_REPLACEMENT = "\ufffd"
_BYTES_A_CHAR = 4  # at most, in UTF-8 and UTF-16


def bootstrap_workspace(
    workspace: str | os.PathLike[str],
    kind: SessionKind,
    now: datetime,
    zone: tzinfo,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> Bootstrap:
    """Return the part of a session's system prompt that comes from the workspace.

    Files, or a workspace, that cannot be read raise no error; the prompt says so.

    Args:
        workspace: The directory with AGENTS.md, MEMORY.md and the like.
        kind: See memd_client.context.session_kind.
        now: The time, with its time zone.
        zone: The user's time zone, which determines today and yesterday.
        limits: The most characters of a file, and of all files together.

    Raises:
        ValueError: now has no time zone.
    """
    return bootstrap(read_workspace(workspace, kind, now, zone, limits), kind, limits)


def read_workspace(
    workspace: str | os.PathLike[str],
    kind: SessionKind,
    now: datetime,
    zone: tzinfo,
    limits: Limits = Limits(),  # noqa: B008  frozen
) -> list[WorkspaceFile]:
    """Return the workspace files that a kind of session gets, in the order of the prompt.

    A symlink is followed only if it leads directly to a Markdown file of the workspace, such as AGENTS.md to CLAUDE.md. A
    file that is MEMORY.md, USER.md or a daily note under another name is not read for a session that may not see those.
    At most 8 bytes per character that can be shown are read of a file, from both ends.
    """
    today = local_day(now, zone)
    names = file_names(kind)
    try:
        with opened_workspace(workspace) as base:
            private, private_names = _private(base, kind), _private_names(kind)
            files = [_read_curated(base, name, limits.file_chars, private, private_names) for name in names]
            if gets_notes(kind):
                files += _read_notes(base, today, limits.note_chars)
            return files
    except OSError as failure:
        return [_failed(name, failure) for name in names]


def _read_curated(
    base: int, name: str, chars: int, private: frozenset[Identity], private_names: frozenset[str]
) -> WorkspaceFile:
    file = _read(opened_to_read(base, name, private, private_names), name, chars)
    if isinstance(file, Missing) and name == "MEMORY.md":
        older = _read(opened_to_read(base, "memory.md", private, private_names), "memory.md", chars)
        return file if isinstance(older, Missing) else older
    return file


def _read_notes(base: int, today: date, chars: int) -> Iterator[WorkspaceFile]:
    try:
        with opened_directory(base, NOTES_DIRECTORY) as directory:
            for name in recent_notes(_names(directory), today):
                yield _read(opened_file(directory, name, os.O_RDONLY), f"{NOTES_DIRECTORY}/{name}", chars)
    except FileNotFoundError:
        return
    except OSError as failure:
        yield _failed(f"{NOTES_DIRECTORY}/", failure)


def _names(directory: int) -> Iterator[str]:
    with os.scandir(directory) as entries:
        yield from (entry.name for entry in entries)


def _read(opened: AbstractContextManager[int], shown: str, chars: int) -> WorkspaceFile:
    try:
        with opened as descriptor:
            size = os.fstat(descriptor).st_size
            return _decoded(descriptor, shown, size, max(1, chars) * _BYTES_A_CHAR)
    except OSError as failure:
        return _failed(shown, failure)


def _decoded(descriptor: int, shown: str, size: int, piece: int) -> WorkspaceFile:
    """Return a file: whole if it has at most two pieces of bytes, else its first and last piece."""
    if size <= 2 * piece:
        data = _pread(descriptor, 2 * piece, 0)
        return Whole(shown, _without_nul(decode_note(data).text))
    at = (size - piece) & ~1  # between two units of UTF-16
    beginning, end = decode_ends(_pread(descriptor, piece, 0), _pread(descriptor, size - at, at))
    return Ends(shown, _without_nul(beginning), _without_nul(end), size)


def _pread(descriptor: int, length: int, at: int) -> bytes:
    data = bytearray()
    while piece := os.pread(descriptor, length - len(data), at + len(data)):
        data += piece
    return bytes(data)


def _without_nul(text: str) -> str:
    """Replace NUL characters: some providers refuse a prompt with one."""
    return text.replace("\0", _REPLACEMENT)


def _private(base: int, kind: SessionKind) -> frozenset[Identity]:
    """Return the identities of existing files and directories that a kind of session may not see."""
    names = [name for name in PRIVATE if not is_given(name, kind)]
    found = set()
    for name in names if gets_notes(kind) else [*names, NOTES_DIRECTORY]:
        try:
            status = os.stat(name, dir_fd=base)
        except OSError:
            continue
        found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def _private_names(kind: SessionKind) -> frozenset[str]:
    """Return the case-folded names of files and directories that a kind of session may not see in any directory."""
    names = [name for name in PRIVATE if not is_given(name, kind)]
    return frozenset(
        name.casefold()
        for name in (names if gets_notes(kind) else [*names, *PRIVATE_ELSEWHERE, NOTES_DIRECTORY])
    )


def _failed(name: str, failure: OSError) -> WorkspaceFile:
    if isinstance(failure, FileNotFoundError):
        return Missing(name)
    return Unreadable(name, failure.strerror.lower() if failure.strerror else str(failure))
