"""Finds PINs and codes that confirm a login or a payment: "your verification code is 492 118", "the PUK is 83920174"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, matching
from memd.redact.values.code_numbers import ENDS_NUMBER, means_other_pin
from memd.redact.words.secret_words import SECRET_WORDS, either

_PIN = re.compile(
    r"(?<![A-Za-z])pin(?:[ ](?:code|number))?(?:[ ](?:for|of|to|on)(?:[ ][\w'’-]{1,20}){1,8}?)?"
    rf"(?:[ ](?:is|was)|[ ]?[:=?])[ ]{{0,3}}(?P<secret>[0-9]{{4,8}}){ENDS_NUMBER}",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:(?<=verification )|(?<=confirmation )|(?<=one-time )|(?<=security )|(?<=login )|(?<=2fa )|(?<=otp )|(?<=auth )"
    r"|(?<=authentication )|(?<=one-time pass)|(?<=recovery )|(?<=backup )|(?<=sms )|(?<=your )|(?<=my )"
    r"|(?<=sign-in )|(?<=one time )|(?<=access )|(?<=digit )|(?<=passcode or ))code(?:[ ](?:from|for|on|in|of)(?:[ ][\w'’-]{1,20}){1,4}?)?(?:[ ](?:is|was)|[ ]?:)[ ]{0,3}"
    rf"(?P<secret>(?:[A-Z]-)?[0-9]{{4,8}}|[0-9]{{3}}[ -][0-9]{{3}}){ENDS_NUMBER}",
    re.IGNORECASE,
)
_OF_CARD = re.compile(
    r"(?<![a-z])(?:cvv2?|cvc2?|puk[12]?|sim[ ]pin|voicemail[ ]pin|card[ ]pin)(?:[ ](?:code|number))?(?:[ ](?:is|was)|[ ]?[:=：是为]|[ ][(](?:it['’]?s[ ]|is[ ])?)?[ ]{0,3}"
    rf"(?P<secret>[0-9]{{3,8}}){ENDS_NUMBER}",
    re.IGNORECASE,
)
_CODE_BEFORE = re.compile(
    r"(?P<secret>(?<![\w.])(?:[A-Z]-)?[0-9]{4,8})[ ]is[ ]your[ ](?:[A-Za-z0-9'-]{1,20}[ ]){0,3}\Z",
    re.IGNORECASE,
)
_CODE_TO = re.compile(
    r"code[ ](?P<secret>[0-9]{4,8})[ ](?:to|for)[ ](?:log|sign|verif|confirm|authenticat|access)",
    re.IGNORECASE,
)
_CODE_SENT = re.compile(
    r"code[ ](?:that[ ])?(?:they|he|she|you|it)[ ](?:just[ ])?(?:texted|sent|gave|mailed|emailed)(?:[ ](?:me|us|him|her))?[ ](?:is|was)[ ]"
    rf"(?P<secret>[0-9]{{4,8}}|[0-9]{{3}}[ -][0-9]{{3}}){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _pin(text: str, at: int) -> Span | None:
    match = _PIN.match(text, at)
    return None if match is None or means_other_pin(text, at) else match.span("secret")


def _code_before(text: str, at: int) -> Span | None:
    """Return a number that the following words call a code."""
    left = max(0, at - 90)
    is_said = text[at - 1 : at] == " " and text[left:at].lower().find(" is your ") >= 0
    match = _CODE_BEFORE.search(text[left:at]) if is_said else None
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


# Codes of several cards or locks in a line: the word for a code stands before the first one alone.
_NEXT_CODE = re.compile(
    r"(?:pin|暗証番号|비밀번호|пин-?код)[^\n0-9]{0,24}(?P<first>[0-9]{4,6})[ ]?[,、，;；/][ ]?"
    rf"(?=[^\n0-9]{{0,30}}(?:{either(SECRET_WORDS.context.locks)}|karte|card|カード|카드|карт|tarjeta|carte|cartão|carta|卡))"
    r"[^\W\d][^\n\d,，、;；]{2,30}[ ](?P<secret>[0-9]{4,6})(?=[\s,，、;；.。]|\Z)",
    re.IGNORECASE,
)


def _next_code(text: str, at: int) -> Span | None:
    match = _NEXT_CODE.match(text, at)
    is_one = match is not None and len(match["first"]) == len(match["secret"])
    return match.span("secret") if match is not None and is_one else None


_TO_VERIFY = re.compile(r"(?<![\w.])(?P<secret>[0-9]{4,8})[ ](?:to|for)[ ]\Z")


def _to_verify(text: str, at: int) -> Span | None:
    """Return a code for verification."""
    left = max(0, at - 16)
    match = _TO_VERIFY.search(text[left:at])
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


_OTP = re.compile(
    rf"(?<![A-Za-z])t?otp(?:[ ](?:code|is|code[ ]is))?[ ]?[:=]?[ ]{{0,3}}(?P<secret>[0-9]{{4,8}}|[0-9]{{3}}[ -][0-9]{{3}}){ENDS_NUMBER}",
    re.IGNORECASE,
)
# A code of a second factor, "use this 2FA: 551 902", and one of Steam.
_SECOND_FACTOR = re.compile(
    rf"(?<![A-Za-z])(?:(?:2fa|mfa)(?:[ ]code(?:[ ]is|[ ]?:)|[ ]?:)[ ]{{0,3}}(?P<digits>[0-9]{{6,8}}|[0-9]{{3}}[ -][0-9]{{3}})(?![ ]?[A-Za-z])"
    rf"|steam[ ]guard(?:[ ]code)?(?:[ ]is|[ ]?[:=]|[ ](?:just[ ])?(?:gave|sent|says|shows|texted)(?:[ ](?:me|us))?)?[ ]{{1,3}}(?P<signs>(?-i:(?=[A-Z]{{0,4}}[0-9])(?=[0-9]{{0,4}}[A-Z])[A-Z0-9]{{5}})))(?![ ][0-9]){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _second_factor(text: str, at: int) -> Span | None:
    match = _SECOND_FACTOR.match(text, at)
    return None if match is None else match.span("signs" if match["signs"] else "digits")


# "腾讯会议 881 234 567 密码 3391": the password of a meeting is digits.
_OF_MEETING = re.compile(
    r"(?:密码|密碼|口令|入会码)[ ]?(?:[:：]|是|为)?[ ]?(?P<secret>[0-9]{4,8})(?![\w%]|[.,:/-][0-9]|[ ]?[位个天年月日])"
)
_MEETS = re.compile(r"会议|會議|zoom|webex|teams|钉钉|飞书", re.IGNORECASE)


def _of_meeting(text: str, at: int) -> Span | None:
    match = _OF_MEETING.match(text, at)
    is_one = match is not None and _MEETS.search(text, max(0, at - 80), at) is not None
    return match.span("secret") if match is not None and is_one else None


RULES = (
    Rule("pin-said", "code", ("pin",), _pin, skips_prose=True, has_digit=True),
    Rule("code-said", "code", ("code",), matching(_CODE), skips_prose=True, has_digit=True),
    Rule("code-of-card", "code", ("cvv", "cvc", "puk", "sim pin", "voicemail pin", "card pin"), matching(_OF_CARD), has_digit=True),
    Rule("code-told-before", "code", ("code",), _code_before, has_digit=True),
    Rule(
        "code-sent",
        "code",
        tuple(f"code {who} " for who in ("that", "they", "he", "she", "you", "it")),
        matching(_CODE_SENT),
        has_digit=True,
    ),
    Rule("code-to-log-in", "code", ("code",), matching(_CODE_TO), skips_prose=True, has_digit=True),
    Rule("otp-said", "code", ("otp",), matching(_OTP), skips_prose=True, has_digit=True),
    Rule("code-second-factor", "code", ("2fa", "mfa", "steam guard"), _second_factor, needs=Nearby(DIGIT, 0, 48)),
    Rule("code-of-meeting-chinese", "code", ("密码", "密碼", "口令", "入会码"), _of_meeting, needs=Nearby(DIGIT, 0, 6)),
    Rule("code-to-verify", "code", ("verify your", "verify it"), _to_verify, has_digit=True),
    Rule("code-of-the-next", "code", ("pin", "暗証番号", "비밀번호", "пин"), _next_code, needs=Nearby(DIGIT, 0, 40)),
)  # fmt: skip
"""What confirms a login or a payment."""
