"""Finds passwords and codes by their context: scores a value that looks like one with the words around it.

A value has points for its grade (values/secret_candidates.py). Its sentence, or a question in the line before, adds points: for a word
for passwords, for what they open, for locks or for services; for a word directly before the value that announces it ("is",
"type", "换成"); for a user name before it; and for a clause that ends after it. So no word alone decides, and a further language
needs only its words (words/secret_words.toml).
"""

import re
import string
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice

import msgspec

from memd.redact.rule import LEAD_IN, SPEAKER_AND_TIME, Covered, Rule, Span, Walk, in_lower_case, stem
from memd.redact.values import secret_candidates
from memd.redact.values.code_numbers import means_other_pin
from memd.redact.values.secret_candidates import SecretCandidate
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.context
# Points of a value by its grade.
_OF_GRADE = {"sure": 5, "mixed": 4, "likely": 3, "weak": 2, "digits": 2}
# Points of the best word for what the value is.
_PASSWORD, _LOCK, _CODE, _OPENS, _ACCESS, _SERVICE = 3, 3, 3, 2, 2, 1
_FARTHER = 1  # fewer points for a word in an earlier sentence, or behind the value
# Points for a word directly before the value, for a clause that ends after it, for a user name, and for a word for setting it.
_TOLD, _MAYBE_TOLD, _ADJOINS, _ENDS_CLAUSE, _WITH_USER, _IS_SET = 2, 1, 2, 1, 2, 1
_NEEDED = 7  # the least sum of points of a secret
_BEFORE, _BEHIND = (
    80,
    180,
)  # characters from a value to a word behind it, and from a word to a value behind it
_NEAR_PASS = 14  # the most characters between the word "pass", which is a verb, too, and a value
_NEAR_CODE = 60  # the most characters between a word and a number
_NEAR_NUMBER = 12  # characters before an announced number in which no other number may be
_NEAR_WEAK = 40  # the most characters between a word and a weak value
# How many characters are read before a value for a word that announces it, a user name, and a word for something else; and
# before a word for its owner, for another thing with such a code, and for a place.
_CHARS_OF_TELLING, _CHARS_OF_MAY_TELL, _CHARS_OF_VERB = 40, 12, 4
_CHARS_OF_USER, _CHARS_OF_FIELD, _CHARS_OF_NOUN = 80, 24, 28
_CHARS_OF_OWNER, _CHARS_OF_OTHER_CODE, _CHARS_OF_PLACE = 40, 12, 9
_CHARS_OF_CUE = 32  # characters from the beginning of a word that decide its class
# Shorter words for setting a value are no anchors: they are frequent, and are searched for only near values.
_SIGNS_OF_ANCHOR = 6
_AHEAD = 64  # characters that Matches searches beyond the requested part
_MATCH = 24  # the most characters of a match of a pattern of Matches

_VISIBLE = string.ascii_letters + string.digits + string.punctuation + "".join(map(chr, range(0xC0, 0x250)))
# What no word has: a digit beside a letter, or a symbol between two letters. And the beginning of a code. Patterns that begin with
# one small class of characters are searched for fastest.
_OF_VALUE = re.compile(
    r"[0-9!#&%~@$^*+?=_.-](?:(?<=[0-9])(?=[A-Za-z!#&%~@$^*+])|(?P<letter_before>(?<=[A-Za-z][0-9]))|(?<![0-9])(?=[A-Za-z0-9])(?<=[A-Za-z0-9].))"
)
_SIGN_WITHIN = re.compile(r"[!#$%&*^~](?<=[A-Za-z0-9].)(?=[A-Za-z0-9])")
_OF_CODE = re.compile(
    r"[0-9#*](?:(?<=[0-9])(?:(?<![!#-&+-9:-^a-~].)|(?<=[一-鿿ぁ-ヿ가-힣][,:;.!?].))(?=[0-9-])|(?<=#)(?=[0-9][0-9*-]{1,12}[#-])|(?=[0-9]{2,8}#)(?<![0-9]))"
)
# Digits with blanks between them, and capitals with digits, where only a blank or another script is around.
_APART = re.compile(
    r"[0-9A-Z](?<![!-~].)(?:(?<=[0-9])(?<![0-9][ ].)(?:(?:[ ][0-9]){3,5}|(?=[0-9]{1,3}[ ][0-9]{2,4}(?![0-9]))(?![0-9]{0,2}0[ ][0-9]{1,3}0)[0-9]{1,3}[ ][0-9]{2,4})(?![ ]?[!-+/-~-]|[,.][0-9A-Za-z])"
    r"|(?:(?<=[A-Z])(?=[A-Z]{0,3}[0-9])|(?<=[0-9])(?=[0-9]{0,5}[A-Z]))[A-Z0-9]{4,7}(?![!-+.-~-]))"
)
_LONGEST_WORD = 64
# Letters with accents belong to a word, too.
_WORD = re.compile(rf"[!-~À-ɏ]{{3,{_LONGEST_WORD}}}+(?![!-~À-ɏ])")
_INVISIBLE = re.compile(r"[^!-~À-ɏ]")


