"""Has one agent's index follow whoever is to embed: served by the queue of its vectors, built anew for those of another."""

import asyncio

import structlog

from memd.config.settings import AgentSettings
from memd.embedding.registry import AgentQueues
from memd.errors import FatalError, MemdError
from memd.indexing.passes import Passes
from memd.providers.provider import space_of
from memd.rebuild.cost import RebuildPermission
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.rebuild.rebuilder import Rebuilder
from memd.runtime.safe_traceback import safe_message
from memd.runtime.synchronization import first_of
from memd.runtime.timing import LONGEST_WAIT_S
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint, with_vectors

log = structlog.get_logger()


class ModelFollower:
    """Looks again whenever somebody else is to embed, or something else is to be embedded."""

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
        """Nothing runs yet.

        Args:
            agent: Its id.
            settings: Of the agent.
            index: The one that serves.
            fingerprint: What it was opened for.
            queues: Of the agent.
            rebuilder: Of the index.
            permission: For that.
        """
        self._agent = agent
        self._settings = settings
        self._index = index
        self._fingerprint = fingerprint
        self._queues = queues
        self._rebuilder = rebuilder
        self._permission = permission
        self._wanted = asyncio.Event()

    async def keep_queue_awake(self, passes: Passes) -> None:
        """Have the queue look after each pass that went well and each new index, for ever."""
        version, replaced = passes.succeeded.version, self._rebuilder.replaced.version
        while True:
            await first_of(passes.succeeded.since(version), self._rebuilder.replaced.since(replaced))
            version = passes.succeeded.version
            self.wake_queue()
            if self._rebuilder.replaced.version != replaced:
                replaced = self._rebuilder.replaced.version
                self.look_again()

    def look_again(self) -> None:
        """What is to be embedded, or by whom, may have changed."""
        self._wanted.set()

    def wake_queue(self) -> None:
        """Have embedded what waits in the index that serves.

        One that is about to be replaced gets no vectors: most of its chunks will not be there again. One whose replacement
        comes to nothing, for want of room, goes on; so does one that is to answer by meaning until another one has vectors
        of another model.
        """
        rebuilder = self._rebuilder
        is_kept = rebuilder.reason is None or rebuilder.failure is not None or rebuilder.changes_space
        queue = self._queues.queue(self._index.space)
        if queue is not None and (
            is_kept or queue.confirmations.asked_before_rebuild(self._agent) is not None
        ):
            self._queues.serve(queue, self._index)

    async def run(self) -> None:
        """Follow, for ever."""
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
                if not isinstance(failure, MemdError):  # it must be the trouble of no other agent
                    log.error("sync.adaptation_failed", agent=self._agent, exc_info=failure)
                log.warning("sync.provider_not_taken", agent=self._agent, reason=safe_message(failure))
                asyncio.get_running_loop().call_later(LONGEST_WAIT_S, self._wanted.set)
            await first_of(changes.since(version), self._wanted.wait())

    async def _adapt(self) -> None:
        providers = self._queues.providers
        if self._queues.rest:
            await self._let_rest()
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
            self._rebuilder.give_up()  # nobody can tell that queue any more that it may

    async def _let_rest(self) -> None:
        """Have nothing embedded, here or in an index beside that is for another model."""
        stored = await self._index.fingerprint()
        if self._rebuilder.changes_space and stored is not None:
            self._rebuilder.keep_space(with_vectors(self._fingerprint, stored))
        await self._queues.leave()

    async def _take(self, wanted: Fingerprint) -> None:
        """Have vectors of a model in the index, or in one that is built beside."""
        if self._index.space is None:
            await self._index.take_vectors(wanted)
        if self._index.space == wanted.space:
            self._rebuilder.keep_space(wanted)
            return
        stored = await self._index.fingerprint()
        self._rebuilder.want_space(why(stored, wanted), wanted)


def why(stored: Fingerprint | None, wanted: Fingerprint) -> str:
    """Why an index needs vectors of another space, for people."""
    now = f"{wanted.provider}/{wanted.model}"
    before = "another one" if stored is None else f"{stored.provider}/{stored.model}"
    if before != now:
        return f"the embedding model changed from {before} to {now}"
    return (
        f"{now} gives other vectors than before: its address, a setting that shapes vectors, or the model behind its name"
        " has changed"
    )
