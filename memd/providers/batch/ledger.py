"""The interface of the ledger of a provider's batch jobs; memd.store.provider_records has the one of the store."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memd.domain_types import BatchFile, BatchJob, TextHash


class Ledger(Protocol):
    """Stores the batch jobs of one provider, model and key, so that they survive a restart.

    Every method raises a MemdError where it cannot store or load; a TransientError if it may do so later.
    """

    async def begin(self, job: BatchJob, shares: Mapping[TextHash, float], upload: str) -> None:
        """Store a job before it is created, and the name of its upload until the provider's name for the file is known.

        Args:
            job: The job.
            shares: Which texts are in it, each with its share of CJK, 0..1.
            upload: The name under which they are going to be uploaded.
        """
        ...

    async def created(self, job_id: str, name: str, at: float) -> None:
        """Store the provider's id of a job, and when it was created there."""
        ...

    async def add_sent(self, texts: int, tokens: int) -> None:
        """Count the texts of a job that the provider has received, with their estimated tokens."""
        ...

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Store vectors, and remove their texts from the job, in one transaction."""
        ...

    async def kept(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        """Return those of some texts whose vectors are stored, from jobs or otherwise."""
        ...

    async def end(self, job_id: str, documents: Mapping[str, bytes]) -> None:
        """Delete a job, and store documents, in one transaction."""
        ...

    async def jobs(self) -> Sequence[BatchJob]:
        """Return all jobs, the oldest first."""
        ...

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        """Return the texts of a job without stored vectors, with their shares of CJK characters (None: unknown)."""
        ...

    async def add_files(self, job_id: str, files: Collection[str]) -> None:
        """Store the ids of a job's files at the provider, also after the job has ended."""
        ...

    async def drop_file(self, file: str) -> None:
        """Delete the id of a file that no longer exists."""
        ...

    async def files(self) -> Sequence[BatchFile]:
        """Return the stored files, the oldest first."""
        ...

    async def forget_old(self) -> None:
        """Delete jobs and files that are older than any provider keeps them."""
        ...

    async def document(self, name: str) -> bytes | None:
        """Return a document; None: there is none."""
        ...

    async def put_document(self, name: str, content: bytes) -> None:
        """Store or replace a document."""
        ...
