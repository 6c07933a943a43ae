"""Runs the background tasks of an agent or of the daemon: each when it is due, with one policy for failures."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random

import msgspec
import structlog

from memd.errors import FatalError, TransientError
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import Backoff
from memd.store.errors import StoreDamaged
from memd.store.integrity import IndexDamage

log = structlog.get_logger()

FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 600.0


async def at_once() -> None:
    """Return at once: the task is due again as soon as it has ended."""


class BackgroundTask(msgspec.Struct, frozen=True):
    """Work that is done repeatedly."""

    name: str  # for the log and the status: what is being done
    run: Callable[[], Awaitable[object]]
    due: Callable[[], Awaitable[object]] = at_once  # waits until there is work
    put_off: str = "maintenance.put_off"  # log event when the system does not allow the work now
    level: int = logging.WARNING  # of that event
    damage: IndexDamage | None = None  # where damage is reported; None: the store repairs itself
    is_once: bool = False  # the task ends when it has succeeded


class BackgroundTasks:
    """Runs the background tasks of one agent, or of the daemon, and retries a task that fails after a growing wait."""

    def __init__(self, agent: str | None, rng: Random, *, first_wait_s: float = FIRST_WAIT_S) -> None:
        """Create it; `keep` runs a task.

        Args:
            agent: The agent's id, for the log; None for tasks of the daemon.
            rng: Source of the jitter of backoffs.
            first_wait_s: The full wait after a first failure; it doubles up to LONGEST_WAIT_S.
        """
        self._of: dict[str, str] = {} if agent is None else {"agent": agent}
        self._rng = rng
        self._first_wait_s = first_wait_s
        self._failed: dict[str, str] = {}  # task name -> why it failed, until its next attempt begins

    @property
    def reason(self) -> str | None:
        """Which tasks have failed, and why, in words for people; None if none has."""
        return "; ".join(f"{task} failed: {why}" for task, why in self._failed.items()) or None

    @property
    def failed(self) -> dict[str, str]:
        """Task name -> reason, of tasks that failed unexpectedly and wait for their next attempt."""
        return dict(self._failed)

    async def keep(self, task: BackgroundTask) -> None:
        """Run a task whenever it is due until cancelled, or a task with `is_once` until it has succeeded.

        Raises:
            FatalError: memd cannot continue.
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
            except Exception as failure:  # noqa: BLE001 - logged with its traceback by _is_to_be_tried_again
                if clock() - began > LONGEST_WAIT_S:
                    backoff.reset()  # the task ran well for long: count this as a first failure
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
                return False  # another file replaces the damaged one
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
