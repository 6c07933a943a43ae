"""Finds PINs and codes that confirm a login or a payment, or are redeemed: "your verification code is 492 118", "the PUK is 83920174"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start, matching
from memd.redact.values import secret_values
from memd.redact.values.code_numbers import ENDS_NUMBER, may_be_code, means_other_pin
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


# --- from a list: "TAN for the transfer, next free on the list nr 37: 715348"

_TAN = re.compile(
    rf"(?<![A-Za-z])(?:[imp]|sms-?|push-?|photo-?|chip-?)?(?-i:TAN)(?![A-Za-z])[^\n:=]{{0,60}}?(?:[ ]?[:=]|[ ](?:is|ist|lautet))[ ]{{1,3}}(?P<secret>[0-9]{{6}}){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _tan(text: str, at: int) -> Span | None:
    match = _TAN.match(text, at)
    return None if match is None else match.span("secret")


# --- "收到了，810890" and "已填入验证码": what somebody got, beside what is done with it

_GOT = re.compile(
    r"(?:收到了?|来了|來了|发来了?|到了|发我的是|短信(?:里)?(?:是|写的)?|got[ ](?:it|one)|here[ ](?:it[ ]is|you[ ]go)|it[ ]says)[，,：: 。.]{1,2}[ ]?(?P<secret>[0-9]{4,8}|[0-9]{3}[ -][0-9]{3})(?=[。，！]|[,.!]?[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)
_SPEAKS_OF_CODE = re.compile(
    r"验证码|驗證碼|校验码|动态码|登录码|短信码|认证码|verification|one-time|\botp\b|2fa|\bcode\b|两步",
    re.IGNORECASE,
)


def _got(text: str, at: int) -> Span | None:
    match = _GOT.match(text, at)
    if match is None or not may_be_code(match["secret"]):
        return None
    after = line_end(text, min(len(text), match.end() + 1), 90)
    before = line_start(text, max(0, line_start(text, at, 60) - 1), 90)
    is_one = (
        _SPEAKS_OF_CODE.search(text, match.end(), after) is not None
        or _SPEAKS_OF_CODE.search(text, before, at) is not None
    )
    return match.span("secret") if is_one else None


# --- "Your Notion login code is tulip-lemon-quartz-copper"

_CODE_OF_WORDS = re.compile(
    r"(?:(?:log-?in|sign-?in|verification|temporary|one-?time|access|security|magic)[ ]code(?:[ ](?:is|for[ ][\w ]{1,24}[ ]is))?|(?:登录|验证|临时)码[是为]?)[ ]?[:：]?[ ]{0,2}\n?[\"'“]?(?P<secret>[a-z]{3,10}(?:-[a-z]{3,10}){2,5})(?![\w-])",
    re.IGNORECASE,
)


def _code_of_words(text: str, at: int) -> Span | None:
    match = _CODE_OF_WORDS.match(text, at)
    if match is None or match["secret"] != match["secret"].lower():
        return None
    parts = match["secret"].split("-")
    return match.span("secret") if secret_values.HARMLESS_WORDS.isdisjoint(parts) else None


# --- behind its name at once: "alarm panel: disarm 6620 duress 6621", "verification code 482 913", "card pin's 3317"

_AT_ONCE = re.compile(
    r"(?:disarm|duress|(?:verification|confirmation|log-?in|sign-?in|one-?time|2fa)[ ]code|(?:card|sim|voicemail|phone|bank|debit|atm)[ ]pin['’]?s?|mk[ ]thẻ)(?:[ ]?[:=]|[ ]is)?[ ](?P<secret>[0-9]{3}[ -][0-9]{3}|[0-9]{4,8})(?=[.,;!?)](?!\w)|[ \t]{0,4}(?:\n|\Z)|[ ](?:ok|duress|disarm|and|don|do|please|pls|expires|valid|from|to)\b)",
    re.IGNORECASE,
)


def _at_once(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _AT_ONCE.match(text, at)
    return match.span("secret") if match is not None and may_be_code(match["secret"]) else None


# --- "portal access code K7D2M9QX", "itunes card X7D2M9QXP3WZR8TN": capitals and digits behind the name of a code or a card

_CAPITALS = re.compile(
    r"(?:(?:access|entry|portal|registration|enrol?lment|invitation|invite|pairing|claim|activation|redeem|redemption|license|licence|setup|unlock)[ ]code|(?:itunes|apple|google[ ]play|amazon|xbox|psn|playstation|nintendo|eshop|roblox|razer|steam|netflix|gift|paysafe|voucher)[ ](?:gift[ ])?(?:card|voucher|code)|邀请码|激活码|兑换码|注册码)"
    r"(?:[ ](?:is|was|for[ ][\w ]{1,24}?(?:[ ]is|:))|[ ]?[:=：是])?[ ]?[\"'`]?(?P<secret>(?-i:(?=[A-Z-]{0,18}[0-9])(?=[0-9-]{0,18}[A-Z])(?:[A-Z0-9]{8,20}|[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){1,4})))(?![\w-])",
    re.IGNORECASE,
)


def _in_capitals(text: str, at: int) -> Span | None:
    match = _CAPITALS.match(text, at)
    if match is None:
        return None
    said = match["secret"].replace("-", "")
    return match.span("secret") if len(DIGIT.findall(said)) >= 2 and not said[-4:].isdecimal() else None


# The digits on the back of a card.
_ON_BACK = re.compile(
    r"(?:(?:digits|code)[ ]on[ ]the[ ]back|security[ ]digits)[^\n0-9]{0,70}?(?:is|are|was|were|it['’]?s|:|=|-|–)[ ]{1,2}(?P<secret>[0-9]{3,4})(?=[.,;)!](?![0-9])|[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)


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
BEHIND_NAME = (
    Rule("code-at-once", "code", ("disarm", "duress", "verification code", "confirmation code", "login code", "log-in code", "signin code", "sign-in code", "one-time code", "one time code", "2fa code", "card pin", "sim pin", "voicemail pin", "phone pin", "bank pin", "debit pin", "atm pin"), _at_once, needs=Nearby(re.compile("[0-9]{3}"), 0, 30, 3, has_digit=True)),
)  # fmt: skip
"""Digits right behind the name of a code."""
IN_CAPITALS = (
    Rule("code-in-capitals", "code", ("access code", "entry code", "portal code", "registration code", "enrolment code", "enrollment code", "invitation code", "invite code", "pairing code", "claim code", "activation code", "redeem code", "redemption code", "license code", "licence code", "setup code", "unlock code", "itunes ", "apple gift", "google play ", "amazon ", "xbox ", "psn ", "playstation ", "nintendo ", "eshop ", "roblox ", "razer ", "steam ", "netflix ", "gift ", "paysafe ", "邀请码", "激活码", "兑换码", "注册码"), _in_capitals, needs=Nearby(re.compile("[A-Z][0-9]|[0-9][A-Z]"), 0, 70, 2)),
)  # fmt: skip
"""Codes of capitals and digits, of portals and of cards."""
SENT_OR_LISTED = (
    Rule("tan-of-list", "code", ("tan ", "tan:", "tan,"), _tan, needs=Nearby(re.compile("[0-9]{6}"), 0, 80, 6, has_digit=True)),
    Rule("code-got", "code", ("收到", "来了", "來了", "发来", "到了", "发我的是", "短信", "got it", "got one", "here it is", "here you go", "it says"), _got, needs=Nearby(re.compile("[0-9]{3}"), 0, 14, 3, has_digit=True)),
)  # fmt: skip
"""Transaction numbers, and codes beside what is done with them."""
OF_WORDS = (
    Rule("code-of-words", "code", ("login code", "log-in code", "sign-in code", "signin code", "verification code", "temporary code", "one-time code", "access code", "security code", "magic code", "登录码", "验证码", "临时码"), _code_of_words, needs=Nearby(re.compile("[a-z]-[a-z]{3,10}-[a-z]"), 0, 60, 14)),
)  # fmt: skip
"""Codes of words."""
ON_BACK_OF_CARD = (
    Rule("code-on-back", "code", ("digits on the back", "code on the back", "security digits"), matching(_ON_BACK), needs=Nearby(DIGIT, 0, 100)),
)  # fmt: skip
"""The digits on the back of a card."""
