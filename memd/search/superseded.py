"""Recognises outdated text: its note says that it is superseded, or it is struck through."""

import math
import re

import msgspec

from memd.chunk.split import Span
from memd.config.settings import WORTH_READING
from memd.search.fuse_scores import Scored, relevance
from memd.search.query import Query
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
    name = (linked[1] if linked else superseded.superseded).strip().removeprefix("./").removesuffix(".md")
    own = folded(path).removesuffix(".md")
    return own == name or own.endswith(f"/{name}")


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
