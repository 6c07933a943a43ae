"""Where a command's answer goes: text for a person, in colour where that is wanted, or one JSON document.

On a terminal also what is drawn again and again: a page that takes all of it, and a progress bar.
"""

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
    """The text as it is."""
    return text


def ansi(text: str, look: Style) -> str:
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
    """Convert structs, and what contains them, to dicts, lists and scalars.

    The structs of the protocol leave out what has its default, for the sake of the socket. A
    filter of JSON should find every field, so nothing is left out here.
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
    """The result of a command."""

    data: object  # what --json gives: plain values, or structs
    text: str = ""  # for a person; "" where it was printed already
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
        """Write a text to the terminal unchanged."""
        _write(self._out, text)

    def say(self, text: str) -> None:
        """Print a text at once; with --json print nothing."""
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
        """Print the outcome as text or as JSON; return the exit status."""
        if self.json:
            self._document({"ok": True, "data": plain_values(outcome.data)})
        elif outcome.text:
            self.say(outcome.text)
        for note in outcome.notes:
            self.note(self.paint_err(note, "yellow"))
        return outcome.exit_code

    def fail(self, failed: Failed) -> int:
        """Print the failure as text or as JSON; return the exit status."""
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
        # The encoding lacks a character: it is written as an escape sequence.
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


# The other screen of the terminal, without a cursor, lines that are too long cut by the terminal itself; and back.
_BEGIN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_END = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_PAGE = "\x1b[H", "\x1b[K", "\x1b[J"
_FALLBACK_ROWS = 24


def show_page(screen: Screen, draw: Callable[[], str], step_s: float) -> NoReturn:
    """Draw until Ctrl-C.

    Args:
        screen: A terminal.
        draw: The page of this moment.
        step_s: From one drawing to the next.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the terminal is restored.
    """
    with _whole_terminal(screen):
        while True:
            screen.draw(page_text(draw(), screen.rows or _FALLBACK_ROWS))
            time.sleep(step_s)


def page_text(text: str, rows: int) -> str:
    """What draws a text over the page before: as many lines as there are rows, the last one saying what is missing."""
    lines = text.split("\n")
    if len(lines) > rows:
        kept = max(rows - 1, 0)
        lines = [*lines[:kept], f"... {len(lines) - kept} lines more"]
    return (
        _HOME + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines).removesuffix("\r\n") + _REST_OF_PAGE
    )


@contextmanager
def _whole_terminal(screen: Screen) -> Iterator[None]:
    """The terminal while the page is shown; given back however that ends."""
    before = signal.signal(signal.SIGTERM, exit_on_signal)
    try:
        screen.draw(_BEGIN)
        yield
    finally:
        with suppress(OSError):  # the terminal may be gone
            screen.draw(_END)
        signal.signal(signal.SIGTERM, before)


def exit_on_signal(number: int, _: FrameType | None) -> None:
    """Handle a signal by an exit through the cleanup of the code, with the status that shells have for it."""
    raise SystemExit(128 + number)


_STEP_S = 0.1
_AT_ONCE_S = 0.3  # work that ends sooner shows no bar

T = TypeVar("T")


class Stage(msgspec.Struct, frozen=True):
    """The progress of some work."""

    label: str
    done: int = 0
    total: int | None = None  # None: not known
    remark: str = ""


def show_progress(screen: Screen, work: Callable[[], T], look: Callable[[], Stage | None]) -> T:
    """Do the work; on a terminal show meanwhile how far it is, and take that away at the end.

    Args:
        screen: Where to.
        work: What takes its time.
        look: How far it is; None: as far as before. It is not called from the thread of the work.

    Raises:
        BaseException: whatever the work raised.
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

    # A daemon thread: Ctrl-C ends the program, although the answer of the daemon is still awaited.
    thread = threading.Thread(target=working, daemon=True)
    thread.start()
    _draw_until(screen, thread, look)
    if failed:
        raise failed[0]
    return done[0]


def _draw_until(screen: Screen, thread: threading.Thread, look: Callable[[], Stage | None]) -> None:
    # rich takes longer to import than a search takes.
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
