"""What a person has to confirm before it is paid for."""

import contextlib
from collections.abc import AsyncIterator

import structlog

from memd.embedding.queue.agent_backlog import AgentBacklog
from memd.embedding.queue.cache import SpaceCache
from memd.embedding.queue.states import WaitingForConfirmation
from memd.embedding.queue.user_switches import UserSwitches
from memd.runtime.changed import ChangeNotifier
from memd.text.tokens import estimate_tokens

log = structlog.get_logger()

SAMPLE = 400  # chunks by which the tokens of many are estimated


class CostConfirmations:
    """Who is asked, and for how much, before texts are sent to one provider."""

    def __init__(
        self, above: int | None, wishes: UserSwitches, cached: SpaceCache, moves: ChangeNotifier
    ) -> None:
        """Nobody is asked yet.

        Args:
            above: More texts than this, not cached, have to be confirmed; None: nobody is asked.
            wishes: What was confirmed.
            cached: What need not be sent.
            moves: Told when somebody is asked, and when somebody confirms.
        """
        self._above = above
        self._wishes = wishes
        self._cached = cached
        self._moves = moves
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
        wish = await self._wishes.read(agent)
        try:
            if self.asks_before(texts) and not wish.confirmed:
                log.info("embed.confirmation_wanted", agent=agent, texts=texts, tokens=tokens)
                self._rebuilds[agent] = WaitingForConfirmation(texts, tokens)
                self._moves.notify()
                while not self._wishes.of(agent).confirmed:
                    await self._moves.next()
            self._rebuilding[agent] = self._rebuilding.get(agent, 0) + 1
        finally:
            self._rebuilds.pop(agent, None)
        try:
            yield
        finally:
            self._rebuilding[agent] -= 1

    async def wanted(self, served: AgentBacklog, waiting: int) -> WaitingForConfirmation | None:
        """What has to be confirmed before more of an agent is sent; None: nothing.

        Args:
            served: The agent.
            waiting: How many of its chunks wait, cached or not.

        Raises:
            StoreUnavailable, StoreDamaged: of its index.
        """
        if not self.asks_before(served.sent + waiting) or self._wishes.of(served.agent).confirmed:
            return None
        index = served.customer.index
        hashes = set(await index.waiting_hashes()).difference(served.held, served.out)
        if served.customer.use_cache:
            hashes = await self._cached.unknown(hashes)
        if not self.asks_before(served.sent + len(hashes)):
            return None
        before = served.unconfirmed
        sent = 0 if self.asks_before(len(hashes)) else served.sent
        if before is not None and (before.chunks, before.sent) == (len(hashes), sent):
            return before
        sample = await index.waiting(SAMPLE, served.held.union(served.out))
        mean = sum(estimate_tokens(chunk.text) for chunk in sample) / max(1, len(sample))
        asked = WaitingForConfirmation(len(hashes), round(mean * len(hashes)), sent)
        if before is None:
            log.info("embed.confirmation_wanted", agent=served.agent, texts=asked.chunks, tokens=asked.tokens)
        return asked
