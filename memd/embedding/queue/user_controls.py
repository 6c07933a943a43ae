"""What the user decides: pauses, and confirmations of what costs money; kept over a restart."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import structlog

from memd.embedding.queue.agent_backlog import AgentBacklog, WaitingForConfirmation
from memd.errors import MemdError, TransientError
from memd.runtime.synchronization import ChangeNotifier
from memd.store.embedding_cache import KnownVectors, Space
from memd.store.provider_records import ProviderStore
from memd.text.tokens import estimate_tokens

log = structlog.get_logger()

ANY_SPACE: Space = ("", "", "")  # a pause is meant for whatever provider an agent has
_PAUSED = "paused"
_CONFIRMED = "confirmed"


class UserSwitch(msgspec.Struct, frozen=True):
    """The switches of one agent."""

    paused: bool = False
    confirmed: bool = False  # whatever there is to embed in this space may be sent


class UserSwitches:
    """The switches of all agents of one embedding space, in memory once they were read."""

    def __init__(self, of_space: ProviderStore, of_any: ProviderStore) -> None:
        """Read nothing before `read`.

        Args:
            of_space: The documents of the provider, model and key that a confirmation is for.
            of_any: Those of ANY_SPACE.
        """
        self._of_space = of_space
        self._of_any = of_any
        self._paused: dict[str, bool] = {}  # by agent
        self._confirmed: dict[str, bool] = {}  # by agent
        # Of these, what the document says; None where a write has not succeeded, which may have been done all the same.
        self._kept: dict[str, bool | None] = {}
        self._writing = asyncio.Lock()

    def of(self, agent: str) -> UserSwitch:
        """The switches of an agent, as far as they were read."""
        return UserSwitch(paused=self._paused.get(agent, False), confirmed=self._confirmed.get(agent, False))

    def let_send(self, backlog: AgentBacklog) -> bool:
        """Whether something of an agent may be sent, as far as the user decides that."""
        switch = self.of(backlog.agent)
        return not switch.paused and (backlog.unconfirmed is None or switch.confirmed)

    async def read(self, agent: str) -> UserSwitch:
        """Read the switches of an agent; one that cannot be read is off."""
        # Where setdefault finds something, a person was quicker.
        if agent not in self._paused:
            paused = await _read(self._of_any, f"{_PAUSED}:{agent}")
            self._paused.setdefault(agent, paused is True)
        if agent not in self._confirmed:
            async with self._writing:
                confirmed = await _read(self._of_space, f"{_CONFIRMED}:{agent}")
                self._confirmed.setdefault(agent, confirmed is True)
                if confirmed is not None:
                    self._kept[agent] = confirmed
        return self.of(agent)

    def forget(self, agent: str) -> None:
        """Read again what is asked for an agent: it may be asked for at another provider meanwhile."""
        self._paused.pop(agent, None)
        if not self.is_unkept(agent):  # else what would be read is not what was asked
            self._confirmed.pop(agent, None)
            self._kept.pop(agent, None)

    def is_unkept(self, agent: str) -> bool:
        """Whether a confirmation, or that there is none any more, holds only until the daemon ends."""
        return agent in self._kept and self._kept[agent] != self._confirmed.get(agent)

    async def pause(self, agent: str, *, paused: bool) -> None:
        """Pause an agent, or no longer.

        Raises:
            StoreUnavailable: it holds until the daemon ends.
        """
        self._paused[agent] = paused
        await self._of_any.put_document(f"{_PAUSED}:{agent}", msgspec.json.encode(paused))

    async def confirm(self, agent: str, *, confirmed: bool) -> None:
        """Let an agent send whatever it has, or no longer. Nothing is written where that is known to be written.

        Raises:
            StoreUnavailable: it holds until the daemon ends.
        """
        self._confirmed[agent] = confirmed
        self._kept.setdefault(agent, None)
        async with self._writing:
            if self._kept[agent] == confirmed:
                return
            self._kept[agent] = None
            await self._of_space.put_document(f"{_CONFIRMED}:{agent}", msgspec.json.encode(confirmed))
            self._kept[agent] = confirmed


async def _read(documents: ProviderStore, name: str) -> bool | None:
    """What a document says; False where there is none, None where that cannot be known."""
    try:
        content = await documents.document(name)
    except (TransientError, MemdError) as failure:
        log.warning("embed.wish_unreadable", switch=name.partition(":")[0], reason=str(failure))
        return None
    try:
        return content is not None and msgspec.json.decode(content, type=bool)
    except msgspec.DecodeError:
        return False


SAMPLE = 400  # chunks by which the tokens of many are estimated


class CostConfirmations:
    """Asks a person, with the number of texts, before many are sent to one provider."""

    def __init__(
        self, above: int | None, switches: UserSwitches, known: KnownVectors, progress: ChangeNotifier
    ) -> None:
        """Ask nobody before `permitted` or `wanted` is called.

        Args:
            above: More texts than this, not cached, have to be confirmed; None: nobody is asked.
            switches: What was confirmed.
            known: The cache, whose texts need not be sent.
            progress: Notified when a person is asked; wakes those who wait for a confirmation.
        """
        self._above = above
        self._switches = switches
        self._known = known
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
            some = list(hashes)
            hashes -= await self._known.held(some) | await self._known.refused(some)
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
