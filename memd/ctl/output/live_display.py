"""What is drawn again and again on a terminal: a page that takes all of it, and a progress bar."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, TypeVar

import msgspec

from memd.ctl.output.screen import Screen

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
        KeyboardInterrupt: somebody has seen enough; the terminal is as it was.
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
    before = signal.signal(signal.SIGTERM, _end)
    try:
        screen.draw(_BEGIN)
        yield
    finally:
        with suppress(OSError):  # the terminal may be gone
            screen.draw(_END)
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


_STEP_S = 0.1
_AT_ONCE_S = 0.3  # what is done by then needs no bar

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
