"""A provider of which somebody hears how each request ended."""

from collections.abc import Callable, Sequence

from memd.embed.provider import (
    Calibration,
    EmbedTerminal,
    EmbedUnavailable,
    Identity,
    Limits,
    Provider,
    Vector,
    Vectors,
    failures_of,
)

Failure = EmbedUnavailable | EmbedTerminal


class Watched:
    """Passes everything on, and tells of failures and of answers."""

    def __init__(self, provider: Provider, told: Callable[[Failure | None], None]) -> None:
        """Nothing is asked yet.

        Args:
            provider: Whom to ask.
            told: Called after each request with what went wrong; None: nothing.
        """
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
    def limits(self) -> Limits:
        """What one call may hold."""
        return self._provider.limits

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents; raises as the provider does."""
        try:
            with failures_of(self.identity.provider):
                vectors = await self._provider.embed_passages(texts)
        except (EmbedUnavailable, EmbedTerminal) as failure:
            self._told(failure)
            raise
        self._told(None)
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """Embed a question; raises as the provider does."""
        try:
            with failures_of(self.identity.provider):
                vector = await self._provider.embed_query(text)
        except EmbedUnavailable as failure:
            # A question is answered without a vector whatever the cause; whether it will pass is told by that.
            cause = failure.__cause__
            self._told(cause if isinstance(cause, EmbedTerminal) else failure)
            raise
        self._told(None)
        return vector

    async def close(self) -> None:
        """End what the provider has open."""
        await self._provider.close()
