"""Parses a question into keyword terms, the text to embed, and the times that it names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, pairwise
from typing import Literal

import msgspec

from memd.search.terms import NO_NAMES, Names, names
from memd.store.keywords import match_any
from memd.text.edits import may_be_misspelt
from memd.text.small_talk import is_small_talk
from memd.text.time_phrases import TimePhrase, time_phrases
from memd.text.time_spans import TimeSpan
from memd.text.tokens import WORD_CHARACTER, folded, is_cjk, words_and
from memd_client.context.truncate import head

SUPPORT = 0.5  # the least share of words that a text must hold to be supported by them

_MAX_WORDS = 48
_MAX_PHRASES = 16
# SQLite advances the postings of all words of a phrase together and cannot be interrupted meanwhile: a phrase of 10,000
# words blocked a reader for 39 s. The first words are enough to distinguish names and quotations.
_MAX_PHRASE_WORDS = 12
_MAX_READ_CHARS = 20_000  # of a question; the rest would add no term that is selected
_MAX_EMBED_CHARS = 2_000  # about what a model with 512 tokens reads
_QUOTED = re.compile(r'["“”「『]([^"“”「」『』\n]{2,200})["“”」』]')
_MARKS = "._-/:@'"  # characters that join words into names
_RUN = re.compile(f"{WORD_CHARACTER}+(?:(?:[._\\-/:@]|'(?={WORD_CHARACTER}))+{WORD_CHARACTER}+)*")
_PART = re.compile(f"{WORD_CHARACTER}+")
_names_and_words = words_and(_MARKS)
_SUFFIXES = frozenset({"s", "t", "d", "m", "re", "ve", "ll", "em"})

# The function words of English questions, which carry no content.
STOP_WORDS = frozenset(
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

# The same for Chinese: question words, and characters that are grammatical by themselves. The latter also occur in other
# words, so a pair is a stop word only if both of its characters are in the set.
QUESTION_WORDS = re.compile(
    "什[么麼](?:时候|時候|地方|样子|樣子)?|怎[么麼]?[样樣办辦]?|[为為](?:什[么麼]|何)|多[少久]|"
    "哪(?:[里裡儿兒个個些种種位天年边邊])?|几[点點时時个個天岁歲]|如何|何[时時处處]|谁|誰"
)
GRAMMAR = frozenset(
    "的地得了着过著過吗嗎呢吧啊呀嘛我你您他她它们們咱这這那是在有没沒无不也都就还還又很"
    "对對把被给給跟和与與或从從向为為于於以因所而但之其会會能可要该該应應请請"
)

# Words that fit any event. A question of a time and such words alone asks for everything of that time if it asks what
# happened, or holds nothing but the time: not if it asks how something is, and not if it states what somebody did.
_ANYTHING = frozenset(
    "happen happened happening went going on made make day notes note write wrote anything everything something up new s"  # noqa: SIM905 - a list of words is read more easily
    " news event events thing things recap summary summarize summarise tell".split()
)
_ANYTHING_CJK = GRAMMAR | frozenset("做干幹发發生事情记記录錄写寫些件过過天日里裡啥忙总總结結列出笔筆新一下")

_ASKS_WHAT = re.compile(
    r"\b(?:what(?! day)|which(?! day)|who|whom|where|any(?:thing)?|everything|news|notes?|events?|recap|summar(?:y|i[sz]e)|tell)\b"
    "|(?<![没沒])(?<![没沒]有)(?:什[么麼]|啥)(?![都也])|哪|谁|誰|发生|發生|总结|總結|列出|的(?:事|记录|記錄|笔记|筆記)|新[事笔筆]"
)
_ASKS_HOW = re.compile(r"\bhow\b|\bwhat(?:'s| is) up\b|怎|咋|如何|好[吗嗎]|好不好")
_STATES = re.compile(r"\W*(?:(?:and|but|so|well)\W+)?(?:i|we|you|he|she|it|they|this|that|there)\b")
_ABOUT_TIME = frozenset("a an the of to in on at by for from with about and or so then s".split())  # noqa: SIM905 - as above
_ABOUT_TIME_CJK = frozenset("的呢那在从從和与與")

# Signs of a question about the past: these words, English past and perfect tenses, and 过 before the object ("去过哪里").
_PAST = re.compile(
    r"\b(?:used to|before|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|first|back then|past|old|once"
    r"|ever|ago|last (?:year|month|week|spring|summer|autumn|fall|winter|time)|yesterday|(?:19|20)\d\d"
    r"|did|was|were|had|went|happened|came|gave|took|said|told|got|made|bought|won|lost|sent|paid|wrote|found|broke)\b"
    r"|^(?:what|who|which(?: \w+){1,2}|how many(?: \w+){1,2})(?: \w+)? \w{2,}ed\b"
    r"|\bha(?:s|ve)\b(?: [\w']+){0,4}? (?:been|done|gone|met|read|\w{2,}(?:ed|wn|en))\b"
    "|以前|之前|原[来先本來]|过去|過去|曾|当初|當初|当时|當時|最初|起初|从前|從前|那时|那時|那会|那會|旧|舊|上[次一]|去年|前年"
    "|昨天|前天|上个?[月周週]|上個?月|上星期|前(?=[,，、。？?]|$)|[换換].{0,6}前|[过過](?=[哪什几幾多吗嗎谁誰没沒])"
)
# Signs of a question about the present state.
_PRESENT = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|at (?:the moment|present)|present(?:ly)?|these days|latest|newest|most recent|still"
    r"|any ?more|up[- ]to[- ]date|as of today|in the end|final(?:ly)?|eventually|in force)\b"
    "|[现現]在|目前|[当當]前|如今|眼下|[现現]行|最新|最近|仍|依然|最[后後终終]"
)


class Query(msgspec.Struct, frozen=True):
    """A parsed question."""

    match: str | None  # the FTS5 MATCH expression over fts_text; None: the question has no words
    words: tuple[str, ...]  # content words, and pairs of CJK characters
    phrases: tuple[str, ...]  # names with marks in them, and quotations; words are separated by spaces
    embed_text: str  # the text to embed; "" if there is none
    text: str = ""  # its beginning, as it was asked; "" if it has no words
    parts: tuple[int, ...] = ()  # for each word, a bit set of the units of content that it covers
    times: tuple[TimeSpan, ...] = ()  # times named in the question
    # Indexes of the terms that it has beside its times; () if it names no time.
    beside_times: tuple[int, ...] = ()
    names: Names = Names()  # terms that are names
    misspellable: tuple[str, ...] = ()  # words that may be misspelt names
    synonyms: tuple[str, ...] = ()  # synonyms and translations by which texts are found, too
    # Whether it asks for the present state or for the past (or a time that it names); None: unknown.
    tense: Literal["present", "past"] | None = None
    is_small_talk: bool = False  # no note can answer it
    asks_of_time_alone: bool = False  # it asks for whatever happened at the named times

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms: phrases, then words."""
        return self.phrases + self.words

    @property
    def match_beside_times(self) -> str | None:
        """The MATCH expression of the terms beside the times; None: it names no time, or has no other terms."""
        terms = self.terms
        return match_any([terms[n] for n in self.beside_times]) if self.beside_times else None

    @property
    def is_empty(self) -> bool:
        """Whether there is no keyword to look for."""
        return self.match is None

    def share(self, held: Iterable[int]) -> float:
        """Return the share of the question's content, 0..1, that a text with these terms holds.

        A word counts as much as two CJK characters, the usual length of a Chinese word. A character that is in several pairs
        counts once, and grammatical characters do not count.

        Args:
            held: The indexes of the terms that the text holds.
        """
        found = whole = 0
        for part in self.parts:
            whole |= part
        for term in held:
            if term >= len(self.phrases):
                found |= self.parts[term - len(self.phrases)]
        return found.bit_count() / whole.bit_count() if whole else 0.0


