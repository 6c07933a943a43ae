"""Where a command's answer goes: text for a person, in colour where that is wanted, or one JSON document."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, TextIO

import msgspec

from memd.ctl.failures import Failed

Look = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
Paint = Callable[[str, Look], str]

_CODES: dict[Look, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


def uncoloured(text: str, _look: Look) -> str:
    """The text as it is."""
    return text


def ansi(text: str, look: Look) -> str:
    """The text between the codes that set a look and take it back."""
    return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if text else text


def choose_paint(environ: Mapping[str, str], *, terminal: bool, wanted: bool) -> Paint:
    """Colours for a stream, or none.

    Args:
        environ: NO_COLOR (https://no-color.org) and TERM are looked at.
        terminal: Whether the stream is one.
        wanted: False where the command line says --no-color.
    """
    if terminal and wanted and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb":
        return ansi
    return uncoloured


def plain_values(value: object) -> Any:
    """Tables, lists and scalars that say what a value says.

    The structs of the protocol leave out what has its default, for the sake of the socket. Who reads JSON with a
    filter should find every field, so nothing is left out here.
    """
    match value:
        case msgspec.Struct():
            return {name: plain_values(getattr(value, name)) for name in value.__struct_fields__}
        case dict():
            return {str(name): plain_values(member) for name, member in value.items()}
        case list() | tuple():
            return [plain_values(member) for member in value]
        case _:
            return value


class Outcome(msgspec.Struct, frozen=True):
    """What a command came to."""

    data: object  # what --json gives: plain values, or structs
    text: str = ""  # what a person reads; "" where it was said on the way
    notes: tuple[str, ...] = ()  # remarks on it, for stderr
    exit_code: int = 0


class Screen:
    """The two streams of the process.

    Args:
        out: Standard output.
        err: Standard error.
        environ: Decides on colours, with what follows.
        wants_color: False where the command line says --no-color.
        json: One document goes to stdout, at the end.
    """

    def __init__(
        self, out: TextIO, err: TextIO, environ: Mapping[str, str], *, wants_color: bool, json: bool
    ) -> None:
        self._out = out
        self._environ = environ
        self.err = err
        self.json = json
        self.is_terminal = out.isatty()
        self.shows_progress = err.isatty() and environ.get("TERM") != "dumb"
        self.paint = choose_paint(environ, terminal=self.is_terminal, wanted=wants_color)
        self.paint_err = choose_paint(environ, terminal=err.isatty(), wanted=wants_color)
        self.colors = self.paint is ansi
        self.colors_err = self.paint_err is ansi

    @property
    def columns(self) -> int | None:
        """The width of the terminal; None where stdout is none, or its size is not known."""
        return self._size()[0] or None

    @property
    def rows(self) -> int | None:
        """The height of the terminal; None as for columns."""
        return self._size()[1] or None

    @property
    def draws(self) -> bool:
        """Whether stdout is a terminal whose cursor can be moved."""
        return self.is_terminal and self._environ.get("TERM", "dumb") != "dumb"

    def _size(self) -> tuple[int, int]:
        try:
            return os.get_terminal_size(self._out.fileno()) if self.is_terminal else (0, 0)
        except OSError:
            return 0, 0

    def draw(self, text: str) -> None:
        """Write to a terminal exactly this."""
        _write(self._out, text)

    def say(self, text: str) -> None:
        """Print a text at once; nothing where the answer is to be JSON."""
        if not self.json:
            _write(self._out, text if text.endswith("\n") else f"{text}\n")

    def copy(self, data: bytes) -> None:
        """Pass bytes of a file on as they are."""
        self._out.flush()
        self._out.buffer.write(data)
        self._out.buffer.flush()

    def note(self, text: str) -> None:
        """Write a remark to stderr."""
        _write(self.err, f"{text}\n")

    def finish(self, outcome: Outcome) -> int:
        """Give the outcome in the form that was asked for; the exit status."""
        if self.json:
            self._document({"ok": True, "data": plain_values(outcome.data)})
        elif outcome.text:
            self.say(outcome.text)
        for note in outcome.notes:
            self.note(self.paint_err(note, "yellow"))
        return outcome.exit_code

    def fail(self, failed: Failed) -> int:
        """Say what is wrong in the form that was asked for; the exit status."""
        if self.json:
            error = {"type": failed.kind, "message": failed.message, "hint": failed.hint}
            self._document({"ok": False, "error": error})
        else:
            self.note(f"memd-ctl: {self.paint_err(failed.message, 'red')}")
            if failed.hint:
                self.note(failed.hint)
        return failed.exit_code

    def give_up(self) -> None:
        """Discard what is still buffered: the reader of the pipe is gone, and flushing at exit would fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (self._out, self.err):
            os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

    def _document(self, value: object) -> None:
        self.copy(msgspec.json.encode(value) + b"\n")


def process_screen(*, wants_color: bool, json: bool) -> Screen:
    """The screen of this process."""
    return Screen(sys.stdout, sys.stderr, os.environ, wants_color=wants_color, json=json)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        # A terminal of another age: what it cannot show is spelled out.
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
