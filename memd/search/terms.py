"""Where the terms of a question stand in a text, and which of them are names."""

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


_WORD = re.compile(r"[^\W\d_]+")
SENTENCE_BEGINNING = re.compile(r"(?:^|[.!?:;。！？：；\n])[\s\"'“‘«(\[*_#>-]*$")
LOOK_BACK = 12  # characters before a word that tell whether a sentence begins with it
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
# In German every noun has a capital letter.
_GERMAN = frozenset(
    ("der", "das", "und", "ist", "wie", "wer", "wann", "ein", "eine", "wir", "ich", "nicht", "für", "wurde")
)
_CODE = re.compile("[a-z].*[0-9]")
_CODE_WORDS = 3  # of a code at most, such as "nv 5582"; a longer phrase is a path or a quotation


class Names(msgspec.Struct, frozen=True):
    """The terms of a question that name somebody or something, each by its index."""

    proper: tuple[int, ...] = ()  # written with a capital letter within a sentence
    codes: tuple[int, ...] = ()  # of letters with digits after them: "nv 5582", "pb211"

    def missing(self, held: Collection[int]) -> tuple[int, ...]:
        """Those that are not among the terms that texts hold."""
        return tuple(term for term in self.proper + self.codes if term not in held)


def names(text: str, terms: Sequence[str]) -> Names:
    """Tell which terms are names.

    A word that a sentence begins with may be any word, and a text without small letters, or in German, tells nothing by
    capital letters. Days, months and abbreviations in capital letters are no names.

    Args:
        text: The question as it was asked.
        terms: Of the question, folded.
    """
    place = {fts_text(term).strip(): n for n, term in enumerate(terms)}
    words = [(word, match.start()) for match in _WORD.finditer(text) if (word := match[0])]
    has_cjk = any(map(is_cjk, text))
    is_told = has_cjk or any(word[0].islower() for word, _ in words)
    proper: dict[int, None] = {}
    if is_told and not any(word in _GERMAN for word, _ in words):
        for word, start in words:
            n = place.get(fts_text(word).strip())
            if n is None or not word[0].isupper() or word.lower() in NO_NAMES:
                continue
            is_abbreviation = len(word) > 1 and word.isupper()
            before = text[max(0, start - LOOK_BACK) : start]
            # Among Chinese words a sentence begins with a capital letter only where a name does.
            if not is_abbreviation and (has_cjk or not SENTENCE_BEGINNING.search(before)):
                proper[n] = None
    codes = (n for n, term in enumerate(terms) if _CODE.match(term) and len(term.split()) <= _CODE_WORDS)
    return Names(tuple(proper), tuple(codes))
