"""Keeps one agent's qmd up to date: its collections, its index, without deleted texts, and its vectors."""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from memd.backends.backend import IndexedAgent, VectorSearchStatus
from memd.backends.qmd import commands, own_files, parse, schedule
from memd.backends.qmd.collections import (
    CollectionArguments,
    WantedCollection,
    as_added,
    reaches,
    steps,
    wanted,
)
from memd.backends.qmd.commands import Mode
from memd.backends.qmd.export import CURATED, NOTES, Export
from memd.backends.qmd.installation import QmdPlaces
from memd.backends.qmd.parse import QmdListing
from memd.backends.qmd.process import (
    AlreadyExists,
    CollectionMissing,
    Locked,
    QmdBroken,
    QmdFailed,
    QmdTimedOut,
)
from memd.backends.qmd.runner import Runner
from memd.backends.qmd.schedule import ScheduleSettings, TaskHistory
from memd.config.settings import QmdSettings as Settings
from memd.domain_types import Kind
from memd.errors import TransientError
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.threads import Threads
from memd.runtime.timers import Clock
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.files import KnownFile
from memd.text.memory_paths import SESSIONS, find_place

log = structlog.get_logger()

COMMAND_S = 30.0
UPDATE_S = 120.0
EMBED_S = 600.0  # a killed embedding continues where it was on the next run
CLEAN_S = 8.0  # searches may have to wait so long: less than a client's timeout


