"""Expands a question by synonyms and translations, from the thesaurus of general words.

A text in other words, or in the other language, holds few words of a question. Which of its words it holds in any form is evidence
beside what the vectors say.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain, count, zip_longest
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.search.query import GRAMMAR, QUESTION_WORDS, STOP_WORDS, separate_words
from memd.store.vector_matrix import Doubles, Ids, distinct, places_among
from memd.text.english_forms import base_forms, irregular_forms
from memd.text.simplified_chinese import simplified
from memd.text.thesaurus import LONGEST_CHINESE, LONGEST_ENGLISH, plain, thesaurus
from memd.text.tokens import is_cjk, words_and

_MAX_CHARS = 400  # of a question: one that is longer has enough words of its own
_MAX_WORDS = 12  # of a question that count
_MAX_OTHERS = 5  # synonyms of a word, and as many translations
_MAX_PAIRS = 12  # of characters that the thesaurus does not have
_MOST_TERMS = 128  # of all words
_SHORTEST = 2  # characters of an English word
# Words that stand for what is asked for, as question words do.
_ANYTHING = frozenset("thing things something anything somebody someone 事 事情 东西 有人".split())  # noqa: SIM905 - a list of words is read more easily
# What is left of an English verb where "n't", "'re", "'ll" and "'ve" are cut off, and these themselves.
_CONTRACTED = frozenset(
    "aren couldn didn doesn don hadn hasn isn mustn needn shouldn wasn weren won wouldn ll re ve".split()  # noqa: SIM905 - as above
)
# Characters that between the words of the thesaurus are seldom words.
_LIGHT = GRAMMAR | frozenset(
    "一二两三几那个位条台家次样号里上下中前后时先别来去到起出成让说才只已再更最则若所每各另其间处边"
)
_CLAUSE_END = re.compile(r"[^\w\s'’-]+")
# 168,000 is the number 168000; a dot may part the digits of a version or an address.
_THOUSANDS = re.compile(r"(?<![A-Za-z0-9_.,])[0-9]{1,3}(?:[,，][0-9]{3})+(?![A-Za-z0-9_,]|\.[0-9]{3})")
# The parts of a smaller one stand in many texts that do not have it.
_LARGE = re.compile("[1-9][0-9]{4,11}", re.ASCII)
_whole_runs = words_and("")


class AskedWord(msgspec.Struct, frozen=True):
    """A word or an expression of a question, and what else means the same."""

    asked: str
    others: tuple[str, ...] = ()  # synonyms and translations


class ExpandedShares(msgspec.Struct, frozen=True):
    """The texts that hold words of a question in any form, as parallel arrays; see Expansion.shares."""

    ids: Ids  # ascending
    of_all: Doubles
    of_alternatives: Doubles

    def some(self, rows: NDArray[np.intp]) -> "ExpandedShares":
        """Return the shares of some rows, which ascend."""
        return ExpandedShares(self.ids[rows], self.of_all[rows], self.of_alternatives[rows])

    def of(self, chunk_ids: Ids) -> tuple[Doubles, Doubles]:
        """Return both shares of some texts; 0 for a text that holds no word."""
        at, is_here = places_among(self.ids, chunk_ids)
        of_all, of_alternatives = np.zeros(len(chunk_ids)), np.zeros(len(chunk_ids))
        of_all[is_here], of_alternatives[is_here] = (
            self.of_all[at[is_here]],
            self.of_alternatives[at[is_here]],
        )
        return of_all, of_alternatives


class Expansion(msgspec.Struct, frozen=True):
    """The words of a question with their alternatives, as the keyword index is asked for them.

    "rent 汽车" may have the words `rent` (or 租金, 房租) and 汽车 (or `car`), the terms `rent`, 租金, 房租, 汽车 and `car`, the forms
    (0,), (1,), (2,), (3,) and (4,), and `first` (0, 3). A form of several terms, such as `sports car`, is held where all of them are.
    """

    words: tuple[AskedWord, ...]
    terms: tuple[str, ...]  # distinct words and pairs of CJK characters
    # The word and its alternatives by turns: for each form, the terms that a text with it holds, as indexes.
    forms: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]  # for each word, the index of its first form

    @property
    def alternatives(self) -> dict[str, tuple[str, ...]]:
        """The words that have synonyms or translations, with them."""
        return {word.asked: word.others for word in self.words if word.others}

    @property
    def synonyms(self) -> tuple[str, ...]:
        """All synonyms and translations."""
        return tuple(other for word in self.words for other in word.others)

    def shares(self, held: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """Return the share of the question's words that each text holds in any form, and the part of it that alternatives add.

        A word weighs more if few of the texts hold it.

        Args:
            held: Whether each term is held by each text, shape (terms, texts).
        """
        needed = np.zeros((len(self.forms), len(self.terms)), np.float32)
        of_forms = np.repeat(np.arange(len(self.forms)), list(map(len, self.forms)))
        needed[of_forms, list(chain.from_iterable(self.forms))] = 1.0
        has_form = needed @ held.astype(np.float32) == needed.sum(axis=1)[:, None]
        has_word = np.logical_or.reduceat(has_form, self.first, axis=0)
        weights = _weights(has_word.sum(axis=1), held.shape[1])
        # A word without alternatives is held as it was asked for, in whichever form.
        is_known = np.array([bool(word.others) for word in self.words])
        is_added = has_word & ~has_form[list(self.first)] & is_known[:, None]
        whole = weights.sum()
        return weights @ has_word / whole, weights @ is_added / whole

    def shares_in_index(self, holders: Sequence[Ids], chunks: int) -> ExpandedShares:
        """Return the same shares of all texts of an index that hold any word; a word weighs more if few of all texts hold it.

        Args:
            holders: For each term, the ascending ids of the texts that hold it.
            chunks: The number of texts in the index.
        """
        asked, every = [], []  # for each word, the texts that hold it as it was asked for, and in any form
        for word, begin, end in zip(self.words, self.first, [*self.first[1:], len(self.forms)], strict=True):
            of_forms = [_holding_all([holders[term] for term in form]) for form in self.forms[begin:end]]
            every.append(distinct(np.concatenate(of_forms)))
            asked.append(of_forms[0] if word.others else every[-1])
        ids = distinct(np.concatenate(every))
        weights = _weights(np.array(list(map(len, every))), chunks)
        weights /= weights.sum()
        of_all, of_asked = np.zeros(len(ids)), np.zeros(len(ids))
        for weight, some, as_asked in zip(weights.tolist(), every, asked, strict=True):
            of_all[ids.searchsorted(some)] += weight
            of_asked[ids.searchsorted(as_asked)] += weight
        return ExpandedShares(ids, of_all, of_all - of_asked)


def _weights(often: NDArray[np.integer[Any]], texts: int) -> Doubles:
    """Return the weight of each word, by the number of texts that hold it: its inverse document frequency."""
    weights: Doubles = np.log1p(np.maximum(0.5, texts - often + 0.5) / (often + 0.5))
    return weights


def _holding_all(holders: Sequence[Ids]) -> Ids:
    """Return the texts that hold all of some terms, of the ascending ids of those that hold each."""
    first, *others = holders
    for some in others:
        first = first[places_among(some, first)[1]]
    return first


def expansion(question: str) -> Expansion | None:
    """Expand a question; None: the thesaurus has none of its words."""
    words = tuple(asked_words(question))
    if not any(word.others for word in words):
        return None
    numbers: defaultdict[str, int] = defaultdict(
        count().__next__
    )  # of the terms: a new one has the next number
    forms: list[tuple[int, ...]] = []
    first = []
    for word in words:
        first.append(len(forms))
        terms = [_terms(form) for form in (word.asked, *word.others)]
        if not word.others:  # a run of characters that the thesaurus does not have may be several words
            terms = [(term,) for term in terms[0][:_MAX_PAIRS]]
        for some in terms:
            if len(forms) == first[-1] or len(numbers) + len(some) <= _MOST_TERMS:
                forms.append(tuple(map(numbers.__getitem__, some)))
    return Expansion(words, tuple(numbers), tuple(forms), tuple(first))


@lru_cache(maxsize=4096)  # many questions have the same words
def _terms(form: str) -> tuple[str, ...]:
    """Return the words and pairs of CJK characters of an expression, without stop words and letters if there are others."""
    terms = [
        term
        for word in separate_words(form)
        for term in (
            [word[at : at + 2] for at in range(len(word) - 1)]
            if is_cjk(word[0]) and len(word) > 1
            else [word]
        )
    ]
    content = [
        term
        for term in terms
        if term not in STOP_WORDS and (len(term) > 1 or is_cjk(term) or term.isdecimal())
    ]
    return tuple(content or terms)


def asked_words(question: str) -> list[AskedWord]:
    """Return the first content words of a question; of expressions that begin together, the longest that the thesaurus has."""
    found: list[AskedWord] = []
    read = question[:_MAX_CHARS]
    for clause in _CLAUSE_END.split(QUESTION_WORDS.sub(" ", _THOUSANDS.sub(_without_commas, read))):
        english: list[str] = []
        for word in separate_words(simplified(_whole_runs(clause)).replace("没有", " ")):
            if is_cjk(word[0]):
                found += _english(english)
                found += _chinese(word)
                english = []
            else:
                english.append(word)
        found += _english(english)
    in_groups = {_without_commas(number) for number in _THOUSANDS.finditer(read)}
    found = [_in_words(one) if one.asked in in_groups else one for one in found]
    return list(dict.fromkeys(found))[:_MAX_WORDS]


def _without_commas(number: re.Match[str]) -> str:
    return re.sub("[,，]", "", number[0])


def _in_words(number: AskedWord) -> AskedWord:
    """Return a number that is asked for with commas as the words that it is indexed as, with the number as another form."""
    return AskedWord(" ".join(number.others), (number.asked,)) if number.others else number


def _english(words: Sequence[str]) -> Iterator[AskedWord]:
    """Yield the content words of adjacent English words."""
    forms = {
        (at, end): _forms(words[at:end])
        for at in range(len(words))
        for end in range(at + 1, min(at + LONGEST_ENGLISH, len(words)) + 1)
        if end > at + 1 or _is_content(words[at])
    }
    known = thesaurus().known(set(chain.from_iterable(forms.values())))
    at = 0
    while at < len(words):
        others: tuple[str, ...] = ()
        for end in range(min(at + LONGEST_ENGLISH, len(words)), at, -1):
            here = forms.get((at, end), ())
            if known.isdisjoint(here):
                continue
            others = _others(" ".join(words[at:end]), tuple(form for form in here if form in known))
            if others:  # none: it only has the hash of another
                break
        asked = " ".join(words[at:end])
        others = others or _in_groups(asked)
        if others or (_is_content(asked) and len(asked) >= _SHORTEST):
            yield AskedWord(asked, others)
        at = end


def _in_groups(word: str) -> tuple[str, ...]:
    """Return a number as it is indexed where its digits are in groups of three: 168,000 is two words."""
    return (f"{int(word):,}".replace(",", " "),) if _LARGE.fullmatch(word) else ()


def _is_content(word: str) -> bool:
    return word not in STOP_WORDS and word not in _ANYTHING and word not in _CONTRACTED


def _forms(words: Sequence[str]) -> Sequence[str]:
    """Return an expression as it may stand in the thesaurus: with the base form of its first or its last word, too."""
    if len(words) == 1:
        return base_forms(words[0])
    whole = " ".join(words)
    if words[0] in STOP_WORDS:
        return [whole]  # "i saw" is no form of "i see"
    rest, before = whole[len(words[0]) :], whole[: -len(words[-1])]
    return [form + rest for form in base_forms(words[0])] + [
        before + form for form in base_forms(words[-1])[1:]
    ]


def _chinese(run: str) -> Iterator[AskedWord]:
    """Yield the content words of a run of CJK characters."""
    sizes = range(LONGEST_CHINESE, 0, -1)
    seem_known = thesaurus().known({run[at : at + size] for at in range(len(run)) for size in sizes})
    known = {word for word in seem_known if _others(word, (word,))}  # none: it only has the hash of another
    at = unknown = 0  # run[unknown:at] is not in the thesaurus
    for word in _cut(run, known):
        at += len(word)
        if word not in known or GRAMMAR.issuperset(word):
            continue
        yield from _unknown(run[unknown : at - len(word)])
        if _is_content(word):
            yield AskedWord(word, _others(word, (word,)))
        unknown = at
    yield from _unknown(run[unknown:])


def _cut(run: str, known: Collection[str]) -> list[str]:
    """Cut a run of CJK characters into known words and single characters.

    Of all cuts, one with the fewest characters that are neither known nor grammatical is chosen, then with the fewest words, then
    with the fewest of one character, then with the longest first: 学生会议 is 学生 and 会议, though 学生会 is a word.
    """
    # For each place, from the last to the first: what is counted of the best cut from there, and its first word.
    best: list[tuple[tuple[int, int, int], str]] = [((0, 0, 0), "")]
    for at in reversed(range(len(run))):
        found = []
        for size in range(min(LONGEST_CHINESE, len(run) - at), 0, -1):
            word = run[at : at + size]
            if size == 1 or word in known:
                rest = best[-size][0]
                is_lost = word not in known and word not in GRAMMAR
                found.append(((rest[0] + is_lost, rest[1] + 1, rest[2] + (size == 1)), word))
        best.append(min(found, key=lambda one: one[0]))
    words = []
    at = 0
    while at < len(run):
        words.append(best[len(run) - at][1])
        at += len(words[-1])
    return words


def _unknown(run: str) -> Iterator[AskedWord]:
    if len(run) > 1 and not _LIGHT.issuperset(run):
        yield AskedWord(run)


@lru_cache(maxsize=2048)
def _others(asked: str, bases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the alternatives of a word, with the irregular forms of each: the first of each meaning, then the second ones.

    Args:
        asked: The word as it was asked for.
        bases: The words of which it may be a form, as the thesaurus has them.
    """
    meanings = [meaning for base in bases for meaning in thesaurus().meanings(base)]
    own = {asked, *bases}
    chinese = _in_turn([one.chinese for one in meanings], own)
    english = _in_turn([one.english for one in meanings], own)
    translations, synonyms = (english, chinese) if is_cjk(asked[0]) else (chinese, english)
    # One character as a synonym would be found in many longer words.
    chosen = translations[:_MAX_OTHERS] + [one for one in synonyms if len(one) > 1][:_MAX_OTHERS]
    forms = (form for one in chosen for form in (one, *irregular_forms(one)))
    return tuple(dict.fromkeys(form for form in forms if form not in own))


def _in_turn(words: Sequence[Sequence[str]], without: Collection[str]) -> list[str]:
    each = chain.from_iterable(zip_longest(*words))
    return list(dict.fromkeys(one for one in each if one is not None and plain(one) not in without))
