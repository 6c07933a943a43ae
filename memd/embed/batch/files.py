"""The files of jobs at the provider's, which hold texts of a memory or their vectors: each is deleted at last."""

from collections.abc import Awaitable, Callable, Iterable

import structlog

from memd.embed.batch.asking import Asking
from memd.embed.batch.ledger import Ledger
from memd.embed.provider import EmbedTerminal, EmbedUnavailable
from memd.embed.remote.call import Call, NotSupported, TooMuch, Unacceptable
from memd.errors import MemdError

log = structlog.get_logger()


class Files:
    """Which files there are, by job. They stand in the ledger from the moment their names are known until they are gone."""

    def __init__(self, asking: Asking, ledger: Ledger) -> None:
        """Nothing is known yet.

        Args:
            asking: Whom to ask.
            ledger: Where they are remembered.
        """
        self._asking = asking
        self._ledger = ledger
        self._of: dict[str, dict[str, None]] = {}  # our id of a job -> its files, in order

    async def recall(self) -> None:
        """Know the files of jobs of an earlier life.

        Raises:
            MemdError: they cannot be read now.
        """
        for file, job_id in (await self._ledger.files()).items():
            self._of.setdefault(job_id, {})[file] = None

    async def add(self, job_id: str, files: Iterable[str]) -> None:
        """Files are there. Where that cannot be remembered, they are deleted in this life or not at all."""
        known = self._of.setdefault(job_id, {})
        new = [file for file in files if file not in known]
        known |= dict.fromkeys(new)
        try:
            if new:
                await self._ledger.add_files(job_id, new)
        except MemdError as failure:
            log.warning("embed.batch_files_not_noted", reason=str(failure))

    async def clear(self, job_id: str) -> bool:
        """Delete the files of a job, with a few attempts for each; whether all are gone."""
        files = self._of.pop(job_id, {})
        return all([await self._delete(file, self._asking.some_times) for file in files])

    async def clear_left(self) -> bool:
        """Delete what is left of jobs that have ended, with an attempt for each; whether all of it is gone."""
        try:
            files, jobs = await self._ledger.files(), {job.id for job in await self._ledger.jobs()}
        except MemdError as failure:
            log.info("embed.batch_files_not_read", reason=str(failure))
            return False
        left = [file for file, job_id in files.items() if job_id not in jobs]
        return all([await self._delete(file, self._asking.once) for file in left])

    async def _delete(self, file: str, put: Callable[[Call], Awaitable[bytes]]) -> bool:
        try:
            await put(self._asking.dialect.delete(file))
        except NotSupported:
            pass  # it is not there any more
        except (EmbedUnavailable, EmbedTerminal, TooMuch, Unacceptable) as failure:
            log.info("embed.batch_file_not_deleted", reason=str(failure))
            return False
        try:
            await self._ledger.drop_file(file)
        except MemdError as failure:
            log.info("embed.batch_file_not_forgotten", reason=str(failure))
        return True
