"""What must be remembered of jobs, so that nothing is paid for twice."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from memd.model import TextHash
from memd.providers.batch.batch_state import BatchState


class LedgerJob(msgspec.Struct, frozen=True):
    """A job as the ledger holds it."""

    id: str  # ours; the job carries it as its label
    texts: int
    created_at: float  # unix time; when it was begun, until it is known when it was created
    job: str | None = None  # the provider's name for it; None: nobody knows yet whether it was created


class LedgerFile(msgspec.Struct, frozen=True):
    """A file of a job at the provider's, as the ledger holds it."""

    name: str  # the provider's; of one that is sought, the name under which it was uploaded
    job: str  # ours
    is_sought: bool = False  # no answer said under which name it is there, or that it is there at all


class Ledger(Protocol):
    """The jobs of one provider, model and key, kept where they survive a restart.

    Every method raises a MemdError where it cannot remember or recall; a TransientError if it may do so later.
    """

    async def begin(self, job: LedgerJob, shares: Mapping[TextHash, float], upload: str) -> None:
        """Remember a job that is about to be created, and a file that is sought until its name is known.

        Args:
            job: Ours.
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
        """Those of some texts whose vectors are kept, whoever brought them."""
        ...

    async def end(self, job_id: str, standing: BatchState) -> None:
        """Forget a job, whose results are kept or are none, and remember how batches have done by now."""
        ...

    async def jobs(self) -> Sequence[LedgerJob]:
        """All that have begun and not ended, the oldest first."""
        ...

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        """The texts of a job whose vectors have not been kept, with their shares of CJK; None: nobody knows that share."""
        ...

    async def add_files(self, job_id: str, files: Collection[str]) -> None:
        """Remember files of a job at the provider's, also when the job has ended."""
        ...

    async def drop_file(self, file: str) -> None:
        """Forget a file that is gone."""
        ...

    async def files(self) -> Sequence[LedgerFile]:
        """All that are remembered and not gone, the oldest first."""
        ...

    async def forget_old(self) -> None:
        """Forget jobs and files of long ago: no provider keeps any for so long."""
        ...

    async def standing(self) -> BatchState:
        """How batches have done."""
        ...

    async def put_standing(self, standing: BatchState) -> None:
        """Remember it."""
        ...
