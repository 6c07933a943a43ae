"""What must be remembered of jobs, so that nothing is paid for twice."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memd.model import BatchFile, BatchJob, TextHash


class Ledger(Protocol):
    """The jobs of one provider, model and key, kept where they survive a restart.

    Every method raises a MemdError where it cannot remember or recall; a TransientError if it may do so later.
    """

    async def begin(self, job: BatchJob, shares: Mapping[TextHash, float], upload: str) -> None:
        """Remember a job that is about to be created, and a file that is sought until its name is known.

        Args:
            job: The job.
            shares: Which texts are in it, each with its share of CJK, 0..1.
            upload: The name under which they are going to be uploaded.
        """
        ...

    async def created(self, job_id: str, name: str, at: float) -> None:
        """Remember the provider's name for a job, and when it was created there."""
        ...

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Keep vectors for good, and remember that the job has brought them, both or neither."""
        ...

    async def kept(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        """Those of some texts whose vectors are kept, also those that no job brought."""
        ...

    async def end(self, job_id: str, documents: Mapping[str, bytes]) -> None:
        """Forget a job, whose results are kept or are none, and keep documents, both or neither."""
        ...

    async def jobs(self) -> Sequence[BatchJob]:
        """All that have begun and not ended, the oldest first."""
        ...

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        """The texts of a job whose vectors have not been kept, with their shares of CJK; None: that share is not known."""
        ...

    async def add_files(self, job_id: str, files: Collection[str]) -> None:
        """Remember files of a job at the provider's, also when the job has ended."""
        ...

    async def drop_file(self, file: str) -> None:
        """Forget a file that is gone."""
        ...

    async def files(self) -> Sequence[BatchFile]:
        """All that are remembered and not gone, the oldest first."""
        ...

    async def forget_old(self) -> None:
        """Forget jobs and files of long ago: no provider keeps any for so long."""
        ...

    async def document(self, name: str) -> bytes | None:
        """A document that was put, or None."""
        ...

    async def put_document(self, name: str, content: bytes) -> None:
        """Keep a document in the place of the one of that name."""
        ...
