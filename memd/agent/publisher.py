"""Publishes the memory of one agent on a PostgreSQL server: keeps a copy there of what its index holds."""

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
from memd.postgres.connection import SharedUnavailable
from memd.postgres.mirror import Mirror, VectorSpace
from memd.postgres.transcripts import turn_lines
from memd.runtime.asyncio_helpers import first_of
from memd.runtime.threads import Threads
from memd.runtime.timers import Backoff
from memd.sources.notes import read_note
from memd.sources.safe_open import SourceError
from memd.store import published_files
from memd.store.index import Index
from memd.store.published_files import FileState, PublishedFile

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

LOOK_S = 1.0  # between two checks of the index while vectors are being made
IDLE_S = 30.0  # between two checks otherwise, in addition to those after a change
COMPARE_S = 600.0  # between two comparisons with everything that the server has
LONGEST_WAIT_S = 60.0  # between two attempts while the server does not answer
# A transaction that takes longer is on a dead connection: each statement has a shorter timeout.
HANG_S = 120.0
VECTORS_S = 20.0  # between two transactions for one file's vectors, while more of them are being made
_KINDS = {
    "memory": (Kind.NOTE,),
    "curated": (Kind.CURATED,),
    "sessions": (Kind.SESSION, Kind.SHARED_SESSION),
}


def kinds_of(settings: Publish) -> frozenset[Kind]:
    """Of the files that are published."""
    return frozenset(kind for one in settings.sources for kind in _KINDS[one])


class PublishProgress(msgspec.Struct, frozen=True):
    """The state of publishing."""

    files: int  # files of which the server has the current version
    waiting: int  # files that the server still lacks or must drop
    reason: str | None  # why nothing is published now


