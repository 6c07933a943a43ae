"""Finds the terms of a question in texts, and tells which terms are names."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain

import msgspec

from memd.text.tokens import fts_text, is_cjk, tokens, words_beginning

_ENDING = re.compile(r"(?:ing|edly|ed|ies|es|s|ly|y|e)$")
_VOWEL = re.compile("[aeiouy]")
_SHORTEST_ROOT = 3


class Occurrence(msgspec.Struct, frozen=True):
    """An occurrence of a term; text[start:end] is the match."""

    term: int  # index of the term
    start: int
    end: int


def occurrences(text: str, terms: Sequence[str]) -> list[Occurrence]:
    """Return all occurrences of the terms in a text, in the order of the text.

    A term is one token or several in a row. English words match in other inflections too ("painted" finds "paint"),
    similar to the stemmer of the keyword index.
    """
    by_first, heads = _by_first_root(tuple(terms))
    if not heads:
        return []
    found = list(tokens(text))
    return [
        Occurrence(n, start, found[at + len(roots) - 1][2])
        for at, (token, start, _) in enumerate(found)
        if token[:_SHORTEST_ROOT] in heads  # excludes most words of a text, for a tenth of the time
        for n, roots in by_first.get(root(token), ())
        if at + len(roots) <= len(found)
        and all(root(found[at + k][0]) == roots[k] for k in range(1, len(roots)))
    ]


@lru_cache(maxsize=16)  # one search looks for the same terms in a hundred chunks
def _by_first_root(terms: tuple[str, ...]) -> tuple[dict[str, list[tuple[int, list[str]]]], frozenset[str]]:
    """Return (index, roots) of the terms by first root, and the prefixes of the first roots."""
    by_first: dict[str, list[tuple[int, list[str]]]] = {}
    for n, term in enumerate(terms):
        roots = [root(token) for token, _, _ in tokens(term)]
        if roots:
            by_first.setdefault(roots[0], []).append((n, roots))
    return by_first, frozenset(first[:_SHORTEST_ROOT] for first in by_first)


def held(texts: Iterable[str], terms: Sequence[str]) -> set[int]:
    """Return the indexes of the terms that occur in any of the texts.

    Equal to the terms of `occurrences`, in a fifth of the time, since no positions are computed.
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
    """Terms by the way they are searched, each with its index."""

    cjk: tuple[tuple[int, str], ...]  # terms of CJK characters alone
    words: tuple[tuple[int, str], ...]  # terms of one word: its root
    phrases: tuple[tuple[int, frozenset[str]], ...]  # terms of several words: the roots that are not CJK
    beginnings: re.Pattern[str] | None  # the prefixes of all roots; excludes most words of a text


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
    """Return the stem that the inflections of an English word share; other words are returned unchanged."""
    if len(word) < 4 or not word.isascii() or word.endswith("ss"):
        return word
    rest = _ENDING.sub("", word)
    if len(rest) < _SHORTEST_ROOT or not _VOWEL.search(rest):
        return word
    doubled = len(rest) > _SHORTEST_ROOT and rest[-1] == rest[-2] and rest[-1] not in "lsz"
    return rest[:-1] if doubled else rest


_WORD = re.compile(r"[^\W\d_]+")
SENTENCE_BEGINNING = re.compile(r"(?:^|[.!?:;。！？：；\n])[\s\"'“‘«(\[*_#>-]*$")
LOOK_BACK = 12  # characters before a word that show whether it begins a sentence
NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        mr mrs ms miss dr prof sir madam
        monday tuesday wednesday thursday friday saturday sunday
        january february march april may june july august september october november december
        jan feb mar apr jun jul aug sep sept oct nov dec
        """,
    )
)
# In German every noun is capitalised.
_GERMAN = frozenset(
    ("der", "das", "und", "ist", "wie", "wer", "wann", "ein", "eine", "wir", "ich", "nicht", "für", "wurde")
)
_CODE = re.compile("[a-z].*[0-9]")
_CODE_WORDS = 3  # at most, such as "nv 5582"; a longer phrase is a path or a quotation


class Names(msgspec.Struct, frozen=True):
    """The terms of a question that are names, as indexes."""

    proper: tuple[int, ...] = ()  # capitalised within a sentence
    codes: tuple[int, ...] = ()  # letters followed by digits: "nv 5582", "pb211"

    def missing(self, held: Collection[int]) -> tuple[int, ...]:
        """Return the names that are not among the terms held by texts."""
        return tuple(term for term in self.proper + self.codes if term not in held)


def names(text: str, terms: Sequence[str]) -> Names:
    """Find the terms that are names.

    The first word of a sentence may be any word. In a text without lower case, or in German, capital letters mean
    nothing. Days, months and titles are not names.

    Args:
        text: The question as it was asked.
        terms: The terms of the question, folded.
    """
    words = [(match[0], match.start()) for match in _WORD.finditer(text)]
    capitalised = [(word, start) for word, start in words if word[0].isupper()]
    has_cjk = any(map(is_cjk, text))
    is_told = has_cjk or any(word[0].islower() for word, _ in words)
    proper: dict[int, None] = {}
    if capitalised and is_told and not any(word in _GERMAN for word, _ in words):
        place = {fts_text(term).strip(): n for n, term in enumerate(terms)}
        for word, start in capitalised:
            n = place.get(fts_text(word).strip())
            if n is None or word.lower() in NO_NAMES:
                continue
            is_abbreviation = len(word) > 1 and word.isupper()
            before = text[max(0, start - LOOK_BACK) : start]
            # Among Chinese words, a capitalised word is a name even at the beginning of a sentence.
            if not is_abbreviation and (has_cjk or not SENTENCE_BEGINNING.search(before)):
                proper[n] = None
    codes = (n for n, term in enumerate(terms) if _CODE.match(term) and len(term.split()) <= _CODE_WORDS)
    return Names(tuple(proper), tuple(codes))
