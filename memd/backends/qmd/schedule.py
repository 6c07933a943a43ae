"""When qmd is to update its index, to embed, and to clean up: times in, times out. Pure."""

import msgspec

BOOT_TRIES = 3  # at an update that a lock or a timeout has stopped
FIRST_RETRY_S = 0.5
RETRY_S = 60.0  # after a failure that waiting a moment does not mend
LONGEST_RETRY_S = 3600.0
# An update that took a second is not begun again by a search within four: searches shall not keep qmd busy all the time.
REST = 4


class ScheduleSettings(msgspec.Struct, frozen=True):
    """How often things are done, in seconds."""

    interval_s: float  # between updates; 0: only after changes
    debounce_s: float  # from the first change that is not in, until it is taken in
    embed_s: float  # between embeddings; 0: once
    # What is gone from the notes is to go from qmd, but not while somebody searches: meanwhile no search can run.
    clean_quiet_s: float = 30.0  # for which nobody has searched
    clean_latest_s: float = 3600.0  # from the first thing that is gone, whoever searches
    clean_rest_s: float = 600.0  # between two cleanings: each writes the whole index anew


class TaskHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What there has been of updates, of embeddings, or of cleanings; times are of one clock, in seconds."""

    ended: float | None = None  # the last run, however it ended
    took_s: float = 0.0
    failures: int = 0  # in a row
    passing: bool = False  # the last failure was a lock or a timeout
    # The first change that no run has taken in; of cleanings: since when qmd may hold what is gone.
    unseen: float | None = None


def noticed(past: TaskHistory, now: float) -> TaskHistory:
    """Files have changed, or what qmd has of them is gone."""
    return past if past.unseen is not None else msgspec.structs.replace(past, unseen=now)


def began(past: TaskHistory) -> TaskHistory:
    """A run begins: it takes in every change until now."""
    return msgspec.structs.replace(past, unseen=None)


def ended(
    past: TaskHistory, now: float, *, failed: bool, took_s: float = 0.0, passing: bool = False
) -> TaskHistory:
    """A run is over.

    Args:
        past: What was before, changes that came meanwhile included.
        now: Of the clock.
        failed: Whether it did.
        took_s: How long it took.
        passing: Whether trying again in a moment may help.
    """
    failures = past.failures + 1 if failed else 0
    return TaskHistory(
        ended=now, took_s=took_s, failures=failures, passing=failed and passing, unseen=past.unseen
    )


def update_at(past: TaskHistory, pace: ScheduleSettings) -> float | None:
    """When the next update is due; None: not before something changes."""
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
    """When an update may begin that a search asks for."""
    if past.ended is None:
        return 0.0
    if past.failures:
        at = update_at(past, pace)
        assert at is not None, "after a failure there is another try"
        return at
    return past.ended + REST * past.took_s


def embed_at(past: TaskHistory, pace: ScheduleSettings) -> float | None:
    """When the next embedding is due; None: never again by itself."""
    if past.ended is None:
        return 0.0
    if past.failures:
        return past.ended + min(LONGEST_RETRY_S, RETRY_S * 2.0 ** min(past.failures - 1, 30))
    return past.ended + pace.embed_s if pace.embed_s else None


def clean_at(past: TaskHistory, pace: ScheduleSettings, searched: float) -> float | None:
    """When the next cleaning is due; None: there is nothing to clean.

    Args:
        past: What there has been.
        pace: How often.
        searched: When somebody last did.
    """
    if past.unseen is None:
        return None
    at = min(searched + pace.clean_quiet_s, past.unseen + pace.clean_latest_s)
    if past.ended is None:
        return at
    # Where it fails it has kept searches waiting for nothing: it is not tried again often.
    rest_s = LONGEST_RETRY_S * past.failures if past.failures else pace.clean_rest_s
    return max(at, past.ended + rest_s)
