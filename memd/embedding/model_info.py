"""Probes a remote model for its properties, and stores them, so that a start needs no request."""

import asyncio

import msgspec
import structlog

from memd.providers.provider import Provider
from memd.providers.remote.identify_model import ModelIdentity, identify
from memd.providers.remote.provider import RemoteProvider, key_of
from memd.providers.remote.retrying_client import RetryPolicy, log_retries, open_client
from memd.providers.remote.spec import ProviderSpec
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreNewer, StoreUnavailable
from memd.store.provider_records import ProviderStore

log = structlog.get_logger()

_NAME = "portrait"  # the name used by earlier versions
SENT_S = 5.0  # the time for which counts of sent texts are collected before they are stored
_UNUSABLE = (StoreUnavailable, StoreDamaged, StoreNewer)

ONCE = RetryPolicy(attempts=1, first_s=0.1, longest_asked_s=0.1, timeouts=1)
"""A failed probe is not retried here, but by the caller, who reports the reason meanwhile."""


class ModelInfoStore:
    """Stores the properties of a model by its name and address. If the store fails, the model is probed at each start."""

    def __init__(self, cache: EmbeddingStore, spec: ProviderSpec) -> None:
        # Under the key of the first generation, since the stored identity contains the current one.
        space = (spec.provider, spec.model, key_of(spec.account, spec.dialect, 0))
        self._store = ProviderStore(cache, space)

    async def load(self) -> ModelIdentity | None:
        """Return the stored identity; None if there is no readable one."""
        try:
            content = await self._store.document(_NAME)
            return None if content is None else msgspec.json.decode(content, type=ModelIdentity)
        except (*_UNUSABLE, msgspec.DecodeError) as failure:
            log.warning("embed.model_info_not_read", reason=str(failure))
            return None

    async def keep(self, identity: ModelIdentity) -> None:
        """Store an identity; a failure is logged."""
        try:
            await self._store.put_document(_NAME, msgspec.json.encode(identity))
        except _UNUSABLE as failure:
            log.warning("embed.model_info_not_kept", reason=str(failure))

    async def add_sent(self, texts: int, tokens: int) -> None:
        """Count texts that were sent; a failure is logged."""
        try:
            await self._store.add_sent(texts, tokens)
        except _UNUSABLE as failure:
            log.warning("embed.sent_not_noted", reason=str(failure))


class ModelProbe:
    """Probes one model at one address."""

    def __init__(self, spec: ProviderSpec, store: ModelInfoStore) -> None:
        log_retries()
        self._spec = spec
        self._store = store
        self._identity: ModelIdentity | None = None
        self._client = open_client(spec)

    async def load(self) -> Provider | None:
        """Return the provider as it was at the last probe, without a request; None: it was never probed."""
        self._identity = await self._store.load()
        return None if self._identity is None else self._provider(self._identity)

    async def ask(self) -> Provider | None:
        """Probe the model; return the provider if it differs from the last probe, otherwise None.

        Raises:
            EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused: the probe failed.
        """
        found = await identify(self._client, self._identity, retries=ONCE)
        if found == self._identity:
            return None
        await self._store.keep(found)
        self._identity = found
        return self._provider(found)

    async def note_sent(self) -> None:
        """Store counts of texts sent to the model, until cancelled."""
        sent = self._client.sent
        try:
            while True:
                await sent.some.wait()
                await asyncio.sleep(SENT_S)
                await self._store.add_sent(*sent.take())
        finally:
            if sent.some.is_set():
                await self._store.add_sent(*sent.take())

    async def close(self) -> None:
        """Close all connections."""
        await self._client.session.close()

    def _provider(self, identity: ModelIdentity) -> Provider:
        return RemoteProvider(self._client, identity, query_timeout_s=self._spec.query_timeout_s)