class UpdaterState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a qmd after its last update."""

    collections: tuple[WantedCollection, ...] = ()  # those that can be searched
    files: int | None = None  # files that qmd found in them
    last_update: float | None = None  # Unix time
    update_failure: str | None = None
    last_embed: float | None = None  # Unix time
    embed_failure: str | None = None
    vectors: int | None = None  # None: not counted yet
    warnings: tuple[str, ...] = ()


class QmdUpdater:
    """The background tasks of one agent's qmd."""

    def __init__(
        self,
        agent: IndexedAgent,
        runner: Runner,
        export: Export,
        threads: Threads,
        embed_slot: asyncio.Lock,
        clock: Clock = time.monotonic,
    ) -> None:
        """Create it; `run` starts the tasks.

        Args:
            agent: The agent, whose index says which files there are.
            runner: Runs qmd commands.
            export: The copies that qmd reads.
            threads: Where files are read and written.
            embed_slot: Held while qmd embeds.
            clock: Returns seconds; must be monotonic.
        """
        settings = agent.settings.qmd
        self._agent = agent.id
        self._settings = settings
        self._runner = runner
        self._index = agent.index
        self._roots = tuple(agent.rules.roots)
        self._sessions = "sessions" in agent.settings.sources
        self._places = QmdPlaces.of(agent.index.file)
        self._export = export
        self._copies = agent.rules.notes_redactor is not None  # whether notes are copied, too
        self._threads = threads
        self._embed_slot = embed_slot
        self._clock = clock
        self._born = clock()
        self.pace = ScheduleSettings(
            settings.update_minutes * 60, settings.debounce_seconds, settings.embed_minutes * 60
        )
        self._updates = TaskHistory()
        self._embeddings = TaskHistory()
        # Assume that texts were deleted before the daemon started.
        self.cleanings = TaskHistory(unseen=self._born)
        self._nudged = asyncio.Event()  # the schedule must be checked again
        self._is_hurried = False
        self._ended = ChangeNotifier()  # notified at the end of each update
        self._added: dict[str, CollectionArguments] | None = None  # None: not read yet
        self._seen: Mapping[str, bytes] = {}  # path -> hash of the version that qmd has
        self._seen_version: int | None = None
        self._embedded: Mapping[str, bytes] = {}  # path -> hash of the version that qmd has vectors of
        self._beyond: frozenset[str] = frozenset()  # indexed files that qmd never finds
        self._ensuring = asyncio.Lock()
        # An update of qmd writes a text before the row that refers to it. A concurrent cleanup takes such a
        # text for an unused one, and the file is never found again.
        self._indexing = asyncio.Lock()
        # Its index was deleted once, which is not repeated: it helps the first time or never.
        self._is_repaired = False
        self.updating = False
        self.state = UpdaterState()

    # --- called by searches

    @property
    def embeds(self) -> bool:
        """Whether the search mode needs vectors."""
        return self._settings.search_mode != "search"

    @property
    def vectors(self) -> VectorSearchStatus:
        """The status of qmd's vectors."""
        found = self.state.vectors
        if not self.embeds:
            return VectorSearchStatus(enabled=False, available=bool(found))
        if found:
            return VectorSearchStatus()
        return VectorSearchStatus(
            ok=False,
            available=False,
            reason=self.state.embed_failure or "qmd has not embedded anything yet",
        )

    @property
    def is_behind(self) -> bool:
        """Whether files have changed since the last update of qmd began."""
        return self._seen_version != self._index.changed.version

    async def caught_up(self, wait_s: float) -> None:
        """Let qmd take in recent changes, and wait for that at most `wait_s` seconds.

        An update that would take too long is not started by each search.
        """
        if not self.is_behind:
            return
        if not self.updating:
            self._is_hurried = True
            self._nudged.set()
            if schedule.hurried_at(self._updates, self.pace) > self._clock() + wait_s:
                return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self.is_behind:
                    failures = self._updates.failures
                    await self._ended.next()
                    if self._updates.failures > failures:
                        return

    async def wait_for_collections(self, wait_s: float) -> None:
        """Wait until a collection exists, or the first update has ended.

        Args:
            wait_s: Seconds since the creation of this object: a qmd that never finishes its collections
                delays the first searches only.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._born + wait_s - self._clock())):
                while not self.state.collections and self._updates.ended is None:
                    await self._ended.next()

    async def unknown(self) -> frozenset[str]:
        """Return the indexed files that qmd does not know, or only in an older version."""
        # A vector search of qmd finds nothing that has no vector yet.
        has = self._embedded if self.vectors.enabled and self.vectors.available else self._seen
        if has is self._seen and not self.is_behind:
            return self._beyond
        known = await self._index.known()
        now = time.time()
        return frozenset(
            path
            for path, one in known.items()
            if has.get(path) != one.hash and not self._export.is_over(one, now)
        )

    async def restore_collections(self) -> None:
        """Add collections again that are missing.

        Raises:
            QmdFailed.
        """
        await self._ensure()

    # --- tasks

    async def run(self) -> None:
        """Update, embed and clean up on schedule until cancelled; failures are in `state`."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._notice())
            tasks.create_task(self._keep_updated())
            tasks.create_task(self._keep_clean())
            if self.embeds:
                tasks.create_task(self._keep_embedded())

    async def _notice(self) -> None:
        version = self._index.changed.version
        while True:
            version = await self._index.changed.since(version)
            self._updates = schedule.noticed(self._updates, self._clock())
            self._nudged.set()

    async def _keep_updated(self) -> None:
        while True:
            await self._until_due()
            async with self._indexing:
                await self.update()

    async def _until_due(self) -> None:
        while True:
            at = schedule.update_at(self._updates, self.pace)
            if self._is_hurried:
                hurried_at = schedule.hurried_at(self._updates, self.pace)
                at = hurried_at if at is None else min(at, hurried_at)
            left_s = None if at is None else at - self._clock()
            if left_s is not None and left_s <= 0:
                return
            self._nudged.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._nudged.wait()

    async def update(self) -> None:
        """Let qmd read changed files; a failure is recorded in `state`."""
        began = self._clock()
        self._is_hurried = False
        self._updates = schedule.began(self._updates)
        failed: str | None = None
        passing = False
        self.updating = True
        try:
            await self._bring_up_to_date()
        except StoreClosed:
            raise
        except TransientError as failure:
            failed, passing = str(failure), isinstance(failure, Locked | QmdTimedOut)
        except StoreDamaged as damage:
            failed = str(damage)
            self._index.damage.report(failed)
        finally:
            self.updating = False
            took_s = self._clock() - began
            self._updates = schedule.ended(
                self._updates, self._clock(), took_s=took_s, failed=failed is not None, passing=passing
            )
            self._ended.notify()
        if failed is None:
            self._update_state(last_update=time.time(), update_failure=None)
            log.debug("qmd.updated", agent=self._agent, took_s=round(took_s, 3))
        else:
            self._update_state(update_failure=failed)
            log.warning("qmd.update_failed", agent=self._agent, reason=failed)
        self._nudged.set()

    async def _bring_up_to_date(self) -> None:
        version = self._index.changed.version
        known = await self._index.known()
        if await self._export.bring(known):
            await self.drop_index("what it was made of was redacted by other rules")
        await self._ensure()
        try:
            said = await self._runner.ask(commands.UPDATE, timeout_s=UPDATE_S, quiet=True)
        except QmdBroken as failure:
            if self._is_repaired:
                raise
            self._is_repaired = True
            await self.drop_index(str(failure))
            said = await self._runner.ask(commands.UPDATE, timeout_s=UPDATE_S, quiet=True)
        now = time.time()
        files = {path: file for path, one in known.items() if (file := self._file(one)) is not None}
        seen = {
            path: one.hash
            for path, one in known.items()
            if self._export.is_over(one, now) or self._has(one, files.get(path))
        }
        unindexed = [
            f"collection {one.name}: memd indexes no file in {one.directory}, so none is shown; add it to extra_paths"
            for one in self.state.collections
            if one.custom and not any(file.is_relative_to(one.directory) for file in files.values())
        ]
        self._update_state(files=parse.files_indexed(said), warnings=(*self.state.warnings, *unindexed))
        self._beyond = frozenset(known.keys() - seen.keys())
        if any(seen.get(path) != was for path, was in self._seen.items()):
            self.cleanings = schedule.noticed(self.cleanings, self._clock())
        self._seen, self._seen_version = seen, version

    async def drop_index(self, reason: str) -> None:
        """Delete qmd's index, which it then rebuilds; rows deleted in it would remain in its free pages."""
        log.warning("qmd.index_dropped", agent=self._agent, reason=reason)
        self._seen, self._seen_version = {}, None
        await self._threads.run(self._delete_index)

    def _delete_index(self) -> None:
        index = self._places.index
        try:
            for suffix in ("", "-wal", "-shm"):
                index.with_name(index.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise QmdFailed(f"{index} is damaged and cannot be deleted: {error.strerror}") from error

    def _file(self, one: KnownFile) -> Path | None:
        """Return the path of a note that qmd reads itself; None for copies."""
        place = None if self._export.concerns(one) else find_place(one.path, self._roots)
        return None if place is None else place[0].directory.joinpath(*place[1])

    def _has(self, one: KnownFile, file: Path | None) -> bool:
        """Return whether qmd finds an existing file after an update."""
        if self._export.concerns(one):
            entry = self._export.files.get(one.path)
            kinds = {kind for each in self.state.collections if each.exported for kind in each.kinds}
            return entry is not None and entry.state == one.hash.hex() and one.kind in kinds
        return file is not None and any(
            reaches(each, file) for each in self.state.collections if not each.exported
        )

    # --- collections

    async def _ensure(self) -> None:
        """Create and remove collections as needed.

        Raises:
            QmdFailed: no collection could be created.
        """
        async with self._ensuring:
            await self._ensure_alone()

    async def _ensure_alone(self) -> None:
        added = await self._read_record()
        desired = await self._threads.run(self._wanted)
        work = steps(desired, await self._list(), added)
        warnings = await self._threads.run(self._amiss)
        for name in work.remove:
            with contextlib.suppress(CollectionMissing):
                await self._runner.ask(commands.remove(name), timeout_s=COMMAND_S, quiet=True)
            added.pop(name, None)
        if self._copies and work.remove:
            await self.drop_index("it has notes that were not redacted")
        refused: QmdFailed | None = None
        have = [one for one in desired if one not in work.add]
        for one in work.add:
            # Recorded first, so that a collection of a killed daemon is recognised at the next start.
            added[one.name] = as_added(one)
            await self._write_record(added)
            try:
                await self._add(one)
            except AlreadyExists as failure:
                del added[one.name]
                warnings.append(f"collection {one.name}: {failure}")
            except (Locked, QmdTimedOut):
                raise
            except QmdFailed as failure:
                del added[one.name]
                refused = failure
                warnings.append(f"collection {one.name}: {failure}")
            else:
                have.append(one)
                log.info("qmd.collection_added", agent=self._agent, collection=one.name)
        if work.add or work.remove:
            await self._write_record(added)
        self._log_new(warnings)
        self._update_state(collections=tuple(one for one in desired if one in have), warnings=tuple(warnings))
        if refused is not None and not have:
            raise refused

    def _log_new(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            if warning not in self.state.warnings:
                log.warning("qmd.collection_unusable", agent=self._agent, reason=warning)

    async def _add(self, one: WantedCollection) -> None:
        try:
            await self._runner.ask(
                commands.add(one.directory, one.name, one.pattern), timeout_s=UPDATE_S, quiet=True
            )
        except AlreadyExists:
            # With this name it is the wanted one; with another it belongs to the user.
            if one.name not in {listed.name for listed in await self._list()}:
                raise

    async def _list(self) -> list[QmdListing]:
        return parse.collections(await self._runner.ask(commands.LIST, timeout_s=COMMAND_S))

    def _wanted(self) -> tuple[WantedCollection, ...]:
        base = self._places.base
        return wanted(
            self._agent,
            self._roots,
            [
                msgspec.structs.replace(one, path=Path(os.path.realpath(one.path)))
                for one in self._settings.collections
            ],
            sessions=base / SESSIONS if self._sessions else None,
            copies={Kind.CURATED: base / CURATED, Kind.NOTE: base / NOTES} if self._copies else None,
            is_directory=_is_directory,
        )

    def _amiss(self) -> list[str]:
        """Return warnings about the configured collections."""
        if self._copies:
            return []
        return [
            f"collection {one.path}: there is no such directory"
            for one in self._settings.collections
            if not one.path.is_dir()
        ]

    async def _read_record(self) -> dict[str, CollectionArguments]:
        if self._added is None:
            data = await self._threads.run(own_files.get, self._places.base, self._places.record.name)
            try:
                self._added = msgspec.json.decode(data, type=dict[str, CollectionArguments]) if data else {}
            except msgspec.DecodeError:
                self._added = {}
        return self._added

    async def _write_record(self, added: Mapping[str, CollectionArguments]) -> None:
        data = msgspec.json.encode(added)
        await self._threads.run(own_files.put, self._places.base, self._places.record.name, data)

    # --- cleanup

    async def _keep_clean(self) -> None:
        """Clean up on schedule until cancelled: an update only hides deleted texts."""
        while True:
            at = schedule.clean_at(self.cleanings, self.pace, self._runner.searched_at)
            if at is None or self.state.last_update is None:
                await self._ended.next()
            elif at > self._clock():
                await asyncio.sleep(at - self._clock())  # then check again, as searches may have arrived
            else:
                await self.clean()

    async def clean(self) -> None:
        """Remove deleted texts from qmd's index; a failure is recorded in `cleanings`."""
        failed: str | None = None
        async with self._indexing, self._ensuring:  # adding a collection indexes it
            self.cleanings = schedule.began(self.cleanings)
            try:
                await self._runner.alone(commands.CLEANUP, timeout_s=CLEAN_S)
            except QmdFailed as failure:
                failed = str(failure)
                log.warning("qmd.cleaning_failed", agent=self._agent, reason=failed)
            else:
                log.debug("qmd.cleaned", agent=self._agent)
        self.cleanings = schedule.ended(self.cleanings, self._clock(), failed=failed is not None)
        if failed is not None:  # the deleted texts are still there
            self.cleanings = schedule.noticed(self.cleanings, self._clock())

    # --- vectors

    async def _keep_embedded(self) -> None:
        await self.count_vectors()
        while True:
            while self.state.last_update is None:
                await self._ended.next()
            at = schedule.embed_at(self._embeddings, self.pace)
            if at is None:
                return
            await asyncio.sleep(max(0.0, at - self._clock()))
            await self._embed()

    async def _embed(self) -> None:
        failed: str | None = None
        async with self._embed_slot:
            began, seen = self._clock(), self._seen
            try:
                await self._runner.ask(commands.EMBED, timeout_s=EMBED_S, quiet=True)
            except QmdFailed as failure:
                failed = str(failure)
        self._embeddings = schedule.ended(self._embeddings, self._clock(), failed=failed is not None)
        if failed is None:
            self._embedded = seen
            self._update_state(last_embed=time.time(), embed_failure=None)
            log.info("qmd.embedded", agent=self._agent, took_s=round(self._clock() - began, 3))
        else:
            self._update_state(embed_failure=failed)
            log.warning("qmd.embed_failed", agent=self._agent, reason=failed)
        await self.count_vectors(otherwise=failed is None)

    async def count_vectors(self, *, otherwise: bool = False) -> None:
        """Ask qmd how many vectors it has.

        Args:
            otherwise: Whether to assume that there are some, if qmd does not say.
        """
        try:
            found = parse.vectors(await self._runner.ask(commands.STATUS, timeout_s=COMMAND_S))
        except QmdFailed:
            found = None
        self._update_state(vectors=int(otherwise) if found is None else found)

    def _update_state(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)


def _is_directory(path: Path) -> bool:
    """Return whether a path is a directory and no symlink: qmd would follow a link to files that are not the agent's."""
    return path.is_dir() and not path.is_symlink()


def mode_of(settings: Settings, vectors: VectorSearchStatus) -> Mode:
    """Return qmd's search mode: keywords while it has no vectors, because the other modes would find nothing."""
    return settings.search_mode if vectors.available or not vectors.enabled else "search"
