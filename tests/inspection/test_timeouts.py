"""Work that may never end."""

import threading
import time

from memd.inspection.timeouts import BackgroundWork, StillRunning, WorkFailed


def test_work_gives_what_it_came_to() -> None:
    """Each its own, side by side."""
    assert [work.outcome() for work in [BackgroundWork(lambda n=n: n, 30.0) for n in range(3)]] == [0, 1, 2]  # type: ignore[misc]


def test_work_without_an_end_is_left_behind() -> None:
    """Its time begins with it, not with the waiting for it."""
    never = threading.Event()
    began = time.monotonic()
    works = [BackgroundWork(never.wait, 0.1) for _ in range(20)]
    assert [work.outcome() for work in works] == [StillRunning(0.1)] * 20
    assert time.monotonic() - began < 1.5
    never.set()


def test_an_error_is_an_outcome() -> None:
    """Of whatever kind."""

    def fail() -> None:
        raise SystemExit(3)

    outcome = BackgroundWork(fail, 30.0).outcome()
    assert isinstance(outcome, WorkFailed)
    assert isinstance(outcome.error, SystemExit)
