"""Runs one batch job: creates it, waits for its end, and downloads its vectors."""

import asyncio
import contextlib
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import numpy as np
import structlog

from memd.config.settings import BatchSettings
from memd.domain_types import BatchJob, TextHash
from memd.providers.batch.client import REQUEST_FAILURES, BatchClient, JobFailed
from memd.providers.batch.dialect import JobEnded, JobListing, lines
from memd.providers.batch.remote_files import MOST_PAGES, RemoteFiles, upload_name
from memd.providers.cosine_calibration import BiasLine, centred_at
from memd.providers.provider import EmbedTerminal, EmbedUnavailable, failures_of
from memd.providers.remote import replies
from memd.providers.remote.dialect import (
    BadReply,
    ContentRefused,
    HttpRequest,
    NotSupported,
    RateLimited,
    RequestTooLarge,
)
from memd.runtime.threads import beside

log = structlog.get_logger()

POLL_GROWTH = 1.5
AT_ONCE = 256  # vectors held in memory before they are stored
SPARE_LINES = 1000  # lines read beyond one per text, so that an endless file is not read to its end

Keep = Callable[[Mapping[TextHash, bytes]], Awaitable[None]]


class JobLate(JobFailed):
    """A job took too long, and was cancelled."""


class VectorForm(msgspec.Struct, frozen=True):
    """How a job's vectors are stored: as the provider's plain requests would return them."""

    dimensions: int
    without: BiasLine | None  # the direction that is removed from each; None: nothing is removed


