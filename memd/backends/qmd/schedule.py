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


class UpdateHistory(msgspec.Struct, frozen=True):
    """What there has been of updates; times are of one clock, in seconds."""

    ended: float | None = None  # the last one, however it ended
    took_s: float = 0.0
    failures: int = 0  # in a row
    passing: bool = False  # the last failure was a lock or a timeout
    unseen: float | None = None  # the first change that no update has taken in


class EmbeddingHistory(msgspec.Struct, frozen=True):
    """What there has been of embeddings."""

    ended: float | None = None  # the last one, however it ended
    failures: int = 0  # in a row


class CleanupHistory(msgspec.Struct, frozen=True):
    """What there has been of cleanings; times are of one clock, in seconds."""

    soiled: float | None  # since when qmd may hold what is gone
    ended: float | None = None  # the last one, however it ended
    failures: int = 0  # in a row


def noticed(past: UpdateHistory, now: float) -> UpdateHistory:
    """Files have changed."""
    return past if past.unseen is not None else msgspec.structs.replace(past, unseen=now)


def began(past: UpdateHistory) -> UpdateHistory:
    """An update begins: it takes in every change until now."""
    return msgspec.structs.replace(past, unseen=None)


def ended(
    past: UpdateHistory, now: float, *, took_s: float, failed: bool, passing: bool = False
) -> UpdateHistory:
    """An update is over.

    Args:
        past: What was before, changes that came meanwhile included.
        now: Of the clock.
        took_s: How long it took.
        failed: Whether it did.
        passing: Whether trying again in a moment may help.
    """
    failures = past.failures + 1 if failed else 0
    return UpdateHistory(now, took_s, failures, failed and passing, past.unseen)


def update_at(past: UpdateHistory, pace: ScheduleSettings) -> float | None:
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


def hurried_at(past: UpdateHistory, pace: ScheduleSettings) -> float:
    """When an update may begin that a search asks for."""
    if past.ended is None:
        return 0.0
    if past.failures:
        at = update_at(past, pace)
        assert at is not None, "after a failure there is another try"
        return at
    return past.ended + REST * past.took_s


def embedded(past: EmbeddingHistory, now: float, *, failed: bool) -> EmbeddingHistory:
    """An embedding is over."""
    return EmbeddingHistory(now, past.failures + 1 if failed else 0)


def embed_at(past: EmbeddingHistory, pace: ScheduleSettings) -> float | None:
    """When the next embedding is due; None: never again by itself."""
    if past.ended is None:
        return 0.0
    if past.failures:
        return past.ended + min(LONGEST_RETRY_S, RETRY_S * 2.0 ** min(past.failures - 1, 30))
    return past.ended + pace.embed_s if pace.embed_s else None


def soiled(past: CleanupHistory, now: float) -> CleanupHistory:
    """Something that qmd has is gone."""
    return past if past.soiled is not None else msgspec.structs.replace(past, soiled=now)


def cleaning(past: CleanupHistory) -> CleanupHistory:
    """A cleaning begins: it takes away all that is gone until now."""
    return msgspec.structs.replace(past, soiled=None)


def cleaned(past: CleanupHistory, now: float, *, failed: bool) -> CleanupHistory:
    """A cleaning is over."""
    if not failed:
        return CleanupHistory(past.soiled, now)
    return CleanupHistory(now if past.soiled is None else past.soiled, now, past.failures + 1)


def clean_at(past: CleanupHistory, pace: ScheduleSettings, searched: float) -> float | None:
    """When the next cleaning is due; None: there is nothing to clean.

    Args:
        past: What there has been.
        pace: How often.
        searched: When somebody last did.
    """
    if past.soiled is None:
        return None
    at = min(searched + pace.clean_quiet_s, past.soiled + pace.clean_latest_s)
    if past.ended is None:
        return at
    # Where it fails it has kept searches waiting for nothing: it is not tried again often.
    rest_s = LONGEST_RETRY_S * past.failures if past.failures else pace.clean_rest_s
    return max(at, past.ended + rest_s)
