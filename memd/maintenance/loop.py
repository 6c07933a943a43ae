"""Runs what looks after one agent's index, for ever: each task when it is due, and one policy for what it fails with."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random

import msgspec
import structlog

from memd.errors import FatalError, TransientError
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timing import Backoff
from memd.store.errors import StoreDamaged
from memd.store.integrity import IndexDamage

log = structlog.get_logger()

FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 600.0


async def at_once() -> None:
    """Due again as soon as it ends: of a task that ends only by failing."""


class BackgroundTask(msgspec.Struct, frozen=True):
    """One kind of work that is done again and again."""

    name: str  # for the log and for status, as what is being done
    run: Callable[[], Awaitable[object]]
    due: Callable[[], Awaitable[object]] = at_once  # waits until there is something to do
    put_off: str = "maintenance.put_off"  # log event where the machine does not let it be done now
    level: int = logging.WARNING  # of that event
    damage: IndexDamage | None = None  # where damage that it meets is reported; None: the store mends itself
    is_once: bool = False  # it is over when it has succeeded


class BackgroundTasks:
    """The background tasks of one agent, or of the daemon: whatever one of them fails with, it is made again after a pause that grows."""

    def __init__(self, agent: str | None, rng: Random, *, first_wait_s: float = FIRST_WAIT_S) -> None:
        """Nothing runs until `keep` is called.

        Args:
            agent: Its id, for the log; None: the tasks are of the daemon as a whole.
            rng: Source of the jitter of a backoff.
            first_wait_s: The full pause after a first failure; it doubles up to LONGEST_WAIT_S.
        """
        self._of: dict[str, str] = {} if agent is None else {"agent": agent}
        self._rng = rng
        self._first_wait_s = first_wait_s
        self._failed: dict[str, str] = {}  # name of a task -> why, until its next attempt begins

    @property
    def reason(self) -> str | None:
        """What of it failed, and why, for people; None: nothing did."""
        return "; ".join(f"{task} failed: {why}" for task, why in self._failed.items()) or None

    @property
    def failed(self) -> dict[str, str]:
        """Task -> why, of those that failed in a way that nobody foresaw and pause."""
        return dict(self._failed)

    async def keep(self, task: BackgroundTask) -> None:
        """Run one task whenever it is due, for ever; one that is made once, until it has succeeded.

        Raises:
            FatalError: memd cannot go on at all.
        """
        clock = asyncio.get_running_loop().time
        backoff = Backoff(self._rng, first_s=self._first_wait_s, cap_s=LONGEST_WAIT_S)
        is_due = False
        while True:
            began = clock()
            try:
                if not is_due:
                    await task.due()
                self._failed.pop(task.name, None)
                await task.run()
            except FatalError:
                raise
            except Exception as failure:  # noqa: BLE001 - logged there, with its place
                if clock() - began > LONGEST_WAIT_S:
                    backoff.reset()  # of a task that has run well for long, this is a first failure
                wait_s = backoff.failed()
                is_due = self._is_to_be_tried_again(task, failure, wait_s)
                await asyncio.sleep(wait_s)
            else:
                if task.is_once:
                    return
                backoff.reset()
                is_due = False

    def _is_to_be_tried_again(self, task: BackgroundTask, failure: Exception, wait_s: float) -> bool:
        match failure:
            case StoreDamaged():
                if task.damage is not None:
                    task.damage.report(str(failure))
                return False  # another file takes its place
            case TransientError():
                log.log(task.level, task.put_off, **self._of, reason=str(failure), wait_s=round(wait_s, 1))
            case _:
                self._failed[task.name] = safe_message(failure)
                log.error(
                    "maintenance.failed",
                    **self._of,
                    task=task.name,
                    wait_s=round(wait_s, 1),
                    exc_info=failure,
                )
        return True
