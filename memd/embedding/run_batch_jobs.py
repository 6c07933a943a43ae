"""The batch jobs of a provider that has them, with what they need to run."""

import asyncio
import time
from random import Random

from memd.config.settings import BatchSettings
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.providers.batch.client import BatchClient, batch_dialect
from memd.providers.batch.dialect import BatchDialect
from memd.providers.batch.job import VectorForm
from memd.providers.batch.runner import BatchRunner
from memd.providers.calibration import Bias
from memd.providers.provider import Identity, space_of
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.synchronization import ChangeNotifier
from memd.store.embedding_cache import EmbeddingStore
from memd.store.provider_records import ProviderStore

POLLERS = 2  # connections beside those that carry files


class SharedBatchJobs:
    """What the providers that embed in one space share: one of them carries out the batch jobs, for the queues of all."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()  # held while the jobs are carried out
        self.changes = ChangeNotifier()  # of the jobs: the queues look again
        self.batches: BatchRunner | None = None
        self.queues: dict[EmbeddingQueue, BatchSettings] = {}  # with the settings of each

    def use(self, batches: BatchRunner) -> None:
        """Have all queues know of these jobs: what is in one must not be asked for by any."""
        self.batches = batches
        for queue, settings in self.queues.items():
            queue.batch_submitter.use(batches, settings)


class CachedBatchJobs:
    """Batch jobs whose vectors go into the cache, where the queues of their space find them."""

    def __init__(
        self,
        recipe: ProviderSpec,
        identity: Identity,
        cache: EmbeddingStore,
        settings: BatchSettings,
        queue: EmbeddingQueue,
        rng: Random,
        shared: SharedBatchJobs,
        bias: Bias | None,
    ) -> None:
        """From here on the queue asks for no text that may be in a job of an earlier life.

        Args:
            recipe: How to ask the provider.
            identity: Of its vectors.
            cache: Where jobs are remembered, and vectors kept.
            settings: When there are jobs. Those that were begun are finished also where there are to be no new ones.
            queue: What hands texts over.
            rng: Source of jitter.
            shared: With the other providers of the same space.
            bias: What the vectors of this space are without; None: nothing is taken out of them.
        """
        self._recipe = recipe
        self._identity = identity
        self._cache = cache
        self._settings = settings
        self._queue = queue
        self._rng = rng
        self._shared = shared
        self._bias = bias
        self._dialect = batch_dialect(recipe.dialect, recipe.account.base_url)
        self._mine: tuple[BatchRunner, HttpConnections] | None = None
        if self._dialect is None:
            return
        shared.queues[queue] = settings
        if shared.batches is None:
            self._begin(self._dialect)
        else:
            queue.batch_submitter.use(shared.batches, settings)

    async def run(self) -> None:
        """Take up the jobs of an earlier life, and carry them out until cancelled; wait while another provider does."""
        if self._dialect is None:
            return
        try:
            async with self._shared.turn:
                batches, session = self._mine or self._begin(self._dialect)
                try:
                    await batches.resume()
                    await batches.watch()
                finally:
                    await batches.close()
                    await session.close()
        finally:
            del self._shared.queues[self._queue]
            if not self._shared.queues:
                self._shared.batches = None

    def _begin(self, dialect: BatchDialect) -> tuple[BatchRunner, HttpConnections]:
        recipe, identity, settings = self._recipe, self._identity, self._settings
        session = HttpConnections(
            recipe.provider, recipe.account, recipe.key_header, settings.concurrency + POLLERS
        )
        shared = self._shared
        client = BatchClient(dialect, session, recipe.account.key, rng=self._rng, clock=time.time)
        form = VectorForm(identity.dimensions, None if self._bias is None else self._bias.passages)
        ledger = ProviderStore(self._cache, space_of(identity))
        batches = BatchRunner(client, ledger, settings, form, shared.changes)
        self._mine = batches, session
        shared.use(batches)
        return self._mine
