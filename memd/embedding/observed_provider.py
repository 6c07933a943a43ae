"""A provider of which somebody hears how each request ended."""

from collections.abc import Callable, Sequence

from memd.providers.provider import (
    Calibration,
    EmbedsTogether,
    EmbedTerminal,
    EmbedUnavailable,
    Identity,
    Provider,
    ProviderLimits,
    Vector,
    Vectors,
    failures_of,
)

Failure = EmbedUnavailable | EmbedTerminal


def watched(
    provider: Provider, told: Callable[[Failure | None], None], *, passages: bool = True
) -> "ObservedProvider":
    """A provider whose requests are heard of; it takes several questions at once if the provider does."""
    kind = ObservedBatchProvider if isinstance(provider, EmbedsTogether) else ObservedProvider
    return kind(provider, told, passages=passages)


class ObservedProvider:
    """Passes everything on, and tells of failures and of answers."""

    def __init__(self, provider: Provider, told: Callable[[Failure | None], None], *, passages: bool) -> None:
        """Nothing is asked yet.

        Args:
            provider: Whom to ask.
            told: Called after each request with what went wrong; None: nothing.
            passages: Whether requests with documents are heard of, too.
        """
        self._passages = passages
        self._provider = provider
        self._told = told

    @property
    def identity(self) -> Identity:
        """What its vectors may be compared with."""
        return self._provider.identity

    @property
    def calibration(self) -> Calibration:
        """The range of its model's cosines."""
        return self._provider.calibration

    @property
    def limits(self) -> ProviderLimits:
        """What one call may hold."""
        return self._provider.limits

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents; raises as the provider does."""
        try:
            with failures_of(self.identity.provider):
                vectors = await self._provider.embed_passages(texts)
        except (EmbedUnavailable, EmbedTerminal) as failure:
            if self._passages:
                self._told(failure)
            raise
        if self._passages:
            self._told(None)
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """Embed a question; raises as the provider does."""
        try:
            with failures_of(self.identity.provider):
                vector = await self._provider.embed_query(text)
        except EmbedUnavailable as failure:
            self._tell_of_question(failure)
            raise
        self._told(None)
        return vector

    async def close(self) -> None:
        """End what the provider has open."""
        await self._provider.close()

    def _tell_of_question(self, failure: EmbedUnavailable) -> None:
        # A question is answered without a vector whatever the cause; whether it will pass is told by that.
        cause = failure.__cause__
        self._told(cause if isinstance(cause, EmbedTerminal) else failure)


class ObservedBatchProvider(ObservedProvider):
    """The same of a provider that embeds several questions in one request."""

    async def embed_queries(self, texts: Sequence[str]) -> Sequence[Vector | EmbedUnavailable]:
        """Embed questions; raises as the provider does."""
        assert isinstance(self._provider, EmbedsTogether)
        try:
            with failures_of(self.identity.provider):
                outcomes = await self._provider.embed_queries(texts)
        except EmbedUnavailable as failure:
            self._tell_of_question(failure)
            raise
        failures = [outcome for outcome in outcomes if isinstance(outcome, EmbedUnavailable)]
        if len(failures) == len(outcomes):
            self._tell_of_question(failures[0])
        else:
            self._told(None)
        return outcomes
