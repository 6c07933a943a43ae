from collections.abc import Collection
from pathlib import Path
from typing import Self

import pytest

from memd.chunk import markdown
from memd.config.settings import AgentSettings
from memd.indexing.rules import rules_of
from memd.model import Chunk, Document, TextHash
from memd.rebuild.cost import RebuildCost, cost
from memd.runtime.threads import NoMemory, Threads
from memd.sources.roots import roots_of


class Counted(frozenset[TextHash]):
    """Texts that count how often they are put together with others."""

    unions = 0

    def __or__(self, others: Collection[TextHash]) -> Self:  # type: ignore[override]
        Counted.unions += 1
        return type(self)({*self, *others})


class Known:
    """A cache that has some texts."""

    def __init__(self, most: int) -> None:
        self._most = most

    async def held(self, hashes: Collection[TextHash]) -> Counted:
        return Counted(list(hashes)[: self._most])

    async def refused(self, hashes: Collection[TextHash]) -> Counted:
        return Counted(list(hashes)[-1:])


async def counted(directory: Path, notes: int) -> RebuildCost:
    """What an index of so many notes costs, of which three are cached and one is refused."""
    (directory / "memory").mkdir(parents=True)
    for number in range(notes):
        (directory / "memory" / f"{number}.md").write_text(f"The heron {number} waits at the lock.\n")
    settings = AgentSettings(workspace=directory)
    rules = rules_of(settings, roots_of(settings))
    return await cost(rules, Known(3), force=False, embeds=True, threads=Threads(1, "cost"))  # type: ignore[arg-type]  # what it asks of a cache


async def test_what_is_known_is_not_embedded_again(tmp_path: Path) -> None:
    """A dry run counts what is cached, and leaves out what nobody embeds."""
    told = await counted(tmp_path, 10)
    assert (told.files, told.chunks, told.cached, told.to_embed) == (10, 10, 3, 6)
    assert told.tokens > 0


async def test_a_dry_run_puts_what_is_known_together_once(tmp_path: Path) -> None:
    """Doing so for each text would keep the event loop from its work for ten seconds, with 20,000 of them."""
    Counted.unions = 0
    await counted(tmp_path / "few", 5)
    few, Counted.unions = Counted.unions, 0
    await counted(tmp_path / "many", 50)
    assert Counted.unions == few


async def test_a_file_that_memd_fails_at_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a pass skips it: the others are counted. No memory for a note is none for any file, and fails the count."""
    failure: Exception = ValueError("nobody foresaw this")
    cut = markdown.chunk

    def cut_or_fail(document: Document, *how: int) -> list[Chunk]:
        if any("heron 3" in line for line in document.lines):
            raise failure
        return cut(document, *how)

    monkeypatch.setattr(markdown, "chunk", cut_or_fail)
    assert (await counted(tmp_path / "one", 5)).files == 4
    failure = MemoryError()
    with pytest.raises(NoMemory):
        await counted(tmp_path / "two", 5)
