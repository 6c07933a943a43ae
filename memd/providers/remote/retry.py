"""When a failed request is put again, and after how long."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager

import msgspec
import stamina
import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from memd.providers.provider import EmbedUnavailable
from memd.providers.remote.request import RequestTimedOut

log = structlog.get_logger()


class RetryPolicy(msgspec.Struct, frozen=True):
    """How patient one request is."""

    attempts: int
    first_s: float  # the wait before the second attempt; it doubles from there
    cap_s: float
    longest_asked_s: float  # a provider that asks for a longer wait is not waited for here
    timeouts: int  # so many attempts may take too long

    def attempt(self) -> AsyncIterator[AbstractContextManager[object]]:
        """Contexts for one attempt each; an error that is worth it makes another one follow.

        Exponential backoff with jitter, or what the provider asked for.
        """
        return stamina.retry_context(
            on=self._judge(),
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.first_s,
            wait_max=self.cap_s,
            wait_jitter=self.first_s / 2,
        ).__aiter__()

    def _judge(self) -> Callable[[Exception], bool | float]:
        late = 0

        def judge(failure: Exception) -> bool | float:
            nonlocal late
            if not isinstance(failure, EmbedUnavailable):
                return False
            late += isinstance(failure, RequestTimedOut)
            if late >= self.timeouts > 0 and isinstance(failure, RequestTimedOut):
                return False
            asked_s = failure.retry_after_s
            if asked_s is None:
                return True
            return False if asked_s > self.longest_asked_s else max(asked_s, 0.001)

        return judge


# The figures of the original where they proved good: half a second to eight, four attempts.
INDEXING = RetryPolicy(attempts=4, first_s=0.5, cap_s=8.0, longest_asked_s=60.0, timeouts=2)
# Inside the deadline of a question there is room for one more attempt.
ASKING = RetryPolicy(attempts=2, first_s=0.1, cap_s=0.2, longest_asked_s=0.5, timeouts=1)


def log_retries() -> None:
    """Have retries logged in memd's own words: what the library logs by itself quotes arguments."""
    set_on_retry_hooks([_tell])


def _tell(details: RetryDetails) -> None:
    log.info(
        "embed.request_retried",
        attempt=details.retry_num,
        wait_s=round(details.wait_for, 2),
        reason=str(details.caused_by),
    )
