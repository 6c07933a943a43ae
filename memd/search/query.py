"""A question as the keyword index and the embedding model want it."""

import re
import unicodedata
from itertools import pairwise

import msgspec

from memd.text import cut, fts_text, is_cjk

_MAX_WORDS = 48
_MAX_PHRASES = 16
_MAX_READ_CHARS = 20_000  # of a question; the rest adds no term that would be chosen
_MAX_EMBED_CHARS = 2_000  # about what a model of 512 tokens reads
_QUOTED = re.compile(r'["“”「『]([^"“”「」『』\n]{2,200})["“”」』]')
_RUN = re.compile(r"[^\W_]+(?:(?:[._\-/:@]|(?:'|’)(?=[^\W_]))+[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_SUFFIXES = frozenset({"s", "t", "d", "m", "re", "ve", "ll", "em"})

# The words English questions are built of. They tell nothing about what is asked for.
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the this that these those some any all each both
        i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
        who whom whose which what when where why how
        is are was were be been being am do does did doing done have has had having
        will would shall should can could might must
        and or but nor not no if then than so as of to in on at by for from with about into onto out up
        there here just also too very
        """,
    )
)


class Query(msgspec.Struct, frozen=True):
    """What one question asks of each part of the search."""

    match: str | None  # the FTS5 MATCH expression over fts_text; None where the question has no word
    words: tuple[str, ...]  # what it is about: words, and pairs of CJK characters
    phrases: tuple[str, ...]  # the names with marks in them, and the quotations; spaces between their words
    embed_text: str  # what is embedded; empty where there is nothing to embed

    @property
    def terms(self) -> tuple[str, ...]:
        """All that is looked for."""
        return self.phrases + self.words

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return self.match is None


def parse(text: str) -> Query:
    """Read a question.

    A run of CJK characters is looked for by its adjacent pairs, other words each by itself, a name such as
    ``memd.search`` or ``2026-02-09`` as a phrase besides its parts, and what stands in quotation marks as a phrase. All are
    alternatives: bm25 puts the chunks that hold more of them, and the rarer ones, first.
    """
    folded = unicodedata.normalize("NFKC", text[:_MAX_READ_CHARS]).lower()
    quoted = [" ".join(_tokens(quotation)) for quotation in _QUOTED.findall(folded)]
    phrases, words = [phrase for phrase in quoted if _is_phrase(phrase)], []
    for run in _RUN.findall(folded):
        name, parts = _parts(run)
        phrases += name
        words += parts
    words = [word for word in words if word not in _STOP_WORDS] or words
    phrases, words = _chosen(phrases, _MAX_PHRASES), _chosen(words, _MAX_WORDS)
    if not phrases and not words:
        return Query(match=None, words=(), phrases=(), embed_text="")
    # Terms are words and spaces alone by now, so that quoting needs no escape.
    match = " OR ".join(f'"{fts_text(term).strip()}"' for term in phrases + words)
    asked = cut(" ".join(text[: 4 * _MAX_EMBED_CHARS].split()), _MAX_EMBED_CHARS)
    return Query(match=match, words=tuple(words), phrases=tuple(phrases), embed_text=asked)


def _parts(run: str) -> tuple[list[str], list[str]]:
    """The phrase that a name with marks in it makes, if it is one, with its words; of CJK text the adjacent pairs."""
    parts = _tokens(run)
    if any(is_cjk(part[0]) for part in parts):
        return [], [term for part in _counted(parts) for term in _pairs(part)]
    if len(parts) > 1 and parts[-1] in _SUFFIXES and ("'" in run or "’" in run):
        parts = parts[:-1]  # whose, not what: "Ann's" asks for Ann
    if len(parts) < 2:
        return [], parts
    return [" ".join(parts)], [
        part for part in parts if len(part) > 1 and not (part.isdigit() and len(part) < 3)
    ]


def _counted(parts: list[str]) -> list[str]:
    """Parts with a number and the CJK character that it counts put together: "2 月"."""
    joined: list[str] = []
    for before, part in pairwise(["", *parts]):
        if before.isdigit() and is_cjk(part[0]):
            joined[-1:] = [f"{before} {part[0]}", *([part] if len(part) > 1 else [])]
        else:
            joined.append(part)
    return joined


def _pairs(part: str) -> list[str]:
    """The adjacent pairs of CJK text; another word as it is."""
    return [part[n : n + 2] for n in range(len(part) - 1)] if is_cjk(part[0]) and len(part) > 1 else [part]


def _is_phrase(term: str) -> bool:
    """Whether a quotation says more than a word does: several words, or more CJK characters than a pair."""
    return " " in term or (len(term) > 2 and is_cjk(term[0]))


def _tokens(text: str) -> list[str]:
    """Words, with CJK runs and other scripts taken apart."""
    tokens: list[str] = []
    for word in _PART.findall(text):
        start = 0
        for at in range(1, len(word) + 1):
            if at == len(word) or is_cjk(word[at]) != is_cjk(word[start]):
                tokens.append(word[start:at])
                start = at
    return tokens


def _chosen(terms: list[str], most: int) -> list[str]:
    """Each term once, in order; of more than so many the longest, which are mostly the rarest."""
    terms = list(dict.fromkeys(terms))
    if len(terms) <= most:
        return terms
    kept = set(sorted(range(len(terms)), key=lambda n: (-len(terms[n]), n))[:most])
    return [term for n, term in enumerate(terms) if n in kept]
