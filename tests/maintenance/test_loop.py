"""What runs for ever goes on, whatever it fails with."""

import asyncio
from itertools import pairwise
from random import Random

import pytest
from structlog.testing import capture_logs

from memd.errors import FatalError, MemdError, TransientError
from memd.maintenance.loop import FIRST_WAIT_S, LONGEST_WAIT_S, BackgroundTask, BackgroundTasks
from memd.store.errors import StoreDamaged
from memd.store.integrity import IndexDamage
from tests.clock import for_s, hastily, now_s


class Work:
    """Fails as it is told, one attempt after the other, and then no more."""

    def __init__(self, *failures: Exception, each_s: float = 0.0) -> None:
        self.attempts: list[float] = []  # when
        self.waits = 0  # for being due
        self.succeeded_at: float | None = None
        self._failures = list(failures)
        self._each_s = each_s

    async def due(self) -> None:
        self.waits += 1
        if self.succeeded_at is not None:
            await asyncio.Event().wait()

    async def run(self) -> None:
        self.attempts.append(now_s())
        await asyncio.sleep(self._each_s)
        if self._failures:
            raise self._failures.pop(0)
        self.succeeded_at = now_s()


@pytest.mark.parametrize(
    ("failure", "event"),
    [
        (ValueError("nobody foresaw this"), "maintenance.failed"),
        (MemdError("nobody foresaw that"), "maintenance.failed"),
        (MemoryError(), "maintenance.failed"),
        (TransientError("the disk is busy"), "store.not_checked"),
    ],
)
def test_what_fails_is_logged_and_tried_again_after_pauses_that_grow(failure: Exception, event: str) -> None:
    """It does not wait to be due once more, and the task lives on."""
    work = Work(*[failure] * 12)
    task = BackgroundTask("checking the index", work.run, work.due, put_off="store.not_checked")
    tasks = BackgroundTasks("main", Random(1))
    with capture_logs() as logs:
        hastily(for_s(20 * LONGEST_WAIT_S, tasks.keep(task)))
    assert work.succeeded_at is not None
    assert work.waits == 2
    assert [one["event"] for one in logs] == [event] * 12
    assert {one["agent"] for one in logs} == {"main"}
    waits = [later - earlier for earlier, later in pairwise(work.attempts)]
    assert FIRST_WAIT_S / 2 <= waits[0] <= FIRST_WAIT_S
    assert LONGEST_WAIT_S / 2 <= waits[-1] <= LONGEST_WAIT_S + 0.001


def test_what_is_made_once_is_tried_until_it_succeeds() -> None:
    """It ends no other task of its group, and is not made again."""
    work = Work(ValueError("nobody foresaw this"), TransientError("the disk is busy"))
    tasks = BackgroundTasks("main", Random(1))
    task = BackgroundTask("preparing the backend", work.run, is_once=True)
    hastily(asyncio.wait_for(tasks.keep(task), 100 * LONGEST_WAIT_S))
    assert work.succeeded_at is not None
    assert len(work.attempts) == 3
    assert tasks.failed == {}


def test_what_nobody_foresaw_is_told_until_the_next_attempt() -> None:
    """With the name of the task, and the kind of failure; what the machine does not let be done now is not."""
    work, busy = Work(ValueError("quoted words")), Work(TransientError("the disk is busy"))
    tasks = BackgroundTasks("main", Random(1))
    seen: list[dict[str, str]] = []
    reasons: list[str | None] = []

    async def main() -> None:
        reasons.append(tasks.reason)
        both = [
            asyncio.create_task(tasks.keep(BackgroundTask("one", work.run, work.due))),
            asyncio.create_task(tasks.keep(BackgroundTask("other", busy.run, busy.due))),
        ]
        await asyncio.sleep(FIRST_WAIT_S / 4)
        seen.append(tasks.failed)
        reasons.append(tasks.reason)
        await asyncio.sleep(FIRST_WAIT_S)
        seen.append(tasks.failed)
        for one in both:
            one.cancel()

    with capture_logs() as logs:
        hastily(main())
    assert list(seen[0]) == ["one"]
    assert "ValueError" in seen[0]["one"]
    assert "quoted" not in seen[0]["one"]
    assert seen[1] == {}
    assert reasons == [None, f"one failed: {seen[0]['one']}"]
    [failed] = [one for one in logs if one["event"] == "maintenance.failed"]
    assert (failed["task"], type(failed["exc_info"])) == ("one", ValueError)


def test_each_task_that_failed_is_named() -> None:
    """One after the other, for one line of status."""
    tasks = BackgroundTasks("main", Random(1))
    both = [BackgroundTask(name, Work(*[ValueError()] * 9).run) for name in ("scanning", "checking")]

    async def main() -> tuple[str | None, dict[str, str]]:
        running = [asyncio.create_task(tasks.keep(one)) for one in both]
        await asyncio.sleep(FIRST_WAIT_S / 4)
        for one in running:
            one.cancel()
        return tasks.reason, tasks.failed

    with capture_logs():
        reason, failed = hastily(main())
    assert list(failed) == ["scanning", "checking"]
    assert reason == f"scanning failed: {failed['scanning']}; checking failed: {failed['checking']}"


def test_damage_is_reported_and_the_task_waits_until_it_is_due_again() -> None:
    """Another file takes the place of a damaged one; to look at that one again would find the same."""
    damage, work = IndexDamage("main"), Work(StoreDamaged("a page is not what it was"))
    with capture_logs():
        hastily(for_s(60, BackgroundTasks("main", Random(1)).keep(BackgroundTask(
            "checking the index", work.run, work.due, damage=damage
        ))))  # fmt: skip
    assert damage.reason == "a page is not what it was"
    assert work.waits == 3


def test_a_task_that_ran_for_long_begins_again_soon() -> None:
    """Its failures are days apart: none is one in a row."""
    work = Work(*[ValueError("nobody foresaw this")] * 9, each_s=2 * LONGEST_WAIT_S)
    with capture_logs() as logs:
        hastily(
            for_s(30 * LONGEST_WAIT_S, BackgroundTasks("main", Random(1)).keep(BackgroundTask("x", work.run)))
        )
    assert len(logs) == 9
    assert all(one["wait_s"] <= FIRST_WAIT_S for one in logs)


async def test_what_ends_the_daemon_ends_the_task() -> None:
    """Where memd cannot go on at all, it says so."""
    work = Work(FatalError("it cannot run here", exit_code=78))
    with pytest.raises(FatalError):
        await BackgroundTasks("main", Random(1)).keep(BackgroundTask("x", work.run))
