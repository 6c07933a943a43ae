"""Finds passwords of letters alone behind a label outside English, and passwords beside a user name without a label.

A word behind a label is not enough: it must be in quotes, or the end of the line behind a colon, or have a user name beside it. What a
form says of a password ("obligatoria") is in `statements` of secret_words.toml.
"""

import re

from memd.redact import secret_candidates, secret_values
from memd.redact.rule import DIGIT, Nearby, Rule, Span
from memd.redact.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.plain
_LABELS = tuple(
    dict.fromkeys((*SECRET_WORDS.passwords, *(word.replace(" ", "_") for word in SECRET_WORDS.passwords)))
)
_LABEL = rf"(?:{either(_LABELS)})\w{{0,4}}[\"'`*_]{{0,2}}"
_ENDS = r"[.!。]?[ \t]{0,4}(?=\n|\Z)"
_SEPARATED = r"[ \u3000]?[:：=＝][*_]{0,2}[ \u3000]{0,3}"
# "Kennwort für den Drucker: tintenfass", at the beginning of a line or behind a word or two.
_AMBIGUOUS = frozenset(
    {
        "パス",
        "암호",
        "parola",
        "parolă",
        "parola chiave",
        "clave de",
        "clave del",
        "clave dinámica",
        "code wifi",
        "code wi-fi",
        "code du wifi",
    }
)
_PLAIN_LABELS = tuple(label for label in (*_LABELS, "パスワード") if label not in _AMBIGUOUS)
_AT_END = re.compile(
    rf"(?:{either(_PLAIN_LABELS)})(?:(?<=[а-яłe])[а-яёosimzn]{{1,4}})?[\"'`*_]{{0,2}}(?:[ ](?:{either(_WORDS.of)})(?:[ ][^\W\d_][\w'’-]{{0,20}}){{1,3}}?|[ ](?:{either(_WORDS.devices)})\w{{0,4}})?"
    rf"{_SEPARATED}(?P<secret>[A-Za-z]{{5,32}}){_ENDS}",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"[Kk]ennwort[ ]?:[ ]{0,3}[A-Z][a-z]{3,31}\.?\s{0,4}")
_FEW_BEFORE = re.compile(r"(?:\A|\n)[^\n:：=.;!?%<>]{0,24}\Z")
# "пароль от вайфая zvezda2020": no colon, but a word for a network or a device, and a word with a number at the end of the line.
_OF_DEVICE = re.compile(
    rf"{_LABEL}(?:[ ](?:от|на|к|del?|do|da|du|di|van|der|vom|for|na|для))?(?:[ ](?:{either(_WORDS.devices)})\w{{0,4}}){{1,2}}[ ](?P<secret>[A-Za-z]{{4,16}}[0-9]{{2,6}}[!#.*]?){_ENDS}",
    re.IGNORECASE,
)
# "das Passwort lautet „Mondschein“", "contraseña "limonada"", "mot de passe provisoire « marguerite »"
_QUOTED = re.compile(
    rf"(?P<label>{_LABEL})(?:[ ](?:{either(_WORDS.new)}))?(?:{_SEPARATED}|[ ](?:{either(_WORDS.says)}|[-–—])[ ]{{1,2}}|[はは는은][ ]?|[ ])"
    r"(?:[\"“„](?P<straight>[A-Za-zÀ-ɏЀ-ӿ]{4,24})[\"”“]|[«「『][ \u00a0\u202f]?(?P<angled>[A-Za-zÀ-ɏЀ-ӿ]{4,24})[ \u00a0\u202f]?[»」』])(?![ ]?[:=({]|[ ]\w|[A-Za-z])",
    re.IGNORECASE,
)
# A user and a password, each behind its label: usuario: luis, clave: mariposa.
_BESIDE = re.compile(
    rf"(?:{either(_WORDS.users)})(?P<told>[ ]?[:：=])?[ \u3000]{{0,3}}(?P<user>[\w.@+-]{{2,40}})[ \u3000]{{0,2}}(?:[,;/|、，；]|(?<=[ ])(?:und|and|et|y|e|en|и)(?=[ ]))?[ ]{{0,2}}"
    rf"(?P<label>{_LABEL}|clave|password|pass|pw|pwd)(?:{_SEPARATED}|(?P<bare>[ ]{{1,2}}))(?P<secret>[!-~]{{4,40}}?)(?=[\"'”»]?[,;.)]?(?:[ \t]{{0,4}}(?:\n|\Z)|[ ][(–—-]))",
    re.IGNORECASE,
)
# Behind a word for logging in, a user and a password: Zugang, jan and geheimnis7.
_PAIR = re.compile(
    rf"(?:(?<![\w-])|(?<=[一-鿿]))(?P<label>{either(_WORDS.access)})(?:[ ][^\W\d_][\w'’-]{{0,16}}){{0,3}}?(?:[ ]?(?:[:：]|->|→)[ ]{{0,2}}|(?<=[^\x00-\x7f])[ ](?=(?:admin|root)[ /]))(?P<user>[A-Za-z][\w.@-]{{1,31}})(?P<by>[ ]?/[ ]?|[ ]{{1,2}})(?P<secret>[!-~]{{6,40}}?){_ENDS}",
    re.IGNORECASE,
)
# "admin / hunter2x", alone on a line
_ALONE = re.compile(
    rf"(?:root|admin|administrator|ubuntu|postgres)[ ]/[ ](?P<secret>[!-~]{{6,40}}?){_ENDS}", re.IGNORECASE
)
_BULLET = re.compile(r"(?:\A|\n)[ \t>*•-]{0,6}\Z")
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]{5,16}[0-9]{1,4}")
_PARTICIPLE = re.compile(
    r"[a-z]{2,12}(?:ad|id|at|it|ut)[oae]s?|ge[a-z]{3,12}(?:t|en)|[a-z]{2,12}(?:iert|and[oa]|endo|ato|ujący|ование)"
)
_LETTERS_OF_ANOTHER_SCRIPT = re.compile("[^\x00-\u024f]")


