"""The batch jobs of a provider that has them, with what they need to run."""

from collections.abc import Mapping
from random import Random

from memd.config import Batch
from memd.embed.batch.offered import offered
from memd.embed.batch.runner import Batches
from memd.embed.provider import Identity
from memd.embed.remote.http import Session
from memd.embed.remote.recipe import Recipe
from memd.model import TextHash
from memd.store.embeddings import EmbeddingStore
from memd.store.providers import ProviderStore
from memd.sync.ledger import StoredLedger
from memd.sync.vectors import VectorQueue

POLLERS = 2  # connections beside those that carry files


class Jobs:
    """Jobs whose vectors go into the cache, where the queue finds them."""

    def __init__(
        self,
        recipe: Recipe,
        identity: Identity,
        cache: EmbeddingStore,
        settings: Batch,
        queue: VectorQueue,
        rng: Random,
    ) -> None:
        """Nothing is asked yet; the queue asks for nothing that may be in a job of before.

        Args:
            recipe: How to ask the provider.
            identity: Of its vectors.
            cache: Where jobs are remembered, and vectors kept.
            settings: When there are jobs. Those that were begun are finished also where there are to be no new ones.
            queue: What hands texts over.
            rng: Source of jitter.
        """
        self._session: Session | None = None
        self._batches: Batches | None = None
        dialect = offered(recipe.dialect, recipe.account.base_url)
        if dialect is None:
            return
        self._session = Session(
            recipe.provider, recipe.account, recipe.key_header, settings.concurrency + POLLERS
        )
        space = (identity.provider, identity.model, identity.key)

        async def deliver(_: Mapping[TextHash, bytes]) -> None:
            queue.batches_changed()

        self._batches = Batches(
            dialect,
            self._session,
            recipe.account.key,
            StoredLedger(ProviderStore(cache, space)),
            settings,
            identity.dimensions,
            deliver,
            on_change=queue.batches_changed,
            rng=rng,
        )
        queue.bulk.use(self._batches, settings)

    async def run(self) -> None:
        """Take up the jobs of an earlier life, and carry them out until cancelled."""
        if self._batches is None or self._session is None:
            return
        try:
            await self._batches.resume()
            await self._batches.watch()
        finally:
            await self._batches.close()
            await self._session.close()
