"""A page that takes the whole terminal, drawn again and again until Ctrl-C."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from memd.ctl.output.screen import Screen

# The other screen of the terminal, without a cursor, lines that are too long cut by the terminal itself; and back.
_BEGIN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_END = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_PAGE = "\x1b[H", "\x1b[K", "\x1b[J"
_FALLBACK_ROWS = 24


def shown(screen: Screen, draw: Callable[[], str], step_s: float) -> NoReturn:
    """Draw for ever.

    Args:
        screen: A terminal.
        draw: The page of this moment.
        step_s: From one drawing to the next.

    Raises:
        KeyboardInterrupt: somebody has seen enough; the terminal is as it was.
    """
    with _page(screen):
        while True:
            screen.draw(page(draw(), screen.rows or _FALLBACK_ROWS))
            time.sleep(step_s)


def page(text: str, rows: int) -> str:
    """What draws a text over the page before: as many lines as there are rows, the last one saying what is missing."""
    lines = text.split("\n")
    if len(lines) > rows:
        kept = max(rows - 1, 0)
        lines = [*lines[:kept], f"... {len(lines) - kept} lines more"]
    return (
        _HOME + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines).removesuffix("\r\n") + _REST_OF_PAGE
    )


@contextmanager
def _page(screen: Screen) -> Iterator[None]:
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
