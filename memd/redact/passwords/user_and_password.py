"""Finds passwords beside a user: each behind its label, behind a word for logging in, as "admin / ..." alone on a line, or behind an address of mail."""

import re

from memd.redact.passwords.plain_words import ENDS_LINE, LABEL, SEPARATED
from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_start
from memd.redact.values import randomness, secret_candidates, secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.plain
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]{5,16}[0-9]{1,4}")
_SIGN_AND_COMMA = re.compile(r"[A-Za-z]{5,20}[!#*](?=[,;])")  # no sentence ends so

# --- each behind its label: "usuario: luis, clave: mariposa"

_USER = rf"(?:{either(_WORDS.users)})(?P<told>[ ]?[:：=])?[ \u3000]{{0,3}}(?P<user>[\w.@+-]{{2,40}})"
_AND = r"[ \u3000]{0,2}(?:[,;/|、，；]|(?<=[ ])(?:und|and|et|y|e|en|и)(?=[ ]))?[ ]{0,2}"
_PASSWORD = rf"(?P<label>{LABEL}|clave|password|pass|pwd?|ww)(?:{SEPARATED}|(?P<bare>[ ]{{1,2}}))(?P<secret>[!-~]{{4,40}}?)"
_ENDS = r"(?=[\"'”»]?[,;.)]?(?:[ \t]{0,4}(?:\n|\Z)|[ ][(–—-])|(?<=[a-z]{4}[!#*])[,;][ ])"
_BESIDE = re.compile(rf"{_USER}{_AND}{_PASSWORD}{_ENDS}", re.IGNORECASE)
_OF_ANOTHER_SCRIPT = re.compile("[^\x00-\u024f]")


def _beside(text: str, at: int) -> Span | None:
    match = _BESIDE.match(text, at)
    if (
        match is None
        or not secret_values.may_be_plain(match["secret"].rstrip("!#*?"))
        or match["user"].lower() in _WORDS.function_words
    ):
        return None
    has_colons = match["told"] is not None and match["bare"] is None
    return match.span("secret") if has_colons or _differs_from_sentence(match) else None


def _differs_from_sentence(match: re.Match[str]) -> bool:
    """Return whether user and password, without colons, are no words of a sentence: they differ in script, or a number or a sign ends the password."""
    return match["user"].isascii() and (
        _OF_ANOTHER_SCRIPT.search(match["label"]) is not None
        or _WORD_AND_NUMBER.fullmatch(match["secret"]) is not None
        or _SIGN_AND_COMMA.match(match.string, match.start("secret")) is not None
    )


# --- behind a word for logging in: "Zugang: jan / geheimnis7"

_ACCESS = rf"(?:(?<![\w-])|(?<=[一-鿿]))(?P<label>{either(_WORDS.access)})"
_OF_WHAT = r"(?:[ ][^\W\d_][\w'’-]{0,16}){0,3}?"
_COMES = r"(?:[ ]?(?:[:：]|->|→)[ ]{0,2}|(?<=[^\x00-\x7f])[ ](?=(?:admin|root)[ /]))"
_BOTH = r"(?P<user>[A-Za-z][\w.@-]{1,31})(?P<by>[ ]?/[ ]?|[ ]{1,2})(?P<secret>[!-~]{6,40}?)"
_PAIR = re.compile(rf"{_ACCESS}{_OF_WHAT}{_COMES}{_BOTH}{ENDS_LINE}", re.IGNORECASE)
_TYPED = re.compile(r"[a-z]{6,12}[0-9]{1,4}")


def _paired(text: str, at: int) -> Span | None:
    match = _PAIR.match(text, at)
    if match is None or match["user"].lower() in _WORDS.function_words:
        return None
    # Two words may be a place or a heading: one is a user that every system has, or both are as somebody types them.
    if "/" in match["by"] or match["user"].lower() in _WORDS.users_of_systems:
        return match.span("secret") if _is_of_pair(match["secret"], apart=match["by"] == " / ") else None
    is_typed = match["user"].islower() and _TYPED.fullmatch(match["secret"]) is not None
    return match.span("secret") if is_typed and match["label"].lower() not in _WORDS.access_of_talk else None


