"""Runs the passes of one agent one after the other, keeps their results, and logs slow ones."""

import asyncio
import time
from collections import deque
from functools import partial
from random import Random

import msgspec
import structlog

from memd.errors import FatalError, TransientError
from memd.indexing.debounced_changes import DebouncedChanges, TakenChanges
from memd.indexing.run_pass import PassResult, PassRunner
from memd.maintenance.tasks import MaintenanceTriggers
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.logs import SlowLog
from memd.runtime.profiling import TimeTrace, in_ms
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import LONGEST_WAIT_S, Backoff, Clock
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index

log = structlog.get_logger()

NOTABLE = 20  # passes that status reports
OUTCOMES = 100  # passes whose results are kept for waiters
PASS_S = 2.0  # by default, a search waits for a pass for a quarter of this, and is stale until the pass ends
READ_S = 0.1  # per file read: fifty times what an ordinary note takes to read, chunk and write
LOOKED_S = 0.001  # likewise, per file whose stamp is checked


def allowed_s(done: PassResult) -> float:
    """Return the time after which a pass is logged as slow: a first pass over thousands of files takes long."""
    return PASS_S + READ_S * done.read + LOOKED_S * done.looked


def log_slow_pass(
    slow_log: SlowLog, agent: str, trace: TimeTrace, done: PassResult, failed: str | None, now: float
) -> None:
    """Log a pass that took longer than its number of files explains.

    Args:
        slow_log: The agent's log of slow operations.
        agent: The agent's id.
        trace: The trace of the pass.
        done: Its result; empty if it failed.
        failed: Why it failed.
        now: Seconds, monotonic.
    """
    if trace.took_s <= allowed_s(done):
        return
    file, took_s = trace.slowest() or (None, 0.0)
    slow_log.warn(
        "sync.was_slow",
        agent,
        trace,
        now,
        looked=done.looked,
        read=done.read,
        changed=done.changed,
        removed=done.removed,
        slowest=file,
        slowest_ms=in_ms(took_s),
        failed=failed,
    )


class PassReport(msgspec.Struct, frozen=True):
    """The result of a pass."""

    at: float  # Unix time of its end
    took_s: float
    changed: int  # files that were indexed again
    removed: int
    failed: str | None
    late: bool  # another pass is reading a file that it should have read
    needs_person: bool = False  # as in TransientError, of the failure


class PassFailed(TransientError):
    """The awaited pass failed; it is retried automatically.

    Args:
        message: What failed.
        needs_person: As in TransientError.
    """

    def __init__(self, message: str, *, needs_person: bool = False) -> None:
        super().__init__(message)
        self.needs_person = needs_person


