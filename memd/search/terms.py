"""Where the terms of a question stand in a text."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

import msgspec

from memd.text.tokens import fts_text, is_cjk, tokens, words_beginning

_ENDING = re.compile(r"(?:ing|edly|ed|ies|es|s|ly|y|e)$")
_VOWEL = re.compile("[aeiouy]")
_SHORTEST_ROOT = 3


class Occurrence(msgspec.Struct, frozen=True):
    """One place where a term stands; text[start:end] is what matched."""

    term: int  # its index among the terms
    start: int
    end: int


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
    """Which terms stand in any of the texts, by their index.

    The same as the terms of all occurrences, in a fifth of the time: where they stand is not asked.
    """
    sought = _sought(tuple(terms))
    found: set[int] = set()
    for text in texts:
        plain = fts_text(text)
        if sought.cjk and not text.isascii():
            run = plain.replace(" ", "")
            found.update(n for n, term in sought.cjk if term in run)
        if sought.beginnings is not None:
            roots = set(map(root, sought.beginnings.findall(plain)))
            found.update(n for n, word in sought.words if word in roots)
            found.update(
                n
                for n, words in sought.phrases
                if n not in found and words <= roots and occurrences(text, [terms[n]])
            )
    return found


class _Sought(msgspec.Struct, frozen=True):
    """Terms by how they are looked for, each with its index."""

    cjk: tuple[tuple[int, str], ...]  # of CJK characters alone
    words: tuple[tuple[int, str], ...]  # of one word: its root
    phrases: tuple[tuple[int, frozenset[str]], ...]  # of several: the roots of those that are not CJK
    beginnings: re.Pattern[str] | None  # of all words; most of a text are out by this


@lru_cache(maxsize=16)
def _sought(terms: tuple[str, ...]) -> _Sought:
    cjk: list[tuple[int, str]] = []
    words: list[tuple[int, str]] = []
    phrases: list[tuple[int, frozenset[str]]] = []
    for n, term in enumerate(terms):
        roots = [root(token) for token, _, _ in tokens(term)]
        others = frozenset(one for one in roots if not is_cjk(one[0]))
        if not roots:
            continue
        if not others:
            cjk.append((n, "".join(roots)))
        elif len(roots) == 1:
            words.append((n, roots[0]))
        else:
            phrases.append((n, others))
    heads = {
        one[:_SHORTEST_ROOT] for one in chain((word for _, word in words), *(each for _, each in phrases))
    }
    return _Sought(
        tuple(cjk), tuple(words), tuple(phrases), words_beginning(sorted(heads)) if heads else None
    )


def root(word: str) -> str:
    """What the forms of an English word have in common; another word as it is."""
    if len(word) < 4 or not word.isascii() or word.endswith("ss"):
        return word
    rest = _ENDING.sub("", word)
    if len(rest) < _SHORTEST_ROOT or not _VOWEL.search(rest):
        return word
    doubled = len(rest) > _SHORTEST_ROOT and rest[-1] == rest[-2] and rest[-1] not in "lsz"
    return rest[:-1] if doubled else rest