class Publisher:
    """Mirrors the memory of one agent to a server, file by file."""

    def __init__(
        self,
        agent: str,
        index: Index,
        index_service: IndexService,
        rules: IndexingRules,
        settings: Publish,
        installation: str,
        *,
        embeds: bool,
    ) -> None:
        """Create the publisher; `run` connects.

        Args:
            agent: The agent's id, for the log.
            index: The index that is published.
            index_service: Says whether the index is complete.
            rules: How notes are read.
            settings: The server, and what is published.
            installation: See installation_of.
            embeds: Whether the texts are to have vectors, though it may not be known yet of what model.
        """
        self.progress = PublishProgress(0, 0, "it has not begun yet")
        self._agent = agent
        self._index = index
        self._index_service = index_service
        self._rules = rules
        self._kinds = kinds_of(settings)
        self._embeds = embeds
        self._mirror = Mirror(Path(settings.dsn_file), settings.memory, installation)
        self._thread = Threads(1, f"memd-publish-{agent}")
        self._there: dict[str, bytes] = {}  # path -> digest of the version on the server
        # path -> the state of the file in the index when its digest was computed, and that digest
        self._here: dict[str, tuple[FileState, bytes]] = {}
        self._put_at: dict[str, float] = {}  # path -> monotonic time of its last transaction
        self._space: VectorSpace | None = None  # the space that the digests in _here include
        self._is_adopted = False  # whether the server knows that space

    async def run(self) -> None:
        """Publish until cancelled; failures of the server are retried."""
        backoff = Backoff(Random(), cap_s=LONGEST_WAIT_S)
        try:
            while True:
                try:
                    await self._until_it_fails(backoff)
                except SharedUnavailable as failure:
                    wait_s = backoff.failed()
                    if self.progress.reason != str(failure):
                        log.warning(
                            "publish.failed", agent=self._agent, reason=str(failure), wait_s=round(wait_s, 1)
                        )
                    self.progress = msgspec.structs.replace(self.progress, reason=str(failure))
                    await asyncio.sleep(wait_s)
        finally:
            self._mirror.abandon()
            with contextlib.suppress(Exception):
                await asyncio.shield(self._thread.run(self._mirror.close))

    async def _on_server(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the mirror on its thread, and return the result.

        Raises:
            SharedUnavailable: the call failed, or took longer than HANG_S.
        """
        try:
            async with asyncio.timeout(HANG_S):
                return await self._thread.run(call, *args, **kwargs)
        except TimeoutError as late:
            self._mirror.abandon()
            raise SharedUnavailable(f"the server has not answered for {HANG_S:g} s") from late

    async def _until_it_fails(self, backoff: Backoff) -> None:
        """Compare everything with the server, then publish the changes of the index.

        Raises:
            SharedUnavailable: the server does not answer, or another installation publishes there.
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
        # New vectors do not notify: files that lacked some when they were read are checked again soon.
        is_partial = any(state.waiting for state, _ in self._here.values())
        look_s = LOOK_S if is_partial or self.progress.waiting else IDLE_S
        await first_of(self._index.changed.since(version), asyncio.sleep(look_s))

    async def _publish_all(self) -> None:
        """Bring the server up to date with the index."""
        await self._adopt()
        with_parts = self._space is not None and self._space.has_parts
        states = await self._index.database.read(published_files.states, self._kinds, with_parts=with_parts)
        gone = self._there.keys() - states.keys()
        late = [path for path, state in states.items() if self._is_late(path, state)]
        self.progress = PublishProgress(len(states) - len(late), len(late) + len(gone), None)
        published = [path for path in sorted(late) if await self._publish(path, states[path])]
        dropped: list[str] = []
        # While an index is being refilled, a file that it lacks may still exist.
        if gone and self._index_service.is_whole and not self._is_incomplete:
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
        """Whether the index is being filled or has pending changes, so that missing files mean nothing."""
        return self._index.begun_anew is not None or self._index_service.pending > 0

    def _is_behind(self, path: str, state: FileState) -> bool:
        """Whether the server has another version of a file, or none."""
        known = self._here.get(path)
        return known is None or known[0] != state or self._there.get(path) != known[1]

    def _is_late(self, path: str, state: FileState) -> bool:
        known = self._here.get(path)
        if not self._is_behind(path, state):
            return False
        if known is None or self._there.get(path) != known[1] or known[0].text != state.text:
            return True
        # Vectors arrive a few at a time: not each of them is worth a transaction.
        return not state.waiting or time.monotonic() - self._put_at.get(path, 0.0) >= VECTORS_S

    async def _adopt(self) -> None:
        """Tell the server which model the vectors are from."""
        fingerprint = await self._index.fingerprint()
        wanted = None
        if fingerprint is not None and fingerprint.space is not None and fingerprint.dimensions is not None:
            wanted = VectorSpace(fingerprint.space, fingerprint.dimensions, fingerprint.parts)
        if wanted != self._space:
            self._here.clear()
            self._space, self._is_adopted = wanted, False
        # Until it is known of what model they are to be, the vectors that are there may be those that are wanted.
        if not self._is_adopted and (wanted is not None or not self._embeds):
            if await self._on_server(self._mirror.adopt, wanted):
                self._there = dict.fromkeys(self._there, b"")  # without vectors
            self._is_adopted = True

    async def _publish(self, path: str, state: FileState) -> bool:
        """Publish one file unless the server has this version; return whether it was sent.

        A file that has just changed, or cannot be read, waits for the next check.
        """
        file = await self._index.database.read(published_files.read, path)
        if file is None or (lines := await self._lines(file)) is None:
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
        """Return the lines of a file; None if it is a note that has changed since or cannot be read."""
        if file.kind.is_session:
            return turn_lines(file.turns)
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
    """Return the name of this installation on servers; it is created on the first call.

    Raises:
        OSError: the name cannot be stored.
    """
    file = state / "installation"
    with contextlib.suppress(FileNotFoundError):
        if name := file.read_text("utf-8").strip():
            return name
    name = secrets.token_hex(16)
    # Renamed into place: half a name after a crash would count as another installation's.
    begun = file.with_suffix(".new")
    begun.touch(mode=0o600)
    begun.write_text(name + "\n", encoding="utf-8")
    begun.replace(file)
    return name
