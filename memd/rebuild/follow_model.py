"""Makes one agent's index follow its embedding provider: wakes the queue, or rebuilds the index for another model."""

import asyncio

import structlog

from memd.config.settings import AgentSettings
from memd.embedding.registry import AgentQueues
from memd.errors import FatalError, MemdError
from memd.indexing.pass_scheduler import PassScheduler
from memd.providers.provider import space_of
from memd.rebuild.cost import RebuildPermission
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.rebuild.rebuilder import Rebuilder
from memd.runtime.asyncio_helpers import first_of
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import LONGEST_WAIT_S
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint, with_vectors

log = structlog.get_logger()


class ModelFollower:
    """Reacts when the wanted embedding model or the set of texts to embed changes."""

    def __init__(
        self,
        agent: str,
        settings: AgentSettings,
        index: Index,
        fingerprint: Fingerprint,
        *,
        queues: AgentQueues,
        rebuilder: Rebuilder,
        permission: RebuildPermission,
    ) -> None:
        """Create it; `run` starts it.

        Args:
            agent: The agent's id.
            settings: The agent's settings.
            index: The current index.
            fingerprint: The fingerprint that the index was opened for.
            queues: The agent's embedding queues.
            rebuilder: Rebuilds the index.
            permission: Asks for permission before a rebuild.
        """
        self._agent = agent
        self._settings = settings
        self._index = index
        self._fingerprint = fingerprint
        self._queues = queues
        self._rebuilder = rebuilder
        self._permission = permission
        self._wanted = asyncio.Event()

    async def keep_queue_awake(self, passes: PassScheduler) -> None:
        """Wake the embedding queue after each successful pass and each new index, until cancelled."""
        version, replaced = passes.succeeded.version, self._rebuilder.replaced.version
        while True:
            await first_of(passes.succeeded.since(version), self._rebuilder.replaced.since(replaced))
            version = passes.succeeded.version
            self.wake_queue()
            if self._rebuilder.replaced.version != replaced:
                replaced = self._rebuilder.replaced.version
                self.look_again()

    def look_again(self) -> None:
        """Check again: the texts to embed, or the provider, may have changed."""
        self._wanted.set()

    def wake_queue(self) -> None:
        """Have waiting chunks of the current index embedded.

        An index that is about to be replaced gets no vectors, as most of its chunks will not be there again.
        It does get them if its replacement fails, for example for lack of disk space, or if it answers vector
        searches until an index with another model's vectors is ready.
        """
        rebuilder = self._rebuilder
        is_kept = rebuilder.reason is None or rebuilder.failure is not None or rebuilder.changes_space
        queue = self._queues.queue(self._index.space)
        if queue is not None and (
            is_kept or queue.confirmations.asked_before_rebuild(self._agent) is not None
        ):
            self._queues.serve(queue, self._index)

    async def run(self) -> None:
        """Follow the provider until cancelled."""
        changes = self._queues.providers.changes
        while True:
            version = changes.version
            self._wanted.clear()
            try:
                await self._adapt()
            except FatalError:
                raise
            except StoreDamaged as damage:
                self._index.damage.report(str(damage))
            except Exception as failure:
                if not isinstance(failure, MemdError):  # a bug here must not end other agents
                    log.error("sync.adaptation_failed", agent=self._agent, exc_info=failure)
                log.warning("sync.provider_not_taken", agent=self._agent, reason=safe_message(failure))
                asyncio.get_running_loop().call_later(LONGEST_WAIT_S, self._wanted.set)
            await first_of(changes.since(version), self._wanted.wait())

    async def _adapt(self) -> None:
        providers = self._queues.providers
        if self._queues.suspended:
            await self._suspend()
            return
        wanted = providers.wanted
        if wanted is not None:
            await self._take(wanted_fingerprint(self._settings, wanted))
        used = self._queues.queue(self._index.space)
        providers.hold(frozenset() if self._index.space is None else frozenset({self._index.space}))
        self.wake_queue()
        beside = providers.queue(None if wanted is None else space_of(wanted))
        await self._queues.leave(but={used, beside})
        asked = self._permission.asked
        if asked is not None and providers.queue(asked.known.space) is not asked:
            self._rebuilder.cancel_attempt()  # the queue is gone, so nobody can confirm through it any more

    async def _suspend(self) -> None:
        """Stop embedding, both in the current index and in one that is being built for another model."""
        stored = await self._index.fingerprint()
        if self._rebuilder.changes_space and stored is not None:
            self._rebuilder.keep_current_space(with_vectors(self._fingerprint, stored))
        await self._queues.leave()

    async def _take(self, wanted: Fingerprint) -> None:
        """Use a model's vectors in the current index if its space allows, else in a new one."""
        if self._index.space is None:
            await self._index.take_vectors(wanted)
        if self._index.space == wanted.space:
            self._rebuilder.keep_current_space(wanted)
            return
        stored = await self._index.fingerprint()
        self._rebuilder.request_space(why(stored, wanted), wanted)


def why(stored: Fingerprint | None, wanted: Fingerprint) -> str:
    """Return why an index needs vectors of another space, in words for people."""
    now = f"{wanted.provider}/{wanted.model}"
    before = "another one" if stored is None else f"{stored.provider}/{stored.model}"
    if before != now:
        return f"the embedding model changed from {before} to {now}"
    return (
        f"{now} gives other vectors than before: its address, a setting that shapes vectors, or the model behind its name"
        " has changed"
    )
