"""Single requests about jobs: how often each is worth putting again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from random import Random
from typing import TypeVar

import msgspec
import structlog

from memd.errors import MemdError
from memd.providers.batch.dialect import BatchDialect
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, failures_of
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.request import HttpRequest, NotSupported
from memd.providers.remote.retry import INDEXING, RetryPolicy
from memd.runtime.backoff import delay_s

T = TypeVar("T")

log = structlog.get_logger()

UPLOAD_BYTES_S = 100_000  # a line to the provider may be as slow as this


class JobFailed(MemdError):
    """A job brought no vectors, or not all; the rest is embedded by plain requests."""


class BatchTimeouts(msgspec.Struct, frozen=True):
    """How long things may take that nobody waits for, in seconds."""

    request_s: float = 120.0  # one request; an upload may take longer by its size
    first_s: float = 1.0  # the wait after the first failure; it doubles
    longest_s: float = 60.0  # between two questions, unless the provider asks for more
    longest_asked_s: float = 3600.0  # what it may ask for
    end_s: float = 72 * 3600.0  # for a job to end that nobody waits for; providers give up after 48 hours
    cancel_s: float = 900.0  # for a job to end that was cancelled; OpenAI says ten minutes
    gone_s: float = 3600.0  # a job, or its file, that is said not to exist is asked about for so long: it has been paid for
    appear_s: float = 15.0  # for a job to be listed that has been created just now
    delete_first_s: float = 60.0  # until a file that could not be deleted is tried again; it doubles
    delete_longest_s: float = 6 * 3600.0
    forget_s: float = (
        48 * 3600.0
    )  # a job that could not be asked about for so long is given up; files are kept no longer


class BatchClient:
    """One provider, asked about jobs."""

    def __init__(
        self,
        dialect: BatchDialect,
        session: HttpConnections,
        key: str | None,
        *,
        rng: Random,
        clock: Callable[[], float],
        retries: RetryPolicy = INDEXING,
        patience: BatchTimeouts | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            dialect: How to ask.
            session: Through what.
            key: What no message may tell.
            rng: Source of the jitter of a backoff.
            clock: Unix time.
            retries: How often to ask before a job has begun.
            patience: How long to wait after that.
        """
        self.dialect = dialect
        self.retries = retries
        self.patience = patience or BatchTimeouts()
        self.clock = clock
        self.trouble: str | None = None  # why there was no answer of late about a job that has begun
        self._session = session
        self._key = key
        self._rng = rng

    async def once(self, call: HttpRequest) -> bytes:
        """The body of an answer with status 2xx.

        Raises:
            EmbedUnavailable, EmbedTerminal, TooMuch, Unacceptable, NotSupported.
        """
        timeout_s = self.patience.request_s + call.size / UPLOAD_BYTES_S
        with failures_of(self.dialect.provider):
            answer = await self._session.send(call, timeout_s)
            if not answer.is_success:
                raise self.dialect.failure(answer, self._key)
            return answer.body

    async def read_once(self, call: HttpRequest, read: Callable[[bytes], T]) -> T:
        """What read makes of an answer; like once.

        Args:
            call: The request.
            read: Makes of a body what is wanted; may raise BadReply.
        """
        body = await self.once(call)
        with failures_of(self.dialect.provider):
            return read(body)

    async def some_times(self, call: HttpRequest) -> bytes:
        """Like once, put again a few times: nothing has been paid for yet, and plain requests can do the same."""
        return (await self.counted(call))[0]

    async def counted(self, call: HttpRequest) -> tuple[bytes, int]:
        """Like some_times; with how often it was put."""
        times = 0
        async for attempt in self.retries.attempt():
            with attempt:
                times += 1
                return await self.once(call), times
        raise AssertionError("the last attempt returns or raises")

    async def until_answered(
        self, call: HttpRequest, read: Callable[[bytes], T], *, since: float, exists: bool = False
    ) -> T:
        """Ask until there is an answer: what has been paid for is not given up because a provider is away for an hour.

        Nor is it if the key is refused: it may be another one tomorrow.

        Args:
            call: The request.
            read: Makes of a body what is wanted; may raise BadReply.
            since: Unix time from which forget_s counts.
            exists: See persist.

        Raises:
            JobFailed: there was none for too long.
            TooMuch, Unacceptable, NotSupported.
        """
        return await self.persist(lambda: self.read_once(call, read), since=since, exists=exists)

    async def persist(self, ask: Callable[[], Awaitable[T]], *, since: float, exists: bool = False) -> T:
        """What ask returns, tried until it does; like until_answered.

        Args:
            ask: Puts the request.
            since: Unix time from which forget_s counts.
            exists: What is asked about is known to have existed: a gateway that is exchanged, or a proxy, may say for a
                while that it does not, which is believed after gone_s.
        """
        failures = 0
        gone_since: float | None = None
        while True:
            try:
                answer = await ask()
            except NotSupported as gone:
                failures += 1
                gone_since = self.clock() if gone_since is None else gone_since
                if not exists or self.clock() - gone_since >= self.patience.gone_s:
                    raise
                self.trouble = str(gone)
                await self.wait_after(failures, gone)
            except (EmbedUnavailable, EmbedTerminal) as failure:
                failures += 1
                self.trouble = str(failure)
                if self.clock() - since > self.patience.forget_s:
                    self.trouble = None
                    raise JobFailed(f"the job could not be asked about for too long ({failure})") from failure
                await self.wait_after(failures, failure)
            else:
                self.trouble = None
                return answer

    async def wait_after(self, failures: int, failure: MemdError) -> None:
        """Wait as long as is fit after failures in a row, or as long as the provider asks."""
        asked_s = (failure.retry_after_s or 0.0) if isinstance(failure, EmbedUnavailable) else 0.0
        wait_s = max(
            delay_s(failures, self._rng, first_s=self.patience.first_s, cap_s=self.patience.longest_s),
            min(asked_s, self.patience.longest_asked_s),
        )
        log.info("embed.batch_request_failed", reason=str(failure), wait_s=round(wait_s, 1))
        await asyncio.sleep(wait_s)

    def lines(self, call: HttpRequest) -> AsyncGenerator[bytes]:
        """The lines of a file, as Session.lines gives them; raises like once."""
        return self._session.lines(
            call, self.patience.request_s, lambda answer: self.dialect.failure(answer, self._key)
        )
