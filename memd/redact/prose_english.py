"""Secrets that people tell each other in English: "the password is ..."."""

import re
import string

from memd.redact import secret_values
from memd.redact.rule import Find, Rule, Span, stem
from memd.redact.secret_values import Strength

# What the password is of: "for the staging database", "to his laptop"; at most six words.
_OF = r"(?:[ \t]{1,40}(?:is[ ]generated[ ])?(?:for|to|of|on|at|in|from)(?:[ \t]{1,40}[\w'’\"“”`./@:-]{1,40}){1,6}?)?"
_IS = r"""(?:[ ]?['’]s|[ \t]{1,40}(?:(?:is|was|has[ ]been|have|got|gets)[ ]{1,20})?(?:now[ ]{1,20})?(?:set|changed|reset|updated|rotated|switched)[ ]{1,20}to\b
    |[ \t]{1,40}(?:is|was|will[ ]be|should[ ]be|equals|remains)\b)
    (?:[ ]{1,20}(?:now|still|currently|just|again|only|simply|actually|always|temporarily|literally)\b){0,3}
    (?:[ ]?[:=])?(?:[ ]{1,20}the[ ]following[ ]?:)?"""
_SAID = re.compile(
    rf"(?:s?[\"'`*_]{{0,3}}{_OF}{_IS})[ \t]{{0,40}}[*_]{{0,2}}[ \t]{{0,40}}",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_LABELLED = re.compile(
    rf"{_OF}[ \t]{{0,4}}(?:=>|[:=]|->|→|(?<=[ ])[-–—](?=[ ]))[ \t]{{0,40}}[*_]{{0,2}}[ \t]{{0,40}}",
    re.ASCII | re.IGNORECASE,
)
_WORDS = {
    "password": re.compile(r"(?<![A-Za-z])(?:pass(?:word|phrase|code|wd)|pwd?)(?![A-Za-z])", re.IGNORECASE),
    "pass": re.compile(r"(?<![A-Za-z-])pass(?![A-Za-z])", re.IGNORECASE),
    "token": re.compile(r"(?<![A-Za-z])(?:token|secret)(?![A-Za-z_])", re.IGNORECASE),
    "key": re.compile(
        r"(?:(?<=api[ -])|(?<=access )|(?<=secret )|(?<=private )|(?<=encryption )|(?<=signing )|(?<=license )|(?<=the )|(?<=my ))key(?![A-Za-z_])",
        re.IGNORECASE,
    ),
    "wifi-key": re.compile(r"(?:(?<=wpa )|(?<=wpa2 )|(?<=wifi )|(?<=wi-fi ))key(?![A-Za-z_])", re.IGNORECASE),
    "any-key": re.compile(r"(?<![A-Za-z_-])key(?=[ ](?:for|to|of|on|at|in|from|is)\b)", re.IGNORECASE),
    "pin": re.compile(r"(?<![A-Za-z])pin(?:[ ]code)?(?![A-Za-z])", re.IGNORECASE),
}


# Most of the time it is a word of a sentence that says nothing of the kind.
_PROSE = re.compile(
    r"[ ](?!for|to|of|on|at|in|from|is|was|will|should|equals|remains|has|have|got|gets|now|set|changed|reset|updated|rotated|switched)[a-z]|[ ][0-9]|[).;!?,](?:\s|\Z)|[({]"
)


def _said(word: re.Pattern[str], strength: Strength, *, labels: bool = True, strict: bool = False) -> Find:
    """Finds what is said of a word.

    Args:
        word: Where it stands, as a whole word.
        strength: What it promises.
        labels: A colon after it says it, too.
        strict: The word means much else: a value must have letters and digits.
    """

    def find(text: str, at: int) -> Span | None:
        match = word.match(text, at)
        if match is None or _PROSE.match(text, match.end()) is not None:
            return None
        for pattern in (_SAID, _LABELLED) if labels else (_SAID,):
            said = pattern.match(text, match.end())
            if said is None or ("-" in said[0] and strength != "password"):
                continue
            span = _told(text, said.end(), strength, strict=strict)
            if span is not None:
                return span
        return None

    return find


def _told(text: str, at: int, strength: Strength, *, strict: bool) -> Span | None:
    """The value that begins where a sentence comes to it."""
    if at >= len(text) or (
        not (text[at - 1].isspace() or text[at - 1] in ":=*_>→") and text[at] not in "\"'`“「"
    ):
        return None
    value = secret_values.value_at(text, at)
    if value is None or (strict and not secret_values.is_strong(value.text)):
        return None
    if not secret_values.is_secret(value, strength, shouts=False, spoken=True):
        return (value.start, value.end) if _goes_on_to_the_rest(value, strength) else None
    is_short = strength == "password" and len(value.text) < 5 and not any(map(str.isdigit, value.text))
    return None if value.quoted and is_short else (value.start, value.end)


# "the password is sunshine and the user is bob": what is said next belongs to a login, too.
_REST_OF_LOGIN = re.compile(
    r"[ ]?(?:,|;|and|with|for|-)[ ]{1,2}(?:(?:the|my|his|her|our|its|your)[ ])?(?:[a-z]{2,12}[ ])?"
    r"(?:user(?:[ ]?name)?|login|account|e?-?mail|host|server|port|ip|database|db|admin|wi-?fi|ssid|network|pin)\b(?:'s)?[ ]?(?:[:=]|(?:name[ ])?(?:is|[A-Za-z0-9._@-]{2,40}\b))",
    re.IGNORECASE,
)


def _goes_on_to_the_rest(value: secret_values.SecretValue, strength: Strength) -> bool:
    """Whether a plain word stands where a password does, since the sentence goes on with who uses it."""
    return (
        strength == "password"
        and value.text.isalpha()
        and len(value.text) >= 5
        and value.text.lower() not in secret_values.HARMLESS_WORDS
        and not secret_values.is_participle(value.text)
        and _REST_OF_LOGIN.match(value.rest) is not None
    )


_SAID_AFTER = (
    " is my ", " is the ", " is your ", " is our ", " as the ", " as ", " as your ", " as my ",
    " when it asks for the ", " (the ", " (", ", my ", ", my old ", ", the ",
)  # fmt: skip
# "... is the root password": whose it is may stand between, where nothing is said of passwords in general.
_SAID_OF = re.compile(
    r"[ ]is[ ](?:the|my|your|our|his|her|their)(?:[ ][\w'’-]{1,20}){1,2}[ ]\Z", re.IGNORECASE | re.ASCII
)
_OF_NOBODY = re.compile(
    r"[\"'`*]{0,3}(?:[.,;!?)]|[ \t]{0,8}(?:\n|\Z)|[ ](?:for|of|to|on|at|in|and|now|here|again)\b)",
    re.IGNORECASE,
)
_VISIBLE = string.ascii_letters + string.digits + string.punctuation
_WORD = re.compile(r"pass(?:word|phrase|code)(?![A-Za-z])", re.IGNORECASE)
# "changed the password to hunter2", "changed the password from hunter2 to hunter3"
_VERB = re.compile(
    r"\b(?:chang|set|reset|updat|rotat|switch|mak)\w{0,5}[ ](?:[\w'’-]{1,20}[ ]){0,4}\Z", re.IGNORECASE
)
_TO = re.compile(
    r"pass(?:word|phrase|code|wd)[*_`\"']{0,3}(?:[ ](?:for|of|on)(?:[ ][\w.@-]{1,30}){1,4}?)?[ ](?:to|from)[ ](?P<before>\S{1,80}[ ]to[ ](?=\S))?",
    re.IGNORECASE,
)


def _changed(text: str, at: int) -> Span | None:
    """What a password was, or is now."""
    match = _TO.match(text, at)
    if match is None or _VERB.search(text[max(0, at - 60) : at]) is None:
        return None
    for start in (match.end(), match.start("before")):
        value = None if start < 0 else secret_values.value_at(text, start)
        if value is not None and secret_values.is_strong(value.text):
            return value.start, value.end
    return None


# "What is the password? hunter2"
_ANSWER = re.compile(
    r"""pass(?:word|code|phrase)["”*]{0,2}\?["”'*]{0,2}\s{1,4}(?:(?:A:|it['’]?s|it[ ]is|its|yes|sure|here|try)[,:]?[ ]){0,2}["'`“]?(?P<secret>[!-~]{5,64}?)["'`”]?(?=[.,;!]?(?:\s|\Z))""",
    re.IGNORECASE | re.VERBOSE,
)
# "Please use the following password: ..." is told above. This is a login and its password, in one: admin / hunter2.
_PAIR = re.compile(
    r"""(?<![A-Za-z])(?:log-?in|creds?|credentials|wi-?fi|(?P<auth>auth))(?![A-Za-z])["'*`]{0,2}(?:[ ](?:is|are|was|were)|[ ](?:for|to|of)(?:[ ][\w.-]{1,30}){1,4}?(?:[ ](?:is|are))?)?[ ]?(?:[:=]|→|->)?[ ]{1,2}[`"']?
    (?P<user>[\w.@+-]{2,60})(?:[ ][/|][ ]|[/:|])(?P<secret>[!-~]{5,64})""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_MAIL = re.compile(
    r"@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}(?P<by>[ ][/|][ ]|:|[ ]pw[ ])(?P<secret>[!-~]{6,64})",
    re.ASCII | re.IGNORECASE,
)
_AT_HOST = re.compile(r":(?P<secret>[^\s:@/'\"`]{6,64})@(?=[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b)", re.ASCII)
_COPIES = re.compile(r"\b(?:scp|rsync|git|ssh|sftp|clone|remote)\b", re.IGNORECASE)
_PW = re.compile(r"(?<![A-Za-z])(?:pw|pass)[ ](?P<secret>[!-~]{5,64})(?=\s|\Z)", re.IGNORECASE)
_LOGS_IN = re.compile(r"\b(?:user(?:name)?|login|account|admin|root|mail)\b|@", re.IGNORECASE)


# root/hunter2: a path, unless logging in is spoken of, or it has signs that names of files have not.
_USER = re.compile(r"(?<![\w./~-])(?:root|admin)/(?P<secret>[!-.0-~]{6,64})(?![/\w])", re.ASCII)
_LOGS_IN_WITH = re.compile(
    r"\b(?:ssh|creds?|credentials?|(?:log(?:s|ged|ging)?|sign(?:s|ed|ing)?)[ -]?in(?:[ ](?:as|with|by))?)[ ]?[:=]?[ ][\"'`]?\Z",
    re.IGNORECASE,
)
_TO_LOG_IN = re.compile(r"[\"'`]?[ ](?:to|for)[ ](?:log|sign|ssh)", re.IGNORECASE)
_OF_FILES = frozenset("._-")


def _user(text: str, at: int) -> Span | None:
    """A user and the password, as one word."""
    match = _USER.match(text, at)
    span = None if match is None else _strong(text, *match.span("secret"))
    if span is None:
        return None
    said = text[slice(*span)]
    if secret_values.has_symbol(said) and _OF_FILES.isdisjoint(said):
        return span
    is_login = _LOGS_IN_WITH.search(text[max(0, at - 40) : at]) or _TO_LOG_IN.match(text, span[1])
    return span if said.isalnum() and is_login else None


def _strong(text: str, start: int, end: int) -> Span | None:
    said = text[start:end].rstrip(".,;)`\"'")
    return (start, start + len(said)) if secret_values.is_strong(said) else None


def _answered(text: str, at: int) -> Span | None:
    match = _ANSWER.match(text, at)
    return None if match is None else _strong(text, *match.span("secret"))


def _paired(text: str, at: int) -> Span | None:
    match = _PAIR.match(text, at)
    if match is None or "/" in match["secret"]:
        return None
    if match["auth"] and text[match.start("secret") - 3 : match.start("secret")] != " / ":
        return None
    return _strong(text, *match.span("secret"))


def _with_mail(text: str, at: int) -> Span | None:
    """After an address; right behind it only what no name of a file is like."""
    match = _MAIL.match(text, at)
    if match is not None:
        said = match["secret"].rstrip(".,;")
        if match["by"] == ":" and (
            "/" in said
            or not (
                secret_values.is_strong(said) and any(map(str.isupper, said)) and any(map(str.islower, said))
            )
            or _COPIES.search(text[max(0, at - 60) : at])
        ):
            return None
        return _strong(text, *match.span("secret"))
    left = max(0, at - 66)
    host = _AT_HOST.search(text[left : at + 20]) if text[at + 1 : at + 2].isdigit() else None
    if host is None or left + host.end() != at + 1:
        return None
    return _strong(text, left + host.start("secret"), left + host.end("secret"))


def _short(text: str, at: int) -> Span | None:
    """After pw, or after pass where a login stands before it."""
    match = _PW.match(text, at)
    if match is None or (text[at + 1] in "aA" and _LOGS_IN.search(text[max(0, at - 50) : at]) is None):
        return None
    return _strong(text, *match.span("secret"))


# Words and nothing else on the rest of the line; or, where a colon says it, up to the end of what is said.
_PHRASE = re.compile(
    rf"""pass[ -]?phrase(?:{_OF}[ ]?(?P<colon>[:=])|[ ]is)[ ]{{1,2}}(?P<secret>[a-z]{{3,10}}(?:[ -][a-z]{{3,10}}){{3,9}})
    (?:[.]?[ \t]{{0,4}}(?=\n|\Z)|(?(colon)(?=[,;.!)](?:\s|\Z))|(?!)))""",
    re.IGNORECASE | re.VERBOSE,
)
_QUOTED_PHRASE = re.compile(
    r"pass[ -]?phrase(?:[ ][a-z]{1,10}){0,3}[ :][ ]?[\"“](?P<secret>[a-z]{3,10}(?:[ -][a-z]{3,10}){2,9})[\"”]",
    re.IGNORECASE,
)
# It says something of a password, and begins the best known of all phrases.
_OF_PHRASES = frozenset({"correct"})


def _worded(text: str, at: int) -> Span | None:
    match = _PHRASE.match(text, at) or _QUOTED_PHRASE.match(text, at)
    if match is None or any(
        word in secret_values.SENTENCE_WORDS
        or (word in secret_values.HARMLESS_WORDS and word not in _OF_PHRASES)
        for word in match["secret"].lower().split()
    ):
        return None
    return match.span("secret")


# "hunter2 works, the root password"; "it was hunter2 - the old one of the router's password"
_WORKS = re.compile(
    r"(?:(?<!\S)[\"'`(]{0,2}(?P<secret>[!-~]{5,64}?)[\"'`)]{0,2}[ ](?:(?:still|also|again)[ ])?(?:works|worked|is[ ]the[ ]one(?:[ ]that[ ]works)?)[ ]?(?:[,–—-]|as|for)"
    r"|it(?:[ ]is|[ ]was|['’]s)[ ][\"'`]?(?P<was>[!-~]{5,64}?)[\"'`]?[ ]?[,–—-])"
    r"[ ](?:(?:that|it)['’]?s[ ]|(?:that|it|which|this)[ ]is[ ])?(?:the|my|our|your|his|her)[ ](?:[\w'’-]{1,20}[ ]){0,3}\Z",
    re.IGNORECASE,
)


_DIGIT = re.compile(r"[0-9]")


def _works(text: str, at: int) -> Span | None:
    """A word that is said to work, and then to be a password."""
    left = max(0, at - 160)
    name = _WORD.match(text, at) if text[at - 1 : at] == " " else None
    if name is None or not _OF_NOBODY.match(text, name.end()):
        return None
    match = _WORKS.search(text[left:at]) if _DIGIT.search(text, left, at) else None
    if match is None:
        return None
    group = "secret" if match["secret"] else "was"
    return _strong(text, left + match.start(group), left + match.end(group))


# The line below a question for a password has nothing but it, or who says it.
_ASKED = re.compile(
    r"""pass(?:word|code|phrase|wort)(?:[ ](?!polic|rule|format|length|reset|manager|hash|require|criteri)[\w'’.-]{1,20}){0,8}["'”*]{0,2}[?:]["'”*]{0,2}[ \t]{0,4}\n(?:[ \t]{0,8}\n)?[ \t>]{0,8}
    (?:[*_]{0,2}[\w.-]{1,24}(?:[ ]\([^()\n]{1,20}\))?[*_]{0,2}[:：][*_]{0,2}[ ])?["'`“]?(?P<secret>[!-~]{5,64}?)["'`”]?[.!]?[ \t]{0,4}(?=\n|\Z)""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_KEY = re.compile(r"[A-Za-z,.']{1,19}[ ][A-Za-z]|[ \t]{0,40}(?:\n|\Z)|[^\x00-\x7f]{25}")
_ASKED_KEY = re.compile(
    r"""(?:token|key|secret)(?:[ ][\w'’.-]{1,20}){0,8}[?.!:]?[ \t]{0,4}\n[ \t>]{0,8}
    (?:(?![\w-]{0,12}(?:etag|hash|digest|checksum|commit|revision|version|sha[0-9]{0,3}|md5|id):)[*_]{0,2}[\w.-]{1,24}[*_]{0,2}[:：][*_]{0,2}[ ])?
    ["'`“]?(?P<secret>[\w.+/=~-]{20,512})["'`”]?[ \t]{0,4}(?=\n|\Z)""",
    re.IGNORECASE | re.VERBOSE,
)


_MOST_ASKED = 200  # signs of a question behind the word for what it asks for


def _asked(text: str, at: int) -> Span | None:
    match = _ASKED.match(text, at) if text.find("\n", at, at + _MOST_ASKED) >= 0 else None
    return None if match is None else _strong(text, *match.span("secret"))


def _asked_for_key(text: str, at: int) -> Span | None:
    # Where the next line begins with a word, most of the time, nothing need be read.
    end = text.find("\n", at, at + _MOST_ASKED)
    match = None if end < 0 or _NO_KEY.match(text, end + 1) else _ASKED_KEY.match(text, at)
    return match.span("secret") if match is not None and secret_values.looks_random(match["secret"]) else None


_A_QUESTION = re.compile(
    r"""(?:pass(?:word|code|phrase|wort|wd)|(?<![a-z])pwd?(?![a-z])|pin(?![a-z])|密码|密碼|口令|contraseña|mot[ ]de[ ]passe|senha|wachtwoord|hasło|şifre|парол|mật[ ]khẩu|パスワード|비밀번호)
    (?![^?？\n]{0,80}(?:polic|rule|format|length|reset|manager|hash|长度|规则|重置|管理))[^?？\n]{0,80}[?？][ \t"'”*_]{0,6}\s{0,4}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE_ANSWER = re.compile(
    r"""\s{0,8}(?:(?:it['’]?s|it[ ]is|its|sure|here|try|yes|ok(?:ay)?|是|就是|给你|答)[,:：]?[ ]{0,2}){0,2}["'`“「*]{0,3}(?P<secret>[!-~]{4,64}?)["'`”」*]{0,3}[.!。]?\s{0,8}""",
    re.IGNORECASE,
)


def answer(asked: str, text: str) -> Span | None:
    """The password that is all that a turn says, where the turn before it asks for one at its end."""
    if len(text) > 120 or _A_QUESTION.search(asked[-200:]) is None:
        return None
    match = _BARE_ANSWER.fullmatch(text)
    if match is None:
        return None
    said = match["secret"]
    is_one = secret_values.is_strong(said) or (said.isdecimal() and 4 <= len(said) <= 12)
    return match.span("secret") if is_one and not secret_values.is_reference(said) else None


# Passwords of programs: four times four letters that make no words.
_FOUR_BY_FOUR = re.compile(r"(?<![A-Za-z-])[a-z]{4}(?:[ -][a-z]{4}){3}(?![A-Za-z-])")


def _of_program(text: str, at: int) -> Span | None:
    end = text.find("\n", at, at + 88)
    match = _FOUR_BY_FOUR.search(text, at, at + 88 if end < 0 else end)
    if match is None:
        return None
    is_one = secret_values.is_jumble(match[0].replace(" ", "").replace("-", ""))
    return match.span() if is_one else None


_TO_VERIFY = re.compile(r"(?<![\w.])(?P<secret>[0-9]{4,8})[ ](?:to|for)[ ]\Z")


def _to_verify(text: str, at: int) -> Span | None:
    """The code that is there to verify something with."""
    left = max(0, at - 16)
    match = _TO_VERIFY.search(text[left:at])
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


# Groups of capitals and digits: of a licence, of the recovery of a disk.
_GROUPS = re.compile(
    r"key[^\n]{0,60}?(?<![\w-])(?P<secret>(?=[A-Z-]{0,40}[0-9])[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,7})(?![\w-])",
    re.IGNORECASE,
)


def _groups(text: str, at: int) -> Span | None:
    match = _GROUPS.match(text, at) if text.find("-", at, at + 70) >= 0 else None
    return match.span("secret") if match is not None and match["secret"] == match["secret"].upper() else None


_COMBINATION = re.compile(
    r"combination(?:[ ](?:is|was|to|for|of|the|my|our|safe|lock|locker)){0,4}[ ]?[:=]?[ ](?P<secret>[0-9]{1,3}(?:[ ]?[-–][ ]?[0-9]{1,3}){2,4})(?![\w-])",
    re.IGNORECASE,
)
# Each has a digit; there are two or more of them.
_BACKUP_CODE = r"(?=[A-Za-z-]{0,20}[0-9])[A-Za-z0-9]{4,10}(?:-[A-Za-z0-9]{4,10}){0,3}"
_BACKUP_CODES = re.compile(
    rf"(?:(?:backup|recovery)[ ]codes?|(?:恢复|备用|备份)码)(?:[ ](?:for|of)(?:[ ][\w.-]{{1,20}}){{1,3}})?(?:[ ]are)?[ ]?[:：]?[ \t]{{0,4}}\n?(?:[ \t]{{0,8}}\n)?[ \t>*-]{{0,8}}"
    rf"(?P<secret>{_BACKUP_CODE}(?:[ \t]{{0,4}}[ \t,;\n][ \t>*-]{{0,8}}{_BACKUP_CODE}){{1,30}})(?![\w-])",
    re.IGNORECASE,
)


def _told_before(text: str, at: int) -> Span | None:
    """The word that is then said to be the password."""
    is_said = text.endswith(_SAID_AFTER, max(0, at - 100), at)
    if not is_said and text.find(" is ", max(0, at - 50), at) < 0:
        return None
    left = text[max(0, at - 100) : at]
    after = next((phrase for phrase in _SAID_AFTER if left.endswith(phrase)), None) if is_said else None
    name = _WORD.match(text, at)
    if after is None and name is not None and " is " in left[-50:] and _OF_NOBODY.match(text, name.end()):
        said_of = _SAID_OF.search(left[-60:])
        after = None if said_of is None else said_of[0]
    if after is None or name is None or ("(" in after and text[name.end() : name.end() + 1] != ")"):
        return None
    place = len(left) - len(after)
    word = stem(left, place, 65, _VISIBLE)
    said = word.strip("\"'`*,;:()")
    if not said or not any(map(str.isdigit, said)):
        return None
    start = at - len(left) + place - len(word) + word.index(said)
    value = secret_values.SecretValue(start, start + len(said), said, True, "")
    is_one = secret_values.is_secret(value, "password", shouts=False, spoken=True)
    return (value.start, value.end) if is_one else None


_PIN = re.compile(
    r"(?<![A-Za-z])pin(?:[ ](?:code|number))?(?:[ ]is|[ ]?[:=])[ ]{0,3}(?P<secret>[0-9]{4,8})(?![\w.])",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:(?<=verification )|(?<=confirmation )|(?<=one-time )|(?<=security )|(?<=login )|(?<=2fa )|(?<=otp )|(?<=auth )"
    r"|(?<=authentication )|(?<=one-time pass)|(?<=one-time )|(?<=recovery )|(?<=backup )|(?<=door )|(?<=gate )|(?<=alarm )|(?<=entry )|(?<=unlock )|(?<=sms )|(?<=your )|(?<=my ))code(?:[ ]is|[ ]?:)[ ]{0,3}(?P<secret>(?:[A-Z]-)?[0-9]{4,8})(?![\w]|\.[0-9]|[ ]{1,20}(?:lines|bytes|characters|chars|files|words|tokens|times))",
    re.IGNORECASE,
)
_CODE_BEFORE = re.compile(
    r"(?P<secret>(?<![\w.])[0-9]{4,8})[ ]is[ ]your[ ](?:[A-Za-z'-]{1,20}[ ]){0,3}\Z", re.IGNORECASE
)
_CODE_TO = re.compile(
    r"code[ ](?P<secret>[0-9]{4,8})[ ](?:to|for)[ ](?:log|sign|verif|confirm|authenticat|access)",
    re.IGNORECASE,
)


def _code_before(text: str, at: int) -> Span | None:
    """A number that is then said to be a code."""
    left = max(0, at - 90)
    is_said = text[at - 1 : at] == " " and text[left:at].lower().find(" is your ") >= 0
    match = _CODE_BEFORE.search(text[left:at]) if is_said else None
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


_RECOVERY = re.compile(
    r"(?:(?<=recovery )|(?<=backup )|(?<=reset )|(?<=activation )|(?<=licen[sc]e ))codes?(?:[ ](?:is|are))?[ ]?:?[ ]{1,3}(?P<secret>(?=[A-Za-z-]{0,30}[0-9])(?=[0-9-]{0,30}[A-Za-z])[A-Za-z0-9-]{8,64})(?![\w])",
    re.IGNORECASE,
)
_OTP = re.compile(
    r"(?<![A-Za-z])t?otp(?:[ ](?:code|is|code[ ]is))?[ ]?[:=]?[ ]{0,3}(?P<secret>[0-9]{4,8})(?![\w.])",
    re.IGNORECASE,
)


def _matched(pattern: re.Pattern[str]) -> Find:
    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        return None if match is None else match.span("secret")

    return find


_UNSEAL = re.compile(
    r"""(?:unseal|recovery)(?:[ _]key)?(?:[ _]?[0-9]{1,2})?[*_`"']{0,3}[ \t]{0,4}[:=]?[ \t]{0,8}["'`*]{0,3}
    (?P<secret>[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{44}|[0-9a-f]{32,66})(?![A-Za-z0-9+/])""",
    re.VERBOSE | re.IGNORECASE,
)


RULES = (
    Rule("unseal-key", "key", ("unseal", "recovery"), _matched(_UNSEAL)),
    Rule(
        "password-said", "password", ("pass", "pw"), _said(_WORDS["password"], "password"), skips_prose=True
    ),
    Rule(
        "pass-said", "password", ("pass",), _said(_WORDS["pass"], "password", strict=True), skips_prose=True
    ),
    Rule("password-told-before", "password", ("pass",), _told_before),
    Rule("token-said", "token", ("token", "secret"), _said(_WORDS["token"], "token"), skips_prose=True),
    Rule("key-said", "key", ("key",), _said(_WORDS["key"], "token", labels=False), skips_prose=True),
    Rule("pin-said", "code", ("pin",), _matched(_PIN), skips_prose=True),
    Rule("code-said", "code", ("code",), _matched(_CODE), skips_prose=True),
    Rule("code-told-before", "code", ("code",), _code_before),
    Rule("code-to-log-in", "code", ("code",), _matched(_CODE_TO), skips_prose=True),
    Rule("wifi-key-said", "password", ("key",), _said(_WORDS["wifi-key"], "password"), skips_prose=True),
    Rule("any-key-said", "key", ("key",), _said(_WORDS["any-key"], "key"), skips_prose=True),
    Rule("recovery-code-said", "code", ("code",), _matched(_RECOVERY), skips_prose=True),
    Rule("otp-said", "code", ("otp",), _matched(_OTP), skips_prose=True),
    Rule("password-changed", "password", ("pass",), _changed, skips_prose=True),
    Rule("password-answered", "password", ("pass",), _answered, skips_prose=True),
    Rule("passphrase-worded", "password", ("pass",), _worded, skips_prose=True),
    Rule("login-paired", "password", ("login", "cred", "wifi", "wi-fi", "auth"), _paired),
    Rule("user-paired", "password", ("root/", "admin/"), _user),
    Rule("mail-paired", "password", ("@",), _with_mail),
    Rule("password-short", "password", ("pass", "pw"), _short, skips_prose=True),
    Rule("passphrase-quoted", "password", ("pass phrase", "pass-phrase"), _worded),
    Rule("password-works", "password", ("pass",), _works),
    Rule("password-asked", "password", ("pass",), _asked),
    Rule("key-asked", "key", ("token", "key", "secret"), _asked_for_key),
    Rule("password-of-program", "password", ("pass",), _of_program),
    Rule("code-to-verify", "code", ("verify your", "verify it"), _to_verify),
    Rule("key-groups", "key", ("key",), _groups),
    Rule("combination-said", "code", ("combination",), _matched(_COMBINATION)),
    Rule(
        "backup-codes", "code", ("backup", "recovery", "恢复码", "备用码", "备份码"), _matched(_BACKUP_CODES)
    ),
)
"""What is said of passwords, tokens and keys, in English."""
