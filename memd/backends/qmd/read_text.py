"""The text of an indexed file as its agent may read it: through the fence, and without what is secret."""

import asyncio
import time
from pathlib import PurePosixPath

from memd.backends.qmd.errors import QmdFailed
from memd.backends.qmd.transcript_page import TranscriptPage, page
from memd.indexing.rules import IndexingRules
from memd.model import Kind
from memd.runtime.threads import Threads
from memd.sources import notes
from memd.sources.safe_open import SourceError
from memd.store.index import Index

READ_S = 5.0  # a file that has not been read by then is on a disk that does not answer


class IndexedText:
    """Gives pages of one agent's files."""

    def __init__(self, index: Index, treatment: IndexingRules, threads: Threads) -> None:
        self._index = index
        self._treatment = treatment
        self._threads = threads

    async def page(self, path: str, kind: Kind) -> TranscriptPage | None:
        """All lines of a file: of a note as it is on the disk now, of a transcript as it was read last.

        Args:
            path: Its name in the index.
            kind: What it is there.

        Returns:
            None where it cannot be read any more.

        Raises:
            QmdFailed: the disk does not answer.
            StoreUnavailable, StoreDamaged.
        """
        if kind is Kind.SESSION:
            turns = await self._index.turns(path)
            # Much text: the loop has others to answer.
            return await self._threads.run(page, PurePosixPath(path).stem, turns, self._treatment.zone)
        try:
            async with asyncio.timeout(READ_S):
                read = await self._threads.run(
                    notes.read_note,
                    path,
                    self._treatment.roots,
                    max_bytes=self._treatment.max_bytes,
                    now_ns=time.time_ns(),
                    redactor=self._treatment.notes_redactor,
                )
        except SourceError:
            return None
        except TimeoutError as timeout:
            raise QmdFailed(f"a note was not read within {READ_S:g} s: is a network mount down?") from timeout
        return TranscriptPage(read.document.lines)
