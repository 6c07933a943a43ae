"""Texts put into requests: as many as fit, and long ones in pieces."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from memd.providers.provider import ProviderLimits, Vector, Vectors
from memd.text.tokens import estimate_tokens

_BREAKS = ("\n\n", "\n", "。", ". ", " ")


class TextPiece(msgspec.Struct, frozen=True):
    """A text, or a part of one that is too long to be sent whole."""

    text: str
    of: int  # place of the whole text among all
    tokens: int  # estimated


def pieces(texts: Sequence[str], input_tokens: int) -> list[TextPiece]:
    """All texts in pieces of so many estimated tokens at most, in order."""
    return [
        TextPiece(part, number, estimate_tokens(part))
        for number, text in enumerate(texts)
        for part in split(text, input_tokens)
    ]


def split(text: str, tokens: int) -> list[str]:
    """A text in parts of so many estimated tokens at most, cut where a reader would pause if there is such a place.

    Nothing but white space is lost. A text that fits is its own only part.
    """
    parts: list[str] = []
    rest = text
    while estimate_tokens(rest) > tokens:
        end = _longest(rest, tokens)
        head = rest[:end]
        pause = max(
            (head.rfind(mark) + len(mark) for mark in _BREAKS if mark in head[end // 2 :]), default=end
        )
        if head[:pause].strip():  # many providers refuse white space alone
            parts.append(head[:pause])
        rest = rest[pause:]
    if rest.strip() or not parts:
        parts.append(rest)
    return parts


def _longest(text: str, tokens: int) -> int:
    """How many characters of the beginning fit, at least one. The estimate grows with every character."""
    low, high = 1, min(len(text), 4 * tokens + 4)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def requests(some: Sequence[TextPiece], limits: ProviderLimits) -> Iterator[Sequence[TextPiece]]:
    """Pieces in order, as many in each request as fit; one that alone is too large goes alone."""
    start, tokens = 0, 0
    for end, piece in enumerate(some):
        if end > start and (tokens + piece.tokens > limits.tokens or end - start >= limits.texts):
            yield some[start:end]
            start, tokens = end, 0
        tokens += piece.tokens
    if start < len(some):
        yield some[start:]


def whole(some: Sequence[TextPiece], rows: Vectors, count: int) -> Vectors:
    """The vectors of whole texts: of one in pieces, the mean of theirs by their length, scaled to length 1.

    Args:
        some: As pieces gave them.
        rows: A row a piece, of length 1.
        count: Of the texts.
    """
    if len(some) == count:
        return rows
    sums = np.zeros((count, rows.shape[1]), np.float64)
    for piece, row in zip(some, rows, strict=True):
        sums[piece.of] += max(1, piece.tokens) * row.astype(np.float64)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    firsts = np.array([next(n for n, piece in enumerate(some) if piece.of == text) for text in range(count)])
    # Pieces that cancel each other out to nothing are represented by the first of them.
    means: Vectors = np.where(norms > 1e-6, sums / np.maximum(norms, 1e-6), rows[firsts]).astype(np.float32)
    return means


def whole_ones(some: Sequence[TextPiece], rows: Mapping[int, Vector]) -> dict[int, Vector]:
    """The vectors of those texts of which all pieces have theirs, by the places of the texts.

    Args:
        some: As pieces gave them.
        rows: By the places of the pieces, of length 1.
    """
    missing = {piece.of for place, piece in enumerate(some) if place not in rows}
    there = [place for place, piece in enumerate(some) if piece.of not in missing]
    if not there:
        return {}
    places = list(dict.fromkeys(some[place].of for place in there))
    renumbered = {of: number for number, of in enumerate(places)}
    kept = [TextPiece(some[place].text, renumbered[some[place].of], some[place].tokens) for place in there]
    vectors = whole(kept, np.stack([rows[place] for place in there]), len(places))
    return dict(zip(places, vectors, strict=True))
