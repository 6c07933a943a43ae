"""Daily notes: which belong to a day, as the user's clock has it, and appending to today's, by any number of writers at once."""

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

from memd_client.context.open_below import opened_directory, opened_file, opened_workspace
from memd_client.errors import MemdClientError

LONGEST_BYTES = 1 << 20  # of one block; more is no note but a mistake

_LOCKED_S = 0.005  # between two tries: no system call waits for a lock and for a time
# A network mount may have no locks. O_APPEND alone still loses nothing; it may only write a block twice.
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
    """What an append did.

    ``appended``: the text stands at the end of the note. ``repeated``: the note said all of it before. ``empty``: there
    was no text. In the last two cases the disk is as it was.
    """

    outcome: Literal["appended", "repeated", "empty"]
    path: str  # relative to the workspace: memory/2026-02-09.md
    written: str = ""  # what was appended, without the line breaks around it
    line: int = 0  # on which that begins, from 1


def append_daily_note(
    workspace: str | os.PathLike[str], text: str, now: datetime, zone: tzinfo, *, patience_s: float = 10.0
) -> Appended:
    """Append a block of Markdown to today's note; what is in the note stays as it is.

    The block is written by one write under a lock, a blank line before it, and is on the disk when this returns. A
    block that the note already holds is not written again, and of a block that begins with the whole note, as models
    write that were asked to "update the file", only what is new. ``memory/`` is made (0700) if it is not there, the
    note is made 0600, and no symlink is followed below the workspace.

    Args:
        workspace: The workspace of the agent; it must be there.
        text: Markdown. NUL is left out.
        now: The time, with its time zone.
        zone: The time zone of the user, whose day it is that counts.
        patience_s: How long to wait for other writers, in seconds. With an event loop, call it in a thread.

    Raises:
        NoteNotWritten: no permission, no room, a symlink or something else in the place of the note, too long, or
            another writer that does not end.
        ValueError: now has no time zone.
    """
    day = local_day(now, zone)
    path = note_path(day)
    block = text.replace("\0", "").strip("\r\n\ufeff").rstrip()
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
                written, line = _append(note, block)
                if written:
                    os.fsync(directory)
    except OSError as failure:
        raise _explained(failure, path, os.fspath(workspace)) from failure
    return Appended(outcome="appended" if written else "repeated", path=path, written=written, line=line)


def _make_directory(base: int) -> None:
    try:
        os.mkdir(NOTES_DIRECTORY, 0o700, dir_fd=base)
    except FileExistsError:
        return
    os.fsync(base)


@contextmanager
def _locked(directory: int, name: str, path: str, deadline: float) -> Iterator[int]:
    """The note, open and locked, and still the file of that name once the lock is held."""
    while True:
        with opened_file(directory, name, os.O_RDWR | os.O_APPEND | os.O_CREAT) as note:
            _lock(note, path, deadline)
            # An editor that saves by renaming may have put another file there meanwhile. What is appended to the
            # old one would be gone.
            if _is_at(note, directory, name):
                yield note
                return


def _lock(note: int, path: str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Whoever writes takes milliseconds. A process that was stopped in the middle may take for ever.
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


def _append(note: int, block: str) -> tuple[str, int]:
    """Write what of a block is new, and give it back, with the line that it begins on."""
    content = _read(note)
    if not (new := unsaid(block, content.decode("utf-8", "replace"))):
        return "", 0
    apart = b"" if not content else b"\n" if content.endswith(b"\n") else b"\n\n"
    data = apart + new.encode("utf-8", "replace") + b"\n"
    done = os.write(note, data)
    if done < len(data):
        # The disk is full. Half a block would look like a whole one, and the next try would not recognise it.
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
    """The part of a block that is new to a note; empty where the note holds the block already.

    Lines are compared without regard to blanks, and blank lines do not count. The note holds a block whose lines stand
    in it one after the other; of a block that begins with all lines of the note, what follows them is new. Nothing less
    counts as repeated: the same heading or "- done" may well be meant a second time.
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
    # With a break at both ends, so that a line is not taken for a part of another.
    return "\n" + "".join(f"{line}\n" for line in lines)


NOTES_DIRECTORY = "memory"

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(-[^/\\]+)?\.md", re.ASCII)


def local_day(now: datetime, zone: tzinfo) -> date:
    """The day that it is where the user lives.

    Args:
        now: A moment; it must know its own time zone.
        zone: The time zone of the user.

    Raises:
        ValueError: the moment has no time zone, so nobody can say which day it is elsewhere.
    """
    if now.tzinfo is None:
        raise ValueError("now has no time zone; use datetime.now(timezone.utc)")
    return now.astimezone(zone).date()


def note_name(day: date) -> str:
    """The file name of a day's note: ``2026-02-09.md``."""
    return f"{day.isoformat()}.md"


def note_path(day: date) -> str:
    """The path of a day's note in the workspace: ``memory/2026-02-09.md``."""
    return f"{NOTES_DIRECTORY}/{note_name(day)}"


def recent_notes(names: Iterable[str], today: date, *, days: int = 2, slugged: int = 4) -> list[str]:
    """The notes of the last days, the newest day first.

    Args:
        names: The file names in memory/.
        today: The day to begin with.
        days: How many days, today included.
        slugged: How many notes like ``2026-02-09-standup.md`` a day may have beside the plain one; the last by
            name, which for ``-0930`` and the like are the latest.
    """
    by_day: dict[str, list[str]] = {}
    for name in names:
        # A name is shown in the prompt: one with a line break in it could pretend to be something else.
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
