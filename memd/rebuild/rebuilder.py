"""Decides when an index is built anew, and keeps at it until it is."""

import asyncio
import contextlib
import shutil
import time
from random import Random

import structlog

from memd.errors import FatalError, MemdError
from memd.indexing.run_pass import PassRunner
from memd.maintenance.tasks import MaintenanceTriggers, refill
from memd.rebuild.build_and_swap import NewIndexEmbedding, discard, rebuild
from memd.rebuild.cost import RebuildPermission
from memd.runtime.malloc import give_back_beside
from memd.runtime.safe_traceback import safe_message
from memd.runtime.synchronization import ChangeNotifier, first_of, is_cancelled
from memd.runtime.timing import LONGEST_WAIT_S, Backoff
from memd.store.embedding_cache import EmbeddingStore, KnownVectors, Space
from memd.store.errors import StoreFull, StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint

log = structlog.get_logger()

ROOM = 3  # times what the index takes: with so much room a rebuild has enough
CALM_S = 600.0  # damage that comes back sooner is a failing disk: it is given longer and longer


class Rebuilder:
    """What is wanted of one index beyond passes: to be built anew, and why."""

    def __init__(
        self,
        agent: str,
        index: Index,
        fingerprint: Fingerprint,
        runner: PassRunner,
        embedding: NewIndexEmbedding,
        permission: RebuildPermission,
        triggers: MaintenanceTriggers,
        rng: Random,
    ) -> None:
        """Nothing is wanted yet.

        Args:
            agent: Its id, for the log.
            index: The index that serves.
            fingerprint: What a new one is built for.
            runner: Brings an index up to date with the disk.
            embedding: Has a new index embedded, as far as it is worth waiting for.
            permission: To embed all of it.
            triggers: Are told when a new index is in place.
            rng: Source of the jitter of a backoff.
        """
        self.replaced = ChangeNotifier()  # when a new index is in place
        self.failure: str | None = None  # why the last attempt failed
        self._agent = agent
        self._index = index
        self._fingerprint = fingerprint
        self._runner = runner
        self._embedding = embedding
        self._permission = permission
        self._triggers = triggers
        self._rng = rng
        self._wanted = asyncio.Event()  # set when there may be a reason
        self._requested: str | None = None  # why it was asked for by want
        self._requests = 0  # so often
        self._hurried = asyncio.Event()
        self._embed_again = False  # requested, until an attempt has succeeded
        # What was known of the texts before: only what was embedded since is known.
        self._is_forgotten = False
        self._space_reason: str | None = None  # why vectors of another model are wanted
        self._attempt: asyncio.Task[None] | None = None
        self._swapping: str | None = None  # why, once the attempt is given up no more
        self._calm = Backoff(rng, cap_s=CALM_S)  # of damages, one soon after the other
        self._mended_at: float | None = None

    @property
    def reason(self) -> str | None:
        """Why the index is to be built anew; None: nobody wants that any more, and what was being built is given up."""
        if self._requested is not None:
            return self._requested
        if self._index.damage.keyword is not None:
            return "the keyword index is broken"
        if self._index.damage.reason is not None:
            return "the index is damaged"
        return self._space_reason or self._swapping

    @property
    def target(self) -> Fingerprint:
        """What a new index is built for."""
        return self._fingerprint

    @property
    def changes_space(self) -> bool:
        """Whether the new index is to have vectors of another model."""
        return self._space_reason is not None

    def want(self, reason: str, *, force: bool = False) -> None:
        """Build the index anew beside the one that serves, and swap.

        Args:
            reason: Why, for status.
            force: Embed every chunk again, too.
        """
        if force:
            self._embed_again, self._is_forgotten = True, False
        self._requested = reason
        self._requests += 1
        self._wanted.set()

    def want_space(self, reason: str, fingerprint: Fingerprint) -> None:
        """Build for vectors of another model; what is being built for a third one is given up."""
        if self._fingerprint == fingerprint and self.changes_space:
            return
        self._aim_at(fingerprint, reason)
        self._wanted.set()

    def keep_space(self, fingerprint: Fingerprint) -> None:
        """The index has the vectors that are wanted; what is being built for others is given up."""
        self._aim_at(fingerprint, None)
        if self.reason is None:
            self.give_up()
            self.failure = None
            self._hurried.set()  # no attempt is waited for

    def _aim_at(self, fingerprint: Fingerprint, reason: str | None) -> None:
        is_other = self._fingerprint != fingerprint
        self._fingerprint, self._space_reason = fingerprint, reason
        if is_other:
            self.give_up()

    def give_up(self) -> None:
        """Give up what is being built; if it is still wanted, it is built from the beginning."""
        if self._attempt is not None and self._swapping is None:
            self._attempt.cancel()

    def hurry(self) -> None:
        """What failed is to be tried again now."""
        self._hurried.set()

    async def run(self) -> None:
        """Build whenever it is wanted, for ever."""
        with contextlib.suppress(StoreUnavailable):
            discard(self._index)  # what an attempt left that was killed, even where it is not wanted any more
        backoff = Backoff(self._rng, cap_s=LONGEST_WAIT_S)
        while True:
            self._wanted.clear()
            reported = self._index.damage.reported
            version = reported.version
            if self.reason is None:
                backoff.reset()
                self.failure = None
                await first_of(self._wanted.wait(), reported.since(version))
                continue
            await self._let_calm_down()
            try:
                is_done = await self._try()
            except FatalError:
                raise
            except Exception as failure:
                if not isinstance(failure, MemdError):  # it must be the trouble of no other agent
                    log.error("rebuild.failed", agent=self._agent, exc_info=failure)
                await self._back_off(failure, backoff)
                continue
            if is_done:
                backoff.reset()
                self._note_replaced()
                # What was built beside took as much memory again, which the allocator would keep for the next time.
                await give_back_beside()

    def _note_replaced(self) -> None:
        self._triggers.whole.set()
        self._triggers.left_over.set()
        self._triggers.note()
        self._runner.index_replaced()
        self.replaced.notify()

    async def _try(self) -> bool:
        """Build the index once; False: that was given up."""
        reason, requests, target, began = self.reason, self._requests, self._fingerprint, time.monotonic()
        log.info("rebuild.started", agent=self._agent, reason=reason)
        self._attempt = asyncio.create_task(self._rebuild(target))
        try:
            await self._attempt
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            log.info("rebuild.given_up", agent=self._agent, reason=reason)
            return False
        finally:
            self._attempt = self._swapping = None
        self.failure = None
        if self._index.damage.mended():
            self._mended_at = time.monotonic()
        if self._requests == requests:
            self._requested = None
        if self._fingerprint == target:
            self._space_reason = None
        log.info("rebuild.finished", agent=self._agent, took_s=round(time.monotonic() - began, 3))
        return True

    async def _let_calm_down(self) -> None:
        if self._index.damage.reason is None:
            return
        is_soon = self._mended_at is not None and time.monotonic() - self._mended_at < CALM_S
        if not is_soon:
            self._calm.reset()
            return
        wait_s = self._calm.failed()
        if self._calm.failures > 1:
            await self._pause(wait_s)

    async def _back_off(self, failure: Exception, backoff: Backoff) -> None:
        """Wait, and where there is no room go on waiting until there is more: a rebuild reads and cuts every file."""
        if self.reason is None:
            return  # it is wanted no more
        self.failure = safe_message(failure)
        began, free = time.monotonic(), self._free_bytes()
        # What took the room may have given it back already, and there will never be more than now.
        needs_room = isinstance(failure, StoreFull) and free < ROOM * self._index.store_bytes
        while True:
            wait_s = backoff.failed()
            log.warning(
                "rebuild.retry_scheduled", agent=self._agent, reason=self.failure, wait_s=round(wait_s, 1)
            )
            hurried = await self._pause(wait_s)
            if hurried or not needs_room or self._free_bytes() > free:
                return
            if time.monotonic() - began > CALM_S:
                return  # no figure tells all: a quota is none of the disk's

    async def _pause(self, wait_s: float) -> bool:
        """Wait, unless somebody hurries; whether somebody did."""
        self._hurried.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                return await self._hurried.wait()
        return False

    def _free_bytes(self) -> int:
        try:
            return shutil.disk_usage(self._index.file.parent).free
        except OSError:
            return 0

    async def _rebuild(self, target: Fingerprint) -> None:
        # What is damaged is mended unasked: its texts are searchable then, and what is sent is asked about by the queue.
        is_unasked = self._index.damage.reason is not None
        cache = self._embedding.cache
        asking = self._permission.permitted(target, self._embed_again)
        async with contextlib.nullcontext() if is_unasked else asking:
            with contextlib.nullcontext() if cache is None else cache.needed():
                if cache is not None:
                    await self._prepare(cache, target.space)
                await rebuild(
                    self._index, target, self._runner, embed=self._embedding.embed, swap=self._about_to_swap
                )
        # Else it was requested again meanwhile.
        if self._is_forgotten or target.space is None or cache is None:
            self._embed_again = self._is_forgotten = False

    async def _prepare(self, cache: EmbeddingStore, space: Space | None) -> None:
        if not self._embed_again or space is None:
            # What the cache has lost or dropped meanwhile need not be paid for again.
            await refill(self._index, cache)
        elif not self._is_forgotten:
            await KnownVectors(cache, space).forget(await self._index.hashes())
            self._is_forgotten = True

    def _about_to_swap(self) -> str | None:
        self._swapping = self.reason
        return self._index.damage.reason
