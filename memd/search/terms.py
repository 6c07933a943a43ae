"""Where the terms of a question stand in a text."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from memd.text import is_cjk

_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?:ing|edly|ed|ies|es|s|ly|y|e)$")
_VOWEL = re.compile("[aeiouy]")
_SHORTEST_ROOT = 3


class Occurrence(msgspec.Struct, frozen=True):
    """One place where a term stands; text[start:end] is what matched."""

    term: int  # its index among the terms
    start: int
    end: int


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """(folded token, start, end): words, and CJK characters each by itself, as the keyword index divides a text."""
    if text.isascii():
        yield from ((word[0], word.start(), word.end()) for word in _WORD.finditer(text.lower()))
        return
    for word in _WORD.finditer(text):
        start = word.start()
        if word[0].isascii():
            yield word[0].lower(), start, word.end()
            continue
        for at in range(start, word.end()):
            if is_cjk(text[at]):
                if start < at:
                    yield _folded(text[start:at]), start, at
                yield _folded(text[at]), at, at + 1
                start = at + 1
        if start < word.end():
            yield _folded(text[start : word.end()]), start, word.end()


def occurrences(text: str, terms: Sequence[str]) -> list[Occurrence]:
    """Every place in a text where one of the terms stands, in the order of the text.

    A term is one token or several in a row. English words match in their other forms too ("painted" finds "paint"),
    much as the stemmer of the keyword index has it.
    """
    by_first, heads = _by_first_root(tuple(terms))
    if not heads:
        return []
    found = list(tokens(text))
    return [
        Occurrence(n, start, found[at + len(roots) - 1][2])
        for at, (token, start, _) in enumerate(found)
        if token[:_SHORTEST_ROOT] in heads  # most words of a text are out by this, for a tenth of the time
        for n, roots in by_first.get(root(token), ())
        if at + len(roots) <= len(found)
        and all(root(found[at + k][0]) == roots[k] for k in range(1, len(roots)))
    ]


@lru_cache(maxsize=16)  # a search asks for the same terms of a hundred chunks
def _by_first_root(terms: tuple[str, ...]) -> tuple[dict[str, list[tuple[int, list[str]]]], frozenset[str]]:
    """Terms as (index, roots) by their first root, with the beginnings of those first roots."""
    by_first: dict[str, list[tuple[int, list[str]]]] = {}
    for n, term in enumerate(terms):
        roots = [root(token) for token, _, _ in tokens(term)]
        if roots:
            by_first.setdefault(roots[0], []).append((n, roots))
    return by_first, frozenset(first[:_SHORTEST_ROOT] for first in by_first)


def held(texts: Iterable[str], terms: Sequence[str]) -> set[int]:
    """Which terms stand in any of the texts, by their index."""
    return {occurrence.term for text in texts for occurrence in occurrences(text, terms)}


def root(word: str) -> str:
    """What the forms of an English word have in common; another word as it is."""
    if len(word) < 4 or not word.isascii() or word.endswith("ss"):
        return word
    rest = _ENDING.sub("", word)
    if len(rest) < _SHORTEST_ROOT or not _VOWEL.search(rest):
        return word
    doubled = len(rest) > _SHORTEST_ROOT and rest[-1] == rest[-2] and rest[-1] not in "lsz"
    return rest[:-1] if doubled else rest


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).lower()
