"""An indexed file as a page that qmd searches: its lines, and where in its source each of them stands."""

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import PurePosixPath

import msgspec

from memd.backends.indexed_text import read_note
from memd.indexing.rules import IndexingRules
from memd.model import Kind, Turn
from memd.runtime.threads import Threads
from memd.sources.safe_open import SourceError
from memd.store.index import Index
from memd.text.turn_header import spoken

VERSION = 1  # of how a page is made: with another one, pages are made anew


class IndexedPage(msgspec.Struct, frozen=True):
    """Text with the line of its source that each of its lines stands for."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...] | None = None  # None: lines are those of the source

    def number(self, line: int) -> int:
        """The line of the source that a line of the page stands for."""
        return line if self.numbers is None else self.numbers[line - 1]

    def text(self) -> str:
        """What is written to the disk."""
        return "\n".join(self.lines) + "\n"


def transcript_page(session: str, turns: Sequence[Turn], zone: tzinfo | None) -> IndexedPage:
    """The page of a session.

    Args:
        session: Its name.
        turns: All of them, redacted.
        zone: That times are told in; None: UTC.
    """
    first = turns[0].start_line if turns else 1
    lines, numbers = [f"# Session {session}", ""], [first, first]
    for turn in turns:
        told = spoken(turn.role, turn.at, turn.text, zone).split("\n")
        lines += [*told, ""]
        numbers += [turn.start_line] * (len(told) + 1)
    if not turns:
        lines, numbers = [*lines, "(empty)"], [*numbers, first]
    return IndexedPage(tuple(lines), tuple(numbers))


class PageReader:
    """Reads pages of one agent's files."""

    def __init__(self, index: Index, rules: IndexingRules, threads: Threads) -> None:
        self._index = index
        self._rules = rules
        self._threads = threads

    async def page(self, path: str, kind: Kind) -> IndexedPage | None:
        """All lines of a file: of a note as it is on the disk now, of a transcript as it was read last.

        Args:
            path: Its name in the index.
            kind: What it is there.

        Returns:
            None where it cannot be read any more.

        Raises:
            FilesBlocked: the disk does not answer.
            StoreUnavailable, StoreDamaged.
        """
        if kind is Kind.SESSION:
            turns = await self._index.turns(path)
            # Much text: the loop has others to answer.
            return await self._threads.run(transcript_page, PurePosixPath(path).stem, turns, self._rules.zone)
        try:
            return IndexedPage(tuple(await read_note(path, self._rules, self._threads)))
        except SourceError:
            return None
