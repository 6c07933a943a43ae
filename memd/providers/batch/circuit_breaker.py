"""The state of a provider's batch API, which two failures turn off for a while."""

import msgspec

DOCUMENT = "batch"  # the name under which a ledger keeps the state
FAILURES = 2  # so many, with no success between them, and plain requests take over
COOL_DOWN_S = 6 * 3600.0


class BatchState(msgspec.Struct, frozen=True):
    """Whether batch jobs are used, and the failures that led to it. It survives a restart.

    The initial state is also that after a job has succeeded, and after the user has turned batches on again.
    """

    is_on: bool = True
    failures: int = 0  # since the last success
    reason: str | None = None  # of the last failure
    at: float | None = None  # unix time of it
    was_late: bool = False  # the last job took too long, and its texts may be tried in another one


def decoded(content: bytes | None) -> BatchState:
    """Decode the state that a ledger stores; the initial state if there is none, or it cannot be decoded."""
    try:
        return BatchState() if content is None else msgspec.json.decode(content, type=BatchState)
    except msgspec.DecodeError:
        return BatchState()


def failed(before: BatchState, reason: str, now: float, *, weight: int = 1) -> BatchState:
    """Return the state after a job failed.

    Args:
        before: The state so far. Once off, failures do not count further: jobs that were under way may end late.
        reason: Why, for status.
        now: Unix time.
        weight: 2 for what was tried twice already.
    """
    if not before.is_on:
        return before
    failures = before.failures + weight
    return BatchState(failures < FAILURES, failures, reason, now)


def late(before: BatchState, reason: str, now: float, *, began_at: float) -> BatchState:
    """Return the state after a job was cancelled as too late: the first time is forgiven, the second counts as two failures.

    Args:
        before: The state so far.
        reason: Why, for status.
        now: Unix time.
        began_at: When the job began. One that was under way already when another one was late is no second attempt.
    """
    if not before.is_on:
        return before
    if before.was_late and before.at is not None and began_at >= before.at:
        return failed(before, reason, now, weight=2)
    return msgspec.structs.replace(
        before, reason=reason, at=before.at if before.was_late else now, was_late=True
    )


def unsupported(before: BatchState, reason: str, now: float) -> BatchState:
    """Return the state after the provider refused batches for this model or key: off until the cool-down ends."""
    return (
        BatchState(is_on=False, failures=before.failures + 1, reason=reason, at=now)
        if before.is_on
        else before
    )


def cooled_down(before: BatchState, now: float) -> BatchState:
    """Return the state at a time: on again after the cool-down, or if the clock was set back to before the failure."""
    if before.is_on or before.at is None or 0 <= now - before.at < COOL_DOWN_S:
        return before
    return BatchState(failures=FAILURES - 1, reason=before.reason, at=before.at)
