"""Runs the batch jobs of a provider that supports them."""

import asyncio
import time
from random import Random

from memd.config.settings import BatchSettings
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.providers.batch.client import BatchClient, batch_dialect
from memd.providers.batch.dialect import BatchDialect
from memd.providers.batch.job import VectorForm
from memd.providers.batch.runner import BatchRunner
from memd.providers.cosine_calibration import Bias
from memd.providers.provider import Identity, space_of
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.spec import ProviderSpec
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.embedding_cache import EmbeddingStore
from memd.store.provider_records import ProviderStore

POLLERS = 2  # connections in addition to those for files


class SharedBatchJobs:
    """The batch jobs of one vector space. One of the providers of the space runs them; the queues of all of them use them."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()  # held by the provider that runs the jobs
        self.changes = ChangeNotifier()  # notified after changes of jobs, upon which queues look again
        self.batches: BatchRunner | None = None
        self.queues: dict[EmbeddingQueue, BatchSettings] = {}  # all queues of the space, with their settings

    def use(self, batches: BatchRunner) -> None:
        """Pass the jobs to all queues, so that none requests texts that are in a job."""
        self.batches = batches
        for queue, settings in self.queues.items():
            queue.batch_submitter.use(batches, settings)


class CachedBatchJobs:
    """Batch jobs that write their vectors into the cache, where the queues of the space find them."""

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
        """Pass existing jobs to the queue, so that it requests no text that may be in a job of an earlier process.

        Args:
            recipe: The configuration of the provider.
            identity: The identity of its vectors.
            cache: Stores jobs and vectors.
            settings: When to create jobs. Existing jobs are finished even if new ones are disabled.
            queue: Hands over texts.
            rng: Source of jitter.
            shared: Shared with the other providers of the space.
            bias: The mean that is subtracted from vectors of this space; None: none is.
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
        """Resume the jobs of an earlier process, and run all jobs until cancelled; wait while another provider runs them."""
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
