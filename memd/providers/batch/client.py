"""Sends single requests to a provider's batch API, with a retry policy for each step of a job."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from random import Random
from typing import TypeVar

import msgspec
import structlog

from memd.errors import MemdError
from memd.providers.batch.dialect import BatchDialect
from memd.providers.batch.gemini import GeminiBatches
from memd.providers.batch.openai import OpenAIBatches
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, failures_of
from memd.providers.remote import replies
from memd.providers.remote.dialect import ContentRefused, Dialect, HttpRequest, NotSupported, RequestTooLarge
from memd.providers.remote.gemini import Gemini
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.openai import OpenAI, Voyage
from memd.providers.remote.retrying_client import INDEXING, RetryPolicy
from memd.runtime.timers import Backoff, Clock

T = TypeVar("T")

log = structlog.get_logger()

UPLOAD_BYTES_S = 100_000  # a line to the provider may be as slow as this

REQUEST_FAILURES = (EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused, NotSupported)
"""All that a request can fail with."""


class JobFailed(MemdError):
    """A job returned no vectors, or not all; plain requests embed the remaining texts."""


class BatchTimeouts(msgspec.Struct, frozen=True):
    """The timeouts and waits of a job's steps, in seconds."""

    request_s: float = 120.0  # one request; an upload may take longer by its size
    first_s: float = 1.0  # the wait after the first failure; it doubles
    longest_s: float = 60.0  # between two requests, unless the provider asks for more
    longest_asked_s: float = 3600.0  # what it may ask for
    end_s: float = 72 * 3600.0  # for a job to end with wait = false; providers give up after 48 hours
    cancel_s: float = 900.0  # for a job to end that was cancelled; OpenAI says ten minutes
    gone_s: float = 3600.0  # a job, or its file, that is said not to exist is asked about for so long: it has been paid for
    appear_s: float = 15.0  # for a job to be listed that has been created just now
    delete_first_s: float = 60.0  # until a file that could not be deleted is tried again; it doubles
    delete_longest_s: float = 6 * 3600.0
    # A job that could not be asked about for so long is given up; files are kept no longer.
    forget_s: float = 48 * 3600.0


def batch_dialect(embeddings: Dialect, base_url: str) -> BatchDialect | None:
    """Return the batch API that belongs to an embedding API; None: it has none, or the server is not known to have it.

    Args:
        embeddings: The embedding API.
        base_url: Its address.
    """
    match embeddings:
        case OpenAI(provider="openai") | Voyage():
            return OpenAIBatches(embeddings)
        case Gemini():
            return GeminiBatches(embeddings, base_url)
        case _:
            return None


class BatchClient:
    """Sends requests of batch jobs to one provider account."""

    def __init__(
        self,
        dialect: BatchDialect,
        session: HttpConnections,
        key: str | None,
        *,
        rng: Random,
        clock: Clock,
        retries: RetryPolicy = INDEXING,
        timeouts: BatchTimeouts | None = None,
    ) -> None:
        """Create the client; the first request connects.

        Args:
            dialect: Builds requests and reads replies.
            session: Not shared with plain requests, since a large file keeps a connection busy for long.
            key: What no error message may contain.
            rng: Source of the jitter of a backoff.
            clock: Unix time.
            retries: For requests before a job has been created.
            timeouts: For everything after that.
        """
        self.dialect = dialect
        self.retries = retries
        self.timeouts = timeouts or BatchTimeouts()
        self.clock = clock
        self.rng = rng
        self.reason: str | None = None  # why a job that has begun could not be asked about of late
        self._session = session
        self._key = key

    @property
    def provider(self) -> str:
        """The provider's name in the configuration."""
        return self.dialect.embeddings.provider

    async def send(self, request: HttpRequest) -> bytes:
        """Return the body of a reply with status 2xx.

        Raises:
            EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused, NotSupported.
        """
        timeout_s = self.timeouts.request_s + request.size / UPLOAD_BYTES_S
        with failures_of(self.provider):
            answer = await self._session.send(request, timeout_s)
            if not answer.is_success:
                raise replies.failure(answer, self.dialect.embeddings, key=self._key)
            return answer.body

    async def fetch(self, request: HttpRequest, read: Callable[[bytes], T]) -> T:
        """Send a request once, and parse the reply.

        Args:
            request: A request that the dialect made.
            read: Parses the body; may raise BadReply.
        """
        body = await self.send(request)
        with failures_of(self.provider):
            return read(body)

    async def send_with_retries(self, request: HttpRequest) -> tuple[bytes, int]:
        """Send with a few retries, as before a job exists: nothing is paid for yet, and plain requests can embed the texts.

        Returns:
            The body, and how often the request was sent.
        """
        times = 0
        async for attempt in self.retries.attempt():
            with attempt:
                times += 1
                return await self.send(request), times
        raise AssertionError("the last attempt returns or raises")

    async def fetch_until_answered(
        self, request: HttpRequest, read: Callable[[bytes], T], *, since: float, exists: bool = False
    ) -> T:
        """Fetch, and retry until there is a reply; see retry_until_done for the parameters and errors."""
        return await self.retry_until_done(lambda: self.fetch(request, read), since=since, exists=exists)

    async def retry_until_done(
        self, attempt: Callable[[], Awaitable[T]], *, since: float, exists: bool = False
    ) -> T:
        """Retry until an attempt returns: a job that is paid for is not abandoned because the provider is unreachable for an hour.

        Nor is it if the key is refused: it may be another one tomorrow.

        Args:
            attempt: Sends the request.
            since: Unix time from which forget_s counts.
            exists: What is asked about is known to have existed: a gateway that is exchanged, or a proxy, may say for a
                while that it does not, which is believed after gone_s.

        Raises:
            JobFailed: there was no reply for too long.
            RequestTooLarge, ContentRefused, NotSupported.
        """
        backoff = self.backoff()
        gone_since: float | None = None
        while True:
            try:
                answer = await attempt()
            except NotSupported as gone:
                gone_since = self.clock() if gone_since is None else gone_since
                if not exists or self.clock() - gone_since >= self.timeouts.gone_s:
                    raise
                self.reason = str(gone)
                await self.wait_after(backoff, gone)
            except (EmbedUnavailable, EmbedTerminal) as failure:
                self.reason = str(failure)
                if self.clock() - since > self.timeouts.forget_s:
                    self.reason = None
                    raise JobFailed(f"the job could not be asked about for too long ({failure})") from failure
                await self.wait_after(backoff, failure)
            else:
                self.reason = None
                return answer

    async def wait_after(self, backoff: Backoff, failure: MemdError) -> None:
        """Wait as the backoff says after one more failure, or as long as the provider asks."""
        asked_s = (failure.retry_after_s or 0.0) if isinstance(failure, EmbedUnavailable) else 0.0
        wait_s = max(backoff.failed(), min(asked_s, self.timeouts.longest_asked_s))
        log.info("embed.batch_request_failed", reason=str(failure), wait_s=round(wait_s, 1))
        await asyncio.sleep(wait_s)

    def backoff(self) -> Backoff:
        """Create the backoff of a step that is retried until it succeeds."""
        return Backoff(self.rng, first_s=self.timeouts.first_s, cap_s=self.timeouts.longest_s)

    def lines(self, request: HttpRequest) -> AsyncGenerator[bytes]:
        """Yield the lines of a file; see HttpConnections.lines, and `send` for the errors."""
        return self._session.lines(
            request,
            self.timeouts.request_s,
            lambda answer: replies.failure(answer, self.dialect.embeddings, key=self._key),
        )
