"""Finds secrets in English sentences: "the password is ..."."""

import re
import string

from memd.redact.rule import DIGIT, LEAD_IN, Find, Nearby, Rule, Span, sought, stem
from memd.redact.values import randomness, secret_values
from memd.redact.values.fixed_places import in_place
from memd.redact.values.joined_words import is_made_of_words
from memd.redact.values.secret_values import Strength
from memd.redact.words.secret_words import SECRET_WORDS

# What the password is for: "for the staging database", "to his laptop"; at most six words.
_OF = r"(?:[ \t]{1,40}(?:is[ ]generated[ ])?(?:for|to|of|on|at|in|from|between)(?:[ \t]{1,40}[\w'’\"“”`./@:-]{1,40}){1,6}?)?"
_IS = r"""(?:[ ]?['’]s|[ \t]{1,40}(?:(?:is|was|has[ ]been|have|got|gets)[ ]{1,20})?(?:now[ ]{1,20})?(?:set|changed|reset|updated|rotated|switched)(?:[ ](?:yesterday|today|tonight|again|recently|back|over|this[ ]\w{1,12}|last[ ]\w{1,12}|on[ ]\w{1,12})){0,2}[ ]{1,20}to\b
    |[ \t]{1,40}(?:is|was|will[ ]be|should[ ]be|equals|remains)\b)
    (?:[ ]{1,20}(?:now|still|currently|just|again|only|simply|actually|always|temporarily|literally|(?:all[ ])?(?:in[ ])?(?:all[ ])?(?:lower|upper)[ -]?case,?|(?:all|in)[ ]caps,?)){0,3}
    (?:[ ]?[:=])?(?:[ ]{1,20}the[ ]following[ ]?:)?"""
_SAID = re.compile(
    rf"(?:s?[\"'`*_]{{0,3}}(?:[ ](?:one|part|half|itself)(?=[ ]))?{_OF}{_IS})[ \t]{{0,40}}[*_]{{0,2}}[ \t]{{0,40}}",
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
    "psk": re.compile(r"(?<![A-Za-z])(?:psk|pre-?shared key)(?![A-Za-z_])", re.IGNORECASE),
    "community": re.compile(
        r"(?:(?<=snmp )|(?<=snmpv2 )|(?<=v2c ))community(?:[ ]string)?(?![A-Za-z_])", re.IGNORECASE
    ),
    "pin": re.compile(r"(?<![A-Za-z])pin(?:[ ]code)?(?![A-Za-z])", re.IGNORECASE),
}


# Most occurrences are words of sentences without a value.
_PROSE = re.compile(
    r"[ ](?!for|to|of|on|at|in|from|between|is|was|will|should|equals|remains|has|have|got|gets|now|set|changed|reset|updated|rotated|switched|one|part|half|itself)[a-z]|[ ][0-9]|[).;!?,](?:\s|\Z)|[({]"
)


def _said(word: re.Pattern[str], strength: Strength, *, labels: bool = True, strict: bool = False) -> Find:
    """Return a Find for values that a sentence assigns to a word.

    Args:
        word: A pattern of the whole word.
        strength: How certain the word makes a value.
        labels: Whether a colon after the word announces a value too.
        strict: Whether the word is ambiguous: values must have letters and digits then.
    """

    def find(text: str, at: int) -> Span | None:
        match = word.match(text, at)
        if (
            match is None
            or _PROSE.match(text, match.end()) is not None
            or secret_values.is_in_resource(text, at)
        ):
            return None
        for pattern in (_SAID, _LABELLED) if labels else (_SAID,):
            said = pattern.match(text, match.end())
            if said is None or ("-" in said[0] and strength != "password"):
                continue
            span = _value_said(text, said.end(), strength, strict=strict)
            if span is not None:
                return span
        return None

    return find


def _value_said(text: str, at: int, strength: Strength, *, strict: bool) -> Span | None:
    """Return the value that begins at a place of a sentence."""
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


# "the password is sunshine and the user is bob": the rest of a login may follow.
_REST_OF_LOGIN = re.compile(
    r"[ ]?(?:,|;|and|with|for|-)[ ]{1,2}(?:(?:the|my|his|her|our|its|your)[ ])?(?:[a-z]{2,12}[ ])?"
    r"(?:user(?:[ ]?name)?|login|account|e?-?mail|host|server|port|ip|database|db|admin|wi-?fi|ssid|network|pin)\b(?:'s)?[ ]?(?:[:=]|(?:name[ ])?(?:is|[A-Za-z0-9._@-]{2,40}\b))",
    re.IGNORECASE,
)