def _is_of_pair(said: str, *, apart: bool) -> bool:
    """Return whether a word behind a user is a password; `apart`: a slash between blanks is before it."""
    if secret_candidates.names_thing(said) or secret_values.is_reference(said) or "/" in said:
        return False
    found = secret_candidates.password(said, 0)
    return (
        _WORD_AND_NUMBER.fullmatch(said) is not None
        or (apart and secret_values.is_strong(said))
        or (found is not None and found.grade != "weak" and found.said == said)
    )


# --- alone on a line: "admin / hunter2x"

_ALONE_USERS = ("root", "admin", "administrator", "ubuntu", "postgres")
_ALONE = re.compile(rf"(?:{either(_ALONE_USERS)})[ ]/[ ](?P<secret>[!-~]{{6,40}}?){ENDS_LINE}", re.IGNORECASE)
# A bullet, or a machine with its address.
_BULLET = re.compile(
    r"(?:\A|\n)[ \t>*•-]{0,6}(?:(?:[\w-]{1,24}[ \t]{1,12})?(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5})?[ \t]{1,12}(?:[-–:][ ])?)?\Z"
)


def _alone(text: str, at: int) -> Span | None:
    match = (
        _ALONE.match(text, at) if _BULLET.search(text[line_start(text, at, 80) : at]) is not None else None
    )
    if match is None or secret_candidates.password(match["secret"], 0) is None or "/" in match["secret"]:
        return None
    # Beside "root" may be the name of a disk.
    is_one = text[at] not in "rR" or randomness.mixes(match["secret"])
    return match.span("secret") if is_one else None


# --- in a list, behind the system it is for: "2. 生产库只读 dbro / Dbro.2209vv", "- NAS : admin / Nas0319mapo"

_LISTED = re.compile(
    rf"(?:\A|\n)[ \t>*•·-]{{0,8}}(?:[0-9]{{1,2}}[.)、．][ \t]{{0,3}})?(?P<system>[^\n/|,，;；]{{2,40}}?)(?P<by>[ ]?[:：]|[ ])[ ]{{0,2}}(?P<user>[A-Za-z][A-Za-z_.@-]{{1,31}}|(?:{either(_WORDS.users_of_systems)}))\Z",
    re.IGNORECASE,
)
_BEHIND_USER = re.compile(r" / (?P<secret>[!-~]{6,40}?)(?=[.。;；]?[ \t]{0,4}(?:\n|\Z)|[ ]?[(（])")
_SYSTEM = re.compile(rf"(?<![a-z])(?:{either(_WORDS.systems)})", re.IGNORECASE)
_ENVIRONMENTS = frozenset({"dev", "test", "prod", "stage", "staging", "qa", "uat", "main", "master", "local"})


def _listed(text: str, at: int) -> Span | None:
    match = _BEHIND_USER.match(text, at)
    before = None if match is None else _LISTED.search(text[max(0, at - 90) : at])
    if match is None or before is None or DIGIT.search(match["secret"]) is None:
        return None
    said, user = match["secret"], before["user"].lower()
    if before["by"] != " " and user in _WORDS.users_of_systems:
        is_one = randomness.count_digits(said) > 2 and _is_of_pair(said, apart=False)
    elif _SYSTEM.search(before["system"]) is None or user in _ENVIRONMENTS or not randomness.mixes(said):
        return None
    else:
        found = secret_candidates.password(said, 0)
        # Many passwords begin as their user does: dbro / Dbro.2209vv.
        is_like_user = said.lower().startswith(user[:4]) and randomness.count_digits(said) > 3
        is_one = (is_like_user and secret_values.is_strong(said)) or (
            found is not None and found.grade == "sure" and found.said == said
        )
    return match.span("secret") if is_one and "/" not in said and "localhost" not in said else None


# --- behind single letters: "u: sysop p: 9Sb8A6CNW"

_SHORT = re.compile(
    r"(?<![\w.])(?:u|k|b|usr|user|un|l|login|id|acc|acct|account|e|mail|账号|账户|用户|号|昵称)[ ]?[:=：][ ]{0,2}[\"'`]?[^\s:=\"'`]{2,48}[\"'`]?[ \t,;/|，；、]{0,3}\n?[ \t]{0,4}\Z",
    re.IGNORECASE,
)
_SHORT_PASSWORD = re.compile(
    r"(?:[pP](?:w|ass|wd)?|[shwlşSHWL])[ ]?[:=：][ ]{0,2}[\"'`]?(?P<secret>[!-~]{5,64}?)(?=[\"'`]?[,;.)]?(?:\s|\Z|[，。；]))"
)