class JobRun:
    """Runs one batch job."""

    def __init__(
        self,
        client: BatchClient,
        settings: BatchSettings,
        form: VectorForm,
        job: BatchJob,
        files: RemoteFiles,
    ) -> None:
        """Create the run of a job.

        Args:
            client: Sends requests to the provider.
            settings: The configured batch settings.
            form: How the vectors are stored.
            job: The job as recorded in the ledger.
            files: Records which files of the job the provider stores.
        """
        self.job = job
        self._client = client
        self._settings = settings
        self._form = form
        self._files = files

    # --- creation: exactly once, even if the reply is lost

    async def begin(
        self, texts: Mapping[TextHash, str] | None, note: Callable[[BatchJob], Awaitable[None]]
    ) -> bool:
        """Create the job unless it exists; return whether it exists.

        Args:
            texts: The job's texts; None: it was begun in an earlier run of the daemon, and is not created
                again.
            note: Records the job with its name.

        Raises:
            EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused, NotSupported, JobFailed: it was
                not created.
        """
        job = self.job
        if job.name is not None:
            return True
        now = self._client.clock
        if texts is not None:
            name: str | None = await self._create(await self._upload(texts))
            job = msgspec.structs.replace(job, created_at=now())
        else:
            # The creation time of a job of an earlier run is unknown: keep the time at which it was begun.
            name = await self._find(since=now())
        if name is None:
            return False
        self.job = msgspec.structs.replace(job, name=name)
        log.info("embed.batch_created", texts=job.texts, provider=self._client.provider)
        await note(self.job)
        return True

    async def _upload(self, texts: Mapping[TextHash, str]) -> str:
        """Upload the texts; return the name of the file."""
        client, job_id = self._client, self.job.id

        def form() -> HttpRequest:
            return client.dialect.upload(upload_name(job_id), lines(client.dialect, texts))

        self._files.uploading(job_id)
        # On a thread: tens of megabytes would block the event loop. They are not kept while the job runs.
        body, times = await client.send_with_retries(await beside(form))
        file = client.dialect.uploaded(body)
        await self._files.add(job_id, [file])
        if times == 1:  # after a lost reply, the provider may store other files of the same upload
            await self._files.uploaded(job_id)
        return file

    async def _create(self, file: str) -> str:
        client, backoff = self._client, self._client.backoff()
        while True:
            try:
                return client.dialect.created(await client.send(client.dialect.create(file, self.job.id)))
            except EmbedUnavailable as failure:
                # The job may exist although no reply came; a second one would have to be paid for, too.
                if not isinstance(failure, RateLimited):
                    name = await self._find(since=client.clock())
                    if name is not None:
                        return name
                if (
                    backoff.failures + 1 >= client.retries.attempts
                    or (failure.retry_after_s or 0) > client.retries.longest_asked_s
                ):
                    raise
                await client.wait_after(backoff, failure)

    async def _find(self, *, since: float) -> str | None:
        """Return the name of a job that may have been created; None: it was not.

        Args:
            since: Unix time from which forget_s counts.

        Raises:
            JobFailed: there was no reply for too long.
            RequestTooLarge, ContentRefused, NotSupported: jobs cannot be listed.
        """
        name = await self._listed(since)
        if name is None:
            await asyncio.sleep(self._client.timeouts.appear_s)
            name = await self._listed(since)
        return name

    async def _listed(self, since: float) -> str | None:
        dialect, after = self._client.dialect, None
        for _ in range(MOST_PAGES):
            page: JobListing = await self._client.fetch_until_answered(
                dialect.list(after), dialect.listed, since=since
            )
            if self.job.id in page.jobs or page.after is None:
                return page.jobs.get(self.job.id)
            after = page.after
        return None

    # --- end

    async def finish(
        self, missing: set[TextHash], shares: Mapping[TextHash, float | None], keep: Keep
    ) -> None:
        """Wait for the end of the job, and download its vectors.

        Args:
            missing: The job's texts without a vector; those whose vectors were stored are removed from it.
            shares: The CJK share of each text, 0..1; None: unknown.
            keep: Stores some vectors, and returns when they are safe.

        Raises:
            JobLate: the job took too long and was cancelled; vectors that it had returned are stored.
            JobFailed: the job ended early or returned no vectors; likewise.
            EmbedUnavailable, RequestTooLarge, ContentRefused: the results could not be downloaded completely.
        """
        client, name, time_s = self._client, self.job.name, self._time_s()
        assert name is not None
        # If the clock was set back, a job must not count as created in the future.
        begun_at = min(self.job.created_at, client.clock())
        download = JobResults(client, self.job.texts, self._form, missing, shares, keep)
        try:
            ended = await self._ended(name, begun_at + time_s)
            is_late = ended is None
            if ended is None:
                await self._cancel(name)
                ended = await self._ended(name, client.clock() + client.timeouts.cancel_s)
            results = ended or JobEnded(())
            await self._files.add(self.job.id, (*results.inputs, *results.outputs))
            await download.fetch_all(results.outputs)
        except NotSupported as gone:
            await self._cancel(name)  # it may still exist, and would have to be paid for
            raise JobFailed(f"{client.provider}: the job or its results are not there any more") from gone
        if is_late and (ended is None or ended.failure is not None or missing):
            raise JobLate(f"{client.provider}: a job was not done after {time_s / 60:g} minutes")
        if ended is not None and ended.failure is not None:
            raise JobFailed(f"{client.provider}: {ended.failure}")
        if len(missing) == self.job.texts:
            why = ", ".join(reason for reason, count in download.reasons.most_common(3) if count)
            raise JobFailed(
                f"{client.provider}: the job brought no vector at all" + (f" ({why})" if why else "")
            )

    def _time_s(self) -> float:
        """Return after how many seconds the job is late."""
        return self._settings.timeout_minutes * 60 if self._settings.wait else self._client.timeouts.end_s

    async def _ended(self, name: str, deadline: float) -> JobEnded | None:
        """Poll until the job ends; None if it does not in time. A job that is late already is polled once."""
        client, wait_s = self._client, self._settings.poll_interval_ms / 1000
        longest_s, logged = max(client.timeouts.longest_s, wait_s), ""
        while True:
            state = await client.fetch_until_answered(
                client.dialect.poll(name), client.dialect.state, since=client.clock(), exists=True
            )
            if isinstance(state, JobEnded):
                return state
            if state.state != logged:
                logged = state.state
                log.info("embed.batch_state_changed", state=logged)
            left_s = deadline - client.clock()
            if left_s <= 0:
                return None
            await asyncio.sleep(min(wait_s, left_s))
            wait_s = min(wait_s * POLL_GROWTH, longest_s)

    async def _cancel(self, name: str) -> None:
        """Cancel the job; if it has ended meanwhile, the next poll says so."""
        try:
            await self._client.send_with_retries(self._client.dialect.cancel(name))
        except REQUEST_FAILURES as failure:
            log.info("embed.batch_not_cancelled", reason=str(failure))