def parse(text: str, now: datetime | None = None) -> Query:
    """Parse a question.

    The terms are: the adjacent pairs of each run of CJK characters, all other content words, names such as ``memd.search``
    or ``2026-02-09`` as phrases beside their parts, and quotations as phrases. The MATCH expression joins them by OR: bm25
    ranks the chunks with more of them, and with rarer ones, first.

    Args:
        text: The question.
        now: The local wall-clock time, by which "yesterday" is resolved to a date; None: relative times are not resolved.
    """
    read = _read(text)
    quoted = _quoted(read)
    marked, words = _named(QUESTION_WORDS.sub(" ", read))
    # A question of stop words alone asks for those.
    words = _chosen(_telling(words) or _named(read)[1], _MAX_WORDS)
    phrases_of_time = time_phrases(read, now) if now else ()
    times = _narrowest([phrase.span for phrase in phrases_of_time])
    marked += [_phrase(day.isoformat().split("-")) for time in times if (day := time.only_day)]
    phrases = _chosen(quoted + marked, _MAX_PHRASES)
    if not phrases and not words:
        return Query(match=None, words=(), phrases=(), embed_text="", times=times)
    asked = head(" ".join(text[: 4 * _MAX_EMBED_CHARS].split()), _MAX_EMBED_CHARS)
    is_talk = is_small_talk(text[:_MAX_EMBED_CHARS])
    rest = _without(read, phrases_of_time)
    return Query(
        match=match_any(phrases + words),
        words=tuple(words),
        phrases=tuple(phrases),
        embed_text=asked,
        text=asked,
        parts=_bits(words),
        times=times,
        beside_times=_terms_of(rest, phrases + words) if times else (),
        names=names(text[:_MAX_EMBED_CHARS], phrases + words),
        is_small_talk=is_talk,
        asks_of_time_alone=bool(times) and not is_talk and _asks_of_any_event(rest),
        tense=_tense(read[:_MAX_EMBED_CHARS], times),
        misspellable=tuple(word for word in words if may_be_misspelt(word) and word not in NO_NAMES),
    )