def _short(text: str, at: int) -> Span | None:
    match = _SHORT_PASSWORD.match(text, at)
    if match is None or text[at - 1 : at].isalnum():
        return None
    if _SHORT.search(text[max(0, at - 70) : at]) is None or secret_values.is_reference(match["secret"]):
        return None
    span = secret_values.strong_span(text, *match.span("secret"))
    if span is None or text[at] in "pP":
        return span
    # Behind the first letter of the word in another language.
    found = secret_candidates.password(text[slice(*span)], 0)
    return span if found is not None and found.grade != "weak" else None


# --- an account's address, and the password on the line below

_BELOW_MAIL = re.compile(
    r"@[\w-]{1,40}(?:\.[\w-]{1,20}){1,3}[ \t]{0,4}\n[ \t>*•-]{0,6}(?:(?:密码|pw|pass|p)[ ]?[:：][ ]?)?(?P<secret>[!-~]{7,64})[ \t]{0,4}(?=\n|\Z)",
    re.ASCII | re.IGNORECASE,
)
_MAIL_ALONE = re.compile(r"(?:\A|\n)[ \t>*•-]{0,6}(?:[^\n:：@]{1,16}[:：][ ]?)?[\w.+-]{2,48}\Z")
_OF_ACCOUNT = re.compile(
    r"\bid\b|苹果id|apple|icloud|account|log-?in|sign-?in|portal|netflix|steam|google|账号|帐号|账户|登[录陆]|邮箱|会员|zugang|konto|compte|cuenta|conta\b|account|учет|аккаунт|アカウント|계정|wi-?fi|vpn|user",
    re.IGNORECASE,
)


def _below_mail(text: str, at: int) -> Span | None:
    match = _BELOW_MAIL.match(text, at)
    if match is None or _MAIL_ALONE.search(text[max(0, at - 80) : at]) is None:
        return None
    found = secret_candidates.password(match["secret"], 0)
    is_one = (
        found is not None and found.grade != "weak" and "@" not in match["secret"][1:-1].rstrip("!?")[-1:]
    )
    if not is_one or secret_values.is_reference(match["secret"]) or "://" in match["secret"]:
        return None
    return match.span("secret") if _OF_ACCOUNT.search(text, max(0, at - 140), at) is not None else None


# --- netflix,bo@x.org,otterflix41: a row of an export

_ROW = re.compile(
    r"@[\w-]{1,40}(?:\.[\w-]{1,20}){1,3}[,;\t](?P<secret>[^\s,;\"']{6,64})(?=[,;\t]|[ \t]{0,4}(?:\n|\Z))",
    re.ASCII,
)
_ROW_BEFORE = re.compile(
    r"(?:\A|[\n ])(?:https?://)?[\w.-]{2,60}[,;\t](?:[\w. -]{0,40}[,;\t])?[\w.+-]{2,48}\Z"
)


def _of_row(text: str, at: int) -> Span | None:
    match = _ROW.match(text, at)
    if match is None or _ROW_BEFORE.search(text[max(0, at - 150) : at]) is None or "@" in match["secret"]:
        return None
    found = secret_candidates.password(match["secret"], 0)
    return match.span("secret") if found is not None and found.grade != "weak" else None


RULES = (
    Rule("password-beside-user", "password", _WORDS.users, _beside),
    Rule("password-paired-abroad", "password", _WORDS.access, _paired, needs=Nearby(DIGIT, 0, 120)),
    Rule("password-paired-in-list", "password", (" / ",), _listed, needs=Nearby(DIGIT, 0, 44)),
    Rule("password-paired-alone", "password", tuple(f"{user} / " for user in _ALONE_USERS), _alone),
)
"""One rule a form of the pair."""
BEHIND_LETTERS = (
    Rule("user-and-password-short", "password", ("p:", "p=", "p :", "pw:", "pw=", "p：", "s: ", "h: ", "w: ", "l: ", "ş: "), _short),
)  # fmt: skip
"""A user and a password, each behind a single letter."""
BEHIND_ADDRESS = (
    Rule("password-in-export", "password", ("@",), _of_row, needs=Nearby(re.compile(r"[a-z][,;\t](?=\S)"), 0, 60, 3)),
    Rule("password-below-mail", "password", ("@",), _below_mail, needs=Nearby(re.compile(r"\n"), 0, 90)),
)  # fmt: skip
"""A password behind an address of mail: in a row of an export, or on the line below."""
