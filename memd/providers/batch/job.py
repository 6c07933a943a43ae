"""One job from its beginning to what it brought."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import structlog

from memd.config.settings import BatchSettings
from memd.model import TextHash
from memd.providers.batch.client import BatchClient, JobFailed
from memd.providers.batch.create_job import create, find, upload
from memd.providers.batch.dialect import JobEnded
from memd.providers.batch.download import JobResults, Keep, VectorForm
from memd.providers.batch.ledger import LedgerJob
from memd.providers.batch.remote_files import RemoteFiles
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.request import ContentRefused, NotSupported, RequestTooLarge

log = structlog.get_logger()

POLL_GROWTH = 1.5


class JobLate(JobFailed):
    """A job took too long, and was ended."""


class JobRun:
    """How one job goes."""

    def __init__(
        self, asking: BatchClient, settings: BatchSettings, job: LedgerJob, files: RemoteFiles
    ) -> None:
        """Nothing is asked yet.

        Args:
            asking: Whom to ask.
            settings: Of the configuration.
            job: As the ledger has it.
            files: Told which there are of it.
        """
        self.job = job
        self._asking = asking
        self._settings = settings
        self._files = files

    async def begin(
        self, texts: Mapping[TextHash, str] | None, note: Callable[[LedgerJob], Awaitable[None]]
    ) -> bool:
        """Have the job created if need be; whether it is there.

        Args:
            texts: What is in it; None: it was begun in an earlier life, and is not begun again.
            note: Takes the job with its name.

        Raises:
            EmbedUnavailable, EmbedTerminal, TooMuch, Unacceptable, NotSupported, JobFailed: it is not there.
        """
        if self.job.job is not None:
            return True
        if texts is not None:
            self._files.uploading(self.job.id)
            file, is_only = await upload(self._asking, self.job.id, texts)
            await self._files.add(self.job.id, [file])
            if is_only:
                await self._files.uploaded(self.job.id)
            name: str | None = await create(self._asking, self.job.id, file)
        else:
            name = await find(self._asking, self.job.id, since=self._asking.clock())
        if name is None:
            return False
        now = self._asking.clock()
        # When one of an earlier life was created, nobody knows better than when it was begun.
        self.job = LedgerJob(
            self.job.id, self.job.texts, now if texts is not None else self.job.created_at, name
        )
        log.info("embed.batch_created", texts=self.job.texts, provider=self._asking.dialect.provider)
        await note(self.job)
        return True

    async def finish(self, missing: set[TextHash], form: VectorForm, keep: Keep) -> None:
        """Wait for the job, and fetch what it brought.

        Args:
            missing: Its texts without a vector; what has been kept is taken out.
            form: Of the vectors.
            keep: Takes some vectors, and returns when they are safe.

        Raises:
            JobLate: it was ended, since it took too long; what it had brought by then is kept.
            JobFailed: it ended early or brought nothing; likewise.
            EmbedUnavailable, TooMuch, Unacceptable: what it brought could not be fetched, or not all.
        """
        name = self.job.job
        assert name is not None
        provider, time_s = self._asking.dialect.provider, self._time_s()
        # A clock that was put back must not make a job of the future out of it.
        begun_at = min(self.job.created_at, self._asking.clock())
        try:
            ended = await self._ended(name, begun_at + time_s)
            is_late = ended is None
            if ended is None:
                await self._cancel(name)
                ended = await self._ended(name, self._asking.clock() + self._asking.patience.cancel_s)
            results = ended or JobEnded(())
            await self._files.add(self.job.id, (*results.inputs, *results.outputs))
            reasons = await self._fetch(results, missing, form, keep)
        except NotSupported as gone:
            await self._cancel(name)  # it may be there all the same, and would be paid for
            raise JobFailed(f"{provider}: the job or its results are not there any more") from gone
        if is_late and (ended is None or ended.failure is not None or missing):
            raise JobLate(f"{provider}: a job was not done after {time_s / 60:g} minutes")
        if ended is not None and ended.failure is not None:
            raise JobFailed(f"{provider}: {ended.failure}")
        if len(missing) == self.job.texts:
            why = ", ".join(reason for reason, count in reasons.most_common(3) if count)
            raise JobFailed(f"{provider}: the job brought no vector at all" + (f" ({why})" if why else ""))

    def _time_s(self) -> float:
        """After how long the job is late."""
        return self._settings.timeout_minutes * 60 if self._settings.wait else self._asking.patience.end_s

    async def _ended(self, name: str, deadline: float) -> JobEnded | None:
        """Poll until the job ends; None: it did not in time. It is asked once even if it is late already."""
        wait_s = self._settings.poll_interval_ms / 1000
        told = ""
        while True:
            state = await self._asking.until_answered(
                self._asking.dialect.poll(name),
                self._asking.dialect.state,
                since=self._asking.clock(),
                exists=True,
            )
            if isinstance(state, JobEnded):
                return state
            if state.state != told:
                told = state.state
                log.info("embed.batch_state_changed", state=told)
            left_s = deadline - self._asking.clock()
            if left_s <= 0:
                return None
            await asyncio.sleep(min(wait_s, left_s))
            longest_s = max(self._asking.patience.longest_s, self._settings.poll_interval_ms / 1000)
            wait_s = min(wait_s * POLL_GROWTH, longest_s)

    async def _cancel(self, name: str) -> None:
        """Ask for the job's end. It may have ended meanwhile: what it is like is for the next poll to say."""
        try:
            await self._asking.some_times(self._asking.dialect.cancel(name))
        except (EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused, NotSupported) as failure:
            log.info("embed.batch_not_cancelled", reason=str(failure))

    async def _fetch(
        self, ended: JobEnded, missing: set[TextHash], form: VectorForm, keep: Keep
    ) -> Counter[str]:
        """Keep what the job's files hold; why texts failed."""
        harvest = JobResults(self._asking, self.job.texts, missing, form, keep)
        for number, file in enumerate(ended.outputs):
            try:
                await harvest.fetch(file, since=self._asking.clock(), is_paid_for=not number)
            except (EmbedUnavailable, RequestTooLarge, ContentRefused, NotSupported) as failure:
                if not number:
                    raise
                # What was good came with the first file; this one would only say why the rest failed.
                log.info("embed.batch_errors_not_read", reason=str(failure))
        return harvest.reasons