class PassScheduler:
    """Runs a pass whenever marks are due; a failed pass is retried with increasing delays."""

    def __init__(
        self,
        agent: str,
        index: Index,
        pending: DebouncedChanges,
        runner: PassRunner,
        triggers: MaintenanceTriggers,
        *,
        rng: Random,
        clock: Clock,
    ) -> None:
        """Create the object; `run` runs passes.

        Args:
            agent: The agent's id, for the log.
            index: The index; damage is reported to it.
            pending: The marks of changed paths that wait for a pass.
            runner: Runs single passes.
            triggers: Notified of changes, for maintenance.
            rng: Source of the jitter of backoffs.
            clock: Returns seconds, monotonic.
        """
        self.last: PassReport | None = None
        # Passes that changed something or failed, the newest first.
        self.notable: deque[PassReport] = deque(maxlen=NOTABLE)
        self.failure: str | None = None  # why the last pass could not write to the index; None: it could
        # Notified even if nothing changed: chunks may have been waiting since before a restart.
        self.succeeded = ChangeNotifier()
        self._agent = agent
        self._index = index
        self._pending = pending
        self._runner = runner
        self._triggers = triggers
        self._clock = clock
        self._slow_log = SlowLog()
        self._backoff = Backoff(rng, cap_s=LONGEST_WAIT_S)
        self._outcomes: dict[int, PassReport] = {}
        self._retry: asyncio.TimerHandle | None = None  # the timer of a failed pass

    @property
    def awaits_retry(self) -> bool:
        """Whether a pass has failed and will be retried by a timer."""
        return self._retry is not None

    async def wait_for_pass(self, number: int) -> PassReport:
        """Wait for the end of a pass over everything.

        Raises:
            PassFailed: it failed, and is retried automatically.
            StoreClosed: there will be no such pass.
        """
        outcome = self._outcomes.get(await self._pending.wait_for_everything(number), self.last)
        if outcome is None or outcome.failed is not None:
            raise PassFailed(
                "the index could not be brought up to date" + (f": {outcome.failed}" if outcome else ""),
                needs_person=outcome is not None and outcome.needs_person,
            )
        return outcome

    def has_succeeded(self, number: int) -> bool:
        """Return whether a pass has ended and done all its work."""
        outcome = self._outcomes.get(number)
        return outcome is not None and outcome.failed is None and not outcome.late

    async def run(self) -> None:
        """Run a pass over everything, and then one whenever marks are due, until cancelled."""
        self._pending.mark_all()
        while True:
            taken = await self._pending.take()
            async with self._runner.writing:
                await self.attempt(taken)

    async def attempt(self, taken: TakenChanges, *, is_short: bool = False) -> None:
        """Run one pass; if it fails, its marks are put back. A long pass runs short ones in between.

        A cancelled pass is not recorded: its agent is stopped, and DebouncedChanges.close ends all waits.
        """
        done = PassResult()
        failed: str | None = None
        needs_person = False
        trace = TimeTrace(self._clock)
        try:
            with trace:
                done = await self._make(taken, is_short=is_short)
            self._backoff.reset()
            self.failure = None
            # Marks that are left belong to a short pass that failed in between; they wait for its retry.
            if not self._pending.count:
                self._take_back_retry()
            self._note_success(taken, done)
        except FatalError:
            raise
        except StoreDamaged as damage:
            failed = str(damage)
            self._pending.put_back(taken)
            self._index.damage.report(failed)
        except Exception as failure:
            # A failure in one agent's files must not stop the other agents.
            if not isinstance(failure, (TransientError, MemoryError)):
                log.error("sync.pass_failed", agent=self._agent, exc_info=failure)
            failed = safe_message(failure)
            needs_person = isinstance(failure, TransientError) and failure.needs_person
            self._pending.put_back(taken)
            self._back_off(failed)
            if isinstance(failure, StoreUnavailable):
                self.failure = failed
        took_s = round(trace.took_s, 4)
        report = PassReport(
            time.time(), took_s, done.changed, done.removed, failed, done.late, needs_person=needs_person
        )
        self._remember(taken.number, report)
        if done.changed or done.removed or failed is not None:
            self.notable.appendleft(report)
        await self._pending.finish(taken)
        log_slow_pass(self._slow_log, self._agent, trace, done, failed, self._clock())
        if done.changed or done.removed:
            log.info(
                "sync.finished",
                agent=self._agent,
                changed=done.changed,
                removed=done.removed,
                took_s=took_s,
            )

    async def _make(self, taken: TakenChanges, *, is_short: bool) -> PassResult:
        await self._index.finish_opening()
        done = await self._runner.run(taken, partial(self.attempt, is_short=True), is_short=is_short)
        # Only after the pass: what is new is found meanwhile, whatever the disk keeps.
        await self._index.database.raise_if_unsynced()
        return done

    def _note_success(self, taken: TakenChanges, done: PassResult) -> None:
        if taken.everything:
            self._triggers.whole.set()
        if done.changed or done.removed:
            self._triggers.note(done.changed + done.removed)
        self.succeeded.notify()

    def stop(self) -> None:
        """Try nothing again."""
        self._take_back_retry()

    def _back_off(self, reason: str) -> None:
        wait_s = self._backoff.failed()
        log.warning("sync.retry_scheduled", agent=self._agent, reason=reason, wait_s=round(wait_s, 1))
        self._take_back_retry()
        self._retry = asyncio.get_running_loop().call_later(wait_s, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._pending.hurry()

    def _take_back_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _remember(self, number: int, report: PassReport) -> None:
        self.last = self._outcomes[number] = report
        while len(self._outcomes) > OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]
