"""One job at the provider: its creation, its end, and the download of what it brought."""

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
from memd.providers.calibration import BiasLine, centred_at
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
AT_ONCE = 256  # vectors in memory
SPARE_LINES = 1000  # beyond one a text; a file that has no end is not read to it

Keep = Callable[[Mapping[TextHash, bytes]], Awaitable[None]]


class JobLate(JobFailed):
    """A job took too long, and was ended."""


class VectorForm(msgspec.Struct, frozen=True):
    """How a job's vectors are kept: as the provider's plain requests would give them."""

    dimensions: int
    without: BiasLine | None  # what is taken out of each; None: nothing


class JobRun:
    """The course of one job."""

    def __init__(
        self,
        client: BatchClient,
        settings: BatchSettings,
        form: VectorForm,
        job: BatchJob,
        files: RemoteFiles,
    ) -> None:
        """See the parameters.

        Args:
            client: Of the provider.
            settings: Of the configuration.
            form: Of the vectors.
            job: As the ledger has it.
            files: Learns which files of the job there are at the provider's.
        """
        self.job = job
        self._client = client
        self._settings = settings
        self._form = form
        self._files = files

    # --- creation: once and not twice, whatever happens to the reply

    async def begin(
        self, texts: Mapping[TextHash, str] | None, note: Callable[[BatchJob], Awaitable[None]]
    ) -> bool:
        """Have the job created if need be; whether it is there.

        Args:
            texts: What is in it; None: it was begun in an earlier life, and is not begun again.
            note: Remembers the job with its name.

        Raises:
            EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused, NotSupported, JobFailed: it is not there.
        """
        job = self.job
        if job.name is not None:
            return True
        now = self._client.clock
        if texts is not None:
            name: str | None = await self._create(await self._upload(texts))
            job = msgspec.structs.replace(job, created_at=now())
        else:
            # When one of an earlier life was created is not known better than when it was begun.
            name = await self._find(since=now())
        if name is None:
            return False
        self.job = msgspec.structs.replace(job, name=name)
        log.info("embed.batch_created", texts=job.texts, provider=self._client.provider)
        await note(self.job)
        return True

    async def _upload(self, texts: Mapping[TextHash, str]) -> str:
        """The name of a new file with the texts."""
        client, job_id = self._client, self.job.id

        def form() -> HttpRequest:
            return client.dialect.upload(upload_name(job_id), lines(client.dialect, texts))

        self._files.uploading(job_id)
        # Tens of megabytes: the loop must not stand still for them, and they are not kept while the job runs.
        body, times = await client.send_with_retries(await beside(form))
        file = client.dialect.uploaded(body)
        await self._files.add(job_id, [file])
        if times == 1:  # a lost reply leaves other files of the same upload
            await self._files.uploaded(job_id)
        return file

    async def _create(self, file: str) -> str:
        client, backoff = self._client, self._client.backoff()
        while True:
            try:
                return client.dialect.created(await client.send(client.dialect.create(file, self.job.id)))
            except EmbedUnavailable as failure:
                # The job may be there although no reply came: another one would be paid for as well.
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
        """The name of a job that may have been created; None: it was not.

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
            page: JobListing = await self._client.fetch_patiently(
                dialect.list(after), dialect.listed, since=since
            )
            if self.job.id in page.jobs or page.after is None:
                return page.jobs.get(self.job.id)
            after = page.after
        return None

    # --- the end

    async def finish(
        self, missing: set[TextHash], shares: Mapping[TextHash, float | None], keep: Keep
    ) -> None:
        """Wait for the job, and fetch what it brought.

        Args:
            missing: Its texts without a vector; what has been kept is taken out.
            shares: How much of each of its texts is CJK, 0..1; None: not known.
            keep: Takes some vectors, and returns when they are safe.

        Raises:
            JobLate: it was ended, since it took too long; what it had brought by then is kept.
            JobFailed: it ended early or brought nothing; likewise.
            EmbedUnavailable, RequestTooLarge, ContentRefused: what it brought could not be fetched, or not all.
        """
        client, name, time_s = self._client, self.job.name, self._time_s()
        assert name is not None
        # A clock that was put back must not make a job of the future out of it.
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
            await self._cancel(name)  # it may be there all the same, and would be paid for
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
        """After how long the job is late."""
        return self._settings.timeout_minutes * 60 if self._settings.wait else self._client.timeouts.end_s

    async def _ended(self, name: str, deadline: float) -> JobEnded | None:
        """Poll until the job ends; None: it did not in time. It is asked once even if it is late already."""
        client, wait_s = self._client, self._settings.poll_interval_ms / 1000
        longest_s, logged = max(client.timeouts.longest_s, wait_s), ""
        while True:
            state = await client.fetch_patiently(
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
        """Ask for the job's end. It may have ended meanwhile: the next poll says so."""
        try:
            await self._client.send_with_retries(self._client.dialect.cancel(name))
        except REQUEST_FAILURES as failure:
            log.info("embed.batch_not_cancelled", reason=str(failure))


