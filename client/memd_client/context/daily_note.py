"""Finds the daily notes of a day in the user's time zone, and appends to today's, with any number of concurrent writers."""

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal

import msgspec

from memd_client.context.safe_open import opened_directory, opened_file, opened_workspace
from memd_client.errors import MemdClientError
from memd_client.note_encoding import decode_note

LONGEST_BYTES = 1 << 20  # of one block; a longer one must be a mistake

_LOCKED_S = 0.005  # between two attempts, as no system call waits for a lock with a timeout
# Both would show a person other text than is written: a terminal obeys the former, and the latter turn the order of signs round.
_CONTROLS = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_DIRECTIONS = "\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(f"[{_CONTROLS}{_DIRECTIONS}]")
_OTHER_LINE_END = re.compile("[\v\f\x85]|\r(?!\n)")
# A network mount may not support locks. O_APPEND alone still loses nothing; a block may be written twice.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class NoteNotWritten(MemdClientError):
    """Nothing was appended.

    Attributes:
        path: The note, relative to the workspace.
        reason: Why, in a few words.
    """

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{path} was not written: {reason}.", hint)
        self.args = (path, reason, hint)
        self.path = path
        self.reason = reason


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an append.

    ``appended``: the text is at the end of the note. ``repeated``: the note contained all of it before.
    ``empty``: there was no text. In the last two cases nothing was written.
    """

    outcome: Literal["appended", "repeated", "empty"]
    path: str  # relative to the workspace: memory/2026-02-09.md
    written: str = ""  # what was appended, without the line breaks around it
    line: int = 0  # first line of it, from 1


def append_daily_note(
    workspace: str | os.PathLike[str], text: str, now: datetime, zone: tzinfo, *, patience_s: float = 10.0
) -> Appended:
    """Append a block of Markdown to today's note; the rest of the note is unchanged.

    The block is written by one write under a lock, after a blank line, and is on disk when this returns. A
    block that the note already contains is not written again, and of a block that begins with the whole note,
    as models write when asked to "update the file", only the new part is written. ``memory/`` is created
    (0700) if missing, the note is created 0600, and no symlink is followed below the workspace.

    Args:
        workspace: The agent's workspace, which must exist.
        text: Markdown. Control characters and changes of direction are left out; see plain_text.
        now: The time, with its time zone.
        zone: The user's time zone, which determines the day.
        patience_s: How long to wait for other writers, in seconds. Call it on a thread if there is an event
            loop.

    Raises:
        NoteNotWritten: no permission, no space, a symlink or something else in place of the note, a note in
            another encoding than UTF-8, a text that is too long, or another writer that does not end.
        ValueError: now has no time zone.
    """
    day = local_day(now, zone)
    path = note_path(day)
    block = plain_text(text).strip("\r\n\ufeff").rstrip()
    if not block.strip():
        return Appended(outcome="empty", path=path)
    if len(block.encode("utf-8", "replace")) > LONGEST_BYTES:
        raise NoteNotWritten(path, f"the text has more than {LONGEST_BYTES:,} bytes", "Write a shorter one.")
    try:
        with opened_workspace(workspace) as base:
            _make_directory(base)
            with (
                opened_directory(base, NOTES_DIRECTORY) as directory,
                _locked(directory, note_name(day), path, time.monotonic() + patience_s) as note,
            ):
                written, line = _append(note, block, path)
                if written:
                    os.fsync(directory)
    except OSError as failure:
        raise _explained(failure, path, os.fspath(workspace)) from failure
    return Appended(outcome="appended" if written else "repeated", path=path, written=written, line=line)


def plain_text(text: str) -> str:
    """Return a text without control characters and changes of direction, so that a person sees what is written.

    Tabs and line ends stay; a line that ends with CR, VT, FF or NEL ends with LF then. Of a sequence that moves the cursor of a terminal,
    what follows ESC stays, and is seen. U+202A to U+202E and U+2066 to U+2069 embed, override and isolate; marks of direction such as
    U+200F stay, since languages that are written from right to left need them.
    """
    return _UNSEEN.sub("", _OTHER_LINE_END.sub("\n", text))


def _make_directory(base: int) -> None:
    try:
        os.mkdir(NOTES_DIRECTORY, 0o700, dir_fd=base)
    except FileExistsError:
        return
    os.fsync(base)


@contextmanager
def _locked(directory: int, name: str, path: str, deadline: float) -> Iterator[int]:
    """Open and lock the note; yield its descriptor once it is locked and still the file of that name."""
    while True:
        with opened_file(directory, name, os.O_RDWR | os.O_APPEND | os.O_CREAT) as note:
            _lock(note, path, deadline)
            # An editor that saves by renaming may have put another file there, and an append to the old one
            # would be lost.
            if _is_at(note, directory, name):
                yield note
                return


def _lock(note: int, path: str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Writers take milliseconds, but one that was stopped in the middle may hold the lock forever.
            if time.monotonic() >= deadline:
                raise NoteNotWritten(path, "another writer has it locked", "Try again later.") from None
            time.sleep(_LOCKED_S)
        except OSError as failure:
            if failure.errno not in _NO_LOCKS:
                raise
            return
        else:
            return


def _is_at(note: int, directory: int, name: str) -> bool:
    try:
        there = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(note), there)


def _append(note: int, block: str, path: str) -> tuple[str, int]:
    """Append the new part of a block; return it, with its first line."""
    content = _read(note)
    decoded = decode_note(content)
    if decoded.encoding != "utf-8":
        # With text in two encodings, editors would show one of them as garbage, and save that.
        name = decoded.encoding.upper()
        raise NoteNotWritten(path, f"it is {name}, and not UTF-8", "Save the note as UTF-8.")
    if not (new := unsaid(block, decoded.text)):
        return "", 0
    apart = b"" if not content else b"\n" if content.endswith(b"\n") else b"\n\n"
    data = apart + new.encode("utf-8", "replace") + b"\n"
    done = os.write(note, data)
    if done < len(data):
        # The disk is full. Half a block would look like a whole one, and a retry would not recognise it.
        if os.fstat(note).st_size == len(content) + done:
            os.ftruncate(note, len(content))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(note)
    return new, (content + apart).count(b"\n") + 1


def _read(note: int) -> bytes:
    content = bytearray()
    while piece := os.pread(note, 1 << 20, len(content)):
        content += piece
    return bytes(content)


def _explained(failure: OSError, path: str, workspace: str) -> NoteNotWritten:
    reason = failure.strerror or str(failure)
    match failure.errno:
        case errno.ELOOP | errno.ENOTDIR | errno.EMLINK:
            return NoteNotWritten(
                path, "a symlink, or something else, is in its place", f"Look at {workspace}."
            )
        case errno.ENOENT:
            return NoteNotWritten(path, f"there is no workspace {workspace}", "Make it, or name another one.")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return NoteNotWritten(path, reason, f"Check who may write to {workspace}.")
        case _:
            return NoteNotWritten(path, reason)


def unsaid(block: str, note: str) -> str:
    """Return the part of a block that is new to a note; empty if the note contains the block.

    Lines are compared without regard to spaces, and blank lines do not count. The note contains a block if
    the block's lines are consecutive in it; of a block that begins with all lines of the note, what follows
    them is new. Nothing less counts as repeated: the same heading or "- done" may well be meant a second
    time.
    """
    said = [folded for line in note.splitlines() if (folded := _folded(line))]
    lines = block.splitlines()
    folded_lines = [(at, folded) for at, line in enumerate(lines) if (folded := _folded(line))]
    if _stretch(folded for _, folded in folded_lines) in _stretch(said):
        return ""
    if said and [folded for _, folded in folded_lines[: len(said)]] == said:
        return "\n".join(lines[folded_lines[len(said)][0] :])
    return block


def _folded(line: str) -> str:
    return " ".join(line.replace("\ufeff", "").split())


def _stretch(lines: Iterable[str]) -> str:
    # With a line break at both ends, so that a line does not match a part of another.
    return "\n" + "".join(f"{line}\n" for line in lines)


NOTES_DIRECTORY = "memory"

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(-[^/\\]+)?\.md", re.ASCII)


def local_day(now: datetime, zone: tzinfo) -> date:
    """Return the day in the user's time zone.

    Args:
        now: A time with a time zone.
        zone: The user's time zone.

    Raises:
        ValueError: now has no time zone.
    """
    if now.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(timezone.utc)")
    return now.astimezone(zone).date()


def note_name(day: date) -> str:
    """Return the file name of a day's note: ``2026-02-09.md``."""
    return f"{day.isoformat()}.md"


def note_path(day: date) -> str:
    """Return the path of a day's note in the workspace: ``memory/2026-02-09.md``."""
    return f"{NOTES_DIRECTORY}/{note_name(day)}"


def recent_notes(names: Iterable[str], today: date, *, days: int = 2, slugged: int = 4) -> list[str]:
    """Return the notes of the last days, newest day first.

    Args:
        names: The file names in memory/.
        today: The first day.
        days: How many days, including today.
        slugged: How many notes like ``2026-02-09-standup.md`` are returned per day in addition to the plain
            one; the last by name, which for ``-0930`` and the like are the latest.
    """
    by_day: dict[str, list[str]] = {}
    for name in names:
        # Names are shown in the prompt: one with a line break could pretend to be something else.
        if name.isprintable() and (dated := _DATED.fullmatch(name)):
            by_day.setdefault(dated[1], []).append(name)
    chosen: list[str] = []
    for back in range(min(days, today.toordinal())):
        day = today - timedelta(days=back)
        of_day = by_day.get(day.isoformat(), [])
        plain = note_name(day)
        chosen += [plain] * (plain in of_day)
        chosen += sorted((name for name in of_day if name != plain), reverse=True)[: max(0, slugged)]
    return chosen
