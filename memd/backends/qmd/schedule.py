"""Computes when qmd updates its index, embeds, and cleans up. Pure: times in, times out."""

import msgspec

BOOT_TRIES = 3  # quick attempts at an update that failed on a lock or a timeout
FIRST_RETRY_S = 0.5
RETRY_S = 60.0  # after other failures
LONGEST_RETRY_S = 3600.0
# After an update that took 1 s, a search starts the next one at the earliest 4 s later, so that searches do
# not keep qmd busy.
REST = 4


class ScheduleSettings(msgspec.Struct, frozen=True):
    """The intervals of the tasks, in seconds."""

    interval_s: float  # between updates; 0: only after changes
    debounce_s: float  # from the first pending change to an update
    embed_s: float  # between embeddings; 0: only one
    # Deleted texts must be removed from qmd's index, but not while somebody searches: a cleanup blocks
    # searches.
    clean_quiet_s: float = 30.0  # wait until nobody has searched for so long
    clean_latest_s: float = 3600.0  # latest time after the first deletion, even if searches go on
    clean_rest_s: float = 600.0  # between two cleanups, as each rewrites the whole index


class TaskHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The past runs of a task; times are of one clock, in seconds."""

    ended: float | None = None  # end of the last run, successful or not
    took_s: float = 0.0
    failures: int = 0  # consecutive failures
    passing: bool = False  # the last failure was a lock or a timeout
    # The first change since the last run; for cleanups: since when qmd may contain deleted texts.
    unseen: float | None = None


def noticed(past: TaskHistory, now: float) -> TaskHistory:
    """Return the state after files have changed, or texts in qmd's index were deleted."""
    return past if past.unseen is not None else msgspec.structs.replace(past, unseen=now)


def began(past: TaskHistory) -> TaskHistory:
    """Return the state at the start of a run, which takes in all changes so far."""
    return msgspec.structs.replace(past, unseen=None)


def ended(
    past: TaskHistory, now: float, *, failed: bool, took_s: float = 0.0, passing: bool = False
) -> TaskHistory:
    """Return the state after a run.

    Args:
        past: The state before, including changes that arrived during the run.
        now: The clock time.
        failed: Whether the run failed.
        took_s: Its duration.
        passing: Whether a retry in a moment may succeed.
    """
    failures = past.failures + 1 if failed else 0
    return TaskHistory(
        ended=now, took_s=took_s, failures=failures, passing=failed and passing, unseen=past.unseen
    )


def update_at(past: TaskHistory, pace: ScheduleSettings) -> float | None:
    """Return when the next update is due; None: not before a change."""
    if past.ended is None:
        return 0.0
    if past.failures:
        quickly = past.passing and past.failures < BOOT_TRIES
        wait_s = (
            FIRST_RETRY_S * 2.0 ** (past.failures - 1)
            if quickly
            else max(RETRY_S, min(pace.interval_s, 10 * RETRY_S))
        )
        return past.ended + wait_s
    due = [past.ended + pace.interval_s] if pace.interval_s else []
    if past.unseen is not None:
        due.append(past.unseen + pace.debounce_s)
    return min(due, default=None)


def hurried_at(past: TaskHistory, pace: ScheduleSettings) -> float:
    """Return when an update that a search asks for may begin."""
    if past.ended is None:
        return 0.0
    if past.failures:
        at = update_at(past, pace)
        assert at is not None, "after a failure there is another try"
        return at
    return past.ended + REST * past.took_s


def embed_at(past: TaskHistory, pace: ScheduleSettings) -> float | None:
    """Return when the next embedding is due; None: there is none on a timer."""
    if past.ended is None:
        return 0.0
    if past.failures:
        return past.ended + min(LONGEST_RETRY_S, RETRY_S * 2.0 ** min(past.failures - 1, 30))
    return past.ended + pace.embed_s if pace.embed_s else None


def clean_at(past: TaskHistory, pace: ScheduleSettings, searched: float) -> float | None:
    """Return when the next cleanup is due; None: there is nothing to clean.

    Args:
        past: The past cleanups.
        pace: The intervals between the tasks.
        searched: When the last search ended.
    """
    if past.unseen is None:
        return None
    at = min(searched + pace.clean_quiet_s, past.unseen + pace.clean_latest_s)
    if past.ended is None:
        return at
    # A failed cleanup has blocked searches for nothing, so it is not retried soon.
    rest_s = LONGEST_RETRY_S * past.failures if past.failures else pace.clean_rest_s
    return max(at, past.ended + rest_s)