def _goes_on_to_the_rest(value: secret_values.SecretValue, strength: Strength) -> bool:
    """Return whether a plain word is followed by the user name that belongs to it."""
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
# "... is the root password": the owner may be named between, unless the sentence is about passwords in general.
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


# Hyphenated words; three of them may be an adjective.
_PHRASE_OF_ONE_WORD = re.compile(r"[A-Za-z]{3,12}(?:[-_.][A-Za-z]{3,12}){3,9}")


def _changed(text: str, at: int) -> Span | None:
    """Return the old or the new password in a sentence about a change."""
    match = _TO.match(text, at)
    if match is None or _VERB.search(text[max(0, at - 60) : at]) is None:
        return None
    for start in (match.end(), match.start("before")):
        value = None if start < 0 else secret_values.value_at(text, start)
        if value is not None and (
            secret_values.is_strong(value.text) or _PHRASE_OF_ONE_WORD.fullmatch(value.text) is not None
        ):
            return value.start, value.end
    return None


# A sentence about a password: it was hunter2, and is now hunter3.
_WAS = re.compile(
    r"pass(?:word|phrase|code)(?:[ ][\w'’-]{1,20}){0,5}[ ]?[:,–—-]?[ ](?:it[ ])?(?:was|used[ ]to[ ]be)[ ][\"'`]?(?P<old>[!-~]{5,64}?)[\"'`]?[ ]?[,;]"
    r"[ ](?:and[ ])?(?:(?:it[ ])?(?:is[ ])?now|new[ ]one[ ]is)[ ](?:is[ ])?[\"'`]?(?P<new>[!-~]{5,64}?)[\"'`]?(?=[.,;!]?(?:\s|\Z))",
    re.IGNORECASE,
)


def _was(text: str, at: int) -> Span | None:
    """Return the span from an old password to the new one."""
    is_said = text.find(" was ", at, at + 140) >= 0 or text.find(" used to be ", at, at + 140) >= 0
    match = _WAS.match(text, at) if is_said else None
    if match is None or not (secret_values.is_strong(match["old"]) and secret_values.is_strong(match["new"])):
        return None
    return match.start("old"), match.end("new")


# "What is the password? hunter2"
_ANSWER = re.compile(
    rf"""pass(?:word|code|phrase)["”*]{{0,2}}\?["”'*]{{0,2}}\s{{1,4}}(?:A:[ ])?{LEAD_IN}["'`“]?(?P<secret>[!-~]{{5,64}}?)["'`”]?(?=[.,;!]?(?:\s|\Z))""",
    re.IGNORECASE | re.VERBOSE,
)


def _answered(text: str, at: int) -> Span | None:
    match = _ANSWER.match(text, at)
    return None if match is None else secret_values.strong_span(text, *match.span("secret"))


