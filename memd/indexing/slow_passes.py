"""Passes that took longer than their files explain, told with where the time went."""

import structlog

from memd.indexing.run_pass import PassResult
from memd.runtime.rate_limit import RateLimiter
from memd.runtime.timing import TimeTrace, in_ms, told

log = structlog.get_logger()

PASS_S = 2.0  # a search waits for a pass for a quarter of that, by default: until its end, answers are stale
READ_S = 0.1  # a file: fifty times what it takes to read, cut and write a note of usual length
LOOKED_S = 0.001  # likewise, one that is only looked at


def allowed_s(done: PassResult) -> float:
    """How long a pass may take before somebody should hear of it: a first one over thousands of files is long by nature."""
    return PASS_S + READ_S * done.read + LOOKED_S * done.looked


class SlowPasses:
    """Tells of those of one agent."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._seldom = RateLimiter()

    def note(self, account: TimeTrace, done: PassResult, failed: str | None, now: float) -> None:
        """A pass is over.

        Args:
            account: Of its time.
            done: What came of it; nothing, where it failed.
            failed: Why it did.
            now: Seconds, monotonic.
        """
        if account.took_s <= allowed_s(done):
            return
        left_out = self._seldom.left_out("pass", now)
        if left_out is None:
            return
        file, took_s = account.slowest() or (None, 0.0)
        log.warning(
            "sync.was_slow",
            agent=self._agent,
            took_ms=in_ms(account.took_s),
            parts=told(account),
            looked=done.looked,
            read=done.read,
            changed=done.changed,
            removed=done.removed,
            slowest=file,
            slowest_ms=in_ms(took_s),
            failed=failed,
            left_out=left_out,
        )
