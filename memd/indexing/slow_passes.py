"""Passes that took longer than their files explain, told with where the time went."""

from memd.indexing.run_pass import PassResult
from memd.runtime.slow_log import SlowLog
from memd.runtime.timing import TimeTrace, in_ms

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