def with_spellings(asked: Query, spellings: Mapping[str, str]) -> Query:
    """Return the question with replaced spellings of some words."""
    words = tuple(spellings.get(word, word) for word in asked.words)
    return msgspec.structs.replace(asked, words=words, match=match_any([*asked.phrases, *words]))


def with_synonyms(asked: Query, synonyms: tuple[str, ...]) -> Query:
    """Return the question with synonyms and translations of its words, by which texts are found, too."""
    return msgspec.structs.replace(asked, synonyms=synonyms)


def _tense(read: str, times: tuple[TimeSpan, ...]) -> Literal["present", "past"] | None:
    """Return whether a question asks for the present state or for the past; None: unknown."""
    if _PAST.search(read):
        return "past"
    if _PRESENT.search(read):
        return "present"
    return "past" if times else None


def _without(read: str, phrases: Iterable[TimePhrase]) -> str:
    """Return a question without its time phrases."""
    for phrase in reversed(list(phrases)):
        read = f"{read[: phrase.start]} {read[phrase.end :]}"
    return read


def _terms_of(rest: str, terms: Sequence[str]) -> tuple[int, ...]:
    """Return the indexes of the terms that a part of a question has."""
    marked, words = _named(QUESTION_WORDS.sub(" ", rest))
    own = {*_quoted(rest), *marked, *_telling(words)}
    return tuple(n for n, term in enumerate(terms) if term in own)


def _asks_of_any_event(rest: str) -> bool:
    """Return whether a question asks for whatever happened at its times.

    Args:
        rest: The question without its time phrases, folded.
    """
    if _all_in(_ABOUT_TIME, _ABOUT_TIME_CJK, _named(rest)[1]):
        return True
    if _ASKS_HOW.search(rest) or _STATES.match(rest) or not _ASKS_WHAT.search(rest):
        return False
    return _all_in(STOP_WORDS | _ANYTHING, _ANYTHING_CJK, _named(QUESTION_WORDS.sub(" ", rest))[1])


def _all_in(known: frozenset[str], characters: frozenset[str], words: Iterable[str]) -> bool:
    """Return whether each word is known or, in CJK, of these characters alone."""
    return all(characters.issuperset(word) if is_cjk(word[0]) else word in known for word in words)


def _narrowest(times: list[TimeSpan]) -> tuple[TimeSpan, ...]:
    """Remove duplicates, and times that contain another one: "Tuesday, this week" is a Tuesday."""
    found = list(dict.fromkeys(times))
    return tuple(one for one in found if not any(one.has(other) and one != other for other in found))


def restricted(asked: Query, mode: str) -> Query:
    """Restrict a question to keywords ("keyword"), to vectors ("vector"), or not at all ("hybrid")."""
    match mode:
        case "keyword":
            return msgspec.structs.replace(asked, embed_text="")
        case "vector":
            return msgspec.structs.replace(asked, match=None, names=Names(), misspellable=())
        case _:
            return asked


def left_out(text: str) -> tuple[str, ...]:
    """Return the words of a question that are not looked for: stop words, and the shortest if there are too many."""
    read = _read(text)
    spoken = _named(QUESTION_WORDS.sub(" ", read))[1]
    if not _telling(spoken):
        return ()  # a question of stop words alone asks for those
    asked = parse(text)
    asking = QUESTION_WORDS.findall(read)
    return tuple(word for word in dict.fromkeys([*asking, *spoken]) if word not in asked.words)


