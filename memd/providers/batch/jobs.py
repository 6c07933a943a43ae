"""The jobs of one provider: which texts are in one, and what becomes of them whatever happens."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet
from random import Random

import structlog

from memd.config.settings import BatchSettings
from memd.errors import MemdError, TransientError
from memd.model import TextHash
from memd.providers.batch import batch_state as standing
from memd.providers.batch.batch_state import BatchState
from memd.providers.batch.client import BatchClient, BatchTimeouts, JobFailed
from memd.providers.batch.create_job import upload_name
from memd.providers.batch.dialect import BatchDialect
from memd.providers.batch.download import VectorForm
from memd.providers.batch.grouping import groups
from memd.providers.batch.job import JobLate, JobRun
from memd.providers.batch.ledger import Ledger, LedgerJob
from memd.providers.batch.remote_files import RemoteFiles
from memd.providers.centring import BiasLine
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.request import ContentRefused, NotSupported, RequestTooLarge
from memd.providers.remote.retry import INDEXING, RetryPolicy
from memd.runtime.backoff import delay_s
from memd.runtime.threads import beside
from memd.text.tokens import cjk_share

log = structlog.get_logger()

UNREMEMBERED_S = 60.0  # after a job could not be remembered, until another one is tried

Deliver = Callable[[Mapping[TextHash, bytes]], Awaitable[None]]


class BatchRunner:
    """The jobs of one provider, model and key.

    Texts that are in a job are held: nobody else should ask for them. They are let go when the job has ended, with or
    without their vectors; those that came have been kept and delivered by then.
    """

    def __init__(
        self,
        dialect: BatchDialect,
        session: HttpConnections,
        key: str | None,
        ledger: Ledger,
        settings: BatchSettings,
        dimensions: int,
        deliver: Deliver,
        *,
        without: BiasLine | None,
        on_change: Callable[[], None],
        rng: Random,
        clock: Callable[[], float] = time.time,
        retries: RetryPolicy = INDEXING,
        patience: BatchTimeouts | None = None,
    ) -> None:
        """Nothing is asked yet, and nothing taken until resume was called.

        Args:
            dialect: How to ask.
            session: Through what; one of its own, since a large file keeps a connection busy for long.
            key: What no message may tell.
            ledger: Where jobs are remembered, and vectors kept.
            settings: Of the configuration.
            dimensions: Of the vectors.
            deliver: Takes vectors that have just been kept, float32 of length 1, to where they are wanted.
            without: What is taken out of each vector, as out of those of plain requests; None: nothing.
            on_change: Called when texts are let go, or held ones are known.
            rng: Source of the jitter of a backoff.
            clock: Unix time.
            retries: How often to ask before a job has begun.
            patience: How long to wait after that.
        """
        self._asking = BatchClient(
            dialect, session, key, rng=rng, clock=clock, retries=retries, patience=patience
        )
        self._ledger = ledger
        self._files = RemoteFiles(self._asking, ledger)
        self._is_clearing = False  # what is left of jobs that have ended is being deleted
        self._is_more_left = False  # since that was looked at last
        self._settings = settings
        self._dimensions = dimensions
        self._deliver = deliver
        self._without = without
        self._on_change = on_change
        self._rng = rng
        self._clock = clock
        self._standing = BatchState()
        self._missing: dict[str, set[TextHash]] = {}  # our id of a job -> its texts without a vector
        self._failed: set[TextHash] = set()  # texts that came out of a job without one
        self._is_resumed = False
        self._is_closed = False
        self._unwritten: str | None = None  # what stands in the way of the ledger, and what comes of it
        self._barred_until = float("-inf")  # loop time
        self._at_once = asyncio.Semaphore(settings.concurrency)
        self._submitting = asyncio.Lock()
        self._noting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: asyncio.Queue[BaseException] = asyncio.Queue()

    # --- what is known of them

    @property
    def standing(self) -> BatchState:
        """How batches have done of late."""
        return standing.cooled_down(self._standing, self._clock())

    @property
    def is_open(self) -> bool:
        """Whether jobs are taken at all just now; if not, plain requests do everything that is not held."""
        return (
            self._is_resumed
            and not self._is_closed
            and self.standing.is_on
            and self._now() >= self._barred_until
        )

    @property
    def trouble(self) -> str | None:
        """What jobs that are under way wait for, beside the provider's work."""
        return self._unwritten or self._asking.trouble

    @property
    def jobs(self) -> int:
        """How many are under way."""
        return len(self._missing)

    @property
    def claimed(self) -> int:
        """How many texts are in jobs, and have no vector yet."""
        return sum(map(len, self._missing.values()))

    @property
    def files_left(self) -> int:
        """How many files of jobs that have ended could not be deleted at the provider's, and are tried again."""
        return self._files.left

    def holds(self, text_hash: TextHash) -> bool:
        """Whether a text is in a job, or may be in one as long as the ledger cannot be read.

        To be asked before the cache is: a text of a job that ends between the two is then found there.
        """
        if not self._is_resumed:
            return True
        return any(text_hash in missing for missing in self._missing.values())

    def held_of(self, hashes: AbstractSet[TextHash]) -> frozenset[TextHash]:
        """Those of some texts that are in a job, or may be; of 150,000 in jobs in some milliseconds."""
        if not self._is_resumed:
            return frozenset(hashes)
        return frozenset().union(*(missing & hashes for missing in self._missing.values()))

    def takes(self, text_hash: TextHash) -> bool:
        """Whether a text may be put into a job: it is in none, and none failed to embed it."""
        return text_hash not in self._failed and not self.holds(text_hash)

    # --- what can be done with them

    async def resume(self) -> None:
        """Take up the jobs of an earlier life of the daemon.

        Where the ledger cannot be read for now, that is tried again; every text is held until it can be, since it might
        be in a job, and would be paid for twice.
        """
        await self._try_to_take_up()
        if not self._is_resumed:
            self._begin(self._resume_later())

    async def submit(self, texts: Mapping[TextHash, str]) -> None:
        """Put texts into jobs; returns when all are remembered, before any is created.

        Those that cannot be in one are left out, and so are those whose vectors are kept. Where a job cannot be
        remembered, it is not created: trouble says so.
        """
        async with self._submitting:
            if not self.is_open:
                return
            # First what is in jobs, then what is kept: a job that ends in between is in the one or the other.
            taken = [*map(frozenset, self._missing.values()), self._failed]
            taken.append(await self._ledger.kept(texts.keys()))
            for group, shares in await beside(_groups, self._asking.dialect, texts, taken):
                job = LedgerJob(f"memd-{secrets.token_hex(8)}", len(group), self._clock())
                try:
                    # Remembered before it is created: a crash in between must not leave a job that nobody knows of.
                    await self._ledger.begin(job, shares, upload_name(job.id))
                except MemdError as failure:
                    self._enter(f"no job is created, since none can be remembered: {failure}")
                    self._barred_until = self._now() + UNREMEMBERED_S
                    return
                self._enter(None)
                if self._is_closed:
                    return  # the next start finds that it was never created
                self._missing[job.id] = set(group)
                self._begin(self._carry_out(job, group, shares))

    async def turn_on(self) -> None:
        """Use batches again, whatever went wrong.

        Raises:
            MemdError: they are on, but will not be after a restart.
        """
        self._standing = standing.turned_on(self._standing)
        self._failed.clear()
        self._on_change()
        async with self._noting:
            await self._ledger.put_standing(self._standing)

    async def watch(self) -> None:
        """Wait for ever, or for an error that no job is meant to end with, and raise it."""
        raise await self._faults.get()

    async def close(self) -> None:
        """Stop asking. The jobs go on where they are, and are taken up again at the next start."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- the life of a job

    async def _take_up(self) -> None:
        self._standing = await self._ledger.standing()
        await self._files.recall()
        jobs = [(job, await self._ledger.missing(job.id)) for job in await self._ledger.jobs()]
        for job, shares in jobs:
            self._missing[job.id] = set(shares)
            self._begin(self._carry_out(job, None, shares))
        self._is_resumed = True
        self._begin(self._clear_left(failures=0))
        if jobs:
            log.info("embed.batches_resumed", jobs=self.jobs, texts=self.claimed)
        self._on_change()  # until here all texts were held, also those that are in no job

    async def _try_to_take_up(self) -> None:
        """Take up the jobs of an earlier life, if they can be read; where they never will be in this one, there are none."""
        try:
            await self._take_up()
        except TransientError as failure:
            self._enter(f"whether texts are in jobs cannot be read, so none is embedded: {failure}")
        except MemdError as failure:
            # A ledger of a newer memd will not be readable in this life.
            self._enter(f"jobs cannot be remembered, so there are none: {failure}")
            self._is_resumed, self._barred_until = True, float("inf")
            self._on_change()
        else:
            self._enter(None)

    async def _resume_later(self) -> None:
        failures = 0
        while not self._is_resumed:
            failures += 1
            await self._pause(failures)
            await self._try_to_take_up()

    async def _carry_out(
        self, job: LedgerJob, texts: dict[TextHash, str] | None, shares: Mapping[TextHash, float | None]
    ) -> None:
        """One job to its end.

        Args:
            job: As the ledger has it.
            texts: What is in it; None: it was begun in an earlier life.
            shares: How much of each of its texts without a vector is CJK; None: nobody knows.
        """
        missing, form = self._missing[job.id], VectorForm(self._dimensions, self._without, shares)
        before = self._standing
        course = JobRun(self._asking, self._settings, job, self._files)
        try:
            is_there = await self._through(course, texts, missing, form)
        except JobLate as late:
            after = standing.late(self.standing, str(late), self._clock(), began_at=job.created_at)
            self._change(after, job)
        except NotSupported:
            dialect = self._asking.dialect
            reason = f"{dialect.provider} has no batches for {dialect.model}, or not with this key"
            self._change(standing.unsupported(self.standing, reason, self._clock()), job)
        except (JobFailed, EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused) as failure:
            if not await self._was_brought(job.id):
                self._failed.update(missing)
                self._change(standing.failed(self.standing, str(failure), self._clock()), job)
        else:
            if is_there:
                self._failed.update(missing)
                self._standing = standing.succeeded(self._standing)
                log.info("embed.batch_ended", texts=job.texts, missing=len(missing))
        del self._missing[job.id]
        self._on_change()
        is_clear = True
        if not missing:
            is_clear = await self._files.clear(job.id)  # before the job is forgotten
        await self._until_written(lambda: self._end(job.id), "a job that is done cannot be forgotten")
        if before.is_on and not self._standing.is_on:
            log.warning("embed.batches_turned_off", reason=self._standing.reason)
        # Not before, of one that may be taken up again: whoever did so after a crash would need them.
        if not (await self._files.clear(job.id) and is_clear):
            await self._clear_left(failures=1)

    async def _clear_left(self, *, failures: int) -> None:
        """Try until no file is left of jobs that have ended, or the provider has none any more that is so old.

        Args:
            failures: Of before; after any, there is a pause first.
        """
        self._is_more_left = True
        if self._is_clearing:
            return
        self._is_clearing = True
        try:
            first_s, cap_s = self._asking.patience.delete_first_s, self._asking.patience.delete_longest_s
            while self._is_more_left:
                if failures:
                    await asyncio.sleep(delay_s(failures, self._rng, first_s=first_s, cap_s=cap_s))
                self._is_more_left = False
                # Not |=, which would take back what is left of a job that ends during the await.
                if not await self._files.clear_left():
                    self._is_more_left = True
                failures += 1
        finally:
            self._is_clearing = False

    async def _was_brought(self, job_id: str) -> bool:
        """Whether all vectors of a job are kept: agents with other settings for the same model take it up as well."""
        try:
            return not await self._ledger.missing(job_id)
        except MemdError:
            return False

    async def _through(
        self, course: JobRun, texts: dict[TextHash, str] | None, missing: set[TextHash], form: VectorForm
    ) -> bool:
        """All of a job's course; whether there was one."""

        async def keep(vectors: Mapping[TextHash, bytes]) -> None:
            await self._keep(course.job.id, vectors)

        async with self._at_once:
            if not await course.begin(texts, self._note):
                return False
            if texts is not None:
                texts.clear()  # they are at the provider's now
            if self._settings.wait:
                await course.finish(missing, form, keep)
                return True
        # Nobody waits for it: the next job may begin.
        await course.finish(missing, form, keep)
        return True

    async def _note(self, job: LedgerJob) -> None:
        """Remember the name of a job. Without it, it is found by its label after a restart."""
        assert job.job is not None
        try:
            await self._ledger.created(job.id, job.job, job.created_at)
        except MemdError as failure:
            log.warning("embed.batch_not_noted", reason=str(failure))

    async def _keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Have vectors kept, however long that takes: they are at the provider's until then."""
        await self._until_written(
            lambda: self._ledger.keep(job_id, vectors),
            "vectors of a job wait at the provider's until they can be kept",
        )
        try:
            await self._deliver(vectors)
        except TransientError as failure:
            log.warning("embed.batch_not_delivered", vectors=len(vectors), reason=str(failure))

    async def _end(self, job_id: str) -> None:
        # One after the other: the standing of now is what must be there at last.
        async with self._noting:
            await self._ledger.end(job_id, self._standing)

    def _change(self, after: BatchState, job: LedgerJob) -> None:
        self._standing = after
        log.warning("embed.batch_failed", reason=after.reason, texts=job.texts, still_on=after.is_on)

    async def _until_written(self, write: Callable[[], Awaitable[object]], meaning: str) -> None:
        failures = 0
        while True:
            try:
                await write()
            except MemdError as failure:
                failures += 1
                self._enter(f"{meaning}: {failure}")
                await self._pause(failures)
            else:
                self._enter(None)
                return

    async def _pause(self, failures: int) -> None:
        patience = self._asking.patience
        await asyncio.sleep(delay_s(failures, self._rng, first_s=patience.first_s, cap_s=patience.longest_s))

    def _enter(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self._unwritten:
            log.warning("embed.batches_troubled", reason=trouble)
        self._unwritten = trouble

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self._faults.put_nowait(fault)


def _groups(
    dialect: BatchDialect, texts: Mapping[TextHash, str], taken: Sequence[AbstractSet[TextHash]]
) -> list[tuple[dict[TextHash, str], dict[TextHash, float]]]:
    """The texts of each job, without those that are taken, and how much of each is CJK; on a thread: it takes its time."""
    free = {
        text_hash: text for text_hash, text in texts.items() if not any(text_hash in some for some in taken)
    }
    # Of the texts as they are: what is sent of them may differ.
    return [(group, {one: cjk_share(texts[one]) for one in group}) for group in groups(dialect, free)]
