"""Keeps one agent's qmd up to date: its collections, its index, free of what is gone, and, where it embeds, its vectors."""

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
from memd.runtime.synchronization import ChangeNotifier
from memd.runtime.threads import Threads
from memd.runtime.timing import Clock
from memd.store.errors import StoreClosed, StoreDamaged
from memd.store.files import KnownFile
from memd.text.memory_paths import SESSIONS, find_place

log = structlog.get_logger()

COMMAND_S = 30.0
UPDATE_S = 120.0
EMBED_S = 600.0  # killed then, it goes on the next time where it was
CLEAN_S = 8.0  # for which searches may have to wait: less than the patience of a client


class UpdaterState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one qmd, as of its last update."""

    collections: tuple[WantedCollection, ...] = ()  # that can be searched
    files: int | None = None  # that qmd found in them
    last_update: float | None = None  # unix time
    update_failure: str | None = None
    last_embed: float | None = None  # unix time
    embed_failure: str | None = None
    vectors: int | None = None  # None: nobody has counted them
    warnings: tuple[str, ...] = ()


class QmdUpdater:
    """What one agent's qmd does beside searches."""

    def __init__(
        self,
        agent: IndexedAgent,
        runner: Runner,
        export: Export,
        threads: Threads,
        embed_slot: asyncio.Lock,
        clock: Clock = time.monotonic,
    ) -> None:
        """Keep the qmd of one agent up to date, from the call of run on.

        Args:
            agent: Whose index says what there is to be found.
            runner: Runs its qmd.
            export: Of what qmd knows by copies.
            threads: For what is on the disk.
            embed_slot: Held while qmd embeds.
            clock: In seconds.
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
        self._copies = agent.rules.notes_redactor is not None  # of notes, too
        self._threads = threads
        self._embed_slot = embed_slot
        self._clock = clock
        self._born = clock()
        self.pace = ScheduleSettings(
            settings.update_minutes * 60, settings.debounce_seconds, settings.embed_minutes * 60
        )
        self._updates = TaskHistory()
        self._embeddings = TaskHistory()
        # What went while nobody looked may be in it since an earlier life.
        self.cleanings = TaskHistory(unseen=self._born)
        self._nudged = asyncio.Event()  # what is due must be looked at again
        self._is_hurried = False
        self._ended = ChangeNotifier()  # at the end of each update
        self._added: dict[str, CollectionArguments] | None = None  # None: not read yet
        self._seen: Mapping[str, bytes] = {}  # file -> its hash, as qmd has it
        self._seen_version: int | None = None
        self._embedded: Mapping[str, bytes] = {}  # likewise, what it has vectors of
        self._beyond: frozenset[str] = frozenset()  # files of the index that qmd never sees
        self._ensuring = asyncio.Lock()
        # An update of qmd writes a text before what refers to it. A cleaning beside it takes that for a text of nothing,
        # and the file is never found again.
        self._indexing = asyncio.Lock()
        self._is_repaired = False  # its index was dropped; that helps once or never
        self.updating = False
        self.state = UpdaterState()

    # --- what a search asks

    @property
    def embeds(self) -> bool:
        """Whether the mode of searching needs vectors."""
        return self._settings.search_mode != "search"

    @property
    def vectors(self) -> VectorSearchStatus:
        """What is known of the vectors."""
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
        """Whether files have changed since qmd was told to look."""
        return self._seen_version != self._index.changed.version

    async def caught_up(self, wait_s: float) -> None:
        """Have qmd take in what has changed, and wait for it, but no longer than so many seconds.

        One that needs its time is not begun at each search.
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
        """Wait until there is a collection, or it is known that there is none.

        Args:
            wait_s: From the beginning of all, at most: a qmd that does not come to an end with its collections holds up those
                who ask while it is new, and no later search.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._born + wait_s - self._clock())):
                while not self.state.collections and self._updates.ended is None:
                    await self._ended.next()

    async def unknown(self) -> frozenset[str]:
        """The files of the index that qmd does not know, or not as they are now."""
        # A qmd that is asked by meaning finds nothing that has no vector yet.
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
        """Add again what somebody has taken away.

        Raises:
            QmdFailed.
        """
        await self._ensure()

    # --- for ever

    async def run(self) -> None:
        """Update and embed when it is time, for ever; what fails is in the state."""
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
        """Have qmd read what has changed. That it fails is in the state."""
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
        """Delete what qmd has made of the files: it makes it again. What is deleted in it would stay in its free pages."""
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
        """Where a note is that qmd reads itself."""
        place = None if self._export.concerns(one) else find_place(one.path, self._roots)
        return None if place is None else place[0].directory.joinpath(*place[1])

    def _has(self, one: KnownFile, file: Path | None) -> bool:
        """Whether qmd knows a file that is there, once it has looked."""
        if self._export.concerns(one):
            entry = self._export.files.get(one.path)
            kinds = {kind for each in self.state.collections if each.exported for kind in each.kinds}
            return entry is not None and entry.state == one.hash.hex() and one.kind in kinds
        return file is not None and any(
            reaches(each, file) for each in self.state.collections if not each.exported
        )

    # --- collections

    async def _ensure(self) -> None:
        """Have the collections be those that are wanted.

        Raises:
            QmdFailed: none of them can be had.
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
            # Before: a collection that was added when the daemon was killed is its own at the next start.
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
            # Under this name it is what is wanted; under another it is somebody else's.
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
        """What is wrong with the collections of the configuration."""
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

    # --- what is gone

    async def _keep_clean(self) -> None:
        """Have qmd forget what is gone, for ever: an update of it only hides that."""
        while True:
            at = schedule.clean_at(self.cleanings, self.pace, self._runner.searched_at)
            if at is None or self.state.last_update is None:
                await self._ended.next()
            elif at > self._clock():
                await asyncio.sleep(at - self._clock())  # and look again: somebody may search meanwhile
            else:
                await self.clean()

    async def clean(self) -> None:
        """Have qmd forget the texts that are gone. That it fails is in cleanings."""
        failed: str | None = None
        async with self._indexing, self._ensuring:  # to add a collection is to index it
            self.cleanings = schedule.began(self.cleanings)
            try:
                await self._runner.alone(commands.CLEANUP, timeout_s=CLEAN_S)
            except QmdFailed as failure:
                failed = str(failure)
                log.warning("qmd.cleaning_failed", agent=self._agent, reason=failed)
            else:
                log.debug("qmd.cleaned", agent=self._agent)
        self.cleanings = schedule.ended(self.cleanings, self._clock(), failed=failed is not None)
        if failed is not None:  # what was gone still is
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
            otherwise: Whether there are any, where qmd does not tell.
        """
        try:
            found = parse.vectors(await self._runner.ask(commands.STATUS, timeout_s=COMMAND_S))
        except QmdFailed:
            found = None
        self._update_state(vectors=int(otherwise) if found is None else found)

    def _update_state(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)


def _is_directory(path: Path) -> bool:
    """Whether there is a directory, and no link to one: what lies behind a link is not the agent's, and qmd follows it."""
    return path.is_dir() and not path.is_symlink()


def mode_of(settings: Settings, vectors: VectorSearchStatus) -> Mode:
    """How qmd is asked: by words while it has no vectors, for without them the other ways find nothing."""
    return settings.search_mode if vectors.available or not vectors.enabled else "search"
