"""What answers an agent's searches, as the rest of memd sees it."""

from datetime import date
from typing import Protocol

import msgspec

from memd.model import DegradedPart, FallbackUse, FoundHit, Kind, Trace


class BackendQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A search, with the configured values filled in."""

    text: str
    kinds: frozenset[Kind]  # what the asker may see
    max_results: int
    min_score: float
    today: date | None = None  # on which it is asked; None: nobody knows


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
    total_lines: int | None = (
        None  # of the file; of a transcript the last on which something is said; None: not told
    )


class Backend(Protocol):
    """One agent's engine."""

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

    async def close(self) -> None:
        """End what it has begun."""
        ...
