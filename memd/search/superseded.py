"""Recognises outdated text: its note says that it is superseded, it is struck through, or another text says so of it."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice, repeat

import msgspec

from memd.chunk.split import Span
from memd.config.settings import WORTH_READING
from memd.domain_types import ChunkId
from memd.search.fuse_scores import Scored, relevance
from memd.search.query import SUPPORT, Query, parse
from memd.search.terms import held
from memd.store.chunks import StoredChunk
from memd.text.tokens import WORD_CHARACTER, folded, fts_text

# The factor on the evidence of outdated text, which stays worth reading.
_FACTOR = 0.8
_WORTH_READING = math.atanh(WORTH_READING)
_JUST_BEHIND = 0.999
_STRUCK = re.compile(r"~~(?=\S)([^~\n]+?)(?<=\S)~~")
_WORD = re.compile(WORD_CHARACTER)
_LINK = re.compile(r"^\[\[(.*?)(?:[|#].*)?\]\]$")
_MOST_STRUCK = 4  # struck texts that are looked for in other candidates, 30 µs each
_MOST_COMPARED = 4  # candidates that seem to hold one, 60 µs each
_LINKED = re.compile(r"\[\[([^\[\]|#\n]+)")


def is_superseded(chunk: StoredChunk, query: Query, closest: Span | None) -> bool:
    """Return whether what a chunk says about the question is outdated.

    One struck-through word is not enough: all of the text is struck through, or most of the part closest to the question,
    or most of the question's terms that the chunk holds.

    Args:
        chunk: A candidate for a hit.
        query: The question.
        closest: The span in the chunk whose vector is closest to the question; None: unknown.
    """
    if chunk.superseded is not None:
        return True
    if "~~" not in chunk.text:
        return False
    struck = [(found.start(), found.end()) for found in _STRUCK.finditer(chunk.text)]
    rest = _STRUCK.sub(" ", chunk.text)
    if not struck or not _WORD.search(fts_text(rest)):
        return bool(struck)
    if closest is not None:
        begin, end = closest
        inside = sum(max(0, min(end, last) - max(begin, first)) for first, last in struck)
        return 2 * inside > end - begin
    has = held([chunk.text], query.terms)
    return bool(has) and 2 * len(held([rest], query.terms)) < len(has)


def replaces(path: str, superseded: StoredChunk) -> bool:
    """Return whether a path is that of the note that supersedes a chunk's note."""
    if not superseded.superseded:
        return False
    linked = _LINK.match(superseded.superseded)
    return _is_named(path, linked[1] if linked else superseded.superseded)


def _is_named(path: str, name: str) -> bool:
    """Return whether a link or a path of a note leads to a path."""
    name = name.strip().removeprefix("./").removesuffix(".md")
    own = folded(path).removesuffix(".md")
    return own == name or own.endswith(f"/{name}")


def stated_replacements(
    candidates: Sequence[tuple[StoredChunk, Span | None]],
) -> set[tuple[ChunkId, ChunkId]]:
    """Return the pairs (later, older) of chunks of which a text says that the later one replaces the older one.

    The later one has struck out what the older one still says, or the older one refers to a note whose front matter says that
    the note of the later one replaced it. Of the older one only the part that is closest to the question is read, since
    its other parts may say what nothing replaced. What is dated after the later one is not replaced by it.

    Args:
        candidates: A few candidates for one question, the best first, each with the span closest to the question.
    """
    chunks = [one for one, _ in candidates]
    said = [one.text if closest is None else one.text[slice(*closest)] for one, closest in candidates]
    return {
        (later.id, older.id)
        for later, older in chain(_struck_elsewhere(chunks, said), _with_superseded_links(chunks, said))
        if later.path != older.path
        and later.superseded is None
        and (later.first_s is None or older.last_s is None or older.last_s <= later.first_s)
    }


def _struck_elsewhere(
    chunks: Sequence[StoredChunk], said: Sequence[str]
) -> Iterator[tuple[StoredChunk, StoredChunk]]:
    """Yield the chunks that hold most words of what a worse one has struck out and replaced, and of the line before it."""
    if not any("~~" in chunk.text for chunk in chunks):
        return
    plain = [folded(_STRUCK.sub(" ", one)) for one in said]
    likely = (
        (later, older, text, asked, line)
        for at, asked, line in islice(_all_struck(chunks), _MOST_STRUCK)
        for later, older, text in zip(repeat(chunks[at]), chunks[:at], plain, strict=False)
        # Most texts do not hold them, which is known in a twentieth of the time.
        if 2 * sum(term.split()[0][:3] in text for term in asked.terms) >= len(asked.terms)
    )
    parsed = cache(parse)  # the same line is asked of several texts
    for later, older, text, asked, line in islice(likely, _MOST_COMPARED):
        if all(one.share(held([text], one.terms)) >= SUPPORT for one in (asked, parsed(line))):
            yield later, older


def _all_struck(chunks: Sequence[StoredChunk]) -> Iterator[tuple[int, Query, str]]:
    """Yield the texts that are struck out and replaced: the chunk's index, the words, and the line up to their end."""
    for at, chunk in enumerate(chunks):
        for struck in _STRUCK.finditer(chunk.text) if "~~" in chunk.text else ():
            rest = chunk.text[struck.end() :].partition("\n")[0]
            if _WORD.search(fts_text(rest)):  # else it is done, and replaced by nothing
                line_start = chunk.text.rfind("\n", 0, struck.start()) + 1
                yield at, parse(struck[1]), chunk.text[line_start : struck.end()]


def _with_superseded_links(
    chunks: Sequence[StoredChunk], said: Sequence[str]
) -> Iterator[tuple[StoredChunk, StoredChunk]]:
    """Yield the chunks that link to a superseded note among the chunks, each after those of the note that replaced it."""
    replaced = [one for one in chunks if one.superseded]
    for older, its in zip(chunks, said, strict=True) if replaced else ():
        for name in _LINKED.findall(folded(its)) if "[[" in its else ():
            for one in replaced:
                if _is_named(one.path, name):
                    yield from ((later, older) for later in chunks if replaces(later.path, one))


def behind_replacement(scored: Scored, replacement: Scored | None) -> Scored:
    """Return an outdated candidate with lowered evidence, behind the note that replaced it.

    Args:
        scored: The candidate.
        replacement: The best candidate of the replacing note; None: it is not among the candidates.
    """
    evidence = scored.meaning + scored.words
    less = max(_WORTH_READING, _FACTOR * evidence)
    return lowered(scored, less if replacement is None else min(less, _JUST_BEHIND * replacement.evidence))


def lowered(scored: Scored, most: float = _WORTH_READING) -> Scored:
    """Return a candidate whose evidence is at most `most`; by default it is then just worth reading."""
    evidence = scored.meaning + scored.words
    factor = min(1.0, most / evidence) if evidence else 1.0
    meaning, words = factor * scored.meaning, factor * scored.words
    return msgspec.structs.replace(
        scored, score=relevance(meaning + words), meaning=meaning, words=words, older=None
    )
