"""The ledger of batch jobs, kept in embeddings.sqlite."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from memd.model import TextHash
from memd.providers.batch.batch_state import BatchState
from memd.providers.batch.ledger import LedgerFile, LedgerJob
from memd.store.provider_records import ProviderStore, StoredJob

_STANDING = "batch"


class StoredLedger:
    """The jobs of one provider, model and key."""

    def __init__(self, store: ProviderStore, clock: Callable[[], float] = time.time) -> None:
        """Nothing is read yet.

        Args:
            store: Where jobs are remembered, and what they bring is kept.
            clock: Unix time.
        """
        self._store = store
        self._clock = clock

    async def begin(self, job: LedgerJob, shares: Mapping[TextHash, float], upload: str) -> None:
        """Remember a job that is about to be created, its texts with their shares of CJK, 0..1, and the name of its upload."""
        await self._store.begin(StoredJob(job.id, job.texts, job.created_at, job.job), shares, upload)

    async def created(self, job_id: str, name: str, at: float) -> None:
        """Remember the provider's name for a job, and when it was created there."""
        await self._store.created(job_id, name, at)

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Keep vectors that a job brought; it has that much less to bring from then on."""
        await self._store.keep(job_id, vectors, self._clock())

    async def kept(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        """Those of some texts whose vectors are kept, whoever brought them."""
        return await self._store.kept(hashes)

    async def end(self, job_id: str, standing: BatchState) -> None:
        """Forget a job, and remember how batches have done by now."""
        await self._store.end(job_id, {_STANDING: msgspec.json.encode(standing)})

    async def jobs(self) -> Sequence[LedgerJob]:
        """All that have begun and not ended, the oldest first."""
        return [LedgerJob(job.id, job.texts, job.created_at, job.job) for job in await self._store.jobs()]

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        """The texts of a job that it has not brought yet, with their shares of CJK; None: nobody knows that share."""
        return await self._store.missing(job_id)

    async def add_files(self, job_id: str, files: Collection[str]) -> None:
        """Remember files of a job at the provider's, also when the job has ended."""
        await self._store.add_files(job_id, files, self._clock())

    async def drop_file(self, file: str) -> None:
        """Forget a file that is gone."""
        await self._store.drop_file(file)

    async def files(self) -> Sequence[LedgerFile]:
        """Files that may be at the provider's, the oldest first."""
        return [LedgerFile(file.name, file.job, file.is_sought) for file in await self._store.files()]

    async def forget_old(self) -> None:
        """Forget jobs and files that nobody has come back to for so long that no provider has them."""
        await self._store.forget_old(self._clock())

    async def standing(self) -> BatchState:
        """How batches have done; well, where nothing is remembered that can be read."""
        content = await self._store.document(_STANDING)
        try:
            return BatchState() if content is None else msgspec.json.decode(content, type=BatchState)
        except msgspec.DecodeError:
            return BatchState()

    async def put_standing(self, standing: BatchState) -> None:
        """Remember how batches have done."""
        await self._store.put_document(_STANDING, msgspec.json.encode(standing))
