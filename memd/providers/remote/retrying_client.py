"""Sends a request for vectors to a provider, with retries."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager

import msgspec
import stamina
import structlog
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from memd.providers.api_keys import Account
from memd.providers.provider import EmbedUnavailable, Vectors
from memd.providers.remote import replies
from memd.providers.remote.dialect import Dialect, NotSupported, Refused, RequestTimedOut, TextRole
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.threads import beside
from memd_client.token_estimate import estimate_tokens

log = structlog.get_logger()


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and after which delays a request is retried."""

    attempts: int
    first_s: float  # the delay before the second attempt; it doubles with each further one
    longest_asked_s: float  # if the provider asks for a longer wait, the request fails
    timeouts: int  # the most attempts that may time out

    def attempt(self) -> AsyncIterator[AbstractContextManager[object]]:
        """Yield a context for each attempt; a temporary error in it causes another attempt.

        The delay is an exponential backoff with jitter, or what the provider asked for.
        """
        return stamina.retry_context(
            on=self._judge(),
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.first_s,
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


# The figures of the original where they proved good: half a second at first, four attempts.
INDEXING = RetryPolicy(attempts=4, first_s=0.5, longest_asked_s=60.0, timeouts=2)
# The deadline of a question leaves room for one more attempt.
ASKING = RetryPolicy(attempts=2, first_s=0.1, longest_asked_s=0.5, timeouts=1)


def log_retries() -> None:
    """Log retries with memd's messages: the library's own quote arguments."""
    set_on_retry_hooks([_log_retry])


def _log_retry(details: RetryDetails) -> None:
    log.info(
        "embed.request_retried",
        attempt=details.retry_num,
        wait_s=round(details.wait_for, 2),
        reason=str(details.caused_by),
    )


class SentCounter:
    """Counts texts that a provider has embedded, and that are paid for, until they are stored."""

    def __init__(self) -> None:
        self.some = asyncio.Event()  # set while there are counts to store
        self._texts = self._tokens = 0

    def add(self, texts: int, tokens: int) -> None:
        """Add texts with their estimated tokens."""
        self._texts += texts
        self._tokens += tokens
        self.some.set()

    def take(self) -> tuple[int, int]:
        """Return and reset the counts."""
        taken = self._texts, self._tokens
        self._texts = self._tokens = 0
        self.some.clear()
        return taken


QUESTIONS = 2  # connections for questions, which do not wait for documents


class RetryingClient:
    """Sends requests to one provider account, in its dialect."""

    def __init__(self, dialect: Dialect, account: Account, session: HttpConnections) -> None:
        self.dialect = dialect
        self.account = account
        self.session = session
        self.sent = SentCounter()

    async def ask(
        self,
        texts: Sequence[str],
        role: TextRole,
        *,
        dimensions: int | None,
        timeout_s: float,
        retries: RetryPolicy,
    ) -> Vectors:
        """Embed some texts; return an array of shape (n, dimensions).

        Args:
            texts: Texts that fit into one request.
            role: Whether they are questions or documents.
            dimensions: The expected length of vectors; None: all equal.
            timeout_s: For each attempt.
            retries: The retry policy.

        Raises:
            EmbedUnavailable: there was no usable answer.
            Refused: all requests are refused.
            RequestTooLarge, ContentRefused: this request was refused.
        """
        async for attempt in retries.attempt():
            with attempt:
                answer = await self.session.send(self.dialect.embed(texts, role), timeout_s)
                if not answer.is_success:
                    failure = replies.failure(
                        answer, self.dialect, key=self.account.key, texts=(*texts, *self._headers())
                    )
                    raise Refused(str(failure)) if isinstance(failure, NotSupported) else failure
                self.sent.add(len(texts), sum(map(estimate_tokens, texts)))
                # Parsing long lists of numbers would block the event loop.
                return await beside(self._read, answer.body, len(texts), dimensions)
        raise AssertionError("the last attempt returns or raises")

    def _headers(self) -> list[str]:
        """Return the values of configured headers, which may be secret too."""
        return [part for value in self.account.headers.values() for part in value.split()]

    def _read(self, body: bytes, count: int, dimensions: int | None) -> Vectors:
        return replies.matrix(self.dialect.vectors(body, count), count=count, dimensions=dimensions)


def open_client(spec: ProviderSpec) -> RetryingClient:
    """Create the client of a provider; its first request connects."""
    connections = spec.dialect.limits.concurrency + QUESTIONS
    session = HttpConnections(spec.provider, spec.account, spec.key_header, connections)
    return RetryingClient(spec.dialect, spec.account, session)