class JobResults:
    """Fetches the results of one job, and has them kept as they come."""

    def __init__(
        self,
        client: BatchClient,
        texts: int,
        form: VectorForm,
        missing: set[TextHash],
        shares: Mapping[TextHash, float | None],
        keep: Keep,
    ) -> None:
        """See the parameters.

        Args:
            client: Of the provider.
            texts: How many are in the job, those with a vector too: its files have a line for each.
            form: Of the vectors.
            missing: The texts of the job without a vector; what has been kept is taken out.
            shares: How much of each text is CJK, 0..1; None: not known.
            keep: Takes some vectors, float32 of length 1, and returns when they are safe.
        """
        self.reasons: Counter[str] = Counter()  # why texts failed
        self._client = client
        self._missing = missing
        self._form = form
        self._shares = shares
        self._keep = keep
        self._most_lines = texts + SPARE_LINES

    async def fetch_all(self, files: Sequence[str]) -> None:
        """Keep what the job's files hold, in the order of JobEnded.outputs; raises like fetch."""
        for number, file in enumerate(files):
            try:
                await self.fetch(file, since=self._client.clock(), is_paid_for=not number)
            except (EmbedUnavailable, RequestTooLarge, ContentRefused, NotSupported) as failure:
                if not number:
                    raise
                # What was good came with the first file; this one would only say why the rest failed.
                log.info("embed.batch_errors_not_read", reason=str(failure))

    async def fetch(self, file: str, *, since: float, is_paid_for: bool) -> None:
        """Keep all vectors of one file that can be trusted. One that breaks off is fetched again.

        Args:
            file: As the job named it.
            since: Unix time from which forget_s counts.
            is_paid_for: Whether vectors are in it: that it is not there is then not believed at once.

        Raises:
            EmbedUnavailable: it breaks off again and again, with nothing new in it.
            JobFailed: it could not be fetched for too long.
            RequestTooLarge, ContentRefused, NotSupported: it is not there.
        """
        fruitless, backoff = 0, self._client.backoff()
        while self._missing:
            before = len(self._missing)
            broken = await self._client.persist(lambda: self._read(file), since=since, exists=is_paid_for)
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
        """Keep what a file holds, some at a time; what is wrong with it, if it broke off or holds nothing.

        Raises:
            EmbedUnavailable, EmbedTerminal: not a line of it came.
            RequestTooLarge, ContentRefused, NotSupported: it is not there.
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
            # An error in the place of a file, whatever its status says.
            return BadReply(f"{self._client.provider}: a file with results holds none")
        return broken

    def _take(self, line: bytes, some: dict[TextHash, Sequence[float]]) -> bool:
        """Put the vector of a line to the others, if it is one that is wanted; whether the line is a result at all.

        Of two for a text, the first counts.
        """
        try:
            with failures_of(self._client.provider):
                result = self._client.dialect.result(line)
            text_hash = TextHash(bytes.fromhex(result.id))
        except (EmbedUnavailable, ValueError):
            return False  # its text, if it is one of ours, stays missing
        if text_hash in self._missing and text_hash not in some:
            if result.vector is None:
                self.reasons[result.reason] += 1
            else:
                some[text_hash] = array("d", result.vector)  # a quarter of what a list takes
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
    """Those vectors that can be trusted, as the store keeps them."""
    good: dict[TextHash, bytes] = {}
    for text_hash, values in some.items():
        try:
            row = replies.matrix([values], count=1, dimensions=form.dimensions)
        except BadReply:
            continue
        if form.without is not None:
            share = shares.get(text_hash)
            if share is None:
                continue  # it would stand among centred ones as it came: its text is asked for anew
            row = centred_at(row, [share], form.without)
        good[text_hash] = np.ascontiguousarray(row[0], "<f4").tobytes()
    return good
