"""Makes the passes of one agent, one after the other; remembers how they ended, and logs those that took too long."""

import asyncio
import time
from collections import deque
from functools import partial
from random import Random

import msgspec
import structlog

from memd.errors import FatalError, TransientError
from memd.indexing.pending_changes import PendingChanges, TakenChanges
from memd.indexing.run_pass import PassResult, PassRunner
from memd.maintenance.tasks import MaintenanceTriggers
from memd.runtime.logs import SlowLog
from memd.runtime.profiling import TimeTrace, in_ms
from memd.runtime.safe_traceback import safe_message
from memd.runtime.synchronization import ChangeNotifier
from memd.runtime.timing import LONGEST_WAIT_S, Backoff, Clock
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index

PASS_S = 2.0  # a search waits for a pass for a quarter of that, by default: until its end, answers are stale
READ_S = 0.1  # a file: fifty times what it takes to read, cut and write a note of usual length
LOOKED_S = 0.001  # likewise, one that is only looked at


def allowed_s(done: PassResult) -> float:
    """How long a pass may take before somebody should hear of it: a first one over thousands of files is long by nature."""
    return PASS_S + READ_S * done.read + LOOKED_S * done.looked


def log_slow_pass(
    slow_log: SlowLog, agent: str, trace: TimeTrace, done: PassResult, failed: str | None, now: float
) -> None:
    """Log a pass that took longer than its files explain.

    Args:
        slow_log: Of the agent.
        agent: Its id.
        trace: Of the time of the pass.
        done: What came of it; nothing, where it failed.
        failed: Why it did.
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


log = structlog.get_logger()

NOTABLE = 20  # passes that status tells
OUTCOMES = 100  # passes whose end is remembered for whoever waited


class PassReport(msgspec.Struct, frozen=True):
    """How a pass ended."""

    at: float  # unix time of its end
    took_s: float
    changed: int = 0  # files that were indexed anew
    removed: int = 0
    failed: str | None = None
    late: bool = False  # a file that it was about is being read by another pass


class PassFailed(TransientError):
    """The pass that was waited for did not succeed; it is tried again by itself."""


class Passes:
    """Whatever is marked gets a pass; one that fails is made again after a while, which grows."""

    def __init__(
        self,
        agent: str,
        index: Index,
        pending: PendingChanges,
        runner: PassRunner,
        triggers: MaintenanceTriggers,
        *,
        rng: Random,
        clock: Clock,
    ) -> None:
        """None is made yet.

        Args:
            agent: Its id, for the log.
            index: Brought up to date; its damage is reported.
            pending: What is marked.
            runner: Makes them.
            triggers: Are told what has changed.
            rng: Source of the jitter of a backoff.
            clock: Seconds, monotonic, by which passes are measured.
        """
        self.last: PassReport | None = None
        # Those that changed something or failed, the newest first.
        self.notable: deque[PassReport] = deque(maxlen=NOTABLE)
        self.trouble: str | None = None  # why nothing was written to the store last time
        # Notified also where nothing changed: chunks may wait since an earlier life of the daemon.
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
        self._retry: asyncio.TimerHandle | None = None  # of a pass that failed

    @property
    def awaits_retry(self) -> bool:
        """Whether one has failed, and is made again in its time."""
        return self._retry is not None

    async def wait_for_pass(self, number: int) -> PassReport:
        """Wait for the end of a pass over everything.

        Raises:
            PassFailed: it failed, and is tried again by itself.
            StoreClosed: there will be no such pass.
        """
        outcome = self._outcomes.get(await self._pending.wait_for_everything(number), self.last)
        if outcome is None or outcome.failed is not None:
            raise PassFailed(
                "the index could not be brought up to date" + (f": {outcome.failed}" if outcome else "")
            )
        return outcome

    def has_succeeded(self, number: int) -> bool:
        """Whether a pass has ended, and has done all that it was to do."""
        outcome = self._outcomes.get(number)
        return outcome is not None and outcome.failed is None and not outcome.late

    async def run(self) -> None:
        """Make a pass over everything, and then whenever one is due, for ever."""
        self._pending.mark_all()
        while True:
            taken = await self._pending.take()
            async with self._runner.writing:
                await self.attempt(taken)

    async def attempt(self, taken: TakenChanges, *, is_short: bool = False) -> None:
        """One pass; what it was to do waits again if it fails. A long one makes short ones in between.

        One that is cancelled ends for nobody: its agent is stopped, and PendingChanges.close sends away who waits for it.
        """
        done = PassResult()
        failed: str | None = None
        account = TimeTrace(self._clock)
        try:
            with account:
                done = await self._make(taken, is_short=is_short)
            self._backoff.reset()
            self.trouble = None
            # Where marks are left, a pass that went in between has failed, and they wait for the retry.
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
            # A failure in the files of one agent must not stop the others.
            if not isinstance(failure, (TransientError, MemoryError)):
                log.error("sync.pass_failed", agent=self._agent, exc_info=failure)
            failed = safe_message(failure)
            self._pending.put_back(taken)
            self._back_off(failed)
            if isinstance(failure, StoreUnavailable):
                self.trouble = failed
        took_s = round(account.took_s, 4)
        report = PassReport(time.time(), took_s, done.changed, done.removed, failed, done.late)
        self._remember(taken.number, report)
        if done.changed or done.removed or failed is not None:
            self.notable.appendleft(report)
        await self._pending.finish(taken)
        log_slow_pass(self._slow_log, self._agent, account, done, failed, self._clock())
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
