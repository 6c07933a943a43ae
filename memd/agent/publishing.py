"""Publishes the memory of one agent on a server: what its index holds is mirrored there, and stays so."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import ParamSpec, TypeVar

import msgspec
import structlog

from memd.config.settings import Publish
from memd.domain_types import Kind
from memd.index_service import IndexService
from memd.indexing.rules import IndexingRules
from memd.runtime.synchronization import first_of
from memd.runtime.threads import Threads
from memd.runtime.timing import Backoff
from memd.shared.connection import SharedUnavailable
from memd.shared.publication import Mirror, VectorSpace
from memd.shared.transcripts import turn_lines
from memd.sources.notes import read_note
from memd.sources.safe_open import SourceError
from memd.store import publication
from memd.store.index import Index
from memd.store.publication import FileState, PublishedFile

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

LOOK_S = 1.0  # between two looks at the index while vectors are on their way
IDLE_S = 30.0  # between two looks at it otherwise, beside those after a change
COMPARE_S = 600.0  # between two comparisons with all that the server has
LONGEST_WAIT_S = 60.0  # between two attempts at a server that is away
# A transaction that takes longer is on a connection that nobody answers on: statements end before.
HANG_S = 120.0
VECTORS_S = 20.0  # between two transactions for vectors of one file, while more of them are on their way
_TEXT = 32  # bytes of a digest that are of the text
_KINDS = {
    "memory": (Kind.NOTE,),
    "curated": (Kind.CURATED,),
    "sessions": (Kind.SESSION, Kind.SHARED_SESSION),
}


class PublishProgress(msgspec.Struct, frozen=True):
    """How far publishing is."""

    files: int  # that the server has as they are here
    waiting: int  # files that it is to have
    trouble: str | None  # why nothing is published just now


class Publisher:
    """Mirrors the memory of one agent to a server, one file after the other."""

    def __init__(
        self,
        agent: str,
        index: Index,
        sync: IndexService,
        rules: IndexingRules,
        settings: Publish,
        installation: str,
    ) -> None:
        """Nothing runs yet.

        Args:
            agent: Its id, for the log.
            index: What is published.
            sync: Keeps the index up to date.
            rules: How notes are read.
            settings: Where to, and what.
            installation: See installation_of.
        """
        self.progress = PublishProgress(0, 0, "it has not begun yet")
        self._agent = agent
        self._index = index
        self._sync = sync
        self._rules = rules
        self._kinds = frozenset(kind for one in settings.sources for kind in _KINDS[one])
        self._mirror = Mirror(Path(settings.dsn_file), settings.memory, installation)
        self._thread = Threads(1, f"memd-publish-{agent}")
        self._there: dict[str, bytes] = {}  # path -> digest of what the server has
        # path -> the state in which the index had it when its digest was made, and that digest
        self._here: dict[str, tuple[FileState, bytes]] = {}
        self._put_at: dict[str, float] = {}  # path -> of the monotonic clock: its last transaction
        self._space: VectorSpace | None = None  # of the digests in _here
        self._is_adopted = False  # whether the server knows that space, too

    async def run(self) -> None:
        """Publish, for ever."""
        backoff = Backoff(Random(), first_s=1.0, cap_s=LONGEST_WAIT_S)
        try:
            while True:
                try:
                    await self._until_it_fails(backoff)
                except SharedUnavailable as failure:
                    wait_s = backoff.failed()
                    if self.progress.trouble != str(failure):
                        log.warning(
                            "publish.failed", agent=self._agent, reason=str(failure), wait_s=round(wait_s, 1)
                        )
                    self.progress = msgspec.structs.replace(self.progress, trouble=str(failure))
                    await asyncio.sleep(wait_s)
        finally:
            self._mirror.abandon()
            with contextlib.suppress(Exception):
                await asyncio.shield(self._thread.run(self._mirror.close))

    async def _on_server(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a call of the mirror returns.

        Raises:
            SharedUnavailable: it did not do it, or not in time.
        """
        try:
            async with asyncio.timeout(HANG_S):
                return await self._thread.run(call, *args, **kwargs)
        except TimeoutError as late:
            self._mirror.abandon()
            raise SharedUnavailable(f"the server has not answered for {HANG_S:g} s") from late

    async def _until_it_fails(self, backoff: Backoff) -> None:
        """Compare all with what the server has, and then follow the index.

        Raises:
            SharedUnavailable: the server is away, or something else publishes there.
        """
        while True:
            self._there = await self._on_server(self._mirror.open)
            self._is_adopted = False
            compared_at = time.monotonic()
            while time.monotonic() - compared_at < COMPARE_S:
                version = self._index.changed.version
                await self._publish_all()
                backoff.reset()
                await self._next_change(version)

    async def _next_change(self, version: int) -> None:
        # Vectors come without a change: what had none yet when it was read is looked at again soon.
        is_partial = any(state.waiting for state, _ in self._here.values())
        look_s = LOOK_S if is_partial or self.progress.waiting else IDLE_S
        await first_of(self._index.changed.since(version), asyncio.sleep(look_s))

    async def _publish_all(self) -> None:
        """Make the server hold what the index holds now."""
        await self._adopt()
        with_parts = self._space is not None and self._space.has_parts
        states = await self._index.database.read(publication.states, self._kinds, with_parts=with_parts)
        gone = self._there.keys() - states.keys()
        late = [path for path, state in states.items() if self._is_late(path, state)]
        self.progress = PublishProgress(len(states) - len(late), len(late) + len(gone), None)
        published = [path for path in sorted(late) if await self._publish(path, states[path])]
        dropped: list[str] = []
        # An index that is filled anew lacks files that are there still.
        if gone and self._sync.is_whole and not self._is_incomplete:
            dropped = sorted(gone)
            for path in dropped:
                await self._on_server(self._mirror.drop, path)
                self._there.pop(path, None)
                self._here.pop(path, None)
                self._put_at.pop(path, None)
        behind = [path for path, state in states.items() if self._is_behind(path, state)]
        waiting = len(behind) + len(self._there.keys() - states.keys())
        if published or dropped:
            log.info(
                "publish.done",
                agent=self._agent,
                published=len(published),
                removed=len(dropped),
                waiting=waiting,
            )
        self.progress = PublishProgress(len(states) - len(behind), waiting, None)

    @property
    def _is_incomplete(self) -> bool:
        """Whether the index is about to be another one: what it lacks now says nothing."""
        return self._index.begun_anew is not None or self._sync.pending > 0

    def _is_behind(self, path: str, state: FileState) -> bool:
        """Whether the server does not have a file as it is here."""
        known = self._here.get(path)
        return known is None or known[0] != state or self._there.get(path) != known[1]

    def _is_late(self, path: str, state: FileState) -> bool:
        known = self._here.get(path)
        if not self._is_behind(path, state):
            return False
        if known is None or self._there.get(path) != known[1] or known[0].text != state.text:
            return True
        # Vectors come a few at a time: not each time is the file worth a transaction.
        return not state.waiting or time.monotonic() - self._put_at.get(path, 0.0) >= VECTORS_S

    async def _adopt(self) -> None:
        """Tell the server of what model the vectors are."""
        fingerprint = await self._index.fingerprint()
        wanted = None
        if fingerprint is not None and fingerprint.space is not None and fingerprint.dimensions is not None:
            wanted = VectorSpace(fingerprint.space, fingerprint.dimensions, fingerprint.parts)
        if wanted != self._space:
            self._here.clear()
            self._space, self._is_adopted = wanted, False
        if not self._is_adopted:
            if await self._on_server(self._mirror.adopt, wanted):
                self._there = {path: digest[:_TEXT] for path, digest in self._there.items()}
            self._is_adopted = True

    async def _publish(self, path: str, state: FileState) -> bool:
        """Publish one file, if the server has another one; whether it has not had it.

        One that changes just now, or cannot be read, waits for the next look.
        """
        file = await self._index.database.read(publication.read, path)
        if file is None:
            return False
        lines = turn_lines(file.turns) if file.kind.is_session else await self._lines(file)
        if lines is None:
            return False
        digest = await self._thread.run(file.digests, lines, self._space)
        is_new = self._there.get(path) != digest
        if is_new:
            await self._on_server(self._mirror.put, file, lines, digest)
            self._there[path] = digest
            self._put_at[path] = time.monotonic()
        self._here[path] = (state, digest)
        return is_new

    async def _lines(self, file: PublishedFile) -> Sequence[str] | None:
        """The lines of a note; None: it is another one by now, or cannot be read."""
        try:
            note = await self._thread.run(
                read_note,
                file.path,
                self._rules.roots,
                max_bytes=self._rules.max_bytes,
                now_ns=time.time_ns(),
                redactor=self._rules.notes_redactor,
            )
        except SourceError:
            return None
        return note.document.lines if note.sha256 == file.sha256 else None


def installation_of(state: Path) -> str:
    """The name by which servers know this installation, which is made when it is first asked for.

    Raises:
        OSError: it cannot be kept.
    """
    file = state / "installation"
    with contextlib.suppress(FileNotFoundError):
        if name := file.read_text("utf-8").strip():
            return name
    name = secrets.token_hex(16)
    # As a whole: a part of a name would be another installation's after a crash.
    begun = file.with_suffix(".new")
    begun.touch(mode=0o600)
    begun.write_text(name + "\n", encoding="utf-8")
    begun.replace(file)
    return name
