"""Finds passwords that are plain words: in quotes, at the end of a line, with a number, or before a remark on how they are spelled.

Their labels are of other languages than English and Chinese; before such a remark, of any. A word behind a label is not enough, since
sentences go on so. What a form says of a password ("obligatoria") is in `statements` of secret_words.toml.
"""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span
from memd.redact.values import secret_candidates, secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.plain
# A label in a sentence has blanks, and underscores as the name of a setting.
LABELS = tuple(
    dict.fromkeys((*SECRET_WORDS.passwords, *(word.replace(" ", "_") for word in SECRET_WORDS.passwords)))
)
LABEL = rf"(?:{either(LABELS)})\w{{0,4}}[\"'`*_]{{0,2}}"
"""A pattern for a label with the ending of its case or plural, and what closes emphasis or quotes."""
SEPARATED = r"[ \u3000]?[:：=＝][*_]{0,2}[ \u3000]{0,3}"
"""A pattern for the sign between a label and its value."""
ENDS_LINE = r"[.!。]?[ \t]{0,4}(?=\n|\Z)"
"""A pattern for the end of a line, maybe behind that of a sentence."""

# --- a word at the end of its line: "Kennwort für den Drucker: tintenfass"

_CLEAR_LABELS = tuple(label for label in (*LABELS, "パスワード") if label not in _WORDS.ambiguous)
_ENDING_OF_LABEL = r"(?:(?<=[а-яłe])[а-яёosimzn]{1,4})?[\"'`*_]{0,2}"
_OF_WHAT = rf"[ ](?:{either(_WORDS.of)})(?:[ ][^\W\d_][\w'’-]{{0,20}}){{1,3}}?"
_DEVICE = rf"[ ](?:{either(_WORDS.devices)})\w{{0,4}}"
_AT_END = re.compile(
    rf"(?:{either(_CLEAR_LABELS)}){_ENDING_OF_LABEL}(?:{_OF_WHAT}|{_DEVICE})?{SEPARATED}(?P<secret>[A-Za-z]{{5,32}}){ENDS_LINE}",
    re.IGNORECASE,
)
# The label begins its line, or stands behind a word or two.
_FEW_BEFORE = re.compile(r"(?:\A|\n)[^\n:：=.;!?%<>]{0,24}\Z")
# A German noun behind "Kennwort" alone is what a letter or a payment is about.
_SUBJECT = re.compile(r"[Kk]ennwort[ ]?:[ ]{0,3}[A-Z][a-z]{3,31}\.?\s{0,4}")
# What a form says of a password in other words than those of `statements`: changed, sent, ...
_PARTICIPLE = re.compile(
    r"[a-z]{2,12}(?:ad|id|at|it|ut)[oae]s?|ge[a-z]{3,12}(?:t|en)|[a-z]{2,12}(?:iert|and[oa]|endo|ato|ujący|ование)"
)


def _at_end(text: str, at: int) -> Span | None:
    match = _AT_END.match(text, at)
    if match is None or _FEW_BEFORE.search(text[max(0, at - 26) : at]) is None:
        return None
    is_said_of_one = (
        _SUBJECT.fullmatch(match[0]) is not None or _PARTICIPLE.fullmatch(match["secret"].lower()) is not None
    )
    return None if is_said_of_one or not secret_values.may_be_plain(match["secret"]) else match.span("secret")


# --- a word with a number, behind a network or a device and without a colon: "пароль от вайфая zvezda2020"

_OF = r"(?:[ ](?:от|на|к|del?|do|da|du|di|van|der|vom|for|na|для))?"
_OF_DEVICE = re.compile(
    rf"{LABEL}{_OF}(?:{_DEVICE}){{1,2}}[ ](?P<secret>[A-Za-z]{{4,16}}[0-9]{{2,6}}[!#.*]?){ENDS_LINE}",
    re.IGNORECASE,
)


def _of_device(text: str, at: int) -> Span | None:
    match = _OF_DEVICE.match(text, at)
    return None if match is None or secret_candidates.names_thing(match["secret"]) else match.span("secret")


# --- a word in quotes: "das Passwort lautet „Mondschein“", "mot de passe provisoire « marguerite »"

_LETTERS = "[A-Za-zÀ-ɏЀ-ӿ]{4,24}"
_ANNOUNCED = rf"(?:{SEPARATED}|[ ](?:{either(_WORDS.says)}|[-–—])[ ]{{1,2}}|[はは는은][ ]?|[ ])"
_IN_QUOTES = rf"(?:[\"“„](?P<straight>{_LETTERS})[\"”“]|[«「『][ \u00a0\u202f]?(?P<angled>{_LETTERS})[ \u00a0\u202f]?[»」』])"
_NO_NAME = (
    r"(?![ ]?[:=({]|[ ]\w|[A-Za-z])"  # the word is no key of a setting, and its sentence does not go on
)
_QUOTED = re.compile(
    rf"{LABEL}(?:[ ](?:{either(_WORDS.new)}))?{_ANNOUNCED}{_IN_QUOTES}{_NO_NAME}", re.IGNORECASE
)
_OPENS_QUOTES = frozenset("\"'`“„«「『")


