"""A bar on the terminal while the daemon works."""

import threading
from collections.abc import Callable
from typing import TypeVar

import msgspec

from memd.ctl.output.screen import Screen

_STEP_S = 0.1
_AT_ONCE_S = 0.3  # what is done by then needs no bar

T = TypeVar("T")


class Stage(msgspec.Struct, frozen=True):
    """How far the work is."""

    label: str
    done: int = 0
    total: int | None = None  # None: nobody knows
    remark: str = ""


def shown(screen: Screen, work: Callable[[], T], look: Callable[[], Stage | None]) -> T:
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