def _any_of(*lists: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of some words, but not as a part of another word."""
    words = {word for words in lists for word in words}
    whole = words & set(_WORDS.whole)
    patterns = []
    if whole:
        ending = r"(?:wor[dt]|wd|code|phrase|number|[esnt])?s?(?![A-Za-z])"
        patterns.append(rf"(?<![A-Za-z_])(?:{either(whole)}){ending}")
    if words > whole:
        patterns.append(rf"(?:{either(words - whole)})(?![A-Za-z]{{0,6}}_)")
    return re.compile("|".join(patterns), re.IGNORECASE)


_OF_PASSWORD = _any_of(_WORDS.passwords)
_OF_OPENING = _any_of(_WORDS.opens)
_OF_ACCESS = _any_of(_WORDS.access)
_OF_SERVICE = _any_of(_WORDS.services)
_OF_LOCK = _any_of(_WORDS.locks, _WORDS.counted_locks)
# A number near one of these is a code only if somebody types it.
_OF_COUNTED = _any_of(_WORDS.counted_locks, _WORDS.counted_codes)
_OF_SURE = _any_of(_WORDS.locks, _WORDS.codes, _WORDS.passwords)
_TYPED_NEAR = re.compile(rf"[输輸]入?+(?![出错錯了单單赢贏框法速数數])|{either(_WORDS.typed_near)}")
_QUANTITY = re.compile(rf"(?:{either(_WORDS.quantities)})[ ]?\Z")
_OPENING_HOUR = re.compile("[0-2][0-9][0-5]0")
_NO_LOCK = re.compile(either(_WORDS.no_locks))
_OF_CODE_WORD = _any_of(_WORDS.codes, _WORDS.counted_codes)
_OF_SETTING = re.compile(either(_WORDS.sets))
_PASS_ALONE = re.compile(r"pass(?:es)?(?![A-Za-z])", re.IGNORECASE)
_OTHER_PIN = re.compile(r"pin(?:s|[ -]?(?:board|header|wall|layout)s?)(?![A-Za-z])", re.IGNORECASE)
_CIPHER = re.compile("암호(?:화|학|문|해독|알고|자산)|密[码碼](?:学|學|子)|授权码[率流]")
_CODED = re.compile(r"code(?=[a-rt-z])", re.IGNORECASE)  # encoded, codec
_CODE_ALONE = re.compile(r"cod(?:e|ice)s?(?![A-Za-z])|código|kodu?", re.IGNORECASE)
# The owner of a code, before the word: codes without one are often those of programs, countries or files.
_OWNED = re.compile(
    rf"(?:(?:{either(_WORDS.possessives)})[ ](?:\w{{2,14}}[ ]){{0,2}}|(?:{either(_WORDS.owners)})\]?[ ])\Z",
    re.IGNORECASE,
)
_OTHER_CODE = re.compile(rf"(?:{either(_WORDS.other_codes)})[ _-]?\Z", re.IGNORECASE)
_CALLED_CODE = re.compile(r"(?<![\w-])(?:code|codice|código|kod|код|pin|비밀번호|비번)[ ]\Z", re.IGNORECASE)
_KEY_ALONE = re.compile(r"keys?(?![A-Za-z])", re.IGNORECASE)
_OTHER_KEY = re.compile(rf"(?:{either(_WORDS.other_keys)})[ _-]?\Z", re.IGNORECASE)
_OPEN = r"[*_]{0,2}[\"'`“「『(（]?"
_TELLS = re.compile(
    rf"(?:(?:(?<![\w’'])(?:{either(_WORDS.tells)})(?:[ ](?:now|still|just|the|probably|usually|always|only|again|simply|literally|currently|to|your|this|all)){{0,2}}[ ]"
    rf"|[:：]|->|→|=>|[ ][–—-][ ]|(?:{either(_WORDS.tells_in_chinese)})(?:的|了)?)[ ]{{0,2}}{_OPEN})\Z",
    re.IGNORECASE,
)
_MAY_TELL = re.compile(
    rf"(?:(?<!\w)(?:{either(_WORDS.may_tell)})[ ]|[，,、][ ]|[，、|;；]|(?<=[一-鿿ぁ-ヿ가-힣”」』)）]),|[ ][/|][ ]|(?<=[^\W\d_])[（(]|[ ][(（]|[一-鿿가-힣ぁ-ヿ][ ]?)[ ]{{0,2}}{_OPEN}\Z",
    re.IGNORECASE,
)
_ENDS = re.compile(
    rf"[\"'`”」)）*]{{0,2}}(?:[.,;!?](?!\w)|[ ]?[,;.!?](?=(?:[0-9]{{1,4}})?[ ]?[一-鿿ぁ-ヿ가-힣])|[ ][,;](?=[ ])|[，。；！？、井]|[ ](?:{either(_WORDS.goes_on)})(?!\w)|(?=[ ]?[^\x00-\x7f])|[ \t]{{0,8}}(?:\n|\Z)|[ ]?[-)(（|/–—])"
)
# An earlier sentence says less about a value, unless the next one begins with the value.
_SENTENCE_END = re.compile(r"[.!?;][\"')]?[ ]|[。；！？]")
_TELLS_ANEW = re.compile(
    r"(?:[.!?;][ ]|[。；！？])(?:(?:the[ ])?new(?:[ ]one)?|it['’]?s|it[ ]is|now|use|try|type|just[ ]type|went[ ]with|新的?|改成)[ ]?[a-z]{0,4}[ ]?[:：]?[ ]?[\"'`“]?\Z",
    re.IGNORECASE,
)
# Behind a value: "... as a password", "... works", "... opens the safe", "...就能打开".
_IS_THEN_CALLED = re.compile(
    rf"[\"'`”)]?[ ](?:as|is|was|for|or)[ ](?:[\w'’]{{1,12}}[ ]){{0,4}}?(?:(?:{either(_WORDS.called)})(?![a-z])|(?:{either(_WORDS.called_at_end)})(?=[.,;!?)]|\s|\Z)(?![ ]\w))"
    rf"|[\"'`”)]?[ ](?:(?:{either(_WORDS.before_does)})[ ])?(?:{either(_WORDS.does)})(?![a-z])"
    rf"|[\"'`”]?[ ]?(?:{either(_WORDS.as_abroad)})[ ](?:\w{{1,10}}[ ])?(?:{either(_WORDS.called_abroad)})"
    rf"|[ ]?(?:(?:←|<-|⬅|👈)[ ]?)?(?:这个?|這個?|这串|這串)?[就才]?是[^，。,\n]{{0,12}}(?:{either(_WORDS.called_in_chinese)})"
    rf"|[\"'`”」]?[ ]?(?:{either(_WORDS.can_in_chinese)})(?:{either(_WORDS.does_in_chinese)})",
    re.IGNORECASE,
)
# Behind a value in Chinese, Japanese or Korean: "... 回车", "... を押す", "... 누르고".
_TYPED_BEHIND = re.compile(
    rf"[\"'`”」』)）]?[ ]?(?:[をでにとはが을를은는이가로]|으로)?[ ]?(?:{either(_WORDS.typed_behind)})"
)
_OTHER_NOUN = re.compile(
    rf"(?:(?<![a-z_])|(?<=[^\x00-\x7f]))(?:{either((*_WORDS.others, *_WORDS.networks))})[\"'`]?(?:[ ](?:there|here|now))?[ ]?(?:is|was|:|=|：|是|为|叫|は|은|는|を|에|이|가|(?:改|换|換|更新|设|設|刷|升|拉|回滚|迁|切|用)?[成为為到作了]?)?[ ]?[\"'`“(]?\Z",
    re.IGNORECASE,
)
_REPLACED = re.compile(
    rf"(?:{either(_WORDS.replaced)})[ ]?(?:{either(_WORDS.replaced_by)})(?:了|为)?[ ]{{0,2}}\Z", re.IGNORECASE
)
_OF_NETWORK = re.compile(either(_WORDS.networks), re.IGNORECASE)
_OF_FIELD = re.compile(r"I[dD]s?[\"']?[ ]?[:=][ ]?[\"']?\Z")  # a field that is called an identifier
# A user name directly before the value: a mail address, a telephone number, a name after a word for it, or one before a bar.
_USER = re.compile(
    rf"(?:[\w.+-]{{2,40}}@[\w.-]{{0,40}}|(?<![0-9])1[0-9]{{10}}|(?:{either(_WORDS.users)})(?:[ ](?:is|name))?[ :：是=]{{0,3}}[\"'`“]?[\w.@+\\-]{{2,40}}[\"'`”]?"
    rf"|(?<![\w./-])[A-Za-z][\w.-]{{1,24}}(?=[ ][/|][ ]|/)|(?:ID|工号|学号|工號|學號|社員番号|사번|학번)[ :：]{{0,2}}[0-9]{{3,12}})(?:[ ]?(?:[,，;；、/|]|and|then|with|w/|next|跟|和|[ ]|[ ]->|[ ]→)[ ]?(?:then|next|and|pw|pass|password|密码)?[,，:：]?){{1,3}}(?:[^,，.。\n]{{0,32}}[,，][ ]?|[^,，.。!-~\n]{{0,12}})?[ ]?{_OPEN}\Z",
    re.IGNORECASE,
)
_KNOWN_USER = re.compile(rf"(?<![\w./-])(?:{either(_WORDS.known_users)})[ ]\Z", re.IGNORECASE)
_SPEAKS_OF_CODE = re.compile(
    r"[({]\)?[;{]|=>|==|&&|\|\||</|\breturn\b|\bimport\b|regex|\\[dws]|[A-Za-z_]\((?!s\))"
)
_HAS_NUMBER = re.compile(
    r"(?:doors?|gates?|lockers?|combo)[ ]", re.IGNORECASE
)  # and a word follows the number
_NUMBER = re.compile("[0-9]{2}(?![ ]?[时時日月号號点點年分])")
_IN_EAST = re.compile("[一-鿿ぁ-ヿ가-힣]")
_LETTERED = re.compile("(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-Z0-9]{5,8}")  # a model of a product looks the same
_HOTLINE = re.compile("95[0-9]{3}|1008[0-9]|100[01][01]|123(?:06|15)")
_DIGITS_OF_PRICE = 4
_PARTICLE = re.compile("[はが는은이가了][ ]?\\Z")
_OF_NUMBER = re.compile("(?:の番号|(?<!비밀)번호|編號|编号)[はは는은:：]?[ ]{0,2}\\Z")
_COUNTED = re.compile(
    rf"[ ]{{0,2}}(?:%|(?:mm|cm|km|m|kg|g|[gmk]i?b|ms|s|min|h|hrs?|[kmg]?hz|px|pt|k|v|w|usd|eur|gbp|x|[ap]m|st|nd|rd|th)(?![a-z])|{either(_WORDS.units)})|[.:/][0-9]|,[0-9](?![0-9]{{0,3}}[ ]?[一-鿿])",
    re.IGNORECASE,
)
_OF_ERRORS = re.compile(either(_WORDS.errors), re.IGNORECASE)
_DATE = re.compile("(?:[0-2]?[0-9]|3[01])-(?:0?[1-9]|1[0-2])-[0-9]{2}")
_NO_CODE = re.compile(either(_WORDS.no_codes), re.IGNORECASE)
_ALARM_TIME = re.compile(r"(?:[01][0-9]|2[0-3])[0-5][0-9]")
_PLACE = re.compile(r"(?:at|to|from|near|in|by|via)[ ](?:the[ ])?\Z", re.IGNORECASE)
_MAY_ASK = re.compile(
    rf"\?|？|؟|{either(_WORDS.asks)}"
)  # alternatives of literals alone are searched for fastest
# A line that asks for something: it ends with a question mark, or has a word that asks.
_ASKS = re.compile(rf"[?？؟][\"'”*_]{{0,3}}[ \t]{{0,4}}\Z|{either(_WORDS.asks)}", re.IGNORECASE)
_SPEAKER = r"[ \t>*_–—-]{0,6}(?:\[[^\]\n]{1,24}\][ ]?|[0-9/.:, -]{4,24}(?:[AP]M)?[ ]?[-–][ ])?(?:<[^<>\n]{1,24}>[ ]|[*_]{0,2}[^\W\d_][\w .-]{0,24}[*_]{0,2}[ ]?[:：][*_]{0,2}[ ]?)?"
_SPEAKER_FIRST = re.compile(_SPEAKER)
_BEGINS_ANSWER = re.compile(
    rf"{_SPEAKER}{LEAD_IN}(?:[\w.@-]{{2,40}}[ ]?[/,|，][ ]?)?[\"'`“「*]{{0,3}}\Z", re.IGNORECASE
)
_ASKED_BY = re.compile(either(_WORDS.asks), re.IGNORECASE)
_OF_TIMES = re.compile(either(_WORDS.asked_times))
_SAYS_WHO = re.compile(SPEAKER_AND_TIME, re.IGNORECASE)
# What a question is about that asks for no password.
_ASKS_ABOUT = re.compile(
    r"(?:pass(?:word|phrase|code|wort)s?|pwd?|pins?|codes?)[ ](?:polic|rule|format|length|reset|manager|hash|field|page|form\b|strength|column|prompt|require|hint)|about[ ](?:the[ ])?(?:pass|pin|code)"
    r"|(?<!code[ ])(?<!pin[ ])(?:(?:number|size|width|height|colou?r|model|version|brand)s?|called)[ ]{0,2}[?？]?[ ]{0,2}\Z",
    re.IGNORECASE,
)
# A sentence that cites a note.
_CITES = re.compile(
    r"(?:note|notiz|nota|notlar|memo|vault|saved|stored|gespeichert|guardad|salvat|aufgeschrieben|écrit|записк|запис|заметк|anteckning|muistiin|poznám|zapisk|notat|kayıt)[^\n\"“„«»]{0,40}[\"“„«»]\Z",
    re.IGNORECASE,
)
_TELLS_ANSWER = re.compile(rf"{_SPEAKER}(?:[^.!?\n]|\.(?=\w)){{0,60}}\Z", re.IGNORECASE)
_NEAR_ADJACENT = 28  # signs from where a word begins to a value that adjoins it, at most
_ADJACENT = re.compile(
    r"(?:secret[ ]|master[ ]|shared[ ])?[^\W\d_]{2,14}[\"'`*_]{0,3}[ ]{1,2}[\"'`“(*_]{0,3}"
)
_ADJOINS_SERVICE = frozenset({"sure", "mixed"})  # grades that count directly behind the name of a service
_ENDS_VERB = re.compile(r"[^\W\d_][ ][ \"`“]{0,2}\Z")  # before a value that only a verb announces
_WORDS_BETWEEN = re.compile(r"[^0-9.,;:!?()\n_=]{1,34}")
_LAST = 6  # how many words before a value are scored


_Search = Callable[[str, int, int], re.Match[str] | None]


def _near(*, codes: bool) -> Walk:
    """Return a Walk that yields the secrets near the words for them.

    Args:
        codes: True: yields numbers. False: yields values with letters.
    """

    def walk(text: str, places: Sequence[int], known: Covered) -> Iterator[Span]:
        search, may_be, read = (
            (_OF_CODE.search, secret_candidates.is_code, secret_candidates.code)
            if codes
            else (value_in, secret_candidates.may_be_password, secret_candidates.password)
        )
        # Most texts have no such value near the words for one.
        if not codes and _OF_VALUE.search(text, max(0, places[0] - _BEFORE), places[-1] + _BEHIND) is None:
            return
        parts = list(_lines(text, places))
        words = chain(_words(text, parts, search), _apart(text, parts) if codes else ())
        values = _candidates(words, known, lambda word: read(word, 0) if may_be(word) else None)
        yield from _told(text, values, places)

    return walk


def value_in(text: str, start: int, end: int) -> re.Match[str] | None:
    """Return the first match of _OF_VALUE in a part of a text, with both of its characters."""
    found = _OF_VALUE.search(text, start, end)
    if found is not None and found.start() == start and found["letter_before"] is not None:
        return _OF_VALUE.search(text, start + 1, end)
    return found


def _candidates(
    words: Iterable[tuple[str, int]], known: Covered, read: Callable[[str], SecretCandidate | None]
) -> Iterator[SecretCandidate]:
    """Yield the values among words that no other rule has found; each word is graded once, however often it occurs."""
    graded: dict[str, SecretCandidate | None] = {}
    for word, begin in words:
        if word not in graded:
            if known.has(begin, begin + len(word)):
                continue
            graded[word] = read(word)
        found = graded[word]
        if found is not None and not known.has(begin + found.start, begin + found.end):
            yield SecretCandidate(begin + found.start, begin + found.end, found.said, found.grade)


def signed(text: str, parts: Sequence[Span], known: Covered) -> Iterator[Span]:
    """Yield passwords in sentences without a word for passwords: by a symbol in the value, and a verb or user name before it.

    Args:
        text: The whole text.
        parts: The parts of the text to search, ascending and disjoint.
        known: What other rules found.
    """
    words = _words(text, parts, _SIGN_WITHIN.search)
    yield from _told(text, _candidates(words, known, _with_sign), ())


def _told(text: str, values: Iterable[SecretCandidate], places: Sequence[int]) -> Iterator[Span]:
    """Yield those of some values that the words around them say to be secret."""
    near: _Surroundings | None = None  # most texts have no value
    for value in values:
        near = near or _Surroundings(text, places)
        if _is_told(text, value, near):
            yield value.start, value.end


def _with_sign(word: str) -> SecretCandidate | None:
    value = secret_candidates.password(word, 0)
    return value if value is not None and value.has_sign else None


def _words(text: str, parts: Iterable[Span], search: _Search) -> Iterator[tuple[str, int]]:
    """Yield the words in parts of a text that `search` finds a match in, each once, with their offsets."""
    for start, end in parts:
        at = start
        while (sign := search(text, at, end)) is not None:
            place = sign.start()
            before = len(stem(text, place, _LONGEST_WORD, _VISIBLE))
            word = _WORD.match(text, place - before) if before < _LONGEST_WORD else None
            if word is not None:
                at = max(sign.end(), word.end())
                yield word[0], place - before
            else:  # nothing else of a longer run is a word, either
                blank = _INVISIBLE.search(text, sign.end(), end)
                at = end if blank is None else blank.end()


def _apart(text: str, parts: Iterable[Span]) -> Iterator[tuple[str, int]]:
    """Yield capitals with digits, and beside East Asian characters digits with blanks between them, each with its offset."""
    for start, end in parts:
        is_east = _IN_EAST.search(text, start, end) is not None
        for match in _APART.finditer(text, start, end):
            if is_east or " " not in match[0]:
                yield match[0], match.start()


def _lines(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield the lines around places, as far as they are near; with the line behind one that may ask something."""
    asks = Matches(_MAY_ASK, text)
    start = end = 0
    is_whole = True  # the part ends at the end of its line
    number = 0
    while number < len(places):
        at = last = places[number]
        if at < end:
            # What the last place in the part reaches includes what the others reach.
            number = bisect_left(places, end, number)
            if is_whole:
                continue
            last = places[number - 1]
        else:
            if end > start:
                yield start, end
            left = max(end, at - _BEFORE)
            start = text.rfind("\n", left, at) + 1 or left
            number += 1
        line_end = text.find("\n", max(at, end), last + _BEHIND)
        is_whole = line_end >= 0 and not asks.any_in(max(start, at - _BEFORE), line_end + _BEFORE)
        end = line_end if is_whole else min(len(text), last + _BEHIND)
    if end > start:
        yield start, end


class _Cue(msgspec.Struct, frozen=True):
    """A word near which a value may be secret."""

    at: int
    points: int  # for a password
    code_points: int  # for a number
    is_password: bool
    is_code: bool
    size: int  # characters of the word
    is_counted: bool  # a number near it may be anything that is not typed


class Matches:
    """The places where a pattern matches in a text. If parts are asked for in ascending order, none is searched twice."""

    def __init__(self, pattern: re.Pattern[str], text: str, *, lowered: bool = False) -> None:
        """Store the pattern and the text; `any_in` searches.

        Args:
            pattern: Its matches have at most _MATCH characters. Alternatives that all begin with a letter of one case are found
                fastest.
            text: The whole text.
            lowered: Whether the text is searched in lower case.
        """
        self._pattern = pattern
        self._text = text
        self._lowered = lowered
        self._starts: list[int] = []
        self._from = self._till = 0  # the part that was searched

    def any_in(self, start: int, end: int) -> bool:
        """Return whether a match begins in a part of the text."""
        if not self._from <= start <= self._till:
            self._starts.clear()
            self._from = self._till = start
        if end > self._till:
            till = end + _AHEAD
            piece = self._text[self._till : till + _MATCH]
            if self._lowered:
                piece = in_lower_case(piece)
            starts = [self._till + match.start() for match in self._pattern.finditer(piece)]
            self._starts += starts[: bisect_left(starts, till)]
            self._till = till
        at = bisect_left(self._starts, start)
        return at < len(self._starts) and self._starts[at] < end


def _telling(said: str) -> int:
    """Return the points of a word directly before a value that announces it."""
    if _TELLS.search(said):
        return _TOLD
    return _MAYBE_TOLD if _MAY_TELL.search(said[-_CHARS_OF_MAY_TELL:]) else 0


class _Surroundings:
    """The words around the values of a text. Each word is classified once, however many values are near it."""

    def __init__(self, text: str, places: Sequence[int]) -> None:
        """Store the text; words are classified when a value near them is scored.

        Args:
            text: The whole text.
            places: The ascending offsets of the anchors: words near which a value may be secret.
        """
        self.sets = Matches(_OF_SETTING, text, lowered=True)
        self.code = Matches(_SPEAKS_OF_CODE, text)
        self._text = text
        self._places = places
        self._known: dict[int, _Cue | None] = {}
        self._of_words: dict[str, _Cue | None] = {}
        self.told = cache(_telling)
        self.has_user = cache(lambda said: _USER.search(said) is not None)
        self.is_other = cache(lambda said: _OTHER_NOUN.search(said) is not None)

    def line(self, start: int, end: int) -> Span:
        """Return the span of a value's line, cut to _BEHIND characters before the value and _BEFORE behind it.

        Args:
            start: The beginning of the value.
            end: The end of the value.
        """
        begin = max(0, start - _BEHIND)
        till = self._text.find("\n", end, end + _BEFORE)
        return (
            self._text.rfind("\n", begin, start) + 1 or begin,
            min(len(self._text), end + _BEFORE) if till < 0 else till,
        )

    def between(self, start: int, end: int) -> Iterator[_Cue]:
        """Yield the classified words that begin in a part of the text, the last one first."""
        places, known = self._places, self._known
        for number in range(bisect_left(places, end) - 1, bisect_left(places, start) - 1, -1):
            at = places[number]
            cue = known[at] if at in known else known.setdefault(at, self._cue(at))
            if cue is not None:
                yield cue

    def _cue(self, at: int) -> _Cue | None:
        """Return the classified word at a place; equal surroundings are classified once."""
        left = max(0, at - _CHARS_OF_OWNER)
        around = f"{at - left} {self._text[left : at + _CHARS_OF_CUE]}"
        if around not in self._of_words:
            self._of_words[around] = self._classified(at)
        cue = self._of_words[around]
        return (
            None
            if cue is None
            else _Cue(at, cue.points, cue.code_points, cue.is_password, cue.is_code, cue.size, cue.is_counted)
        )

    def _classified(self, at: int) -> _Cue | None:
        text = self._text
        if (
            _KEY_ALONE.match(text, at) is not None
            and _OTHER_KEY.search(text, max(0, at - _CHARS_OF_OTHER_CODE), at) is not None
        ):
            return None
        is_password = _OF_PASSWORD.match(text, at) is not None and _CIPHER.match(text, at) is None
        is_code = (
            _OF_CODE_WORD.match(text, at) is not None
            and _OTHER_PIN.match(text, at) is None
            and _CODED.match(text, at) is None
            and (
                _CODE_ALONE.match(text, at) is None
                or (
                    _OWNED.search(text, max(0, at - _CHARS_OF_OWNER), at) is not None
                    and _OTHER_CODE.search(text, max(0, at - _CHARS_OF_OTHER_CODE), at) is None
                )
            )
        )
        is_lock = is_code or (
            _OF_LOCK.match(text, at) is not None
            and _NO_LOCK.match(text, at) is None
            and _PLACE.search(text, max(0, at - _CHARS_OF_PLACE), at) is None
        )
        points = (
            _PASSWORD
            if is_password
            else _OPENS
            if _OF_OPENING.match(text, at) or _OF_ACCESS.match(text, at)
            else _CODE
            if is_code
            else _SERVICE
            if is_lock or _OF_SERVICE.match(text, at)
            else 0
        )
        code_points = _LOCK if is_lock else _PASSWORD if is_password else 0
        if not points and not code_points:
            return None
        size = max(
            (match.end() - at for pattern in (_OF_CODE_WORD, _OF_LOCK) if (match := pattern.match(text, at))),
            default=0,
        )
        counted, sure = _OF_COUNTED.match(text, at), _OF_SURE.match(text, at)
        is_counted = counted is not None and (sure is None or sure.end() < counted.end())
        return _Cue(at, points, code_points, is_password, is_code, size, is_counted)


def _is_told(text: str, value: SecretCandidate, near: _Surroundings) -> bool:
    """Return whether the words around a value say that it is a password or a code."""
    start, end = value.start, value.end
    if value.grade == "digits" and (
        not (value.said.endswith("#") or _ENDS.match(text, end)) or _COUNTED.match(text, end) is not None
    ):
        return False
    line, till = near.line(start, end)
    before = text[line:start]
    if not _has_points(text, value, near, before, till) and not (
        line > max(0, start - _BEHIND) and _is_answer(text, value, near, line, before)
    ):
        return False
    # Checks for something else take longest, and come last.
    if value.grade == "digits" and _NO_CODE.search(before) is not None:
        return False
    if near.code.any_in(line, till) or _OF_FIELD.search(before[-_CHARS_OF_FIELD:]) is not None:
        return False
    if not value.has_sign and _REPLACED.search(before[-_CHARS_OF_NOUN:]) is not None:
        return False
    speaker = _SPEAKER_FIRST.match(before)
    spoken = speaker.end() if speaker else 0
    if value.grade == "digits" and spoken == len(before) and _IN_EAST.search(before) is not None:
        spoken = 0
    if spoken > len(before) - _CHARS_OF_NOUN and _OF_NETWORK.search(before) is not None:
        spoken = 0
    return not near.is_other(before[spoken:][-_CHARS_OF_NOUN:])


def _has_points(text: str, value: SecretCandidate, near: _Surroundings, before: str, till: int) -> bool:
    """Return whether a value has the points of a secret, for its grade and its sentence.

    The words nearest to it are counted first, and nothing more once they suffice.

    Args:
        text: The whole text.
        value: The value.
        near: The words of the text.
        before: The text before the value in its line.
        till: The end of its line, as far as that is near.
    """
    start, end = value.start, value.end
    line = start - len(before)
    is_code = value.grade == "digits"
    told = near.told(before[-_CHARS_OF_TELLING:])
    if told < _TOLD and _TYPED_BEHIND.match(text, end) is not None:
        told = _TOLD
    ends = _ENDS.match(text, end) is not None
    points, best = _OF_GRADE[value.grade], 0
    has_cue = False
    for cue in islice(near.between(line, start), _LAST):
        has_cue = True
        # Most words cannot have more points than the nearest one.
        if _most_of_cue(value, cue, told=told, ends=ends) > best:
            best = max(best, _of_cue(text, value, cue, told=told, ends=ends))
            if points + best >= _NEEDED:
                return True
    if is_code:
        return False
    behind = max([cue.points for cue in near.between(end, till)], default=0)
    after = behind - _FARTHER
    if _IS_THEN_CALLED.match(text, end) is not None:
        told, after = _TOLD, max(after, _PASSWORD)
    alone = told if value.has_sign and told == _TOLD and _ENDS_VERB.search(before[-_CHARS_OF_VERB:]) else 0
    points += max(best, after + told if after > 0 else 0, alone)
    if _NEEDED - _IS_SET - _WITH_USER <= points < _NEEDED and (
        near.sets.any_in(line, start) or near.sets.any_in(end, till)
    ):
        points += _IS_SET
    if points >= _NEEDED:
        return True
    may_be_told = points >= _NEEDED - _WITH_USER and (has_cue or behind or value.has_sign)
    if not may_be_told:
        return False
    is_east = _IN_EAST.search(text, line, till) is not None
    return near.has_user(before[-_CHARS_OF_USER:]) or (is_east and _KNOWN_USER.search(before) is not None)


def _most_of_cue(value: SecretCandidate, cue: _Cue, *, told: int, ends: bool) -> int:
    """Return the most points that `_of_cue` may give to a word, whatever is between it and the value."""
    is_code = value.grade == "digits"
    chars = value.start - cue.at
    if is_code and chars > _NEAR_CODE:
        return 0
    points = cue.code_points if is_code else cue.points
    if is_code or chars <= _NEAR_ADJACENT:
        told = max(told, _ADJOINS)
    return points + told + (_ENDS_CLAUSE if ends and told and points >= _ACCESS else 0)


def _of_cue(text: str, value: SecretCandidate, cue: _Cue, *, told: int, ends: bool) -> int:
    """Return the points of a word before a value, with those of an announcement and of the end of the clause."""
    between = text[cue.at : value.start]
    is_code = value.grade == "digits"
    points = cue.code_points if is_code else cue.points
    if not points or (is_code and not _may_be_code(value, cue, between, told=told)):
        return 0
    if is_code and cue.is_counted and not _is_typed(text, value):
        return 0
    if is_code and _HAS_NUMBER.fullmatch(between) is not None and text.startswith(" ", value.end):
        return 0
    if _PASS_ALONE.match(between) is not None and len(between) > _NEAR_PASS:
        return 0
    adjoins = _ADJACENT.fullmatch(between.lstrip()) is not None or (is_code and between.isalpha())
    if _SENTENCE_END.search(between) is not None and _TELLS_ANEW.search(between) is None:
        points -= _FARTHER
    if value.grade == "weak" and (len(between) > _NEAR_WEAK or points < _PASSWORD):
        points -= _FARTHER
    if adjoins and (is_code or cue.is_password):
        told = max(told, _ADJOINS)
    elif (adjoins and value.grade in _ADJOINS_SERVICE and points == _SERVICE) or (
        is_code
        and ((cue.is_code and _WORDS_BETWEEN.fullmatch(between) is not None) or _is_called_code(between))
    ):
        told = max(told, _MAYBE_TOLD)
    if ends and told and points >= _ACCESS and value.grade != "weak":
        points += _ENDS_CLAUSE
    return points + told


def _is_typed(text: str, value: SecretCandidate) -> bool:
    """Return whether somebody types a number: it has the signs of a keypad, begins with zero, or its line says so."""
    if not value.said.isdecimal() and re.search("[#*]", value.said) is not None:
        return True
    if value.said.startswith("0") and _OPENING_HOUR.fullmatch(value.said) is None:
        return True
    left, right = max(0, value.start - _CHARS_OF_TELLING), value.end + _CHARS_OF_TELLING
    begin, end = text.rfind("\n", left, value.start) + 1 or left, text.find("\n", value.end, right)
    if value.said.endswith("00") or _QUANTITY.search(text, begin, value.start) is not None:
        return False
    return (
        _TYPED_NEAR.search(text, begin, value.start) is not None
        or _TYPED_NEAR.search(text, value.end, right if end < 0 else end) is not None
    )


def _is_called_code(before: str) -> bool:
    """Return whether the text before a number calls it a code, and none of another kind."""
    called = _CALLED_CODE.search(before)
    return called is not None and _OTHER_CODE.search(before, 0, called.start()) is None


def _may_be_code(value: SecretCandidate, cue: _Cue, between: str, *, told: int) -> bool:
    """Return whether a number may be the code that a word mentions: nothing between them says otherwise."""
    plain = value.said.rstrip("#")
    if (
        len(between) > _NEAR_CODE
        or _NUMBER.search(between[-_NEAR_NUMBER:] if told == _TOLD else between)
        or "_" in between
    ):
        return False
    if means_other_pin(between, 0):
        return False
    if _OF_ERRORS.search(between, cue.size) or (told < _TOLD and secret_candidates.is_year(plain)):
        return False
    # Numbers of doors, prices and years are told by a particle, too.
    if told < _TOLD and _HOTLINE.fullmatch(plain) is not None:
        return False
    is_weakly_told = told < _TOLD or _PARTICLE.search(between) is not None
    if is_weakly_told and (
        plain.endswith("000" if len(plain) > _DIGITS_OF_PRICE else "00")
        or (_PARTICLE.search(between) and secret_candidates.is_year(plain) and not cue.is_code)
    ):
        return False
    if not cue.is_code and (_OF_NUMBER.search(between) is not None or _LETTERED.fullmatch(plain) is not None):
        return False
    if not cue.code_points or (cue.is_password and not cue.is_code and not 6 <= len(plain) <= 8):
        return False
    if len(plain) < 4 and "lock" not in between[:8].lower() and value.said.isdecimal():
        return False
    if not cue.is_code and not cue.is_password and _DATE.fullmatch(plain) is not None:
        return False
    is_alarm = between[:5].lower() == "alarm"
    # Alarms have times and numbers, too.
    is_other = is_alarm and (told < _TOLD or _ALARM_TIME.fullmatch(plain) is not None)
    return not is_other or "off" in between or "code" in between


def _is_answer(text: str, value: SecretCandidate, near: _Surroundings, line: int, before: str) -> bool:
    """Return whether a value begins the answer to a question in the line before."""
    if _TELLS_ANSWER.fullmatch(before) is None:
        return False
    begin = text.rfind("\n", max(0, line - 1 - _BEHIND), line - 1) + 1
    if begin and text.find(":", begin, line - 1) > 0 and _SAYS_WHO.fullmatch(text, begin, line - 1):
        line = begin
    begin = text.rfind("\n", max(0, line - 1 - _BEHIND), line - 1) + 1 or max(0, line - 1 - _BEHIND)
    asked = text[begin : line - 1]
    if _ASKS.search(asked) is None or _ASKS_ABOUT.search(asked) is not None:
        return False
    earlier = text.rfind("\n", max(0, begin - 1 - _BEHIND), max(0, begin - 1)) + 1
    cues = list(near.between(begin, line)) or (
        list(near.between(earlier, begin)) if value.grade == "sure" else []
    )
    begins = _BEGINS_ANSWER.fullmatch(before) is not None
    if _asks_for_other(text[begin : line - 1], begin, cues, near):
        return False
    if value.grade == "digits":
        return (
            begins
            and 4 <= len(value.said) <= 8
            and any(cue.code_points and not cue.is_counted for cue in cues)
        )
    points = max((cue.points for cue in cues), default=0)
    is_cited = points == _PASSWORD and _CITES.search(before) is not None
    return (
        bool(points)
        and (begins or is_cited or near.told(before[-_CHARS_OF_TELLING:]) == _TOLD)
        and _OF_GRADE[value.grade] + points >= 4
    )


def _asks_for_other(asked: str, begin: int, cues: Sequence[_Cue], near: _Surroundings) -> bool:
    """Return whether a question in an East Asian language asks for a name, an address or a time and for nothing secret.

    Args:
        asked: The line of the question.
        begin: Its offset in the text.
        cues: The words near the answer, some of them in the question.
        near: The words of the text.
    """
    if _OF_TIMES.search(asked) is not None:
        return True
    words = [word for word in _ASKED_BY.finditer(asked) if not word[0].isascii()]
    return bool(words) and all(
        near.is_other(asked[: word.start()][-_CHARS_OF_NOUN:])
        and not any(begin + word.end() <= cue.at < begin + len(asked) for cue in cues)
        for word in words
    )


_OF_PASSWORDS = (
    *_WORDS.passwords,
    *_WORDS.opens,
    *_WORDS.access,
    *_WORDS.services,
    *_WORDS.locks,
    *_WORDS.counted_locks,
    *(word for word in _WORDS.sets if len(word) >= _SIGNS_OF_ANCHOR),
)
_OF_CODES = (
    *_WORDS.passwords,
    *_WORDS.locks,
    *_WORDS.codes,
    *_WORDS.counted_locks,
    *_WORDS.counted_codes,
)
RULES = (
    Rule("password-in-context", "password", tuple(dict.fromkeys(_OF_PASSWORDS)), walk=_near(codes=False)),
    Rule("code-in-context", "code", tuple(dict.fromkeys(_OF_CODES)), walk=_near(codes=True), has_digit=True),
)
"""Each rule has all its words as anchors, so that the text near several of them is read once."""
