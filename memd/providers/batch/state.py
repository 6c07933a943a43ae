"""What is remembered of batch jobs, so that nothing is paid for twice, and whether batches are used: two failures turn them off for a while."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from memd.domain_types import BatchFile, BatchJob, TextHash

DOCUMENT = "batch"  # the name under which a ledger keeps the state
FAILURES = 2  # so many, with no success between them, and plain requests take over
COOL_DOWN_S = 6 * 3600.0


class BatchState(msgspec.Struct, frozen=True):
    """How batches have done of late. It survives a restart."""

    is_on: bool = True
    failures: int = 0  # since the last success
    reason: str | None = None  # of the last failure
    at: float | None = None  # unix time of it
    was_late: bool = False  # the last job took too long, and its texts may be tried in another one


def decoded(content: bytes | None) -> BatchState:
    """The state that a ledger kept; that of the beginning, where it kept none that can be read."""
    try:
        return BatchState() if content is None else msgspec.json.decode(content, type=BatchState)
    except msgspec.DecodeError:
        return BatchState()


def succeeded(_: BatchState) -> BatchState:
    """A job brought its vectors: what went wrong before is forgotten."""
    return BatchState()


def failed(before: BatchState, reason: str, now: float, *, weight: int = 1) -> BatchState:
    """A job failed.

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
    """A job took too long: that is forgiven once, and the second time counts as both.

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
    """The provider has no batches, for this model or this key: there is nothing to try again soon."""
    return (
        BatchState(is_on=False, failures=before.failures + 1, reason=reason, at=now)
        if before.is_on
        else before
    )


def turned_on(_: BatchState) -> BatchState:
    """A person wants batches again."""
    return BatchState()


def cooled_down(before: BatchState, now: float) -> BatchState:
    """The state at a time: after the cool-down, or a clock that went back behind it, batches get another chance."""
    if before.is_on or before.at is None or 0 <= now - before.at < COOL_DOWN_S:
        return before
    return BatchState(failures=FAILURES - 1, reason=before.reason, at=before.at)


class Ledger(Protocol):
    """The jobs of one provider, model and key, kept where they survive a restart.

    Every method raises a MemdError where it cannot store or load; a TransientError if it may do so later.
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

    async def add_sent(self, texts: int, tokens: int) -> None:
        """Count the texts of a job that the provider has, with their estimated tokens."""
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
