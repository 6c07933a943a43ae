"""What a person wished of embedding, kept where it survives a restart."""

from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from memd.errors import MemdError, TransientError
from memd.store.embeddings import Space

log = structlog.get_logger()

_ANY: Space = ("", "", "")  # a pause is meant for whatever provider an agent has
_PAUSED = "paused"
_CONFIRMED = "confirmed"


class Documents(Protocol):
    """Small documents of one embedding space."""

    async def document(self, name: str) -> bytes | None:
        """A document that was put, or None.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer.
        """
        ...

    async def put_document(self, name: str, content: bytes) -> None:
        """Keep a document in the place of the one of that name.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer.
        """
        ...


class Forgetful:
    """Documents that last as long as the process."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def document(self, name: str) -> bytes | None:
        """A document that was put, or None."""
        return self._kept.get(name)

    async def put_document(self, name: str, content: bytes) -> None:
        """Keep a document in the place of the one of that name."""
        self._kept[name] = content


def forgetful(_: Space) -> Documents:
    """Documents that nobody else sees."""
    return Forgetful()


class Wish(msgspec.Struct, frozen=True):
    """What is wished for one agent."""

    paused: bool = False
    confirmed: bool = False  # whatever there is to embed in this space may be sent


class Wishes:
    """The wishes for all agents of one embedding space, in memory once they were read."""

    def __init__(self, space: Space, documents: Callable[[Space], Documents]) -> None:
        """Nothing is read yet.

        Args:
            space: The provider, model and key that a confirmation is for.
            documents: Where the documents of a space are.
        """
        self._of_space = documents(space)
        self._of_any = documents(_ANY)
        self._wishes: dict[str, Wish] = {}  # by agent

    def of(self, agent: str) -> Wish:
        """What is wished for an agent, as far as it was read."""
        return self._wishes.get(agent, Wish())

    async def read(self, agent: str) -> Wish:
        """What is wished for an agent; what cannot be read was not wished."""
        if agent not in self._wishes:
            wish = Wish(
                paused=await _read(self._of_any, f"{_PAUSED}:{agent}"),
                confirmed=await _read(self._of_space, f"{_CONFIRMED}:{agent}"),
            )
            self._wishes.setdefault(agent, wish)  # else a person was quicker
        return self._wishes[agent]

    def forget(self, agent: str) -> None:
        """Read again what is wished for an agent: it may be asked for at another provider meanwhile."""
        self._wishes.pop(agent, None)

    async def pause(self, agent: str, *, paused: bool) -> None:
        """Pause an agent, or no longer.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: it holds until the daemon ends.
        """
        self._wishes[agent] = msgspec.structs.replace(self.of(agent), paused=paused)
        await self._of_any.put_document(f"{_PAUSED}:{agent}", msgspec.json.encode(paused))

    async def confirm(self, agent: str, *, confirmed: bool) -> None:
        """Let an agent send whatever it has, or no longer.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer: it holds until the daemon ends.
        """
        if self.of(agent).confirmed != confirmed:
            self._wishes[agent] = msgspec.structs.replace(self.of(agent), confirmed=confirmed)
            await self._of_space.put_document(f"{_CONFIRMED}:{agent}", msgspec.json.encode(confirmed))


async def _read(documents: Documents, name: str) -> bool:
    try:
        content = await documents.document(name)
    except (TransientError, MemdError) as failure:
        log.warning("embed.wish_unreadable", wish=name.partition(":")[0], reason=str(failure))
        return False
    try:
        return content is not None and msgspec.json.decode(content, type=bool)
    except msgspec.DecodeError:
        return False
