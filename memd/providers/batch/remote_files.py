"""Deletes the files that batch jobs leave at the provider, which contain texts of a memory or their vectors."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto

import structlog

from memd.domain_types import BatchFile
from memd.errors import MemdError
from memd.providers.batch.client import REQUEST_FAILURES, BatchClient
from memd.providers.batch.ledger import Ledger
from memd.providers.provider import EmbedUnavailable
from memd.providers.remote.dialect import HttpRequest, NotSupported

log = structlog.get_logger()

MOST_PAGES = 20  # pages of a listing of jobs or files: what is sought was created recently


def upload_name(job_id: str) -> str:
    """Return the name under which a job's texts are uploaded, as the provider's listing shows it."""
    return f"{job_id}.jsonl"


class _End(Enum):
    """The result of deleting a file."""

    GONE = auto()
    REFUSED = auto()  # some providers refuse to delete a file that no longer exists
    THERE = auto()  # it could not be deleted now


class RemoteFiles:
    """The files of each job, which are in the ledger from the moment their names are known until they are deleted.

    An upload is recorded before it begins. If it was answered at once, its file is the only one; if a reply
    was lost, or never awaited, files are sought by the name under which they were uploaded, once the job has
    ended. No other memd uses that name.
    """

    def __init__(self, client: BatchClient, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger
        self._of: dict[str, dict[str, None]] = {}  # memd's id of a job -> its files, in order
        # Ids (those of memd) of jobs that may have files whose names are unknown.
        self._sought: set[str] = set()
        self._left = 0

    @property
    def left(self) -> int:
        """The number of files of ended jobs that could not be deleted, or not be sought, at the last attempt."""
        return self._left

    async def load(self) -> None:
        """Read the files of jobs of an earlier run of the daemon from the ledger.

        Raises:
            MemdError: they cannot be read now.
        """
        for file in await self._ledger.files():
            if file.is_sought:
                self._sought.add(file.job)
            else:
                self._of.setdefault(file.job, {})[file.name] = None

    def uploading(self, job_id: str) -> None:
        """Record that an upload begins: from here on a file with an unknown name may exist."""
        self._sought.add(job_id)

    async def uploaded(self, job_id: str) -> None:
        """Record that the name of the uploaded file is known, and that it is the only one."""
        self._sought.discard(job_id)
        await self._forget(upload_name(job_id))

    async def add(self, job_id: str, files: Iterable[str]) -> None:
        """Record files of a job; those that the ledger cannot store are forgotten when the daemon ends."""
        known = self._of.setdefault(job_id, {})
        new = [file for file in files if file not in known]
        known |= dict.fromkeys(new)
        try:
            if new:
                await self._ledger.add_files(job_id, new)
        except MemdError as failure:
            log.warning("embed.batch_files_not_noted", reason=str(failure))

    async def clear(self, job_id: str) -> bool:
        """Delete the files of a job, with some retries each; return whether all are gone and none has to be sought."""
        files = self._of.pop(job_id, {})
        ends = [await self._delete(file, self._client.send_with_retries) for file in files]
        return job_id not in self._sought and all(end is _End.GONE for end in ends)

    async def clear_left(self) -> bool:
        """Delete the files of ended jobs, with one attempt each; return whether all are gone."""
        try:
            await self._ledger.forget_old()
            files, jobs = await self._ledger.files(), {job.id for job in await self._ledger.jobs()}
        except MemdError as failure:
            log.info("embed.batch_files_not_read", reason=str(failure))
            return False
        left = [file for file in files if file.job not in jobs]
        ends = {
            file.name: await self._delete(file.name, self._client.send) for file in left if not file.is_sought
        }
        doubtful = [file for file in left if file.is_sought or ends[file.name] is _End.REFUSED]
        found = await self._found(doubtful) if doubtful else set[str]()
        self._left = sum(end is not _End.GONE for end in ends.values())
        self._left += sum(file.is_sought for file in left) - len(found)
        return not self._left

    async def _found(self, doubtful: Sequence[BatchFile]) -> set[str]:
        """Return which files are certainly gone, by the provider's listing; files that are sought are deleted first."""
        try:
            there, is_all = await self._listed()
        except REQUEST_FAILURES as failure:
            log.info("embed.batch_files_not_listed", reason=str(failure))
            return set()
        gone = set[str]()
        for file in doubtful:
            same = (
                [name for name, uploaded in there.items() if uploaded == file.name] if file.is_sought else []
            )
            ends = [await self._delete(name, self._client.send) for name in same]
            if same:
                log.info("embed.batch_files_found", files=len(same), deleted=ends.count(_End.GONE))
            if is_all and file.name not in there and all(end is _End.GONE for end in ends):
                gone.add(file.name)
                self._sought.discard(file.job)
                await self._forget(file.name)
        return gone

    async def _listed(self) -> tuple[dict[str, str], bool]:
        """Return the provider's files with the names under which they were uploaded, and whether the listing is complete."""
        dialect, files = self._client.dialect, dict[str, str]()
        after: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._client.fetch(dialect.list_files(after), dialect.listed_files)
            files |= page.files
            if page.after is None:
                return files, True
            after = page.after
        return files, False

    async def _delete(self, file: str, send: Callable[[HttpRequest], Awaitable[object]]) -> _End:
        try:
            await send(self._client.dialect.delete(file))
        except NotSupported:
            pass  # it no longer exists
        except REQUEST_FAILURES as failure:
            log.info("embed.batch_file_not_deleted", reason=str(failure))
            return _End.THERE if isinstance(failure, EmbedUnavailable) else _End.REFUSED
        await self._forget(file)
        return _End.GONE

    async def _forget(self, file: str) -> None:
        try:
            await self._ledger.drop_file(file)
        except MemdError as failure:
            log.info("embed.batch_file_not_forgotten", reason=str(failure))
