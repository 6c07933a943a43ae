"""A remote model that memd knows, or gets to know."""

from memd.embedding.model_info import ModelInfoStore
from memd.providers.provider import Provider
from memd.providers.remote.identify_model import ModelIdentity, identify
from memd.providers.remote.open_client import asker
from memd.providers.remote.provider import RemoteProvider
from memd.providers.remote.retry import RetryPolicy, log_retries
from memd.providers.remote.spec import ProviderSpec

ONCE = RetryPolicy(attempts=1, first_s=0.1, cap_s=0.1, longest_asked_s=0.1, timeouts=1)
"""Whoever asks waits and asks again by itself, and says meanwhile why."""


class ModelProbe:
    """One model behind one address, its connections, and what is remembered of it."""

    def __init__(self, recipe: ProviderSpec, portraits: ModelInfoStore) -> None:
        """Nothing is sent yet."""
        log_retries()
        self._recipe = recipe
        self._portraits = portraits
        self._portrait: ModelIdentity | None = None
        self._asker = asker(recipe)

    async def recall(self) -> Provider | None:
        """The provider as it was last, without asking it; None: it never was."""
        self._portrait = await self._portraits.recall()
        return None if self._portrait is None else self._provider(self._portrait)

    async def ask(self) -> Provider | None:
        """Another provider than the one before, if what answers is another model; None: it is the same.

        Raises:
            EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused: nothing was found out.
        """
        found = await identify(self._asker, self._portrait, retries=ONCE)
        if found == self._portrait:
            return None
        await self._portraits.keep(found)
        self._portrait = found
        return self._provider(found)

    async def close(self) -> None:
        """Close all connections."""
        await self._asker.session.close()

    def _provider(self, portrait: ModelIdentity) -> Provider:
        return RemoteProvider(self._asker, portrait, query_timeout_s=self._recipe.query_timeout_s)
