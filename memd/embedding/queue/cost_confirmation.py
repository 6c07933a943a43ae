"""What a person has to confirm before it is paid for."""

import contextlib
from collections.abc import AsyncIterator

import structlog

from memd.embedding.queue.agent_backlog import AgentBacklog
from memd.embedding.queue.cache import SpaceCache
from memd.embedding.queue.states import WaitingForConfirmation
from memd.embedding.queue.user_switches import UserSwitches
from memd.runtime.change_notifier import ChangeNotifier
from memd.text.tokens import estimate_tokens

log = structlog.get_logger()

SAMPLE = 400  # chunks by which the tokens of many are estimated


class CostConfirmations:
    """Asks a person, with the number of texts, before many are sent to one provider."""

    def __init__(
        self, above: int | None, switches: UserSwitches, cached: SpaceCache, progress: ChangeNotifier
    ) -> None:
        """Ask nobody before `permitted` or `wanted` is called.

        Args:
            above: More texts than this, not cached, have to be confirmed; None: nobody is asked.
            switches: What was confirmed.
            cached: The cache, whose texts need not be sent.
            progress: Notified when a person is asked; wakes those who wait for a confirmation.
        """
        self._above = above
        self._switches = switches
        self._cached = cached
        self._progress = progress
        self._rebuilds: dict[str, WaitingForConfirmation] = {}  # that wait, by agent
        self._rebuilding: dict[str, int] = {}  # permitted rebuilds that are under way, by agent

    def asks_before(self, texts: int) -> bool:
        """Whether so many texts would have to be confirmed."""
        return self._above is not None and texts > self._above

    def asked_before_rebuild(self, agent: str) -> WaitingForConfirmation | None:
        """What has to be confirmed before an index is built anew; None: nothing waits for that."""
        return self._rebuilds.get(agent)

    def is_in_use(self, agent: str) -> bool:
        """Whether a confirmation is, or will be, for an index that is built anew."""
        return bool(self._rebuilding.get(agent)) or agent in self._rebuilds

    @contextlib.asynccontextmanager
    async def permitted(self, agent: str, texts: int, tokens: int) -> AsyncIterator[None]:
        """Wait until an index may be built anew, which sends so many texts; a confirmation lasts at least that long."""
        switch = await self._switches.read(agent)
        try:
            if self.asks_before(texts) and not switch.confirmed:
                log.info("embed.confirmation_wanted", agent=agent, texts=texts, tokens=tokens)
                self._rebuilds[agent] = WaitingForConfirmation(texts, tokens)
                self._progress.notify()
                while not self._switches.of(agent).confirmed:
                    await self._progress.next()
            self._rebuilding[agent] = self._rebuilding.get(agent, 0) + 1
        finally:
            self._rebuilds.pop(agent, None)
        try:
            yield
        finally:
            self._rebuilding[agent] -= 1

    async def wanted(self, backlog: AgentBacklog, waiting: int) -> WaitingForConfirmation | None:
        """What has to be confirmed before more of an agent is sent; None: nothing.

        Args:
            backlog: Of the agent.
            waiting: How many of its chunks wait, cached or not.

        Raises:
            StoreUnavailable, StoreDamaged: of its index.
        """
        if not self.asks_before(backlog.sent + waiting) or self._switches.of(backlog.agent).confirmed:
            return None
        index = backlog.source.index
        hashes = set(await index.waiting_hashes()).difference(backlog.held, backlog.out)
        if backlog.source.use_cache:
            hashes = await self._cached.unknown(hashes)
        if not self.asks_before(backlog.sent + len(hashes)):
            return None
        before = backlog.unconfirmed
        sent = 0 if self.asks_before(len(hashes)) else backlog.sent
        if before is not None and (before.chunks, before.sent) == (len(hashes), sent):
            return before
        sample = await index.waiting(SAMPLE, backlog.held.union(backlog.out))
        mean = sum(estimate_tokens(chunk.text) for chunk in sample) / max(1, len(sample))
        asked = WaitingForConfirmation(len(hashes), round(mean * len(hashes)), sent)
        if before is None:
            log.info(
                "embed.confirmation_wanted", agent=backlog.agent, texts=asked.chunks, tokens=asked.tokens
            )
        return asked