# Words up to the end of a clause; three words count if they are joined or answer a program's prompt.
_PHRASE = re.compile(
    r"""pass[ -]?phrase(?:(?P<prompt>[ ]for[ ](?:key[ ])?[^\n]{1,80}?:)|(?:[ ](?!policy|must|should)[^\n.:;?!]{1,60}?)??(?:[ ]?[:=]|,?[ ](?:it['’]?s|is(?:[ ]now)?|was)(?:[ ]?:)?))
    [ ]{1,2}["'“]?(?P<secret>[a-z]{3,12}(?:[ ][a-z]{3,12}){2,11}|[a-z]{3,12}(?:[_.-][a-z]{3,12}){2,11})["'”]?(?=[ ]?(?:[,;.!)(](?!\w)|[ \t]{0,4}(?:\n|\Z)|\())""",
    re.IGNORECASE | re.VERBOSE,
)
_QUOTED_PHRASE = re.compile(
    r"pass[ -]?phrase(?:[ ][a-z]{1,10}){0,3}[ :][ ]?[\"“](?P<secret>[a-z]{3,10}(?:[ -][a-z]{3,10}){2,9})[\"”]",
    re.IGNORECASE,
)
# "Use pass phrase seven green bottles hanging low for ..."
_USED_PHRASE = re.compile(
    r"pass[ -]?phrase[ :]{1,2}(?P<secret>[a-z]{3,12}(?:[ ][a-z]{3,12}){3,11}?)(?=[ ](?:for|on|to|when|if)[ ]|[.,;](?!\w)|[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)
_USES = ("use ", "using ", "with ", "type ", "enter ", "the ")
# A word of sentences about passwords that also begins the best-known passphrase.
_OF_PHRASES = frozenset({"correct"})


def _worded(text: str, at: int) -> Span | None:
    match = _PHRASE.match(text, at) or _QUOTED_PHRASE.match(text, at)
    if match is None and text[max(0, at - 8) : at].lower().endswith(_USES):
        match = _USED_PHRASE.match(text, at)
    if match is None or any(
        word in secret_values.SENTENCE_WORDS
        or (word in secret_values.HARMLESS_WORDS and word not in _OF_PHRASES)
        for word in re.split(r"[ _.-]", match["secret"].lower())
    ):
        return None
    said = re.split(r"[ _.-]", match["secret"].lower())
    if said[0] in SECRET_WORDS.plain.function_words and len(said[0]) > 2:
        return None
    is_short = 0 < match["secret"].count(" ") < 3  # fewer than four words
    return None if is_short and match.re is _PHRASE and match["prompt"] is None else match.span("secret")


# The answer to a security question: a name, or a word with digits.
_OF_ANSWERS = re.compile(
    r"""(?:(?:security|secret|recovery)[ ](?:question|answer)s?|(?:security|secret)[ ]q(?:uestion)?)(?![a-z])[^\n]{0,80}?(?:[ ](?:is|was)|[ ]?(?:[:?=]|->|→|[–—-][ ]))[ ]{1,2}
    (?:(?:a|answer|it['’]?s|the[ ]answer[ ]is)[ ]?[:]?[ ])?["'“]?(?P<secret>(?-i:[A-Z0-9])[\w'’-]{2,24}(?:[ ](?-i:[A-Z0-9])[\w'’-]{0,20}){0,3})["'”]?(?=[,;.)](?!\w)|[ \t]{0,4}(?:\n|\Z)|[ ](?:and|but|for)[ ])""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS_WHAT = re.compile(
    r"what|where|which|who|when|how|in|your|first|mother|see|change|update|reset|the", re.IGNORECASE
)


# The answer to the question for the mother's maiden name.
_OF_MOTHER = re.compile(
    r"mother['’]?s[ ]maiden[ ]name[^\n:.]{0,40}?(?:[ ](?:is|was)(?:[ ](?:down|listed|given|set|registered|recorded)[ ](?:as|to))?|[ ]?[:=])[ ]{1,2}[\"'“]?(?P<secret>(?-i:[A-Z])[\w'’-]{2,24})",
    re.IGNORECASE,
)
_OF_QUESTION = re.compile(
    r"(?<![A-Za-z])(?:A|[Aa]nswer)[ ]?[:=][ ]{1,2}[\"'“]?(?P<secret>\w[^\n\"”]{2,40}?)[\"'”]?[ \t]{0,4}(?=\n|\Z|[;|])"
)


def _of_mother(text: str, at: int) -> Span | None:
    match = _OF_MOTHER.match(text, at)
    return None if match is None else match.span("secret")


def _of_answers(text: str, at: int) -> Span | None:
    match = _OF_ANSWERS.match(text, at)
    is_one = match is not None and _ASKS_WHAT.match(match["secret"]) is None
    return match.span("secret") if match is not None and is_one else None


# "her mail is ann@example.org with biscuit jar as password": two words or more
_WORDS_BEFORE = re.compile(
    r"(?:[\w.+-]{1,40}@[\w.-]{3,60}|(?:user|login|account)(?:name)?[ ][\w.@+-]{2,40}|(?:log|sign)s?[ ]in)[^\n.;:]{0,30}?[ ](?:with|using|and)[ ][\"'“]?(?P<secret>[a-z]{3,12}(?:[ ][a-z]{3,12}){1,4})[\"'”]?[ ]as[ ](?:the[ ]|her[ ]|his[ ]|my[ ]|our[ ]|a[ ])?\Z"
)


_ENDS_SO = re.compile(r"pass(?:word|phrase|code)(?=[.,;!?)]|[ \t]{0,4}(?:\n|\Z)|[ ][(–—-])", re.IGNORECASE)


def _words_before(text: str, at: int) -> Span | None:
    if not text.endswith(
        (" as ", " as the ", " as her ", " as his ", " as my ", " as our ", " as a "), 0, at
    ):
        return None
    left = max(0, at - 170)
    match = _WORDS_BEFORE.search(text[left:at]) if _ENDS_SO.match(text, at) is not None else None
    if match is None or not is_made_of_words(match["secret"]):
        return None
    return left + match.start("secret"), left + match.end("secret")


# "hunter2 works, the root password"; "it was hunter2 - the old one of the router's password"
_WORKS = re.compile(
    r"(?:(?<!\S)[\"'`(]{0,2}(?P<secret>[!-~]{5,64}?)[\"'`)]{0,2}[ ](?:(?:still|also|again)[ ])?(?:works|worked|is[ ]the[ ]one(?:[ ]that[ ]works)?)[ ]?(?:[,–—-]|as|for)"
    r"|it(?:[ ]is|[ ]was|['’]s)[ ][\"'`]?(?P<was>[!-~]{5,64}?)[\"'`]?[ ]?[,–—-])"
    r"[ ](?:(?:that|it)['’]?s[ ]|(?:that|it|which|this)[ ]is[ ])?(?:the|my|our|your|his|her)[ ](?:[\w'’-]{1,20}[ ]){0,3}\Z",
    re.IGNORECASE,
)


def _works(text: str, at: int) -> Span | None:
    """Return a word that the sentence says to work, and then to be a password."""
    left = max(0, at - 160)
    name = _WORD.match(text, at) if text[at - 1 : at] == " " else None
    if name is None or not _OF_NOBODY.match(text, name.end()):
        return None
    match = _WORKS.search(text[left:at])
    if match is None:
        return None
    group = "secret" if match["secret"] else "was"
    return secret_values.strong_span(text, left + match.start(group), left + match.end(group))


# The line below a question for a password, with the answer alone, possibly after the speaker's name.
_ASKED = re.compile(
    rf"""pass(?:word|code|phrase|wort|wd|(?:(?<=admin[ ]pass)|(?<=root[ ]pass)|(?<=wifi[ ]pass)|(?<=wi-fi[ ]pass)|(?<=router[ ]pass)|(?<=guest[ ]pass)|(?<=login[ ]pass)|(?<=ssh[ ]pass)|(?<=zip[ ]pass))(?![a-z]))(?:[ ](?!polic|rule|format|length|reset|manager|hash|require|criteri)[\w'’.-]{{1,20}}){{0,8}}["'”*]{{0,2}}[?:]["'”*]{{0,2}}[ \t]{{0,4}}\n(?:[ \t]{{0,8}}\n)?[ \t>]{{0,8}}
    (?:[*_]{{0,2}}[\w.-]{{1,24}}(?:[ ]\([^()\n]{{1,20}}\))?[*_]{{0,2}}[:：][*_]{{0,2}}[ ])?(?P<lead>{LEAD_IN})["'`“]?(?P<secret>[!-~]{{5,64}}?)["'`”]?
    (?:[.!]?[ \t]{{0,4}}(?=\n|\Z)|(?=[.,;][ ]|[ ][-–—(])(?P<more>))""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_KEY = re.compile(
    r"[ \t>]{0,16}+(?:[A-Za-z,.']{1,19}[ ][A-Za-z]|[^\w\s\"'`“+/=~*.-]|\Z|\n[ \t]{0,40}(?:\n|\Z|[A-Za-z,.']{1,19}[ ][A-Za-z]))|[^\x00-\x7f]{25}"
)
_LEADS = (
    "It",
    "it",
    "That",
    "that",
    "Use",
    "use",
    "Here",
    "here",
    "Yes",
    "yes",
    "Sure",
    "sure",
    "Try",
    "try",
)
_ASKED_KEY = re.compile(
    rf"""(?:token|key|secret)s?(?:[ ][\w'’.-]{{1,20}}){{0,8}}[?.!:]?[ \t]{{0,4}}\n(?:[ \t]{{0,8}}\n)?[ \t>]{{0,8}}
    (?:(?![\w-]{{0,12}}(?:etag|hash|digest|checksum|commit|revision|version|sha[0-9]{{0,3}}|md5|id):)[*_]{{0,2}}[\w.-]{{1,24}}[*_]{{0,2}}[:：][*_]{{0,2}}[ ])?
    (?P<lead>{LEAD_IN})["'`“]?(?P<secret>[\w.+/=~-]{{20,512}}?)["'`”]?(?:[.]?[ \t]{{0,4}}(?=\n|\Z)|(?=[.,;][ ]|[ ][-–—(])(?P<more>))""",
    re.IGNORECASE | re.VERBOSE,
)


_MOST_ASKED = 200  # characters of a question after the word for what it asks for
_ON_LINE_BELOW = Nearby(re.compile(r"\n"), 0, _MOST_ASKED)


def _asked(text: str, at: int) -> Span | None:
    match = _ASKED.match(text, at)
    # The rest of the line may comment on the answer only if the answer has a lead-in.
    if match is None or (match["more"] is not None and not match["lead"]):
        return None
    return secret_values.strong_span(text, *match.span("secret"))


def _asked_for_key(text: str, at: int) -> Span | None:
    # If the next line begins with a word, as in most texts, nothing need be read.
    end = text.find("\n", at, at + _MOST_ASKED)
    if end < 0 or (_NO_KEY.match(text, end + 1) and not text.startswith(_LEADS, end + 1)):
        return None
    match = _ASKED_KEY.match(text, at)
    if (
        match is None
        or text[max(0, at - 7) : at].lower().endswith(("public ", "ssh "))
        or (match["more"] is not None and not match["lead"])
    ):
        return None
    return match.span("secret") if randomness.looks_random(match["secret"]) else None


_A_QUESTION = re.compile(
    r"""(?:pass(?:word|code|phrase|wort|wd)|(?<![a-z])pwd?(?![a-z])|pin(?![a-z])|密码|密碼|口令|contraseña|mot[ ]de[ ]passe|senha|wachtwoord|hasło|şifre|парол|mật[ ]khẩu|パスワード|비밀번호)
    (?![^?？\n]{0,80}(?:polic|rule|format|length|reset|manager|hash|长度|规则|重置|管理))[^?？\n]{0,80}[?？][ \t"'”*_]{0,6}\s{0,4}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE_ANSWER = re.compile(
    rf"""\s{{0,8}}{LEAD_IN}["'`“「*]{{0,3}}(?P<secret>[!-~]{{4,64}}?)["'`”」*]{{0,3}}[.!。]?\s{{0,8}}""",
    re.IGNORECASE,
)


def answer(asked: str, text: str) -> Span | None:
    """Return the password that a whole turn consists of, if the previous turn ends with a question for one."""
    if len(text) > 120 or _A_QUESTION.search(asked[-200:]) is None:
        return None
    match = _BARE_ANSWER.fullmatch(text)
    if match is None:
        return None
    said = match["secret"]
    is_one = secret_values.is_strong(said) or (said.isdecimal() and 4 <= len(said) <= 12)
    return match.span("secret") if is_one and not secret_values.is_reference(said) else None


# App passwords: four groups of four letters that are no words, or of letters and digits.
_OF_FOUR = "(?=[0-9]{0,3}[a-z])[a-z0-9]{4}"
_FOUR_BY_FOUR = re.compile(rf"(?<![A-Za-z0-9-])(?:{_OF_FOUR}[ -]){{3}}{_OF_FOUR}(?![A-Za-z0-9-])")
# Between the first two groups; what begins with a small class of characters is searched for fastest.
_FIRST_GAP = re.compile("[ -](?<=[a-z0-9]{4}.)(?=(?:[a-z0-9]{4}[ -]){2}[a-z0-9]{4})")


def _of_program(text: str, at: int) -> Span | None:
    end = text.find("\n", at, at + 88)
    match = _FOUR_BY_FOUR.search(text, at, at + 88 if end < 0 else end)
    if match is None:
        return None
    said = match[0].replace(" ", "").replace("-", "")
    is_mixed = sum(map(randomness.has_digit, re.split("[ -]", match[0]))) > 1
    is_one = randomness.is_unlike_words(said) if is_mixed else randomness.is_jumble(said)
    return match.span() if is_one else None


def _said_before(text: str, at: int) -> Span | None:
    """Return the word that the following words call a password."""
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


# A message that a device obeys: "text 'WHERE bluewhale12' to 07700 900412".
_TEXTED = re.compile(
    r"(?:text|sms|message|send)(?:[ ]the[ ]word|[ ]it)?[ ][\"'“‘](?:[A-Za-z#*]{2,12}[ ,]{1,2})?(?P<secret>[!-~]{4,32}?)[\"'”’][ ](?:to|on)[ ](?:[\w'’]{1,12}[ ]){0,3}\+?[0-9][0-9 ]{8}",
    re.IGNORECASE,
)


def _texted(text: str, at: int) -> Span | None:
    match = _TEXTED.match(text, at)
    is_one = match is not None and DIGIT.search(match["secret"]) is not None
    return match.span("secret") if match is not None and is_one else None


RULES = (
    Rule(
        "password-said",
        "password",
        ("pass", "pw"),
        _said(_WORDS["password"], "password"),
        reads_value=True,
        skips_prose=True,
    ),
    Rule(
        "pass-said",
        "password",
        ("pass",),
        _said(_WORDS["pass"], "password", strict=True),
        reads_value=True,
        skips_prose=True,
    ),
    Rule("password-told-before", "password", ("pass",), _said_before, needs=Nearby(DIGIT, 100, 0)),
    Rule("password-of-words-before", "password", ("pass",), _words_before),
    Rule(
        "token-said",
        "token",
        ("token", "secret"),
        _said(_WORDS["token"], "token"),
        reads_value=True,
        skips_prose=True,
    ),
    Rule(
        "key-said",
        "key",
        ("key",),
        _said(_WORDS["key"], "token", labels=False),
        reads_value=True,
        skips_prose=True,
    ),
    Rule(
        "wifi-key-said",
        "password",
        ("key",),
        _said(_WORDS["wifi-key"], "password"),
        reads_value=True,
        skips_prose=True,
    ),
    Rule(
        "psk-said",
        "password",
        ("psk", "preshared key", "pre-shared key"),
        _said(_WORDS["psk"], "password", strict=True),
        reads_value=True,
    ),
    Rule(
        "community-said",
        "password",
        ("community",),
        _said(_WORDS["community"], "password", strict=True),
        reads_value=True,
    ),
    Rule(
        "any-key-said", "key", ("key",), _said(_WORDS["any-key"], "key"), reads_value=True, skips_prose=True
    ),
    Rule("password-changed", "password", ("pass",), _changed, skips_prose=True),
    Rule("passphrase-worded", "password", ("passphrase", "pass phrase", "pass-phrase"), _worded),
    Rule(
        "security-answer",
        "password",
        (
            "security question",
            "security answer",
            "secret question",
            "secret answer",
            "recovery question",
            "security q",
        ),
        _of_answers,
    ),
    Rule(
        "security-answer-below",
        "password",
        ("security question", "secret question", "recovery question"),
        walk=sought(_OF_QUESTION, behind=160, width=60),
    ),
    Rule(
        "maiden-name",
        "password",
        ("mother's maiden name", "mother’s maiden name", "mothers maiden name"),
        _of_mother,
    ),
    Rule(
        "password-answered",
        "password",
        ("pass",),
        _answered,
        skips_prose=True,
        needs=Nearby(re.compile(r"\?"), 0, 20),
    ),
    Rule("password-works", "password", ("pass",), _works, needs=Nearby(DIGIT, 160, 0)),
    Rule("password-was", "password", ("pass",), _was, skips_prose=True),
    Rule("password-asked", "password", ("pass",), _asked, needs=_ON_LINE_BELOW),
    Rule("key-asked", "key", ("token", "key", "secret"), _asked_for_key, needs=_ON_LINE_BELOW),
    Rule("password-of-program", "password", ("pass",), _of_program, needs=Nearby(_FIRST_GAP, 0, 73, 24)),
)
"""What is said of passwords, tokens and keys, in English."""
MISTYPED = (
    Rule(
        "password-mistyped",
        "password",
        ("passwrod", "passowrd", "pasword", "passwod", "passsword"),
        in_place(r"pass?s?w?(?:rod|owrd|word|wod|od)(?:[ ](?:for|to|of)(?:[ ][\w.-]{1,20}){1,4}?)?(?:[ ]is|[ ]?[:=])[ ][\"'`]?(?P<secret>[!-~]{6,64})", strong=True),
    ),
)  # fmt: skip
"""Behind a label with a typing error."""
TEXTED = (
    Rule("word-texted", "password", ("text '", 'text "', "text “", "text ‘", "sms '", 'sms "', "send '", 'send "'), _texted),
)  # fmt: skip
"""Words in a message that a device obeys."""