def _telling(words: list[str]) -> list[str]:
    """Return the words without stop words."""
    return [word for word in words if word not in STOP_WORDS and not GRAMMAR.issuperset(word)]


def _read(text: str) -> str:
    # Folding can lengthen the text: one character may become eighteen.
    return folded(text[:_MAX_READ_CHARS])[:_MAX_READ_CHARS].replace("’", "'")


def _bits(words: list[str]) -> tuple[int, ...]:
    """Return for each word the bits of its content: two, or one for each CJK character that is not grammatical."""
    contents = [_contents(word) for word in words]
    place = {each: 1 << n for n, each in enumerate(dict.fromkeys(chain.from_iterable(contents)))}
    return tuple(sum(place[each] for each in set(content)) for content in contents)


def _contents(word: str) -> list[str]:
    if not is_cjk(word[0]):
        return [word, f"{word} "]
    return [each for each in word if each not in GRAMMAR] or list(word)  # grammar alone was asked for


def _named(question: str) -> tuple[list[str], list[str]]:
    """Return the names with marks in them, as phrases, and all words."""
    found = [_parts(run) for run in _RUN.findall(_names_and_words(question))]
    return [name for names, _ in found for name in names], [word for _, words in found for word in words]


def _parts(run: str) -> tuple[list[str], list[str]]:
    """Return a run of joined words as (phrases, words); a CJK run gives adjacent pairs."""
    parts = separate_words(run)
    if any(is_cjk(part[0]) for part in parts):
        return [], [term for part in _counted(parts) for term in _pairs(part)]
    if len(parts) > 1 and parts[-1] in _SUFFIXES and "'" in run:
        parts = parts[:-1]  # a suffix is not part of the name: "Ann's" asks for Ann
    if len(parts) < 2:
        return [], parts
    return [_phrase(parts)], [
        part for part in parts if len(part) > 1 and not (part.isdigit() and len(part) < 3)
    ]


def _phrase(parts: list[str]) -> str:
    """Return a phrase of the first words; each CJK character counts as a word."""
    left = _MAX_PHRASE_WORDS
    kept: list[str] = []
    for part in parts:
        size = len(part) if is_cjk(part[0]) else 1
        kept.append(part[:left] if size > 1 else part)
        left -= size
        if left <= 0:
            break
    return " ".join(kept)


def _counted(parts: list[str]) -> list[str]:
    """Join a number with the CJK character after it, as in "2 月"."""
    joined: list[str] = []
    for before, part in pairwise(["", *parts]):
        if before.isdigit() and is_cjk(part[0]):
            joined[-1:] = [f"{before} {part[0]}", *([part] if len(part) > 1 else [])]
        else:
            joined.append(part)
    return joined


def _pairs(part: str) -> list[str]:
    """Return the adjacent pairs of a CJK run; another word is returned unchanged."""
    return [part[n : n + 2] for n in range(len(part) - 1)] if is_cjk(part[0]) and len(part) > 1 else [part]


def _quoted(read: str) -> list[str]:
    """Return the quotations of several words or more than one CJK pair, as phrases."""
    found = (_phrase(separate_words(_names_and_words(quotation))) for quotation in _QUOTED.findall(read))
    return [phrase for phrase in found if _is_phrase(phrase)]


def _is_phrase(term: str) -> bool:
    """Return whether a quotation is more than one word or one CJK pair."""
    return " " in term or (len(term) > 2 and is_cjk(term[0]))


def separate_words(text: str) -> list[str]:
    """Return the words of a text, split where CJK and other scripts meet."""
    tokens: list[str] = []
    for word in _PART.findall(text):
        if word.isascii():
            tokens.append(word)
            continue
        start = 0
        for at in range(1, len(word) + 1):
            if at == len(word) or is_cjk(word[at]) != is_cjk(word[start]):
                tokens.append(word[start:at])
                start = at
    return tokens


def _chosen(terms: list[str], most: int) -> list[str]:
    """Remove duplicates; of more than `most` terms, keep the longest, which are mostly the rarest."""
    terms = list(dict.fromkeys(terms))
    if len(terms) <= most:
        return terms
    kept = set(sorted(range(len(terms)), key=lambda n: (-len(terms[n]), n))[:most])
    return [term for n, term in enumerate(terms) if n in kept]
