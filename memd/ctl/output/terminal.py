"""Writes the output of a command: text, coloured if wanted, or one JSON document.

On a terminal it also draws pages that are updated, and progress bars.
"""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Literal, NoReturn, TextIO, TypeVar

import msgspec

from memd.ctl.failures import Failed

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
Paint = Callable[[str, Style], str]

_CODES: dict[Style, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


def uncoloured(text: str, _look: Style) -> str:
    """Return the text unchanged."""
    return text


def ansi(text: str, look: Style) -> str:
    """Return the text in an ANSI style."""
    return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if text else text


def choose_paint(environ: Mapping[str, str], *, terminal: bool, wanted: bool) -> Paint:
    """Return the function that colours text for a stream.

    Args:
        environ: The environment; NO_COLOR (https://no-color.org) and TERM are used.
        terminal: Whether the stream is a terminal.
        wanted: Whether --no-color was not given.
    """
    if terminal and wanted and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb":
        return ansi
    return uncoloured


def plain_values(value: object) -> Any:
    """Convert structs, and containers of them, to dicts, lists and scalars.

    The protocol's structs omit default values when they are encoded. JSON output includes all fields, so that filters find them.
    A byte that is not UTF-8, as a path may have, is written as an escape sequence.
    """
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case msgspec.Struct():
            return {name: plain_values(getattr(value, name)) for name in value.__struct_fields__}
        case dict():
            return {plain_values(str(name)): plain_values(member) for name, member in value.items()}
        case list() | tuple():
            return [plain_values(member) for member in value]
        case _:
            return value


class OutputLost(Failed):
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        # EBADF: memd.ctl.program opens a closed stream such that it cannot be written.
        reason = "standard output is closed" if error.errno == errno.EBADF else error.strerror
        super().__init__(
            "output",
            f"The output could not be written: {reason}.",
            "Look at where standard output goes: this concerns no file of memd.",
        )


class Outcome(msgspec.Struct, frozen=True):
    """The result of a command."""

    data: object  # the value printed by --json: plain values or structs
    text: str = ""  # for people; "" if it was printed already
    notes: tuple[str, ...] = ()  # remarks for stderr
    exit_code: int = 0


class Screen:
    """The output streams of a command.

    Args:
        out: Standard output.
        err: Standard error.
        environ: The environment, which affects colours.
        wants_color: Whether --no-color was not given.
        json: Whether to print one JSON document at the end.
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
        """The width of the terminal; None if stdout is no terminal, or the size is unknown."""
        return self._size()[0] or None

    @property
    def rows(self) -> int | None:
        """The height of the terminal; None as for `columns`."""
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
        """Write a text unchanged.

        Raises:
            OutputLost: it cannot be written.
        """
        with _writing():
            _write(self._out, text)

    def say(self, text: str) -> None:
        """Print a text at once; with --json print nothing."""
        if not self.json:
            self.draw(text if text.endswith("\n") else f"{text}\n")

    def copy(self, data: bytes) -> None:
        """Write bytes unchanged.

        Raises:
            OutputLost: they cannot be written.
        """
        with _writing():
            self._out.flush()
            self._out.buffer.write(data)
            self._out.buffer.flush()

    def note(self, text: str) -> None:
        """Write a remark to stderr."""
        _write(self.err, f"{text}\n")

    def finish(self, outcome: Outcome) -> int:
        """Print the outcome as text or as JSON; return the exit status."""
        if self.json:
            self._document({"ok": True, "data": outcome.data})
        elif outcome.text:
            self.say(outcome.text)
        for note in outcome.notes:
            self.note(self.paint_err(note, "yellow"))
        return outcome.exit_code

    def fail(self, failed: Failed) -> int:
        """Print the failure as text or as JSON; return the exit status.

        Raises:
            OutputLost: the JSON cannot be written.
        """
        if self.json and not isinstance(failed, OutputLost):
            error = {"type": failed.kind, "message": failed.message, "hint": failed.hint}
            self._document({"ok": False, "error": error})
        else:
            self.note(f"memd-ctl: {self.paint_err(failed.message, 'red')}")
            if failed.hint:
                self.note(failed.hint)
        return failed.exit_code

    def give_up(self) -> None:
        """Discard buffered output, which cannot be written: flushing at exit would fail, too."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (self._out, self.err):
            os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

    def _document(self, value: object) -> None:
        self.copy(msgspec.json.encode(plain_values(value)) + b"\n")


def process_screen(*, wants_color: bool, json: bool) -> Screen:
    """Return the screen of this process."""
    return Screen(sys.stdout, sys.stderr, os.environ, wants_color=wants_color, json=json)


@contextmanager
def _writing() -> Iterator[None]:
    """Raise OutputLost if standard output cannot be written; that the reader of a pipe has ended remains a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error) from error


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        # The encoding lacks a character, which is written as an escape sequence.
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


# The alternate screen, without cursor and line wrapping; and the way back.
_BEGIN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_END = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_PAGE = "\x1b[H", "\x1b[K", "\x1b[J"
_FALLBACK_ROWS = 24


def show_page(screen: Screen, draw: Callable[[], str], step_s: float) -> NoReturn:
    """Draw repeatedly until Ctrl-C.

    Args:
        screen: A terminal.
        draw: Returns the current page.
        step_s: Seconds between two drawings.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the terminal is restored.
    """
    with _whole_terminal(screen):
        while True:
            screen.draw(page_text(draw(), screen.rows or _FALLBACK_ROWS))
            time.sleep(step_s)


def page_text(text: str, rows: int) -> str:
    """Return the escape sequences that replace the page: as many lines as rows, the last one counting those left out."""
    lines = text.split("\n")
    if len(lines) > rows:
        kept = max(rows - 1, 0)
        lines = [*lines[:kept], f"... {len(lines) - kept} lines more"]
    return (
        _HOME + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines).removesuffix("\r\n") + _REST_OF_PAGE
    )


@contextmanager
def _whole_terminal(screen: Screen) -> Iterator[None]:
    """Show the page in the alternate screen within the context."""
    before = signal.signal(signal.SIGTERM, exit_on_signal)
    try:
        screen.draw(_BEGIN)
        yield
    finally:
        with suppress(OSError, OutputLost):  # the terminal may be gone
            screen.draw(_END)
        signal.signal(signal.SIGTERM, before)


def exit_on_signal(number: int, _: FrameType | None) -> None:
    """Exit on a signal through the cleanup of the code, with the status that shells use for the signal."""
    raise SystemExit(128 + number)


_STEP_S = 0.1
_AT_ONCE_S = 0.3  # work that ends sooner shows no bar

T = TypeVar("T")


class Stage(msgspec.Struct, frozen=True):
    """The progress of some work."""

    label: str
    done: int = 0
    total: int | None = None  # None: unknown
    remark: str = ""


def show_progress(screen: Screen, work: Callable[[], T], look: Callable[[], Stage | None]) -> T:
    """Run work on a thread; on a terminal, show its progress meanwhile.

    Args:
        screen: Shows the progress if it is a terminal.
        work: Called on a thread; its result is returned.
        look: Returns the progress; None: unchanged. Called on the thread of the caller.

    Raises:
        BaseException: raised by the work.
    """
    if not screen.shows_progress:
        return work()
    done: list[T] = []
    failed: list[BaseException] = []

    def working() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001  it is raised again where the work was asked for
            failed.append(error)

    # A daemon thread, so that Ctrl-C ends the program while it waits for the daemon.
    thread = threading.Thread(target=working, daemon=True)
    thread.start()
    _draw_until(screen, thread, look)
    if failed:
        raise failed[0]
    return done[0]


def _draw_until(screen: Screen, thread: threading.Thread, look: Callable[[], Stage | None]) -> None:
    # Importing rich takes longer than a search.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # noqa: PLC0415

    console = Console(file=screen.err, no_color=not screen.colors_err, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[remark]}"),
    )
    thread.join(_AT_ONCE_S)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Asking memd", total=None, remark="")
        while thread.is_alive():
            stage = look()
            if stage is not None:
                bar.update(
                    task,
                    description=stage.label,
                    completed=stage.done,
                    total=stage.total,
                    remark=stage.remark,
                )
            thread.join(_STEP_S)