def _quoted(text: str, at: int) -> Span | None:
    match = _QUOTED.match(text, at)
    # A label in quotes is a word of a sentence about it.
    if match is None or text[at - 1 : at] in _OPENS_QUOTES:
        return None
    group = "straight" if match["straight"] else "angled"
    is_one = secret_values.may_be_plain(match[group]) and not secret_values.is_about_passwords(match[group])
    return match.span(group) if is_one else None


# --- a word of another script and its number: "пароль от роутера: сосна1987", "비번은 고양이77"

_OF_SCRIPTS = (
    r"(?:[А-Яа-яЁёІіЇїЄє]{3,16}|[Ά-ώ]{3,16}|[א-ת]{3,16}|[가-힣]{2,12}|[ぁ-ゖァ-ヺー]{3,16})"
    r"[._!@#&+*-]{0,2}[0-9]{2,4}[!?*#]{0,2}"
)
_NUMBERED = re.compile(
    rf"(?:{either((*LABELS, 'パスワード'))})(?:[^\W\d_]{{0,4}})[^\n:：=.,;!?。、0-9]{{0,40}}?(?:[ ]?[:：=][ ]{{0,3}}|[ ][-–—][ ]|[ ]это[ ]|[はは는은][ ]?|[ ](?=[^\W\d_]{{3,16}}[!@#&+*_-]?[0-9]{{2,4}}(?:[,.!)]|[ \t]{{0,4}}(?:\n|\Z))))(?P<open>[\"“„«「『'`]?)"
    rf"(?P<secret>{_OF_SCRIPTS})(?=[\"”“»」』'`]?(?:[,;，、。)](?![0-9])|[.!](?!\w)|[ \t]{{0,4}}(?:\n|\Z)|[ ]?[(（]|[ ][–—-][ ]|です|입니다|이에요|예요|이야))",
    re.IGNORECASE,
)
_OF_THINGS = re.compile(rf"(?:{either(_WORDS.numbered_things)})", re.IGNORECASE)


def _numbered(text: str, at: int) -> Span | None:
    match = _NUMBERED.match(text, at)
    is_one = match is not None and _OF_THINGS.match(match["secret"]) is None
    return match.span("secret") if match is not None and is_one else None


# --- a word, and how it is spelled: "the wifi password is marmalade, all lower case", "wifi 密码 zhimakaimen（全小写）"

_SPELLED = re.compile(
    rf"(?:(?<![A-Za-z])|(?<=[^\x00-\x7f]))(?:{either((*LABELS, *_WORDS.spelled_labels))})"
    rf"(?:[^\n:：=.,;!?。；，()（）]{{0,40}}?(?:[ ]?[:：=][ ]{{0,3}}|[ ](?:{either((*_WORDS.says, 'was', 'still', 'now'))})[ ]|[是为叫][ ]?)|(?<=[码碼令])[ ]?)[\"'`“「«]?"
    rf"(?P<secret>[^\W\d_]{{6,24}}(?:[-_.][^\W\d_]{{2,16}}){{0,4}})[\"'`”」»]?[ ]?(?:[,，;]|[(（]|[ ][–—-]|(?<=[ ]))[ ]?(?:it['’]?s[ ]|but[ ]|and[ ])?(?:all[ ](?:in[ ])?)?\Z",
    re.IGNORECASE,
)
_ENDS_SPELLING = re.compile(rf"(?:{either(_WORDS.spelling)})(?!\w)", re.IGNORECASE)


def _spelled(text: str, at: int) -> Span | None:
    left = max(0, at - 130)
    match = _SPELLED.search(text[left:at]) if _ENDS_SPELLING.match(text, at) is not None else None
    if match is None:
        return None
    said = match["secret"].lower()
    is_said_of_one = (
        not secret_values.may_be_plain(said)
        or secret_values.is_participle(said)
        or said in _WORDS.spelled_of
        or _PARTICIPLE.fullmatch(said) is not None
        or secret_values.is_about_passwords(said)
    )
    return None if is_said_of_one else (left + match.start("secret"), left + match.end("secret"))


ANCHORS = tuple(label for label in LABELS if not any(other in label for other in LABELS if other != label))
"""The labels that contain no other one."""

RULES = (
    Rule("password-plain", "password", ANCHORS, _at_end, needs=Nearby(re.compile("[:：=＝]"), 0, 120)),
    Rule("password-of-device", "password", ANCHORS, _of_device, needs=Nearby(DIGIT, 0, 80)),
    Rule(
        "password-plain-quoted", "password", ANCHORS, _quoted, needs=Nearby(re.compile('["“„«「『]'), 0, 60)
    ),
    Rule(
        "password-numbered",
        "password",
        (*ANCHORS, "パスワード"),
        _numbered,
        needs=Nearby(re.compile(r"(?<=[^\x00-\xff])[._!@#&+*-]{0,2}[0-9]{2}"), 0, 90, 5, has_digit=True),
    ),
    Rule("password-spelled", "password", shortest_anchors(_WORDS.spelling), _spelled),
)
"""One rule a place of the word, one for words with a number, and one for how a word is spelled."""
