"""Answers `files`, `chunks`, `turns` and `duplicates`: lists an index page by page, for the owner only."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from typing import ParamSpec, TypeVar

from memd.domain_types import ChunkId, Kind
from memd.runtime.threads import beside
from memd.runtime.time_zones import wall_now, zone_of
from memd.search.copies import CopyCandidates, copies_among
from memd.server.requests.search import dated, search_filter
from memd.server.scope import AllowedAgent, BadRequest, Caller, DeniedSession
from memd.store.browse import FileOrder, cursor_place
from memd.store.chunks import StoredChunk
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd_client import messages as wire

P = ParamSpec("P")
T = TypeVar("T")

MAX_FILES = 500  # per page
MAX_ENTRIES = 200  # chunks or turns per page
MAX_PAGE_CHARS = 200_000  # characters of all texts of a page
MAX_PAIRS = 200  # pairs of duplicate notes per reply
_STEP = 50  # texts compared at a time: a search may wait some milliseconds for one step
_VECTORS = {0: "waiting", 1: "done", 2: "refused"}


async def list_files(request: wire.Files, caller: Caller) -> wire.FileList:
    """Return a page of an agent's files.

    Raises:
        DeniedSession: the request has a session key, even a private one.
        BadRequest: a field is out of its range.
        UnknownAgent, AgentUnavailable.
    """
    _check_page(request.max_files, MAX_FILES, "max_files")
    if request.folder and not request.folder.endswith("/"):
        raise BadRequest(
            f"folder is {request.folder[:40]!r}; it must end with a slash, or be empty for the top"
        )
    allowed = await _owned(caller, request.agent, request.source)
    zone = zone_of(allowed.agent.settings.timezone)
    wanted = search_filter(request, wall_now(zone), zone)
    try:
        after = cursor_place(request.after)
    except ValueError:
        raise BadRequest("after must be the next of an answer") from None
    order = FileOrder(
        folder=request.folder,
        by_time=request.sort == "time",
        after=after,
        most=request.max_files,
        zone=zone,
    )
    await allowed.agent.index_service.catch_up()
    with _damage_reported(allowed):
        page = await allowed.agent.index.file_page(wanted, allowed.granted.kinds, order)
    return wire.FileList(
        agent=allowed.agent.id,
        files=[
            wire.ListedFile(
                path=file.path,
                source=file.kind.source,
                size=file.size,
                modified=file.written_ns / 1e9,
                chunks=file.chunks,
                tags=list(file.tags),
                superseded=file.superseded is not None,
                superseded_by=file.superseded or None,
                **dated(file.when, file.written_ns, zone),
            )
            for file in page.files
        ],
        folders=page.folders,
        total=page.total,
        next=page.next,
    )


async def list_chunks(request: wire.Chunks, caller: Caller) -> wire.ChunkList:
    """Return a page of a file's chunks; the errors are those of list_files."""
    _check_page(request.max_chunks, MAX_ENTRIES, "max_chunks")
    skip = _checked_skip(request.skip)
    allowed = await _owned(caller, request.agent)
    await allowed.agent.index_service.catch_up()
    with _damage_reported(allowed):
        page = await allowed.agent.index.chunk_page(
            request.path,
            allowed.granted.kinds,
            skip=skip,
            most=request.max_chunks,
            most_chars=MAX_PAGE_CHARS,
        )
    if page is None:
        return wire.ChunkList(path=request.path, missing=True)
    return wire.ChunkList(
        path=request.path,
        source=page.kind.source,
        chunks=[
            wire.ListedChunk(
                start_line=chunk.start_line,
                end_line=chunk.end_line,
                text=chunk.text,
                context=chunk.context,
                windows=list(chunk.parts),
                vector=_VECTORS.get(chunk.vector, "waiting"),
            )
            for chunk in page.chunks
        ],
        total=page.total,
        next=page.next,
        redacted=page.redacted,
    )


