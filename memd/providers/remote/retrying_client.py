"""Sends one request for vectors to a provider, again where that is worth it."""

from collections.abc import Sequence

from memd.providers.api_keys.account import Account
from memd.providers.provider import Vectors
from memd.providers.remote import parse_reply
from memd.providers.remote.dialect import Dialect
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.request import NotSupported, Refused, TextRole
from memd.providers.remote.retry import RetryPolicy
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.threads import beside

QUESTIONS = 2  # connections beside those for documents: a search does not wait behind them


class RetryingClient:
    """One account with one provider, spoken to in its dialect."""

    def __init__(self, dialect: Dialect, account: Account, session: HttpConnections) -> None:
        self.dialect = dialect
        self.account = account
        self.session = session

    async def ask(
        self,
        texts: Sequence[str],
        side: TextRole,
        *,
        dimensions: int | None,
        timeout_s: float,
        retries: RetryPolicy,
    ) -> Vectors:
        """The vectors of some texts, shape (n, dimensions).

        Args:
            texts: As many as one request may hold.
            side: Of the texts: questions or documents.
            dimensions: How long vectors must be; None: all alike.
            timeout_s: For each attempt.
            retries: How many there may be.

        Raises:
            EmbedUnavailable: no answer that can be used.
            Refused: no request will be answered.
            RequestTooLarge, ContentRefused: this one will not.
        """
        async for attempt in retries.attempt():
            with attempt:
                answer = await self.session.send(self.dialect.embed(texts, side), timeout_s)
                if not answer.is_success:
                    failure = self.dialect.failure(answer, self.account.key, (*texts, *self._headers()))
                    raise Refused(str(failure)) if isinstance(failure, NotSupported) else failure
                # Long lists of numbers: the loop must not stand still for them.
                return await beside(self._read, answer.body, len(texts), dimensions)
        raise AssertionError("the last attempt returns or raises")

    def _headers(self) -> list[str]:
        """What stands in the headers of the configuration: it may be secret, too."""
        return [part for value in self.account.headers.values() for part in value.split()]

    def _read(self, body: bytes, count: int, dimensions: int | None) -> Vectors:
        return parse_reply.matrix(self.dialect.vectors(body, count), count=count, dimensions=dimensions)


def open_client(spec: ProviderSpec) -> RetryingClient:
    """The client of a provider; it connects with its first request."""
    connections = spec.dialect.limits.concurrency + QUESTIONS
    session = HttpConnections(spec.provider, spec.account, spec.key_header, connections)
    return RetryingClient(spec.dialect, spec.account, session)
