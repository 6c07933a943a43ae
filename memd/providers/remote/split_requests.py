"""Packs texts into requests, and splits long texts into pieces."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from memd.providers.provider import ProviderLimits, Vector, Vectors
from memd_client.token_estimate import estimate_tokens

_BREAKS = ("\n\n", "\n", "。", ". ", " ")


class TextPiece(msgspec.Struct, frozen=True):
    """A text, or a part of one that is too long for the model."""

    text: str
    of: int  # index of the whole text
    tokens: int  # estimated


def pieces(texts: Sequence[str], input_tokens: int) -> list[TextPiece]:
    """Split texts into pieces of at most `input_tokens` estimated tokens, in order."""
    return [
        TextPiece(part, number, estimate_tokens(part))
        for number, text in enumerate(texts)
        for part in split(text, input_tokens)
    ]


def split(text: str, tokens: int) -> list[str]:
    """Split a text into parts of at most `tokens` estimated tokens, at a pause if there is one.

    Only white space is lost. A text that fits is its only part.
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
    """Return how many characters of the beginning fit, at least one; the estimate grows with each character."""
    low, high = 1, min(len(text), 4 * tokens + 4)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def requests(some: Sequence[TextPiece], limits: ProviderLimits) -> Iterator[Sequence[TextPiece]]:
    """Yield groups of pieces in order, as many per request as fit; a piece that is too large is alone."""
    start, tokens = 0, 0
    for end, piece in enumerate(some):
        if end > start and (tokens + piece.tokens > limits.tokens or end - start >= limits.texts):
            yield some[start:end]
            start, tokens = end, 0
        tokens += piece.tokens
    if start < len(some):
        yield some[start:]


def whole(some: Sequence[TextPiece], rows: Vectors, count: int) -> Vectors:
    """Return the vectors of whole texts: the mean of the pieces' vectors, weighted by length and scaled to length 1.

    Args:
        some: The result of `pieces`.
        rows: One row per piece, of length 1.
        count: The number of texts.
    """
    if len(some) == count:
        return rows
    sums = np.zeros((count, rows.shape[1]), np.float64)
    for piece, row in zip(some, rows, strict=True):
        sums[piece.of] += max(1, piece.tokens) * row.astype(np.float64)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    firsts = np.array([next(n for n, piece in enumerate(some) if piece.of == text) for text in range(count)])
    # If the vectors of the pieces cancel out, the first one is used.
    means: Vectors = np.divide(sums, norms, out=rows[firsts].astype(np.float64), where=norms > 1e-6)
    return means.astype(np.float32)


def whole_ones(some: Sequence[TextPiece], rows: Mapping[int, Vector]) -> dict[int, Vector]:
    """Return the vectors of the texts of which all pieces have vectors, by index of the text.

    Args:
        some: The result of `pieces`.
        rows: Vectors of length 1, by index of the piece.
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