async def list_turns(request: wire.Turns, caller: Caller) -> wire.TurnList:
    """Return a page of a transcript's turns; the errors are those of list_files."""
    _check_page(request.max_turns, MAX_ENTRIES, "max_turns")
    skip = _checked_skip(request.skip)
    allowed = await _owned(caller, request.agent, "sessions")
    await allowed.agent.index_service.catch_up()
    with _damage_reported(allowed):
        page = await allowed.agent.index.turn_page(
            request.path,
            allowed.granted.kinds,
            skip=skip,
            most=request.max_turns,
            most_chars=MAX_PAGE_CHARS,
        )
    if page is None:
        return wire.TurnList(path=request.path, missing=True)
    return wire.TurnList(
        path=request.path,
        turns=[
            wire.ListedTurn(
                role=turn.role,
                at=turn.at,
                start_line=turn.start_line,
                end_line=turn.end_line,
                text=turn.text,
                cut=turn.chars - len(turn.text),
            )
            for turn in page.turns
        ],
        total=page.total,
        next=page.next,
    )


class DuplicateFinder:
    """Answers `duplicates`, one request at a time and in short steps, so that searches are not delayed."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def list(self, request: wire.Duplicates, caller: Caller) -> wire.DuplicateList:
        """Return notes that are copies of each other or superseded; the errors are those of list_files."""
        allowed = await _owned(caller, request.agent, "memory")
        await allowed.agent.index_service.catch_up()
        index, kinds = allowed.agent.index, allowed.granted.kinds
        with _damage_reported(allowed):
            replaced = await index.superseded_notes(kinds, MAX_PAIRS + 1)
            pairs = [
                wire.NotePair(
                    why="superseded",
                    one=wire.NoteLines(path=path),
                    other=None if place is None else wire.NoteLines(path=place),
                    by=by or None,
                )
                for path, by, place in replaced
            ]
            async with self._lock:
                pairs += await _copies(index, kinds, MAX_PAIRS + 1 - len(pairs))
        return wire.DuplicateList(
            agent=allowed.agent.id, pairs=pairs[:MAX_PAIRS], more=len(pairs) > MAX_PAIRS
        )


async def _copies(index: Index, kinds: Collection[Kind], most: int) -> list[wire.NotePair]:
    candidates, after = CopyCandidates(), 0
    while texts := await index.note_texts(kinds, after, _STEP):
        after = texts[-1][0]
        await _gently(candidates.add, texts)
    told: list[wire.NotePair] = []
    gone: set[ChunkId] = set()  # each copy is listed once, even if it has several others
    for begin in range(0, len(candidates.pairs), _STEP):
        if len(told) >= most:
            break
        some = candidates.pairs[begin : begin + _STEP]
        chunks = await index.stored_chunks(sorted({each for pair in some for each in pair}))
        for earlier, latest in await _gently(lambda: list(copies_among(some, chunks))):  # noqa: B023 - called at once
            if earlier.id not in gone:
                gone.add(earlier.id)
                told.append(wire.NotePair(why="copy", one=_lines(earlier), other=_lines(latest)))
    return sorted(told, key=lambda pair: (pair.one.path, pair.one.start_line))[: max(0, most)]


async def _gently(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work on a thread, then sleep for as long as it took: searches have the interpreter for half of the time."""
    began = time.monotonic()
    done = await beside(work, *args, **kwargs)
    await asyncio.sleep(time.monotonic() - began)
    return done


def _lines(chunk: StoredChunk) -> wire.NoteLines:
    return wire.NoteLines(path=chunk.path, start_line=chunk.start_line, end_line=chunk.end_line)


async def _owned(caller: Caller, name: str | None, source: wire.Source | None = None) -> AllowedAgent:
    """Return the agent that the owner means.

    Raises:
        DeniedSession: the request has a session key.
        UnknownAgent, AgentUnavailable.
    """
    if caller.key is None and (allowed := await caller.agent(name, source)) is not None:
        return allowed
    raise DeniedSession("only the owner may do this")


def _check_page(wanted: int, most: int, name: str) -> None:
    if not 1 <= wanted <= most:
        raise BadRequest(f"{name} is {wanted}; it must be 1 to {most}")


def _checked_skip(skip: int) -> int:
    if skip < 0:
        raise BadRequest("skip counts from 0")
    return skip


@contextlib.contextmanager
def _damage_reported(allowed: AllowedAgent) -> Iterator[None]:
    """Report damage found within the block, so that the index is repaired."""
    try:
        yield
    except StoreDamaged as damage:
        allowed.agent.index.damage.report(str(damage))
        raise
