"""The jobs of one provider: which texts are in one, and what becomes of them whatever happens."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import structlog

from memd.config.settings import BatchSettings
from memd.domain_types import BatchJob, TextHash
from memd.errors import MemdError, TransientError
from memd.providers.batch import state
from memd.providers.batch.client import BatchClient, JobFailed
from memd.providers.batch.dialect import BatchDialect, groups
from memd.providers.batch.job import JobLate, JobRun, VectorForm
from memd.providers.batch.remote_files import RemoteFiles, upload_name
from memd.providers.batch.state import BatchState, Ledger
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.dialect import ContentRefused, NotSupported, RequestTooLarge
from memd.runtime.synchronization import ChangeNotifier
from memd.runtime.threads import beside
from memd.runtime.timing import Backoff
from memd.text.tokens import cjk_share, estimate_tokens

log = structlog.get_logger()

UNREMEMBERED_S = 60.0  # after a job could not be remembered, until another one is tried


class BatchRunner:
    """The jobs of one provider, model and key.

    Texts that are in a job are held: no plain request may ask for them. They are let go when the job has ended, with or
    without their vectors; those that came have been kept by then.
    """

    def __init__(
        self,
        client: BatchClient,
        ledger: Ledger,
        settings: BatchSettings,
        form: VectorForm,
        changes: ChangeNotifier,
    ) -> None:
        """No text is taken until resume was called.

        Args:
            client: Of the provider.
            ledger: Where jobs are remembered, and vectors kept.
            settings: Of the configuration.
            form: Of the vectors.
            changes: Notified when vectors were kept, texts are let go, or held ones are known.
        """
        self._client = client
        self._ledger = ledger
        self._files = RemoteFiles(client, ledger)
        self._is_clearing = False  # what is left of jobs that have ended is being deleted
        self._is_more_left = False  # since that was looked at last
        self._settings = settings
        self._form = form
        self.changes = changes
        self._state = BatchState()
        self._missing: dict[str, set[TextHash]] = {}  # our id of a job -> its texts without a vector
        self._failed: set[TextHash] = set()  # texts that came out of a job without one
        self._is_resumed = False
        self._is_closed = False
        self._unwritten: str | None = None  # what stands in the way of the ledger, and what comes of it
        self._barred_until = float("-inf")  # loop time
        self._at_once = asyncio.Semaphore(settings.concurrency)
        self._submitting = asyncio.Lock()
        self._writing_state = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: asyncio.Queue[BaseException] = asyncio.Queue()

    # --- what is known of them

    @property
    def state(self) -> BatchState:
        """Whether batches are used, and why not."""
        return state.cooled_down(self._state, self._client.clock())

    @property
    def is_open(self) -> bool:
        """Whether jobs are taken at all just now; if not, plain requests do everything that is not held."""
        return (
            self._is_resumed
            and not self._is_closed
            and self.state.is_on
            and self._now() >= self._barred_until
        )

    @property
    def reason(self) -> str | None:
        """What jobs that are under way wait for, beside the provider's work."""
        return self._unwritten or self._client.reason

    @property
    def jobs(self) -> int:
        """How many have begun and not ended."""
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
        remembered, it is not created: reason says so.
        """
        async with self._submitting:
            if not self.is_open:
                return
            # First what is in jobs, then what is kept: a job that ends in between is in the one or the other.
            taken = [*map(frozenset, self._missing.values()), self._failed]
            taken.append(await self._ledger.kept(texts.keys()))
            for group, shares in await beside(_groups, self._client.dialect, texts, taken):
                job = BatchJob(f"memd-{secrets.token_hex(8)}", len(group), self._client.clock())
                try:
                    # Remembered before it is created: a crash in between must not leave a job that no ledger has.
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
        self._state = state.turned_on(self._state)
        self._failed.clear()
        self.changes.notify()
        async with self._writing_state:
            await self._ledger.put_document(state.DOCUMENT, msgspec.json.encode(self._state))

    async def watch(self) -> None:
        """Wait until a job ends with an error that is not foreseen, and raise it."""
        raise await self._faults.get()

    async def close(self) -> None:
        """Send no more requests. The jobs go on where they are, and are taken up again at the next start."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- the life of a job

    async def _take_up(self) -> None:
        self._state = state.decoded(await self._ledger.document(state.DOCUMENT))
        await self._files.recall()
        jobs = [(job, await self._ledger.missing(job.id)) for job in await self._ledger.jobs()]
        for job, shares in jobs:
            self._missing[job.id] = set(shares)
            self._begin(self._carry_out(job, None, shares))
        self._is_resumed = True
        self._begin(self._clear_left(has_failed=False))
        if jobs:
            log.info("embed.batches_resumed", jobs=self.jobs, texts=self.claimed)
        self.changes.notify()  # until here all texts were held, also those that are in no job

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
            self.changes.notify()
        else:
            self._enter(None)

    async def _resume_later(self) -> None:
        backoff = self._client.backoff()
        while not self._is_resumed:
            await asyncio.sleep(backoff.failed())
            await self._try_to_take_up()

    async def _carry_out(
        self, job: BatchJob, texts: dict[TextHash, str] | None, shares: Mapping[TextHash, float | None]
    ) -> None:
        """One job to its end.

        Args:
            job: As the ledger has it.
            texts: What is in it; None: it was begun in an earlier life.
            shares: How much of each of its texts without a vector is CJK; None: not known.
        """
        missing, before = self._missing[job.id], self._state
        run = JobRun(self._client, self._settings, self._form, job, self._files)
        try:
            is_there = await self._run(run, texts, missing, shares)
        except JobLate as late:
            after = state.late(self.state, str(late), self._client.clock(), began_at=job.created_at)
            self._change(after, job)
        except NotSupported:
            model = self._client.dialect.embeddings.model
            reason = f"{self._client.provider} has no batches for {model}, or not with this key"
            self._change(state.unsupported(self.state, reason, self._client.clock()), job)
        except (JobFailed, EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused) as failure:
            if not await self._was_brought(job.id):
                self._failed.update(missing)
                self._change(state.failed(self.state, str(failure), self._client.clock()), job)
        else:
            if is_there:
                self._failed.update(missing)
                self._state = state.succeeded(self._state)
                log.info("embed.batch_ended", texts=job.texts, missing=len(missing))
        del self._missing[job.id]
        self.changes.notify()
        is_clear = True
        if not missing:
            is_clear = await self._files.clear(job.id)  # before the job is forgotten
        await self._until_written(lambda: self._end(job.id), "a job that is done cannot be forgotten")
        if before.is_on and not self._state.is_on:
            log.warning("embed.batches_turned_off", reason=self._state.reason)
        # Not before, of one that may be taken up again: a restart after a crash would need them.
        if not (await self._files.clear(job.id) and is_clear):
            await self._clear_left(has_failed=True)

    async def _clear_left(self, *, has_failed: bool) -> None:
        """Try until no file is left of jobs that have ended, or the provider has none any more that is so old.

        Args:
            has_failed: Whether it has just been tried in vain, so that there is a pause first.
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
                # Not |=, which would take back what is left of a job that ends during the await.
                if not await self._files.clear_left():
                    self._is_more_left = True
                has_failed = True
        finally:
            self._is_clearing = False

    async def _was_brought(self, job_id: str) -> bool:
        """Whether all vectors of a job are kept: agents with other settings for the same model take it up as well."""
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
        """Begin a job and finish it; whether there was one."""

        async def keep(vectors: Mapping[TextHash, bytes]) -> None:
            await self._keep(run.job.id, vectors)

        async with self._at_once:
            if not await run.begin(texts, self._note):
                return False
            if texts is not None:
                await self._count(texts.values())
                texts.clear()  # they are at the provider's now
            if self._settings.wait:
                await run.finish(missing, shares, keep)
                return True
        # Syncs do not wait for it: the next job may begin.
        await run.finish(missing, shares, keep)
        return True

    async def _count(self, texts: Collection[str]) -> None:
        try:
            await self._ledger.add_sent(len(texts), sum(map(estimate_tokens, texts)))
        except MemdError as failure:
            log.warning("embed.sent_not_noted", reason=str(failure))

    async def _note(self, job: BatchJob) -> None:
        """Remember the name of a job. Without it, it is found by its label after a restart."""
        assert job.name is not None
        try:
            await self._ledger.created(job.id, job.name, job.created_at)
        except MemdError as failure:
            log.warning("embed.batch_not_noted", reason=str(failure))

    async def _keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Have vectors kept, however long that takes: they are at the provider's until then."""
        await self._until_written(
            lambda: self._ledger.keep(job_id, vectors),
            "vectors of a job wait at the provider's until they can be kept",
        )
        self.changes.notify()

    async def _end(self, job_id: str) -> None:
        # One after the other: the state of now is what must be there at last.
        async with self._writing_state:
            await self._ledger.end(job_id, {state.DOCUMENT: msgspec.json.encode(self._state)})

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
    """The texts of each job, without those that are taken, and how much of each is CJK; on a thread: it takes its time."""
    free = {
        text_hash: text for text_hash, text in texts.items() if not any(text_hash in some for some in taken)
    }
    # Of the texts as they are: what is sent of them may differ.
    return [(group, {one: cjk_share(texts[one]) for one in group}) for group in groups(dialect, free)]
