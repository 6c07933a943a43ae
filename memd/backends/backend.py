"""What answers an agent's searches, as the rest of memd sees it."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from memd.config.settings import AgentSettings
from memd.domain_types import NO_FILTER, DegradedPart, FallbackUse, FoundHit, Kind, SearchFilter, Trace
from memd.index_service import IndexService
from memd.indexing.rules import IndexingRules
from memd.store.index import Index


class IndexedAgent(msgspec.Struct, frozen=True):
    """One agent with its index: what a backend of it works on."""

    id: str
    settings: AgentSettings
    rules: IndexingRules  # how its files are read
    index: Index
    sync: IndexService  # keeps the index up to date


class BackendEnvironment(msgspec.Struct, frozen=True):
    """What backends that are programs of their own need to know of this process."""

    environ: Mapping[str, str]
    home: Path  # what ~ stands for
    # Held by a program while it embeds: models take all of a machine, so one at a time does, whatever the number of agents.
    embed_slot: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)


class BackendQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A search, with the configured values filled in."""

    text: str
    kinds: frozenset[Kind]  # what the asker may see
    max_results: int
    min_score: float
    mode: str = "hybrid"  # hybrid | keyword | vector: what hits are found by
    now: datetime | None = None  # what clocks on the wall show when it is asked; None: nobody knows
    wanted: SearchFilter = NO_FILTER  # what it lets through takes part
    by_time: bool = False  # the newest hit first
    included: frozenset[str] = frozenset()  # names of included memories that the asker may see


class BackendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend found."""

    hits: tuple[FoundHit, ...] = ()
    backend: str
    provider: str
    model: str
    mode: str  # hybrid | keyword | vector
    stale: bool = False
    degraded: tuple[DegradedPart, ...] = ()
    fallback: FallbackUse | None = None  # None: what was asked for has answered


MAX_CHARS = 12_000  # of one excerpt


class Excerpt(msgspec.Struct, frozen=True):
    """Lines of a file; start_line and end_line are those of the text."""

    text: str
    start_line: int
    end_line: int  # 0: there is no line
    next_line: int | None  # where to read on
    # Of the file; of a transcript the last on which something is said; None: not told.
    total_lines: int | None = None


class VectorSearchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is search by meaning, as it was found."""

    ok: bool = True
    reason: str | None = None  # why not
    enabled: bool = True  # by the configuration
    available: bool = True


class ProgramStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend that is a program of its own says of itself."""

    command: str  # the program that runs
    version: str | None
    search_mode: str  # in which it is asked now: "search" while there are no vectors for another one
    collections: tuple[str, ...]
    files: int | None  # that it found in them; None: it does not say
    exported: int  # files that memd keeps for it
    left_alone: int  # files in the directories of the export that memd did not write
    updating: bool
    last_update: float | None  # unix time of the last that succeeded
    update_failure: str | None
    last_embed: float | None  # unix time of the last that succeeded
    warnings: tuple[str, ...]


class BackendStandIn(msgspec.Struct, frozen=True, kw_only=True):
    """That a backend answers in place of the one that was chosen."""

    instead_of: str
    reason: str
    since: float | None = None  # unix time of the first failure in a row; None: it is not ready yet
    retry_at: float | None = None  # unix time; the first search from then on tries it again


class IncludedState(msgspec.Struct, frozen=True):
    """Whether an included memory takes part in searches."""

    name: str
    trouble: str | None  # why it does not just now


class BackendStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Which backend answers just now, and how it is."""

    backend: str
    provider: str
    model: str
    vector: VectorSearchStatus
    stand_in: BackendStandIn | None = None  # None: the one that was chosen answers
    program: ProgramStatus | None = None  # None: no other program runs for it just now
    included: tuple[IncludedState, ...] = ()


class Backend(Protocol):
    """What answers one agent's searches."""

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """The hits for a question, best first; never raises for a part that fails, but names it in degraded."""
        ...

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """The same, and how each candidate came to its place."""
        ...

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Lines of an indexed file; None for one that is missing, not indexed, or of no kind that may be seen."""
        ...

    async def warm(self) -> None:
        """Have what it needs ready before anybody asks; what fails is logged, and shows in status."""
        ...

    def status(self) -> BackendStatus:
        """Which backend answers just now, and how it is; asks nothing and does not wait."""
        ...

    async def close(self) -> None:
        """End what it has begun."""
        ...