class JobResults:
    """Downloads the results of one job, and stores them as they arrive."""

    def __init__(
        self,
        client: BatchClient,
        texts: int,
        form: VectorForm,
        missing: set[TextHash],
        shares: Mapping[TextHash, float | None],
        keep: Keep,
    ) -> None:
        """Create the download.

        Args:
            client: Sends requests to the provider.
            texts: The number of texts in the job, including those that have a vector: its files have a line
                for each.
            form: How the vectors are stored.
            missing: The job's texts without a vector; those whose vectors were stored are removed from it.
            shares: The CJK share of each text, 0..1; None: unknown.
            keep: Stores some vectors, float32 of length 1, and returns when they are safe.
        """
        self.reasons: Counter[str] = Counter()  # why texts have no vector
        self._client = client
        self._missing = missing
        self._form = form
        self._shares = shares
        self._keep = keep
        self._most_lines = texts + SPARE_LINES

    async def fetch_all(self, files: Sequence[str]) -> None:
        """Store the contents of the job's files, in the order of JobEnded.outputs; raises like fetch."""
        for number, file in enumerate(files):
            try:
                await self.fetch(file, since=self._client.clock(), is_paid_for=not number)
            except (EmbedUnavailable, RequestTooLarge, ContentRefused, NotSupported) as failure:
                if not number:
                    raise
                # The vectors came with the first file; this one would only say why others are missing.
                log.info("embed.batch_errors_not_read", reason=str(failure))

    async def fetch(self, file: str, *, since: float, is_paid_for: bool) -> None:
        """Store all valid vectors of one file; a download that breaks off is repeated.

        Args:
            file: The name in the job's result.
            since: Unix time from which forget_s counts.
            is_paid_for: Whether the file contains vectors, so that a reply that it does not exist is not
                believed at once.

        Raises:
            EmbedUnavailable: the download broke off repeatedly without new vectors.
            JobFailed: it failed for too long.
            RequestTooLarge, ContentRefused, NotSupported: the file does not exist.
        """
        fruitless, backoff = 0, self._client.backoff()
        while self._missing:
            before = len(self._missing)
            broken = await self._client.retry_until_done(
                lambda: self._read(file), since=since, exists=is_paid_for
            )
            if broken is None:
                return
            if len(self._missing) < before:
                fruitless = -1
                backoff.reset()
            fruitless += 1
            if fruitless >= self._client.retries.attempts:
                raise broken
            await self._client.wait_after(backoff, broken)

    async def _read(self, file: str) -> EmbedUnavailable | None:
        """Store the contents of a file; return what is wrong if it broke off or contains no results, else None.

        Raises:
            EmbedUnavailable, EmbedTerminal: not a single line was received. RequestTooLarge, ContentRefused,
                NotSupported: the file does not exist.
        """
        some: dict[TextHash, Sequence[float]] = {}
        count = results = 0
        broken: EmbedUnavailable | None = None
        try:
            async with contextlib.aclosing(self._client.lines(self._client.dialect.download(file))) as read:
                async for line in read:
                    count += 1
                    results += self._take(line, some)
                    if len(some) >= AT_ONCE:
                        await self._hand_over(some)
                        some = {}
                    if count >= self._most_lines:
                        break
        except (EmbedUnavailable, EmbedTerminal) as failure:
            if not count or isinstance(failure, EmbedTerminal):
                raise
            broken = failure
        await self._hand_over(some)
        if broken is None and not results:
            # An error message in place of a file, whatever the HTTP status.
            return BadReply(f"{self._client.provider}: a file with results holds none")
        return broken

    def _take(self, line: bytes, some: dict[TextHash, Sequence[float]]) -> bool:
        """Add the vector of a line to `some`, if it is wanted; return whether the line is a result.

        Of two results for a text, the first counts.
        """
        try:
            with failures_of(self._client.provider):
                result = self._client.dialect.result(line)
            text_hash = TextHash(bytes.fromhex(result.id))
        except (EmbedUnavailable, ValueError):
            return False  # its text, if it is one of the job's, stays missing
        if text_hash in self._missing and text_hash not in some:
            if result.vector is None:
                self.reasons[result.reason] += 1
            else:
                some[text_hash] = array("d", result.vector)  # takes a quarter of the memory of a list
        return True

    async def _hand_over(self, some: Mapping[TextHash, Sequence[float]]) -> None:
        good = await beside(_sound, some, self._form, self._shares)
        self.reasons["a vector that cannot be used"] += len(some) - len(good)
        if good:
            await self._keep(good)
            self._missing.difference_update(good)


def _sound(
    some: Mapping[TextHash, Sequence[float]], form: VectorForm, shares: Mapping[TextHash, float | None]
) -> dict[TextHash, bytes]:
    """Return the valid vectors, encoded for the store."""
    good: dict[TextHash, bytes] = {}
    for text_hash, values in some.items():
        try:
            row = replies.matrix([values], count=1, dimensions=form.dimensions)
        except BadReply:
            continue
        if form.without is not None:
            share = shares.get(text_hash)
            if share is None:
                continue  # it cannot be stored uncentred among centred ones, so its text is embedded again
            row = centred_at(row, [share], form.without)
        good[text_hash] = np.ascontiguousarray(row[0], "<f4").tobytes()
    return good
