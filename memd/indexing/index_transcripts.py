"""Indexes transcripts: reads them from their last position, chunks them, and adds vectors that are cached."""

import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import msgspec

from memd.chunk.turns import ChunkedTurns, chunk_turns
from memd.domain_types import FoundFile, Turn
from memd.indexing.index_notes import AppliedChanges, known_vectors
from memd.indexing.rules import IndexingRules
from memd.runtime.profiling import timed_part
from memd.runtime.threads import Threads
from memd.sources.safe_open import SourceError
from memd.sources.transcripts.database_reader import read_entry
from memd.sources.transcripts.read_position import ReadProgress, decoded, encoded
from memd.sources.transcripts.reader import (
    GrownTranscript,
    Reading,
    UnchangedTranscript,
    WholeTranscript,
    read_transcript,
)
from memd.store.embedding_cache import KnownVectors
from memd.store.index import Index
from memd.store.sessions import SessionChange, StoredSession

# The name of the agent, by format.
_AGENTS = {
    "openclaw": "OpenClaw",
    "openclaw-branch": "OpenClaw",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini",
    "qwen": "Qwen Code",
    "opencode": "opencode",
    "copilot": "Copilot CLI",
    "chatgpt": "ChatGPT",
    "claude": "Claude",
}


class _Before(msgspec.Struct, frozen=True):
    """The indexed state of a transcript."""

    stored: StoredSession
    progress: ReadProgress | None  # None: written by another version


async def apply_sessions(
    index: Index,
    group: Sequence[FoundFile],
    *,
    rules: IndexingRules,
    vectors: KnownVectors | None,
    threads: Threads,
    force: bool = False,
) -> AppliedChanges:
    """Index some transcripts; those that cannot be read keep their indexed content.

    Args:
        index: The index to write to.
        group: The transcripts; see plan.groups.
        rules: The rules of the agent.
        vectors: The cache; None without a provider or a cache.
        threads: The threads that read files.
        force: Read each transcript from the beginning.

    Raises:
        StoreUnavailable, StoreDamaged: none of them was indexed.
    """
    before = await _before(index, group)
    with timed_part("reading"):
        read, failed = await threads.run(_read_all, group, {} if force else before, rules)
    same, changes = [], []
    for found, reading in read:
        as_read = msgspec.structs.replace(found, stamp=reading.stamp)
        known = before.get(found.path)
        if isinstance(reading, UnchangedTranscript) or (
            force and await _is_held(index, found.path, reading, known)
        ):
            same.append(as_read)
            continue
        begin = _cut_from(reading, known)
        kept = await _turns_kept(index, found.path, begin, reading)
        with timed_part("cutting", found.path):
            cut = await threads.run(_cut, kept, begin, reading, rules)
        changes.append(_change(as_read, reading, known, begin, cut))
    with timed_part("writing"):
        await index.restamp(same)
    stale: frozenset[str] = frozenset()
    if changes:
        vector_of, refused, space = await known_vectors(vectors, [change.chunks for change in changes])
        with timed_part("writing"):
            done = await index.replace_sessions(changes, vector_of, refused, space)
        outcomes = zip(changes, done, strict=True)
        stale = frozenset(change.found.path for change, replaced in outcomes if replaced is None)
    taken = frozenset(found.path for found in [*same, *(change.found for change in changes)]) - stale
    return AppliedChanges(taken, len(changes) - len(stale), failed, stale)


def read_and_cut_session(found: FoundFile, rules: IndexingRules) -> ChunkedTurns:
    """Read a whole transcript and chunk it.

    Raises:
        SourceError: it cannot be read.
    """
    return _cut([], 0, _read(found, None, rules), rules)


def place_of(progress: ReadProgress) -> str:
    """Return the context of all chunks of a transcript, its agent and project: ``Claude Code session in app``."""
    agent = _AGENTS.get(progress.format or "", "")
    project = PurePath(progress.learnt.cwd.replace("\\", "/")).name if progress.learnt.cwd else ""
    return " ".join([*([agent, "session"] if agent else ["Session"]), *(["in", project] if project else [])])


async def _before(index: Index, group: Sequence[FoundFile]) -> dict[str, _Before]:
    stored = await index.stored_sessions([found.path for found in group])
    return {path: _Before(one, decoded(one.progress)) for path, one in stored.items()}


def _read_all(
    group: Sequence[FoundFile], before: Mapping[str, _Before], rules: IndexingRules
) -> tuple[list[tuple[FoundFile, Reading]], dict[str, SourceError]]:
    read: list[tuple[FoundFile, Reading]] = []
    failed: dict[str, SourceError] = {}
    for found in group:
        known = before.get(found.path)
        try:
            read.append((found, _read(found, None if known is None else known.progress, rules)))
        except SourceError as trouble:
            failed[found.path] = trouble
    return read, failed


def _read(found: FoundFile, progress: ReadProgress | None, rules: IndexingRules) -> Reading:
    with timed_part("reading", found.path):
        if found.entry:
            return read_entry(
                found,
                rules.roots,
                progress,
                redactor=rules.sessions_redactor,
                subagents=rules.sessions.subagents,
            )
        return read_transcript(
            found,
            rules.roots,
            progress,
            redactor=rules.sessions_redactor,
            subagents=rules.sessions.subagents,
            now_ns=time.time_ns(),
        )


async def _is_held(
    index: Index, path: str, reading: GrownTranscript | WholeTranscript, known: _Before | None
) -> bool:
    """Return whether the index contains exactly what was read."""
    if known is None or known.progress != reading.progress:
        return False
    return await index.turns(path) == list(reading.turns)


def _cut_from(reading: GrownTranscript | WholeTranscript, known: _Before | None) -> int:
    """Return the first turn from which on chunks are created again."""
    if isinstance(reading, WholeTranscript) or known is None or known.progress is None:
        return 0
    # If turns were removed, even only the last one, an earlier chunk may have ended where it did because of them.
    turns = reading.turns_from + len(reading.turns)
    if turns < known.stored.turns or reading.turns_from < max(known.stored.resume, known.stored.turns - 1):
        return 0
    # The context is part of each chunk.
    return known.stored.resume if place_of(known.progress) == place_of(reading.progress) else 0


async def _turns_kept(
    index: Index, path: str, begin: int, reading: GrownTranscript | WholeTranscript
) -> list[Turn]:
    """Return the unchanged turns that are chunked again."""
    if isinstance(reading, WholeTranscript) or begin == reading.turns_from:
        return []
    return (await index.turns(path, begin))[: reading.turns_from - begin]


def _cut(kept: Sequence[Turn], begin: int, reading: Reading, rules: IndexingRules) -> ChunkedTurns:
    turns = () if isinstance(reading, UnchangedTranscript) else reading.turns
    return chunk_turns(
        [*kept, *turns],
        begin,
        place_of(reading.progress),
        tokens=rules.chunking.tokens,
        overlap=rules.chunking.overlap,
        longest=rules.chunking.max_chars,
        zone=rules.zone,
    )


def _change(
    found: FoundFile,
    reading: GrownTranscript | WholeTranscript,
    known: _Before | None,
    begin: int,
    cut: ChunkedTurns,
) -> SessionChange:
    return SessionChange(
        found=found,
        hash=reading.progress.content_hash,
        progress=encoded(reading.progress),
        since=None if known is None or isinstance(reading, WholeTranscript) else known.stored.progress,
        turns_from=0 if isinstance(reading, WholeTranscript) else reading.turns_from,
        turns=reading.turns,
        chunks_from=begin,
        chunks=cut.chunks,
        resume=cut.resume,
        tally=reading.progress.tally,
    )
