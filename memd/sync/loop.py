"""Keeps one agent's index like its files: takes marks, runs passes, rebuilds when it must."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec
import structlog

from memd.backoff import delay_s
from memd.config import AgentSettings
from memd.embed.provider import space_of
from memd.errors import TransientError
from memd.store.embeddings import KnownVectors, Space
from memd.store.index import Index
from memd.store.meta import Fingerprint, with_vectors
from memd.store.trouble import StoreDamaged, StoreUnavailable
from memd.sync.checks import keep_checking
from memd.sync.cost import Cost, cost
from memd.sync.dirty import Dirty, Taken
from memd.sync.fingerprint import wanted_fingerprint
from memd.sync.glance import Glance
from memd.sync.intake import Done, Intake
from memd.sync.peek import Peek
from memd.sync.refill import keep_filled
from memd.sync.renewal import LONGEST_WAIT_S, Renewal
from memd.sync.spaces import Spaces
from memd.sync.tidy import Tidy
from memd.sync.treatment import Treatment
from memd.sync.vectors import Customer, VectorQueue
from memd.sync.waiting import first_of
from memd.sync.wipe import keep_wiping
from memd.threads import Threads
from memd.watch.backlog import Backlog

log = structlog.get_logger()

T = TypeVar("T")

OUTCOMES = 100  # passes whose end is remembered for whoever waited
READERS = 3  # threads that read files: one for passes, one for edits while a pass is at a long file, one for a rebuild
# What a pass is about that fills an index built beside.
EVERYTHING = Taken(0, frozenset(), everything=True, force=False, eager=True)
LOOK_S = 0.1  # what a look at a few files may take, however little a search is to wait
LOOK_BESIDE_S = 2.0  # between two looks at how far an index built beside is
CATCHING_UP = 3  # rounds of what changed while it was embedded
BLOCKED_S = 5.0  # a look that takes longer is waiting for a disk that does not answer


class PassReport(msgspec.Struct, frozen=True):
    """How a pass ended."""

    at: float  # unix time of its end
    took_s: float
    changed: int = 0  # files that were indexed anew
    removed: int = 0
    failed: str | None = None
    late: bool = False  # a file that it was about is being read by another pass


class Health(msgspec.Struct, frozen=True):
    """What is wrong, part by part; None where nothing is."""

    skipped: Mapping[str, int]  # reason -> files
    keyword: str | None
    watcher: str | None
    watcher_note: str | None  # nothing wrong, but good to know
    rebuild: str | None
    store: str | None  # why nothing can be written


class PassFailed(TransientError):
    """The pass that was waited for did not succeed; it is tried again by itself."""


class SyncLoop:
    """When the passes of one agent are made, one after the other, and what its index is for."""

    def __init__(
        self,
        agent: str,
        settings: AgentSettings,
        treatment: Treatment,
        index: Index,
        fingerprint: Fingerprint,
        *,
        dirty: Dirty,
        spaces: Spaces | None,
        rng: Random,
    ) -> None:
        """Nothing runs yet.

        Args:
            agent: Its id.
            settings: Of the agent.
            treatment: Of its files.
            index: Is open.
            fingerprint: What the index is for, as far as that is known.
            dirty: What has changed.
            spaces: Who embeds; None: nobody ever does.
            rng: Source of the jitter of a backoff.
        """
        self._agent = agent
        self._settings = settings
        self._treatment = treatment
        self._index = index
        self._fingerprint = fingerprint
        self._dirty = dirty
        self._spaces = spaces
        self._queues: set[VectorQueue] = set()  # that serve the agent
        self._asking: VectorQueue | None = None  # through which a person is asked whether a rebuild may begin
        self._adapts = asyncio.Event()  # who embeds must be looked at again
        self.vectors_rest = False  # nobody searches by them just now
        self._rng = rng
        # Threads of this agent's own: what its disk does not answer holds up nobody else.
        self._files = Threads(READERS, f"memd-files-{agent}")
        self._peek = Peek(Glance(treatment.roots), Threads(1, f"memd-look-{agent}"))
        self._intake = Intake(
            agent,
            settings.sessions,
            treatment,
            index,
            dirty=dirty,
            peek=self._peek,
            files=self._files,
            vectors=self._known,
            let=self._attempt,
        )
        self._failures = 0
        self._outcomes: dict[int, PassReport] = {}
        self._trouble: str | None = None  # why nothing was written to the store last time
        self._retry: asyncio.TimerHandle | None = None  # of a pass that failed
        self._refills = index.begun_anew is not None  # until a pass over everything, most is missing
        self._pass_lock = asyncio.Lock()
        self._renewal = Renewal(
            agent,
            index,
            fingerprint,
            fill=lambda beside: self._intake.run(beside, EVERYTHING),
            embed=self._embed_beside,
            permit=self._permitted,
            lock=self._pass_lock,
            cache=None if spaces is None else spaces.cache,
            rng=rng,
            done=self._renewed,
        )
        self._embedded: tuple[int, int] | None = (
            None  # chunks with a vector, and all, of an index built beside
        )
        self._tidy = Tidy(index, self.damaged)
        self._replaced = asyncio.Event()  # the index, by one that was built beside
        self.last_pass: PassReport | None = None
        self.watcher_trouble: str | None = None
        self.watcher_note: str | None = None
        self.backlog = Backlog()  # for whoever follows the files

    # --- what others ask of it

    @property
    def queue(self) -> VectorQueue | None:
        """What embeds for the index that serves; None: nobody does just now."""
        if self._spaces is None or self.vectors_rest:
            return None
        return self._spaces.queue(self._index.space)

    @property
    def progress(self) -> tuple[int, int] | None:
        """(files read, files to read) of the longest pass that is under way, be it that of a rebuild."""
        return self._intake.progress

    @property
    def pending(self) -> int:
        """How many marks wait for a pass."""
        return self._dirty.pending

    @property
    def growing(self) -> int:
        """How many transcripts have grown, and are read when more has come or they are quiet."""
        return self._intake.growing

    @property
    def health(self) -> Health:
        """What is wrong just now."""
        return Health(
            self._intake.skipped,
            self._renewal.keyword,
            self._watcher_trouble,
            self.watcher_note,
            self._rebuild_in_words()
            or ("the index was damaged and is filled anew" if self._refills else None),
            self._trouble or self._renewal.trouble,
        )

    def _rebuild_in_words(self) -> str | None:
        reason = self._renewal.reason
        if reason is None or self._embedded is None:
            return reason
        done, chunks = self._embedded
        return f"{reason}; {done:,} of {chunks:,} chunks have their new vectors"

    @property
    def _watcher_trouble(self) -> str | None:
        blocked_s = self._peek.blocked_s()
        if blocked_s < BLOCKED_S:
            return self.watcher_trouble
        return f"the files have not answered for {blocked_s:.0f} s: is a network mount down?"

    def request(self, *, force: bool = False) -> int:
        """Ask for a pass over everything that begins after this call, transcripts that still grow included; its number."""
        self._renewal.hurry()
        return self._dirty.mark_all(force=force, eager=True)

    async def settled(self, number: int) -> PassReport:
        """Wait for the end of a pass.

        Raises:
            PassFailed: it failed, and is tried again by itself.
            StoreClosed: the loop has stopped.
        """
        outcome = self._outcomes.get(await self._dirty.wait_for_everything(number), self.last_pass)
        if outcome is None or outcome.failed is not None:
            raise PassFailed(
                "the index could not be brought up to date" + (f": {outcome.failed}" if outcome else "")
            )
        return outcome

    async def catch_up(self) -> bool:
        """Have what is known to have changed indexed now, waiting for it as long as configured.

        A transcript that is not due yet stays so, and the index counts as up to date without it: the one of the agent
        that asks has always grown since, by this very question. Otherwise each search would read it again, or call each
        answer stale.

        Returns:
            Whether the index is up to date with every change that was known at the call, or that was made before it where
            the watcher sees all; see watch.backlog.

        Raises:
            StoreClosed: the loop has stopped.
        """
        wait_s = self._settings.sync.wait_ms / 1000
        began = time.monotonic()
        late = False
        changed: Collection[Path] | None = None
        try:
            changed = await self.backlog.drained(max(wait_s, LOOK_S))
        except TimeoutError:
            late = True  # whether it is the disk that does not answer, a look tells
        if changed is None:
            changed = await self._peek.changed(max(began + wait_s - time.monotonic(), LOOK_S))
        if changed is None:
            return False
        if changed:
            self._dirty.mark(changed)
        try:
            async with asyncio.timeout(max(0.0, began + wait_s - time.monotonic())):
                return await self._passes_over_all_that_is_marked(wait_s) and not late
        except TimeoutError:
            return False

    async def _passes_over_all_that_is_marked(self, wait_s: float) -> bool:
        """Wait for the passes that run and for those over what is marked; whether these are all, and went well."""
        running = self._dirty.running_for_s()
        # A pass that has run for longer is a long one: waiting once more for it would only make every search slow.
        numbers = [number for number, ran_s in running.items() if ran_s <= wait_s]
        is_behind = len(numbers) < len(running)
        by_name, everything = self._dirty.awaits_paths, self._dirty.awaits_everything
        if self._retry is not None:
            is_behind, by_name = True, False  # what failed is tried again in its time, not at each search
        # Behind a long pass only what is marked by name goes in between.
        everything = everything and not is_behind
        hurried = self._dirty.hurry() if by_name or everything else 0
        if by_name and not everything:
            numbers.append(hurried)
        for number in numbers:
            await self._dirty.wait_for(number)
        if everything:
            numbers.append(await self._dirty.wait_for_everything(hurried))
        return not is_behind and all(self._succeeded(number) for number in numbers)

    def _succeeded(self, number: int) -> bool:
        outcome = self._outcomes.get(number)
        return outcome is not None and outcome.failed is None and not outcome.late

    def rebuild(self, reason: str, *, force: bool = False) -> None:
        """Build the index anew beside the one that serves, and swap.

        Args:
            reason: Why, for status.
            force: Embed every chunk again, too.
        """
        self._renewal.want(reason, force=force)

    async def cost(self, *, force: bool) -> Cost:
        """What a rebuild would have to embed."""
        wanted = None if self._spaces is None else self._spaces.wanted
        space = None if wanted is None else space_of(wanted)
        known = self._known(space)
        # A rebuild puts what the index has into the cache first.
        is_kept = known is not None and not force and self._index.space == space
        return await cost(
            self._treatment,
            known,
            held=frozenset(await self._index.embedded()) if is_kept else frozenset(),
            force=force,
            embeds=self._spaces is not None and self._spaces.embeds and not self.vectors_rest,
            threads=self._files,
        )

    def rest_vectors(self) -> None:
        """Embed nothing until vectors are wanted: another engine answers searches. Those that are there stay."""
        self.vectors_rest = True
        self._adapts.set()

    def want_vectors(self) -> None:
        """Embed what waits, and go on doing so."""
        self.vectors_rest = False
        self._adapts.set()

    def keyword_failed(self, reason: str) -> None:
        """A search found the keyword index broken: the index is built anew."""
        self._renewal.keyword_failed(reason)

    def damaged(self, reason: str) -> None:
        """Something in the index is not what memd wrote there: it is built anew."""
        self._renewal.damaged(reason)

    async def stop(self) -> None:
        """Send those away who wait for a pass: with run cancelled, none comes any more."""
        self._take_back_retry()
        self._intake.stop()
        await self._dirty.close()
        await self._leave(self._queues)

    # --- passes

    async def run(self) -> None:
        """Keep the index up to date, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._passes())
            tasks.create_task(self._renewal.run())
            tasks.create_task(self._tidy.run())
            tasks.create_task(keep_wiping(self._index, self._replaced))
            tasks.create_task(keep_checking(self._index, self.damaged, self._is_busy))
            if self._spaces is not None:
                tasks.create_task(self._adapt(self._spaces))
                if self._spaces.cache is not None:
                    tasks.create_task(keep_filled(self._index, self._spaces.cache))

    def _is_busy(self) -> bool:
        return self.progress is not None or self.pending > 0 or self._renewal.reason is not None

    def _renewed(self) -> None:
        """Another index is in place: what failed with the one before goes on."""
        self._refills = False
        self._replaced.set()
        self._intake.look_again()
        self._tidy.note()
        self._dirty.hurry()
        self._wake_queue()
        self._adapts.set()

    async def _passes(self) -> None:
        self._dirty.mark_all()
        while True:
            taken = await self._dirty.take()
            async with self._pass_lock:
                await self._attempt(taken)

    async def _attempt(self, taken: Taken) -> None:
        """One pass; what it was to do waits again if it fails."""
        began = time.monotonic()
        done = Done()
        failed: str | None = None
        try:
            await self._index.settle()
            done = await self._intake.run(self._index, taken)
            self._failures, self._trouble = 0, None
            self._take_back_retry()
            self._refills = self._refills and not taken.everything
        except TransientError as failure:
            failed = str(failure)
            self._dirty.put_back(taken)
            self._back_off(failed)
            if isinstance(failure, StoreUnavailable):
                self._trouble = failed
        except StoreDamaged as damage:
            failed = str(damage)
            self._dirty.put_back(taken)
            self.damaged(failed)
        finally:
            took_s = round(time.monotonic() - began, 4)
            report = PassReport(time.time(), took_s, done.changed, done.removed, failed, done.late)
            self._remember(taken.number, report)
            await self._dirty.finish(taken)
        if done.changed or done.removed:
            log.info(
                "sync.finished",
                agent=self._agent,
                changed=done.changed,
                removed=done.removed,
                took_s=took_s,
            )
            self._tidy.note(done.changed + done.removed)
        if failed is None:
            # Also where nothing changed: chunks may wait since an earlier life of the daemon.
            self._wake_queue()

    def _back_off(self, reason: str) -> None:
        self._failures += 1
        wait_s = delay_s(self._failures, self._rng, cap_s=LONGEST_WAIT_S)
        log.warning("sync.retry_scheduled", agent=self._agent, reason=reason, wait_s=round(wait_s, 1))
        self._take_back_retry()
        self._retry = asyncio.get_running_loop().call_later(wait_s, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._dirty.hurry()

    def _take_back_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _remember(self, number: int, report: PassReport) -> None:
        self.last_pass = self._outcomes[number] = report
        while len(self._outcomes) > OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]

    # --- who embeds

    def _wake_queue(self) -> None:
        # An index that is about to be replaced gets no vectors: most of its chunks will not be there again. One whose
        # replacement comes to nothing, for want of room, goes on; so does one that is to answer by meaning until another
        # one has vectors of another model.
        renewal = self._renewal
        is_kept = renewal.reason is None or renewal.trouble is not None or renewal.changes_space
        queue = self.queue
        if queue is not None and (is_kept or queue.awaits_permission(self._agent)):
            self._serve(queue, self._index, self.damaged)

    def _serve(self, queue: VectorQueue, index: Index, damaged: Callable[[str], None] | None) -> None:
        queue.serve(Customer(self._agent, index, self._settings.cache.enabled, damaged))
        self._queues.add(queue)

    async def _leave(self, queues: Collection[VectorQueue]) -> None:
        for queue in list(queues):
            self._queues.discard(queue)
            await queue.leave(self._agent)

    def _known(self, space: Space | None) -> KnownVectors | None:
        """What is cached of a space."""
        cache = None if self._spaces is None else self._spaces.cache
        return None if cache is None or space is None else KnownVectors(cache, space)

    async def _adapt(self, spaces: Spaces) -> None:
        """Have the index follow whoever is to embed, for ever."""
        while True:
            version = spaces.version
            self._adapts.clear()
            try:
                await self._adapt_once(spaces)
            except TransientError as failure:
                log.warning("sync.provider_not_taken", agent=self._agent, reason=str(failure))
                asyncio.get_running_loop().call_later(LONGEST_WAIT_S, self._adapts.set)
            except StoreDamaged as damage:
                self.damaged(str(damage))
            await first_of(spaces.changed_since(version), self._adapts.wait())

    async def _adapt_once(self, spaces: Spaces) -> None:
        if self.vectors_rest:
            await self._let_rest()
            return
        wanted = spaces.wanted
        if wanted is not None:
            await self._take(wanted_fingerprint(self._settings, wanted))
        used = self.queue
        spaces.hold(frozenset() if self._index.space is None else frozenset({self._index.space}))
        self._wake_queue()
        beside = spaces.queue(None if wanted is None else space_of(wanted))
        await self._leave(self._queues - {used, beside})
        if self._asking is not None and spaces.queue(self._asking.known.space) is not self._asking:
            self._renewal.begin_again()  # nobody can tell that queue any more that it may

    async def _let_rest(self) -> None:
        """Have nothing embedded, here or in an index beside that is for another model."""
        stored = await self._index.fingerprint()
        if self._renewal.changes_space and stored is not None:
            self._renewal.keep_space(with_vectors(self._fingerprint, stored))
        await self._leave(self._queues)

    async def _take(self, wanted: Fingerprint) -> None:
        """Have vectors of a model in the index, or in one that is built beside."""
        if self._index.space is None:
            await self._index.take_vectors(wanted)
        if self._index.space == wanted.space:
            self._renewal.keep_space(wanted)
            return
        stored = await self._index.fingerprint()
        before = "another one" if stored is None else f"{stored.provider}/{stored.model}"
        reason = f"the embedding model changed from {before} to {wanted.provider}/{wanted.model}"
        self._renewal.want_space(reason, wanted)

    @contextlib.asynccontextmanager
    async def _permitted(self, wanted: Fingerprint) -> AsyncIterator[None]:
        """Wait until an index may be built whose texts are sent to a provider that costs money."""
        queue = None if self._spaces is None else self._spaces.queue(wanted.space)
        # What is damaged is mended unasked: its texts are searchable then, and what is sent is asked about by the queue.
        is_unasked = self.vectors_rest or self._renewal.mends
        if queue is None or is_unasked or not queue.asks_before(sys.maxsize):
            yield
            return
        self._asking = queue
        try:
            price = await self.cost(force=self._renewal.embeds_again)
            async with queue.permitted(self._agent, price.to_embed, price.tokens):
                self._asking = None
                yield
        finally:
            self._asking = None

    async def _embed_beside(self, new: Index) -> None:
        """While the index that serves answers by meaning, give the new one its vectors before it takes its place."""
        spaces, old = self._spaces, self._index
        if spaces is None or self.vectors_rest or new.space is None or new.space == old.space:
            return
        try:
            for _ in range(CATCHING_UP):
                while (waiting := await self._left_beside(new)) and old.has_vectors:
                    if not spaces.is_answering(old.space):
                        return
                    queue = spaces.queue(new.space)
                    if queue is not None:
                        self._serve(queue, new, None)
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(LOOK_BESIDE_S):
                                waiting, _ = await queue.wait_for(new)
                    if waiting:
                        await asyncio.sleep(LOOK_BESIDE_S / 4)
                await self._intake.run(new, EVERYTHING)
                if not await self._left_beside(new):
                    return
        finally:
            self._embedded = None

    async def _left_beside(self, new: Index) -> int:
        counts = await new.counts()
        self._embedded = counts.done, counts.chunks
        return counts.waiting
