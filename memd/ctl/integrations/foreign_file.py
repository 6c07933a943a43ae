"""Changing a configuration file that belongs to another program."""

import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memd.ctl.atomic_write import NotWritten, Overtaken, write_text
from memd.ctl.failures import BUSY, Failed
from memd.ctl.integrations.json_edit import NotEditable

_MOST_BYTES = 256 << 20
_TIMES = 5


def change(file: Path, edit: Callable[[str], str], *, name: str, by_hand: str) -> bool:
    """Put the edited text in place of a file; whether anything changed. A missing file is an empty text.

    Args:
        file: What to change. A symbolic link stays, and so does the mode.
        edit: The new text of an old one; the same text where nothing has to change.
        name: What the file is called in messages.
        by_hand: What to do where it cannot be done here, for a hint.

    Raises:
        Failed: the file cannot be read, understood or written; it is as it was.
    """
    for _ in range(_TIMES):
        old = _read(file, name, by_hand)
        try:
            text = old.decode()
            new = edit(text)
        except (NotEditable, UnicodeDecodeError) as error:
            raise Failed("not_changed", f"{name} was left alone: {error}.", by_hand) from error
        if new == text:
            return False
        # Its owner may be running, and writes it as well.
        with suppress(Overtaken):
            _write(file, new, old, by_hand)
            return True
    raise Failed(
        "busy", f"{name} is being written all the time; it was left alone.", "Try again.", exit_code=BUSY
    )


def _read(file: Path, name: str, by_hand: str) -> bytes:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Failed("not_changed", f"{name} is not a regular file; it was left alone.", by_hand)
        if status.st_size > _MOST_BYTES:
            raise Failed(
                "not_changed", f"{name} is too large to be a configuration; it was left alone.", by_hand
            )
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise Failed("not_changed", f"{name} cannot be read: {error.strerror}.", by_hand) from error


def _write(file: Path, text: str, over: bytes, by_hand: str) -> None:
    try:
        write_text(file, text, over=over)
    except NotWritten as error:
        raise Failed("not_changed", f"{error}.", by_hand) from error
