"""Runs the batch jobs of one provider: puts texts into jobs, and follows each job to its end."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import structlog

from memd.config.settings import BatchSettings
from memd.domain_types import BatchJob, TextHash
from memd.errors import MemdError, TransientError
from memd.providers.batch import circuit_breaker
from memd.providers.batch.circuit_breaker import BatchState
from memd.providers.batch.client import BatchClient, JobFailed
from memd.providers.batch.dialect import BatchDialect, groups
from memd.providers.batch.job import JobLate, JobRun, VectorForm
from memd.providers.batch.ledger import Ledger
from memd.providers.batch.remote_files import RemoteFiles, upload_name
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.dialect import ContentRefused, NotSupported, RequestTooLarge
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.threads import beside
from memd.runtime.timers import Backoff
from memd.text.tokens import cjk_share
from memd_client.token_estimate import estimate_tokens

log = structlog.get_logger()

UNREMEMBERED_S = 60.0  # wait until the next job, after one could not be recorded


class BatchRunner:
    """The jobs of one provider, model and key.

    Texts in a job are held: no plain request may embed them. They are released when the job has ended, with
    or without their vectors; those that the job returned are stored by then.
    """

    def __init__(
        self,
        client: BatchClient,
        ledger: Ledger,
        settings: BatchSettings,
        form: VectorForm,
        changes: ChangeNotifier,
    ) -> None:
        """Create the runner; it takes no texts until `resume` was called.

        Args:
            client: Sends requests to the provider.
            ledger: Records jobs, and stores vectors.
            settings: The configured batch settings.
            form: How the vectors are stored.
            changes: Notified when vectors were stored, texts are released, or it is known which are held.
        """
        self._client = client
        self._ledger = ledger
        self._files = RemoteFiles(client, ledger)
        self._is_clearing = False  # files of ended jobs are being deleted
        self._is_more_left = False  # there are more of them since the last check
        self._settings = settings
        self._form = form
        self.changes = changes
        self._state = BatchState()
        self._missing: dict[str, set[TextHash]] = {}  # memd's id of a job -> its texts without a vector
        self._failed: set[TextHash] = set()  # texts that a job did not embed
        self._is_resumed = False
        self._is_closed = False
        self._unwritten: str | None = None  # why the ledger cannot be written, and the consequence
        self._barred_until = float("-inf")  # loop time
        self._at_once = asyncio.Semaphore(settings.concurrency)
        self._submitting = asyncio.Lock()
        self._writing_state = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: asyncio.Queue[BaseException] = asyncio.Queue()

    # --- status

    @property
    def state(self) -> BatchState:
        """Whether batch jobs are used, and why not."""
        return circuit_breaker.cooled_down(self._state, self._client.clock())

    @property
    def is_open(self) -> bool:
        """Whether jobs are accepted now; if not, plain requests embed everything that is not held."""
        return (
            self._is_resumed
            and not self._is_closed
            and self.state.is_on
            and self._now() >= self._barred_until
        )

    @property
    def reason(self) -> str | None:
        """What running jobs wait for, apart from the provider's work."""
        return self._unwritten or self._client.reason

    @property
    def jobs(self) -> int:
        """The number of running jobs."""
        return len(self._missing)

    @property
    def claimed(self) -> int:
        """The number of texts in jobs that have no vector yet."""
        return sum(map(len, self._missing.values()))

    @property
    def files_left(self) -> int:
        """The number of files of ended jobs that could not be deleted yet; deletion is retried."""
        return self._files.left

    def holds(self, text_hash: TextHash) -> bool:
        """Return whether a text is in a job, or may be in one while the ledger cannot be read.

        Ask before looking into the cache: the vector of a job that ends between the two calls is then found
        there.
        """
        if not self._is_resumed:
            return True
        return any(text_hash in missing for missing in self._missing.values())

    def held_of(self, hashes: AbstractSet[TextHash]) -> frozenset[TextHash]:
        """Return which of some texts are, or may be, in a job; takes some milliseconds with 150,000 texts in jobs."""
        if not self._is_resumed:
            return frozenset(hashes)
        return frozenset().union(*(missing & hashes for missing in self._missing.values()))

    def takes(self, text_hash: TextHash) -> bool:
        """Return whether a text may be put into a job: it is in none, and no job has failed to embed it."""
        return text_hash not in self._failed and not self.holds(text_hash)

    # --- operations

    async def resume(self) -> None:
        """Resume the jobs of an earlier run of the daemon.

        If the ledger cannot be read, that is retried; until then every text is held, since it might be in a
        job and would be paid for twice.
        """
        await self._try_to_resume()
        if not self._is_resumed:
            self._begin(self._resume_later())

    async def submit(self, texts: Mapping[TextHash, str]) -> None:
        """Put texts into jobs; return when all jobs are recorded, before any is created.

        Texts that cannot be in a job, or have a vector, are left out. A job that cannot be recorded is not
        created; `reason` then says why.
        """
        async with self._submitting:
            if not self.is_open:
                return
            # Jobs before stored vectors: a job that ends in between is in one or the other.
            taken = [*map(frozenset, self._missing.values()), self._failed]
            taken.append(await self._ledger.kept(texts.keys()))
            for group, shares in await beside(_groups, self._client.dialect, texts, taken):
                job = BatchJob(f"memd-{secrets.token_hex(8)}", len(group), self._client.clock())
                try:
                    # Recorded before it is created, so that a crash in between leaves no job that is missing
                    # in the ledger.
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
        """Use batch jobs again after failures.

        Raises:
            MemdError: they are on, but this will be forgotten at a restart.
        """
        self._state = BatchState()
        self._failed.clear()
        self.changes.notify()
        async with self._writing_state:
            await self._ledger.put_document(circuit_breaker.DOCUMENT, msgspec.json.encode(self._state))

    async def watch(self) -> None:
        """Wait until a job ends with an unexpected error, and raise it."""
        raise await self._faults.get()

    async def close(self) -> None:
        """Send no more requests. The jobs continue at the provider, and are resumed at the next start."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- one job

    async def _take_up(self) -> None:
        self._state = circuit_breaker.decoded(await self._ledger.document(circuit_breaker.DOCUMENT))
        await self._files.load()
        jobs = [(job, await self._ledger.missing(job.id)) for job in await self._ledger.jobs()]
        for job, shares in jobs:
            self._missing[job.id] = set(shares)
            self._begin(self._carry_out(job, None, shares))
        self._is_resumed = True
        self._begin(self._clear_left(has_failed=False))
        if jobs:
            log.info("embed.batches_resumed", jobs=self.jobs, texts=self.claimed)
        self.changes.notify()  # all texts were held until now, including those that are in no job

    async def _try_to_resume(self) -> None:
        """Resume earlier jobs if the ledger can be read; if this daemon can never read it, use no jobs."""
        try:
            await self._take_up()
        except TransientError as failure:
            self._enter(f"whether texts are in jobs cannot be read, so none is embedded: {failure}")
        except MemdError as failure:
            # The ledger of a newer memd cannot be read by this version at all.
            self._enter(f"jobs cannot be remembered, so there are none: {failure}")
            self._is_resumed, self._barred_until = True, float("inf")
            self.changes.notify()
        else:
            self._enter(None)

    async def _resume_later(self) -> None:
        backoff = self._client.backoff()
        while not self._is_resumed:
            await asyncio.sleep(backoff.failed())
            await self._try_to_resume()

    async def _carry_out(
        self, job: BatchJob, texts: dict[TextHash, str] | None, shares: Mapping[TextHash, float | None]
    ) -> None:
        """Run one job to its end.

        Args:
            job: The job as recorded in the ledger.
            texts: Its texts; None: it was begun in an earlier run of the daemon.
            shares: The CJK share of each of its texts without a vector; None: unknown.
        """
        missing, before = self._missing[job.id], self._state
        run = JobRun(self._client, self._settings, self._form, job, self._files)
        try:
            is_there = await self._run(run, texts, missing, shares)
        except JobLate as late:
            after = circuit_breaker.late(self.state, str(late), self._client.clock(), began_at=job.created_at)
            self._change(after, job)
        except NotSupported:
            model = self._client.dialect.embeddings.model
            reason = f"{self._client.provider} has no batches for {model}, or not with this key"
            self._change(circuit_breaker.unsupported(self.state, reason, self._client.clock()), job)
        except (JobFailed, EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused) as failure:
            if not await self._has_all_vectors(job.id):
                self._failed.update(missing)
                self._change(circuit_breaker.failed(self.state, str(failure), self._client.clock()), job)
        else:
            if is_there:
                self._failed.update(missing)
                self._state = BatchState()
                log.info("embed.batch_ended", texts=job.texts, missing=len(missing))
        del self._missing[job.id]
        self.changes.notify()
        is_clear = True
        if not missing:
            is_clear = await self._files.clear(job.id)  # before the job's record is deleted
        await self._until_written(lambda: self._end(job.id), "a job that is done cannot be forgotten")
        if before.is_on and not self._state.is_on:
            log.warning("embed.batches_turned_off", reason=self._state.reason)
        # Not earlier, as a job that is resumed after a crash would need its files.
        if not (await self._files.clear(job.id) and is_clear):
            await self._clear_left(has_failed=True)

    async def _clear_left(self, *, has_failed: bool) -> None:
        """Retry until no file of ended jobs is left, or those that are left are old enough to be ignored.

        Args:
            has_failed: Whether an attempt has just failed, so that a wait comes first.
        """
        self._is_more_left = True
        if self._is_clearing:
            return
        self._is_clearing = True
        try:
            timeouts = self._client.timeouts
            backoff = Backoff(
                self._client.rng, first_s=timeouts.delete_first_s, cap_s=timeouts.delete_longest_s
            )
            while self._is_more_left:
                if has_failed:
                    await asyncio.sleep(backoff.failed())
                self._is_more_left = False
                # Not |=, which would overwrite what a job that ends during the await has set.
                if not await self._files.clear_left():
                    self._is_more_left = True
                has_failed = True
        finally:
            self._is_clearing = False

    async def _has_all_vectors(self, job_id: str) -> bool:
        """Return whether all vectors of a job are stored: agents with other settings for the same model resume it, too."""
        try:
            return not await self._ledger.missing(job_id)
        except MemdError:
            return False

    async def _run(
        self,
        run: JobRun,
        texts: dict[TextHash, str] | None,
        missing: set[TextHash],
        shares: Mapping[TextHash, float | None],
    ) -> bool:
        """Create a job and finish it; return whether it existed."""

        async def keep(vectors: Mapping[TextHash, bytes]) -> None:
            await self._keep(run.job.id, vectors)

        async with self._at_once:
            if not await run.begin(texts, self._note):
                return False
            if texts is not None:
                await self._count(texts.values())
                texts.clear()  # the provider has them now
            if self._settings.wait:
                await run.finish(missing, shares, keep)
                return True
        # Outside of the semaphore: nobody waits for this job, so the next one may begin.
        await run.finish(missing, shares, keep)
        return True

    async def _count(self, texts: Collection[str]) -> None:
        try:
            await self._ledger.add_sent(len(texts), sum(map(estimate_tokens, texts)))
        except MemdError as failure:
            log.warning("embed.sent_not_noted", reason=str(failure))

    async def _note(self, job: BatchJob) -> None:
        """Record the name of a job; if that fails, it is found by its label after a restart."""
        assert job.name is not None
        try:
            await self._ledger.created(job.id, job.name, job.created_at)
        except MemdError as failure:
            log.warning("embed.batch_not_noted", reason=str(failure))

    async def _keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Store vectors, retrying until that succeeds: the provider keeps them until then."""
        await self._until_written(
            lambda: self._ledger.keep(job_id, vectors),
            "vectors of a job wait at the provider's until they can be kept",
        )
        self.changes.notify()

    async def _end(self, job_id: str) -> None:
        # One write at a time, so that the current state is written last.
        async with self._writing_state:
            await self._ledger.end(job_id, {circuit_breaker.DOCUMENT: msgspec.json.encode(self._state)})

    def _change(self, after: BatchState, job: BatchJob) -> None:
        self._state = after
        log.warning("embed.batch_failed", reason=after.reason, texts=job.texts, still_on=after.is_on)

    async def _until_written(self, write: Callable[[], Awaitable[object]], meaning: str) -> None:
        backoff = self._client.backoff()
        while True:
            try:
                await write()
            except MemdError as failure:
                self._enter(f"{meaning}: {failure}")
                await asyncio.sleep(backoff.failed())
            else:
                self._enter(None)
                return

    def _enter(self, reason: str | None) -> None:
        if reason is not None and reason != self._unwritten:
            log.warning("embed.batches_troubled", reason=reason)
        self._unwritten = reason

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
    """Return the texts of each job, without those in `taken`, and the CJK share of each; slow, so it runs on a thread."""
    free = {
        text_hash: text for text_hash, text in texts.items() if not any(text_hash in some for some in taken)
    }
    # Computed from the original texts; what is sent may differ.
    return [(group, {one: cjk_share(texts[one]) for one in group}) for group in groups(dialect, free)]