def _is_word(said: str) -> bool:
    """Return whether a word may be a password: it is no label, no type, and none that a form says of one."""
    return not (
        said.lower() in secret_values.HARMLESS_WORDS
        or said.lower() in _WORDS.function_words
        or secret_values.is_reference(said)
        or secret_values.is_something_else(said, quoted=False, shouts=False)
    )


def _at_end(text: str, at: int) -> Span | None:
    match = _AT_END.match(text, at)
    if match is None or _FEW_BEFORE.search(text[max(0, at - 26) : at]) is None:
        return None
    # A German noun behind "Kennwort" alone is what a letter or a payment is about.
    is_subject = _SUBJECT.fullmatch(match[0]) is not None
    is_one = (
        not is_subject
        and _is_word(match["secret"])
        and _PARTICIPLE.fullmatch(match["secret"].lower()) is None
    )
    return match.span("secret") if is_one else None


def _of_device(text: str, at: int) -> Span | None:
    match = _OF_DEVICE.match(text, at)
    is_one = match is not None and not secret_candidates.names_thing(match["secret"])
    return match.span("secret") if match is not None and is_one else None


def _quoted(text: str, at: int) -> Span | None:
    match = _QUOTED.match(text, at)
    if match is None or (text[at - 1 : at] or " ") in "\"'`“„«「『":
        return None
    group = "straight" if match["straight"] else "angled"
    is_one = _is_word(match[group]) and not secret_values.is_about_passwords(match[group])
    return match.span(group) if is_one else None


def _beside(text: str, at: int) -> Span | None:
    match = _BESIDE.match(text, at)
    if match is None or not _is_word(match["secret"]) or match["user"].lower() in _WORDS.function_words:
        return None
    # Without colons, the words of a sentence must differ from it in script, or the password has a number at its end.
    if (match["bare"] or not match["told"]) and not (
        match["user"].isascii()
        and (
            _LETTERS_OF_ANOTHER_SCRIPT.search(match["label"]) is not None
            or _WORD_AND_NUMBER.fullmatch(match["secret"]) is not None
        )
    ):
        return None
    return match.span("secret")


def _paired(text: str, at: int) -> Span | None:
    match = _PAIR.match(text, at)
    if match is None or match["user"].lower() in _WORDS.function_words:
        return None
    # Two words may be a place or a heading: one is a user that every system has, or both are as somebody types them.
    if "/" in match["by"] or match["user"].lower() in _USERS_OF_SYSTEMS:
        return _judged(match, apart=match["by"] == " / ")
    is_typed = match["user"].islower() and _TYPED.fullmatch(match["secret"]) is not None
    return match.span("secret") if is_typed and match["label"].lower() not in _OF_TALK else None


_USERS_OF_SYSTEMS = frozenset(
    {"root", "admin", "administrator", "postgres", "pi", "guest", "deploy", "backup"}
)
_TYPED = re.compile(r"[a-z]{6,12}[0-9]{1,4}")
_OF_TALK = frozenset(
    {"login", "connexion", "вход", "доступ", "логин", "ログイン", "로그인", "登录", "登陆", "登入"}
)


def _alone(text: str, at: int) -> Span | None:
    match = _ALONE.match(text, at) if _BULLET.search(text[max(0, at - 8) : at]) is not None else None
    if match is None or secret_candidates.password(match["secret"], 0) is None or "/" in match["secret"]:
        return None
    # Beside "root" may be the name of a disk.
    is_one = text[at] not in "rR" or secret_values.mixes(match["secret"])
    return match.span("secret") if is_one else None


def _judged(match: re.Match[str], *, apart: bool) -> Span | None:
    """Return the password of a pair; `apart`: a slash between blanks is before it."""
    said = match["secret"]
    if secret_candidates.names_thing(said) or secret_values.is_reference(said) or "/" in said:
        return None
    found = secret_candidates.password(said, 0)
    is_one = (
        _WORD_AND_NUMBER.fullmatch(said) is not None
        or (apart and secret_values.is_strong(said))
        or (found is not None and found.grade != "weak" and found.said == said)
    )
    return match.span("secret") if is_one else None


_OF_LABELS = tuple(
    label for label in _LABELS if not any(other in label for other in _LABELS if other != label)
)
_SOON = Nearby(re.compile("[:：=＝]"), 0, 120)

RULES = (
    Rule("password-plain", "password", _OF_LABELS, _at_end, needs=_SOON),
    Rule("password-of-device", "password", _OF_LABELS, _of_device, needs=Nearby(DIGIT, 0, 80)),
    Rule(
        "password-plain-quoted",
        "password",
        _OF_LABELS,
        _quoted,
        needs=Nearby(re.compile('["“„«「『]'), 0, 60),
    ),
    Rule("password-beside-user", "password", _WORDS.users, _beside),
    Rule("password-paired-abroad", "password", _WORDS.access, _paired, needs=Nearby(DIGIT, 0, 120)),
    Rule(
        "password-paired-alone",
        "password",
        ("root / ", "admin / ", "administrator / ", "ubuntu / ", "postgres / "),
        _alone,
    ),
)
"""Passwords of letters alone, and pairs of a user and a password."""
