"""The state of a provider's batch API, which two failures turn off for a while, and the interface of the ledger of its jobs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from memd.domain_types import BatchFile, BatchJob, TextHash

DOCUMENT = "batch"  # the name under which a ledger keeps the state
FAILURES = 2  # so many, with no success between them, and plain requests take over
COOL_DOWN_S = 6 * 3600.0


class BatchState(msgspec.Struct, frozen=True):
    """Whether batch jobs are used, and the failures that led to it. It survives a restart."""

    is_on: bool = True
    failures: int = 0  # since the last success
    reason: str | None = None  # of the last failure
    at: float | None = None  # unix time of it
    was_late: bool = False  # the last job took too long, and its texts may be tried in another one


def decoded(content: bytes | None) -> BatchState:
    """Decode the state that a ledger stores; the initial state if there is none, or it cannot be decoded."""
    try:
        return BatchState() if content is None else msgspec.json.decode(content, type=BatchState)
    except msgspec.DecodeError:
        return BatchState()


def succeeded(_: BatchState) -> BatchState:
    """Return the state after a job succeeded: earlier failures are forgotten."""
    return BatchState()


def failed(before: BatchState, reason: str, now: float, *, weight: int = 1) -> BatchState:
    """Return the state after a job failed.

    Args:
        before: The state so far. Once off, failures do not count further: jobs that were under way may end late.
        reason: Why, for status.
        now: Unix time.
        weight: 2 for what was tried twice already.
    """
    if not before.is_on:
        return before
    failures = before.failures + weight
    return BatchState(failures < FAILURES, failures, reason, now)


def late(before: BatchState, reason: str, now: float, *, began_at: float) -> BatchState:
    """Return the state after a job was cancelled as too late: the first time is forgiven, the second counts as two failures.

    Args:
        before: The state so far.
        reason: Why, for status.
        now: Unix time.
        began_at: When the job began. One that was under way already when another one was late is no second attempt.
    """
    if not before.is_on:
        return before
    if before.was_late and before.at is not None and began_at >= before.at:
        return failed(before, reason, now, weight=2)
    return msgspec.structs.replace(
        before, reason=reason, at=before.at if before.was_late else now, was_late=True
    )


def unsupported(before: BatchState, reason: str, now: float) -> BatchState:
    """Return the state after the provider refused batches for this model or key: off until the cool-down ends."""
    return (
        BatchState(is_on=False, failures=before.failures + 1, reason=reason, at=now)
        if before.is_on
        else before
    )


def turned_on(_: BatchState) -> BatchState:
    """Return the state after the user turned batches on again."""
    return BatchState()


def cooled_down(before: BatchState, now: float) -> BatchState:
    """Return the state at a time: on again after the cool-down, or if the clock was set back to before the failure."""
    if before.is_on or before.at is None or 0 <= now - before.at < COOL_DOWN_S:
        return before
    return BatchState(failures=FAILURES - 1, reason=before.reason, at=before.at)


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
