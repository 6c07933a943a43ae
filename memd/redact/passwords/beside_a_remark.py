"""Finds passwords that people make up from words, where a text speaks of one without naming it: "reset to Welcome-Plover-3", "*Thistle_Dew4".

What is between the words, capitals and a number make the form, and a remark beside it ("says locked", "sorry, typo", "strong enough?")
tells it. It must be in quotes or stand directly behind what announces it, and the line must speak of a login unless the word has a sign
that names of things do not have ("Winter@Desk23"). Without a number or a sign it must be in quotes beside a sure remark.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from memd.redact.rule import Covered, Nearby, Rule, Span, line_end, line_start
from memd.redact.values import secret_candidates, secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.made_up
_CHARS_BEFORE, _CHARS_BEHIND = 110, 110  # characters of the line around a remark in which the password may be
_SIGNS_OF_ONE = 7
# Two words or more, with a sign between them or a number at the end.
_WORD = re.compile(
    r"(?<![\w./\\:@#$%&=+~^*<({\[-])(?P<secret>[$!#]?[A-Za-z0-9]{1,24}(?:[_!@#$%&+~^*.-]{1,2}[A-Za-z0-9]{1,24}){0,4}[!?*#$]{0,2})(?![\w/\\@(\[{=<>])(?!\.\w)(?!:\w)"
)
_JOINED = re.compile(r"[A-Za-z0-9][_!@#$%&+~^*.-]{1,2}[A-Za-z0-9]")
_OF_WORDS = re.compile(r"[A-Za-z]{3}")
_CAPITALS = re.compile(r"[A-Z]")
_SMALL = re.compile(r"[a-z]")
_DIGITS = re.compile(r"[0-9]")
# A word with a number, and two words whose second has a capital.
_NUMBERED = re.compile(r"[A-Za-z][a-z]{2,20}(?:[A-Z][a-z]{2,20})?[0-9]{1,4}[!?*#]{0,2}")
_HUMPED = re.compile(r"[a-z]{3,16}[A-Z][a-z]{2,16}|[A-Z][a-z]{2,16}[A-Z][a-z]{2,16}")
# What is no password: versions, standards, names of files and of things, and addresses.
_OTHER = re.compile(
    r"[A-Z0-9_.-]{1,99}|[a-z0-9_-]{1,99}|(?:[A-Za-z]{1,16}[-_. ]?)?v?[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}\w{0,8}|.{1,99}\.[a-z]{1,5}|(?i:utf|iso|wi-?fi|covid|sha|md|aes|rsa|usb|ipv|http|tls|ssl|x86|amd|arm)[-_]?[0-9a-z].{0,99}"
    r"|[A-Z][a-z]{1,24}(?:\.[A-Z][a-z]{1,24}){1,4}|[A-Z][a-z]{1,24}(?:-[a-z]{1,24}){1,4}|[A-Z]{2,24}[-_]?[0-9]{1,24}|[0-9]{1,4}(?:st|nd|rd|th)?-\w{1,99}|[A-Z]-\w{1,99}|[A-Z]?[a-z]{1,24}-(?:[A-Z]|[0-9]{1,4}[a-z]{0,2})"
)
_ANNOUNCED = re.compile(
    rf"(?:(?:^|(?<![\w'’]))(?:{either((*_WORDS.announces, *SECRET_WORDS.context.tells))})(?:[ ](?:now|still|just|again|then|only)){{0,2}}[ ]|[:：]|->|→|=>|[ ]=[ ]|[ ][–—-][ ]|[,，][ ]?)[ ]{{0,2}}[\"'`“‘«„]?\Z",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“”"}
_OTHER_NOUN = re.compile(
    rf"(?<![a-z])(?:{either((*SECRET_WORDS.context.others, *SECRET_WORDS.context.networks, *_WORDS.others))})[\"'`]?[ ]?(?:is|was|:|=|called|named)?[ ]?[\"'`“]?\Z",
    re.IGNORECASE,
)
_OF_CODE = re.compile(
    r"[\])}]:|[\])}]\s->|\w[\[(][\"']|[\"']\]|\bself\b|[`|{}\\]|--[a-z]|[({]\)?[;{]|==|&&|\|\||</|\breturn\b|\bimport\b|\bdef\b|\bclass\b|[A-Za-z_]\((?!s\))|::|->\w"
)
_WHOLE_CUE = re.compile(
    rf"(?<![A-Za-zÀ-ɏ])(?:{either((*_WORDS.cues, *_WORDS.loose_cues, *_WORDS.sure_cues))})(?![A-Za-z]{{3}})",
    re.IGNORECASE,
)
_SURE = frozenset(_WORDS.sure_cues)
_LOOSE = frozenset(_WORDS.loose_cues)


def grade_of(said: str) -> int:
    """Return how much a word looks made up: 2 with a sign, a capital and a number, 1 with less of it, 0 if it is something else."""
    plain = said.rstrip("!?*#$")
    if said.islower() and plain.replace("-", "").replace(".", "").isalpha():
        return 0
    if (
        len(said) < _SIGNS_OF_ONE
        or _OF_WORDS.search(said) is None
        or secret_candidates.names_thing(plain)
        or secret_values.is_reference(said)
        or secret_values.names_algorithm(plain)
        or plain.lower() in secret_values.HARMLESS_WORDS
        or _ADDRESS.search(said) is not None
    ):
        return 0
    parts = [part.lower().rstrip("0123456789") for part in _PART.findall(plain)]
    if not _OF_THINGS.isdisjoint(parts) or not secret_values.HARMLESS_WORDS.isdisjoint(
        part for part in parts if len(part) > 3
    ):
        return 0
    if _MODEL.search(plain) is not None and re.search("[!@#$%&+~^*]", plain) is None:
        return 0
    if _NUMBERED.fullmatch(said) or _HUMPED.fullmatch(said):
        return 1
    if _JOINED.search(said) is None and not said.startswith(("$", "!")):
        return 0
    has_both = _CAPITALS.search(said) is not None and _SMALL.search(said) is not None
    has_sign = re.search(r"[!@#$%&+~^*_]", said.rstrip("!?")) is not None
    if has_both and _DIGITS.search(said) is not None:
        return (
            0
            if not has_sign and _OTHER.fullmatch(plain) is not None and _TWO_CAPITALS.search(plain) is None
            else 2
        )
    if has_both and _NAME_IN_PLACE.search(plain) is not None:
        return 0
    if has_both and _OTHER_CASE.fullmatch(plain) is None and len(_WHOLE_WORD.findall(plain)) > 1:
        return 1
    return 1 if has_sign and re.search("[!@#$%&+~^*]", plain) is not None and _SMALL.search(said) else 0


_ADDRESS = re.compile(r"@[\w-]+\.[a-z]{2}|%%|%0[AD]|[a-z]\.[a-z]|\w\.[0-9]{1,3}\Z")
_PART = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*")
_OF_THINGS = frozenset(_WORDS.things)
# The number of a model or a version behind a name: Netgear_R7000, MacBook-M3, LinkedIn-2012.
_MODEL = re.compile(
    r"(?:[-_. ]|[a-z])(?:[A-Z]{1,3}[0-9]{1,5}[A-Za-z]{0,2})\Z|[-_.](?:19|20)[0-9]{2}\Z|[-_][0-9.]{1,3}G(?:Hz)?\Z"
)
_NO_VALUE = re.compile(rf"(?<![\w'’])(?:{either(_WORDS.before_names)})[ ][\"'`“]?\Z", re.IGNORECASE)
_IS_NAME = re.compile(r"[ ]?[:=(]|-\w")
_TWO_CAPITALS = re.compile(
    r"[A-Z][a-z]{2,}[A-Z][a-z]{2,}[-.]?[0-9]|[A-Z][a-z]{2,}[-.][A-Z][a-z]{2,}[-.]?[0-9]|[a-z0-9]{2,}[-.][A-Za-z]{2,}[-.][0-9]"
)
_NAME_IN_PLACE = re.compile(r"-(?:in|on|upon|of|the|de|du|la|le|sur|und|and|to|am|an|der|by|at|for|y|e)-")
_WHOLE_WORD = re.compile(r"[A-Za-z][a-z]{2,}")
_OTHER_CASE = re.compile(r"[A-Z]?[a-z]{1,24}(?:-[a-z]{1,24}){1,4}|[A-Z]{1,24}(?:[-_.][A-Z]{1,24}){1,4}")


# Without a sign that names of things do not have, the line must speak of a login.
_OF_LOGIN = re.compile(
    r"(?<![a-z])log(?:ging)?[ -]?(?:in|on)(?![a-z])|password|passwort|says locked|account locked|guest network|network key|haveibeenpwned|in a breach",
    re.IGNORECASE,
)
_RARE_SIGN = re.compile("[!@#$%&^~].")
_GOES_ON = re.compile(r"[\"'”’]?[ ](?:is|was|are|has|appears|starts|and[ ][A-Z])(?!\w)")


def _near_remarks(text: str, places: Sequence[int], _: Covered) -> Iterator[Span]:
    """Yield a made-up password beside each remark; a word is graded once, however many remarks are near it."""
    near = _FORM.beside(places, text)
    grade = cache(grade_of) if near else grade_of  # of this text alone
    for at in near:
        span = _made_up(text, at, grade)
        if span is not None:
            yield span


def _made_up(text: str, at: int, grade_once: Callable[[str], int]) -> Span | None:
    cue = None if text[at - 1 : at].isalpha() else _WHOLE_CUE.match(text, at)
    if cue is None:
        return None
    is_sure, is_loose = cue[0].lower() in _SURE, cue[0].lower() in _LOOSE
    begin = line_start(text, at, _CHARS_BEFORE)
    end = line_end(text, cue.end(), _CHARS_BEHIND)
    is_of_login: bool | None = None
    for match in _WORD.finditer(text, begin, end):
        start, stop = match.span("secret")
        said = match["secret"]
        # Cheap checks come first: in a crowd of remarks each word is near many of them.
        if start < cue.end() and stop > at:
            continue
        if _RARE_SIGN.search(said) is None:
            if is_of_login is None:
                is_of_login = not is_loose and _OF_LOGIN.search(text, begin, end) is not None
            if not is_of_login:
                continue
        grade = grade_once(said)
        opened = text[start - 1 : start]
        is_quoted = opened in _QUOTES and text[stop : stop + 1] in _QUOTES[opened]
        # With less than a sign, a capital and a number the remark must be a sure one.
        if not grade or (grade < 2 and not (is_sure and is_quoted)):
            continue
        before = text[max(0, start - 40) : start]
        is_told = is_quoted or _ANNOUNCED.search(before) is not None
        if not is_told or _OTHER_NOUN.search(before) or _NO_VALUE.search(before):
            continue
        # It is the name of something, or the sentence goes on with it.
        behind = _IS_NAME.match(text, stop + 1) if is_quoted else _GOES_ON.match(text, stop)
        if behind is not None:
            continue
        return (start, stop) if _OF_CODE.search(text, begin, end) is None else None
    return None


# A correction in a chat: "*Thistle_Dew4".
_CORRECTED = re.compile(r"(?:\A|\n)(?:[\w .]{1,20}:[ ])?\*[ ]?(?P<secret>[!-~]{7,40}?)\*?[ \t]{0,4}(?=\n|\Z)")


_SIGN = re.compile("[_!@#$%&+~^]")


def _corrected(text: str, at: int) -> Span | None:
    left = max(0, at - 80)
    end = min(len(text), at + 80)
    match = _CORRECTED.search(text, left, end)
    if match is None or grade_of(match["secret"]) < 2 or _SIGN.search(match["secret"]) is None:
        return None
    return match.span("secret")


_FORM = Nearby(
    re.compile(r"[a-z0-9][_!@#$%&+~^*.-]{1,2}[A-Za-z0-9]|[a-z]{2}[A-Z0-9]"),
    _CHARS_BEFORE,
    _CHARS_BEHIND + 24,
    5,
)

RULES = (
    Rule(
        "password-made-up",
        "password",
        shortest_anchors((*_WORDS.cues, *_WORDS.loose_cues, *_WORDS.sure_cues)),
        walk=_near_remarks,
    ),
    Rule(
        "password-corrected",
        "password",
        ("typo", "sorry", "correction", "i meant", "meant "),
        _corrected,
        needs=Nearby(re.compile(r"\*"), 80, 80),
    ),
)
"""Beside a remark, and as a correction in a chat."""
