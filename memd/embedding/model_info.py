"""What is remembered of remote models, so that a start waits for nobody."""

import msgspec
import structlog

from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.provider import key_of
from memd.providers.remote.spec import ProviderSpec
from memd.store.embeddings import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreNewer, StoreUnavailable
from memd.store.provider_records import ProviderStore

log = structlog.get_logger()

_NAME = "portrait"
_UNUSABLE = (StoreUnavailable, StoreDamaged, StoreNewer)


class ModelInfoStore:
    """The portrait of one model behind one address. Without a store that works, it is asked for anew at each start."""

    def __init__(self, cache: EmbeddingStore, recipe: ProviderSpec) -> None:
        # Under the key of the first generation: which generation it is, is what the portrait says.
        space = (recipe.provider, recipe.model, key_of(recipe.account, recipe.dialect, 0))
        self._store = ProviderStore(cache, space)

    async def recall(self) -> ModelIdentity | None:
        """What was found out last; None: nothing that can be read."""
        try:
            content = await self._store.document(_NAME)
            return None if content is None else msgspec.json.decode(content, type=ModelIdentity)
        except (*_UNUSABLE, msgspec.DecodeError) as trouble:
            log.warning("embed.portrait_not_read", reason=str(trouble))
            return None

    async def keep(self, portrait: ModelIdentity) -> None:
        """Remember it, if that can be done."""
        try:
            await self._store.put_document(_NAME, msgspec.json.encode(portrait))
        except _UNUSABLE as trouble:
            log.warning("embed.portrait_not_kept", reason=str(trouble))
