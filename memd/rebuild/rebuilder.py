"""Decides when an index is rebuilt, and retries until that has succeeded."""

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
from memd.runtime.asyncio_helpers import ChangeNotifier, first_of, is_cancelled
from memd.runtime.malloc import give_back_beside
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import LONGEST_WAIT_S, Backoff
from memd.store.embedding_cache import EmbeddingStore, KnownVectors, Space
from memd.store.errors import StoreFull, StoreUnavailable
from memd.store.index import Index
from memd.store.meta import Fingerprint

log = structlog.get_logger()

ROOM = 3  # times the index's size: with so much free space a rebuild does not run out of it
CALM_S = 600.0  # damage that returns sooner suggests a failing disk: the waits grow


class Rebuilder:
    """Rebuilds one index when there is a reason to."""

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
        """Create it; `run` starts it.

        Args:
            agent: The agent's id, for the log.
            index: The current index.
            fingerprint: The settings and model that a new index is for.
            runner: Fills an index from the disk.
            embedding: Embeds a new index as far as that is worth waiting for.
            permission: Asks for permission to embed it.
            triggers: Notified when a new index is in place.
            rng: Source of the jitter of backoffs.
        """
        self.replaced = ChangeNotifier()  # notified when a new index is in place
        self.failure: str | None = None  # why the last attempt failed; None: it did not
        self._agent = agent
        self._index = index
        self._fingerprint = fingerprint
        self._runner = runner
        self._embedding = embedding
        self._permission = permission
        self._triggers = triggers
        self._rng = rng
        self._wanted = asyncio.Event()  # set when there may be a reason to rebuild
        self._requested: str | None = None  # reason given to `request`
        self._requests = 0  # number of calls of `request`
        self._hurried = asyncio.Event()
        self._embed_again = False  # all chunks are to be embedded again, until an attempt succeeds
        # Cached vectors were dropped for that: those in the cache are new ones.
        self._is_forgotten = False
        self._space_reason: str | None = None  # why vectors of another model are wanted
        self._attempt: asyncio.Task[None] | None = None
        # Reason of the rebuild once the swap has begun and cannot be cancelled.
        self._swapping: str | None = None
        self._calm = Backoff(rng, cap_s=CALM_S)  # waits between repairs of damage in quick succession
        self._mended_at: float | None = None

    @property
    def reason(self) -> str | None:
        """Why the index is to be rebuilt; None: there is no reason, and a rebuild in progress is cancelled."""
        if self._requested is not None:
            return self._requested
        if self._index.damage.keyword is not None:
            return "the keyword index is broken"
        if self._index.damage.reason is not None:
            return "the index is damaged"
        return self._space_reason or self._swapping

    @property
    def target(self) -> Fingerprint:
        """The settings and model that a new index is for."""
        return self._fingerprint

    @property
    def changes_space(self) -> bool:
        """Whether the new index is to have vectors of another model."""
        return self._space_reason is not None

    def request(self, reason: str, *, force: bool) -> None:
        """Build a new index beside the current one, and swap them.

        Args:
            reason: Why, for the status.
            force: Whether to embed all chunks again, too.
        """
        if force:
            self._embed_again, self._is_forgotten = True, False
        self._requested = reason
        self._requests += 1
        self._wanted.set()

    def request_space(self, reason: str, fingerprint: Fingerprint) -> None:
        """Rebuild for vectors of another model; a rebuild for a third model is cancelled."""
        if self._fingerprint == fingerprint and self.changes_space:
            return
        self._aim_at(fingerprint, reason)
        self._wanted.set()

    def keep_current_space(self, fingerprint: Fingerprint) -> None:
        """Keep the current index's vectors; a rebuild for others is cancelled."""
        self._aim_at(fingerprint, None)
        if self.reason is None:
            self.cancel_attempt()
            self.failure = None
            self._hurried.set()  # nothing waits for another attempt

    def _aim_at(self, fingerprint: Fingerprint, reason: str | None) -> None:
        is_other = self._fingerprint != fingerprint
        self._fingerprint, self._space_reason = fingerprint, reason
        if is_other:
            self.cancel_attempt()

    def cancel_attempt(self) -> None:
        """Cancel the rebuild in progress; if it is still wanted, it starts from the beginning."""
        if self._attempt is not None and self._swapping is None:
            self._attempt.cancel()

    def retry_now(self) -> None:
        """Retry a failed rebuild now."""
        self._hurried.set()

    async def run(self) -> None:
        """Rebuild whenever there is a reason, until cancelled."""
        with contextlib.suppress(StoreUnavailable):
            discard(self._index)  # remains of a killed attempt, even if no rebuild is wanted any more
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
                if not isinstance(failure, MemdError):  # a bug here must not end other agents
                    log.error("rebuild.failed", agent=self._agent, exc_info=failure)
                await self._back_off(failure, backoff)
                continue
            if is_done:
                backoff.reset()
                self._note_replaced()
                # The new index took as much memory again, which the allocator would keep.
                await give_back_beside()

    def _note_replaced(self) -> None:
        self._triggers.whole.set()
        self._triggers.left_over.set()
        self._triggers.note()
        self._runner.index_replaced()
        self.replaced.notify()

    async def _try(self) -> bool:
        """Rebuild once; return False if that was cancelled by `cancel_attempt`."""
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
        """Wait before the next attempt; if the disk is full, until there is space, as a rebuild reads and cuts all files."""
        if self.reason is None:
            return  # no longer wanted
        self.failure = safe_message(failure)
        began, free = time.monotonic(), self._free_bytes()
        # What filled the disk may be gone already, in which case free space will not grow.
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
                return  # free space does not show everything, such as a quota

    async def _pause(self, wait_s: float) -> bool:
        """Wait until `retry_now` is called or the time is over; return whether it was called."""
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
        # Damage is repaired without confirmation, so that its texts can be searched; the queue asks before it
        # sends any.
        is_unasked = self._index.damage.reason is not None
        cache = self._embedding.cache
        asking = self._permission.permitted(target, self._embed_again)
        async with contextlib.nullcontext() if is_unasked else asking:
            with contextlib.nullcontext() if cache is None else cache.needed():
                if cache is not None:
                    await self._prepare(cache, target.space)
                if self._embed_again:
                    self._embedding.leave_out_published()
                await rebuild(
                    self._index, target, self._runner, embed=self._embedding.embed, swap=self._about_to_swap
                )
        # Otherwise another request arrived meanwhile.
        if self._is_forgotten or target.space is None or cache is None:
            self._embed_again = self._is_forgotten = False

    async def _prepare(self, cache: EmbeddingStore, space: Space | None) -> None:
        if not self._embed_again or space is None:
            # Vectors that the cache has lost or dropped meanwhile need not be paid for again.
            await refill(self._index, cache)
        elif not self._is_forgotten:
            await KnownVectors(cache, space).forget(await self._index.hashes())
            self._is_forgotten = True

    def _about_to_swap(self) -> str | None:
        self._swapping = self.reason
        return self._index.damage.reason
