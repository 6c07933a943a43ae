"""Finds codes: PINs, door and login codes, seeds of authenticators, recovery codes, and licence keys."""

import re

from memd.redact import secret_values
from memd.redact.rule import DIGIT, Find, Nearby, Rule, Span, sought
from memd.redact.secret_words import SECRET_WORDS, either


def _matched(pattern: re.Pattern[str]) -> Find:
    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        return None if match is None else match.span("secret")

    return find


_ENDS_NUMBER = r"(?![\w%]|[.,:/-][0-9]|[ ]{0,20}(?:lines|bytes|characters|chars|files|words|tokens|times|digits|%)(?![a-z]))"
_PIN = re.compile(
    r"(?<![A-Za-z])pin(?:[ ](?:code|number))?(?:[ ](?:for|of|to|on)(?:[ ][\w'’-]{1,20}){1,8}?)?"
    rf"(?:[ ](?:is|was)|[ ]?[:=?])[ ]{{0,3}}(?P<secret>[0-9]{{4,8}}){_ENDS_NUMBER}",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:(?<=verification )|(?<=confirmation )|(?<=one-time )|(?<=security )|(?<=login )|(?<=2fa )|(?<=otp )|(?<=auth )"
    r"|(?<=authentication )|(?<=one-time pass)|(?<=recovery )|(?<=backup )|(?<=sms )|(?<=your )|(?<=my )"
    r"|(?<=sign-in )|(?<=one time )|(?<=access )|(?<=digit )|(?<=passcode or ))code(?:[ ](?:from|for|on|in|of)(?:[ ][\w'’-]{1,20}){1,4}?)?(?:[ ](?:is|was)|[ ]?:)[ ]{0,3}"
    rf"(?P<secret>(?:[A-Z]-)?[0-9]{{4,8}}|[0-9]{{3}}[ -][0-9]{{3}}){_ENDS_NUMBER}",
    re.IGNORECASE,
)
# Things with a lock: digits near them are their code, whatever is between.
_LOCKS = (
    "door", "gate", "alarm", "disarm", "arming", "entry", "entrance", "unlock", "keypad", "garage", "safe", "vault", "lock", "locker",
    "lockbox", "key box", "keybox", "padlock", "voicemail", "sim", "debit", "credit", "atm", "bank", "card", "burglar", "panel",
    "building", "office", "duress", "apartment", "house", "elevator", "lift", "gym", "bike", "suitcase", "luggage", "ipad", "iphone", "phone",
    "tablet", "screen", "parental", "smart lock", "smartlock", "front", "back",
)  # fmt: skip
_LOCKED = f"(?:{'|'.join(_LOCKS)})"
_BEFORE_CODE = tuple(f"{word} " for word in (*_LOCKS, "time"))
_OF_LOCK = re.compile(rf"(?<![A-Za-z]){_LOCKED}(?:[ ]time)?[ ]\Z", re.IGNORECASE)
_CODE_OF_LOCK = re.compile(
    r"(?:code|pin|combo|passcode)(?![a-z])(?:[ ](?:for|of|to|on)(?:[ ][\w'’-]{1,20}){1,4}?)?"
    r"(?:[ ](?:is|was|now|still|just|set|to|hasn['’]t|has|not|changed|new)){0,3}[ ]?[:=—–-]?[ ]{0,3}[\"'`*#]{0,2}"
    rf"(?P<secret>[0-9]{{4,8}}|[0-9]{{1,2}}(?:[ ]?[-–/][ ]?[0-9]{{1,2}}){{2,3}}|(?-i:(?=[0-9]{{0,7}}[A-Z])(?=[A-Z]{{0,7}}[0-9])[0-9A-Z]{{4,8}})){_ENDS_NUMBER}",
    re.IGNORECASE,
)
_CODE_FOR_LOCK = re.compile(
    rf"(?:code|pin|combo)[ ](?:for|of|to|on)[ ](?:(?:the|my|our|his|her|their|your)[ ])?(?:[\w'’-]{{1,20}}[ ]){{0,2}}{_LOCKED}(?:[ ](?:door|gate|panel|lock|keypad|box)){{0,2}}"
    rf"(?:(?:[ ](?:is|was|now|still|just)){{1,3}}[ ]?:?|[ ]?:)[ ]{{0,3}}[\"'`*]{{0,2}}(?P<secret>[0-9]{{3,8}}|(?-i:(?=[0-9]{{0,7}}[A-Z])(?=[A-Z]{{0,7}}[0-9])[0-9A-Z]{{4,8}})){_ENDS_NUMBER}",
    re.IGNORECASE,
)
# "The keypad takes 4471#"
_TAKEN_BY = re.compile(
    rf"(?:door|gate|pad|lock|alarm|safe)[ ](?:takes|wants|accepts)[ ](?:the[ ]code[ ])?(?P<secret>[0-9]{{4,8}}(?:\#|(?=[.,;!]?[ ]{{0,4}}(?:\n|\Z)|[.,;!][ ]))){_ENDS_NUMBER}",
    re.IGNORECASE,
)
_DATE = r"(?:[0-2]?[0-9]|3[01])-(?:0?[1-9]|1[0-2])-[0-9]{2}(?![0-9-])"
_OPENS = re.compile(
    r"(?:(?:opens?|unlocks?|disarms?|(?<=alarm )off)[ ](?:it[ ])?(?:with|by|using|on|at)|disarms?[ ](?:the|my|our|your)[ ](?:[\w'’-]{1,16}[ ]){1,4}?(?:with|by|using))[ ](?:the[ ])?(?:code[ ]|number[ ]|pin[ ])?"
    rf"(?P<secret>(?<! at )[0-9]{{4,8}}#?|(?:(?<!on )|(?!{_DATE}))[0-9]{{1,2}}(?:-[0-9]{{1,2}}){{2,3}}){_ENDS_NUMBER}"
    rf"(?![ ](?!(?:{either(SECRET_WORDS.context.goes_on)})(?!\w))[A-Za-z])",
    re.IGNORECASE,
)
_OF_CARD = re.compile(
    r"(?<![a-z])(?:cvv2?|cvc2?|puk[12]?|sim[ ]pin|voicemail[ ]pin|card[ ]pin)(?:[ ](?:code|number))?(?:[ ](?:is|was)|[ ]?[:=：是为]|[ ][(](?:it['’]?s[ ]|is[ ])?)?[ ]{0,3}"
    rf"(?P<secret>[0-9]{{3,8}}){_ENDS_NUMBER}",
    re.IGNORECASE,
)
# Of 3-4-5, which may be a triangle or a score, a word may not follow; nor what three numbers are counted in.
_ENDS_TURNS = r"(?<![^0-9][0-9]-[0-9]-[0-9](?=[ ][A-Za-z]))(?![ ](?:are|is|days|hours|minutes|items|times|people|times|in|of|cm|mm)\b)"
_COMBINATION = re.compile(
    r"(?<!key )comb(?:ination|o)(?:(?:[ ](?:is|was|to|for|of|the|my|our|safe|lock|locker)){0,4}[ ]?[:=]?|[ ](?:is|was|to|for|of)[ ][^\n:]{1,60}:)[ ]"
    rf"(?P<secret>[LR]?[0-9]{{1,3}}(?:[ ]?[-–][ ]?[LR]?[0-9]{{1,3}}){{2,4}})(?![\w-]){_ENDS_TURNS}",
    re.IGNORECASE,
)
# A lock with its location, and three numbers: the safe in the study: 38-07-52
_TURNED = re.compile(
    r"(?:safe|lock|locker|padlock|vault)(?:[ ](?:in|of|on|at|for)(?:[ ][\w'’-]{1,20}){1,4}?)?[ ]?[:=][ ]{0,2}(?:combination[ ])?"
    rf"(?P<secret>[0-9]{{1,2}}(?:[ ]?-[ ]?[0-9]{{1,2}}){{2,3}}|(?<=combination )[0-9]{{3,6}})(?![\w-]){_ENDS_TURNS}",
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
    rf"(?P<secret>[0-9]{{4,8}}){_ENDS_NUMBER}",
    re.IGNORECASE,
)


def _code_before(text: str, at: int) -> Span | None:
    """Return a number that the following words call a code."""
    left = max(0, at - 90)
    is_said = text[at - 1 : at] == " " and text[left:at].lower().find(" is your ") >= 0
    match = _CODE_BEFORE.search(text[left:at]) if is_said else None
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


_CHARS_OF_LOCK = 20  # characters before the word for a code, in which the name of the lock begins


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


def _of_lock(text: str, at: int) -> Span | None:
    """Return the code of a lock that is named before or after the word for a code."""
    match = _CODE_FOR_LOCK.match(text, at)
    if match is not None:
        return match.span("secret")
    left = text[max(0, at - _CHARS_OF_LOCK) : at]
    if not left.lower().endswith(_BEFORE_CODE):
        return None
    match = _CODE_OF_LOCK.match(text, at)
    return None if match is None or _OF_LOCK.search(left) is None else match.span("secret")


_TO_VERIFY = re.compile(r"(?<![\w.])(?P<secret>[0-9]{4,8})[ ](?:to|for)[ ]\Z")


def _to_verify(text: str, at: int) -> Span | None:
    """Return a code for verification."""
    left = max(0, at - 16)
    match = _TO_VERIFY.search(text[left:at])
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


_OTP = re.compile(
    rf"(?<![A-Za-z])t?otp(?:[ ](?:code|is|code[ ]is))?[ ]?[:=]?[ ]{{0,3}}(?P<secret>[0-9]{{4,8}}){_ENDS_NUMBER}",
    re.IGNORECASE,
)
_UNSEAL = re.compile(
    r"""(?:unseal|recovery)(?:[ _]key)?(?:[ _]?[0-9]{1,2})?[*_`"']{0,3}[ \t]{0,4}[:=]?[ \t]{0,8}["'`*]{0,3}
    (?P<secret>[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{44}|[0-9a-f]{32,66})(?![A-Za-z0-9+/])""",
    re.VERBOSE | re.IGNORECASE,
)

# Backup codes of an authenticator: a list of two or more, each with a digit and none of them a year.
_ITEM = r"(?:[0-9]{1,2}[.)、][ \t]{0,2}|[-*•>][ \t]{0,2}|\[[ x]?\][ ])?"
_ONE = (
    r"(?!(?:19|20)[0-9]{2}(?![0-9A-Za-z]))(?=[A-Za-z-]{0,20}[0-9])"
    r"(?:[0-9]{4}[ ][0-9]{4}(?![0-9])|[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{4,12}){0,4})"
)
_CODES = re.compile(
    rf"(?:(?:backup|recovery|scratch|emergency|rescue)[ _-](?:codes?|keys?|passcodes?)|(?:(?<=2fa )|(?<=mfa ))backup|(?:恢复|备用|备份|应急|救援|备用验证)(?:码|代码|密钥)|(?:{either(SECRET_WORDS.recovery)})\w{{0,2}}(?:[ ][\w.'’-]{{1,20}}){{0,3}}?)"
    r"[\"'`*_]{0,3}(?:[ ](?:for|of|to|from)(?:[ ][\w.'’-]{1,20}){1,4}?)?(?:\.txt)?(?:[ ](?:are|is|below|follow|如下)){0,2}(?:[ ]?[（(][^()（）\n]{1,60}[)）]|[ ][–—-][ ][^\n:：]{1,60}(?=\n))?"
    r"(?:[是为如下，,]{1,4}[^\n:：0-9]{0,24})?[ ]?[:：=]?[ \t]{0,4}[\"'\[]{0,2}\n?(?:[ \t]{0,8}\n)?[ \t]{0,8}"
    rf"(?P<secret>{_ITEM}{_ONE}(?:[\"']{{0,2}}[ \t]{{0,4}}[ \t,;、，；|\n][ \t]{{0,16}}[\"']{{0,2}}{_ITEM}{_ONE}){{1,30}})(?![\w-])",
    re.IGNORECASE,
)

# Backup codes somewhere behind their label: two or more of the same form.
_OF_SERIES = re.compile(
    r"(?:backup|recovery|scratch|emergency|rescue|one-time)(?P<named>[ _-](?:login[ ])?(?:codes?|keys?|passcodes?))?(?![A-Za-z])"
    r"|(?P<chinese>(?:恢复|备用|备份|应急|救援)(?:验证)?(?:码|代码|密钥))",
    re.IGNORECASE,
)
# Between the label and the first code: no sentence ends.
_ANNOUNCES_SERIES = re.compile(
    r"[^\n.;!?。；！？]{0,60}(?:(?<=[:：，, 个是])|\n\s{0,8}(?:[-*•>]|[0-9]{1,2}[.)]|\[[ x]?\])?)[ ]{0,2}"
)
_AT_ONCE = re.compile(r"[ :：,]{1,3}")
_CHARS_OF_SERIES = 90
_OF_SAME_FORM = re.compile(
    r"(?<![\w-])(?:[0-9]{4}[ ][0-9]{4}|(?=[0-9-]{0,12}[A-Za-z])(?=[A-Za-z-]{0,12}[0-9])[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,3}"
    r"|(?=[0-9]{0,15}[a-z])(?=[a-z]{0,15}[0-9])[a-z0-9]{8,16})(?![A-Za-z0-9_-])",
    re.ASCII,
)
_BETWEEN_CODES = re.compile(r"[\s,;、，；|/`\"'*•>()\[\]和与及-]{1,12}(?:and[ ]|[0-9]{1,2}[.)][ ]?)?")
_MOST_CODES = 32


def _series(text: str, at: int) -> Span | None:
    """Return backup codes of the same form, from the first one to the last one."""
    label = _OF_SERIES.match(text, at)
    if label is None:
        return None
    first = _OF_SAME_FORM.search(text, label.end(), label.end() + _CHARS_OF_SERIES)
    announces = _ANNOUNCES_SERIES if label["named"] or label["chinese"] else _AT_ONCE
    if first is None or announces.fullmatch(text, label.end(), first.start()) is None:
        return None
    form = re.sub("[A-Za-z0-9]", "x", first[0])
    end, count = first.end(), 1
    while count < _MOST_CODES and (between := _BETWEEN_CODES.match(text, end)) is not None:
        following = _OF_SAME_FORM.match(text, between.end())
        if following is None or re.sub("[A-Za-z0-9]", "x", following[0]) != form:
            break
        end, count = following.end(), count + 1
    return (first.start(), end) if count > 1 else None


# Backup codes in capitals, of which some have no digit.
_CAPITAL_CODES = re.compile(
    r"(?:backup|recovery|scratch|emergency|rescue)[ _-](?:codes?|keys?)[^\n:]{0,40}:\s{1,4}(?P<secret>[A-Z0-9]{5,10}(?:[ \t]{0,4}[ ,;|/\n][ \t]{0,8}[A-Z0-9]{5,10}){1,30})(?![\w-])",
)


def _capital_codes(text: str, at: int) -> Span | None:
    match = _CAPITAL_CODES.match(text, at)
    if match is None or DIGIT.search(match["secret"]) is None:
        return None
    return match.span("secret") if len(set(map(len, re.findall("[A-Z0-9]+", match["secret"])))) == 1 else None


# A base32 seed of time-based codes: in groups, as they are typed, or as one word with a digit.
_SEED = re.compile(
    r"(?<![A-Za-z0-9/+=-])(?:(?P<groups>(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{2,4}|(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{2,4})"
    r"|(?P<word>(?=[A-Z]{0,40}[2-7])[A-Z2-7]{16,104}={0,6}))(?![A-Za-z0-9/+-])"
)
_CHARS_OF_SEED = 110  # characters after the anchor in which a seed begins


# "enter JBSW Y3DP EHPK 3PXP by hand in the authenticator"
_SEED_BEFORE = re.compile(
    r"(?<![A-Za-z0-9/+=-])(?P<secret>(?=[A-Z -]{0,40}[2-7])[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15})(?![A-Za-z0-9/+-])[^\n]{0,40}\Z"
)


def _seed(text: str, at: int) -> Span | None:
    return _seed_behind(text, at) or _seed_before(text, at)


def _seed_before(text: str, at: int) -> Span | None:
    left = max(0, at - _CHARS_OF_SEED)
    match = _SEED_BEFORE.search(text[left:at])
    return None if match is None else (left + match.start("secret"), left + match.end("secret"))


def _seed_behind(text: str, at: int) -> Span | None:
    end = text.find("\n", text.find("\n", at, at + _CHARS_OF_SEED) + 1 or at, at + _CHARS_OF_SEED)
    match = _SEED.search(text, at, at + 2 * _CHARS_OF_SEED if end < 0 else end)
    if match is None or match.start() > at + _CHARS_OF_SEED:
        return None
    said = match["groups"]
    if said is None or DIGIT.search(said) is not None:
        return match.span()
    return match.span() if secret_values.is_jumble(said.replace(" ", "").replace("-", "").lower()) else None


# A key in groups of four letters and digits, as of a messenger or a vault.
_OF_FOURS = re.compile(r"(?:security|recovery)[ _-](?:key|code)s?|恢复(?:代码|码|密钥)|安全密钥")
_FOURS = re.compile(r"(?<![\w-])(?P<secret>[A-Za-z0-9]{4}(?:[ ][A-Za-z0-9]{4}){6,15})(?![\w-])", re.ASCII)
_MIXED_FOUR = re.compile(r"(?=[A-Za-z]{0,3}[0-9])(?=[0-9]{0,3}[A-Za-z])[A-Za-z0-9]{4}")
_CHARS_OF_FOURS = 60  # characters after the anchor in which the groups begin


def _fours(text: str, at: int) -> Span | None:
    label = _OF_FOURS.match(text[at : at + 20].lower())
    match = None if label is None else _FOURS.search(text, at + label.end(), at + _CHARS_OF_FOURS + 100)
    # Prose may have consecutive words of four letters too, with a year among them.
    if match is None or len(_MIXED_FOUR.findall(match["secret"])) < 2:
        return None
    return match.span("secret")


# Each of the eight groups of a BitLocker recovery key is a multiple of eleven.
_OF_DISK = re.compile(r"(?<![0-9-])[0-9]{6}(?:-[0-9]{6}){7}(?![0-9-])")
_CHARS_OF_DISK = 300  # characters after the anchor in which they begin


def _is_of_disk(said: str) -> bool:
    return all(int(group) % 11 == 0 for group in said.split("-"))


# Groups of capitals and digits: licence keys and disk recovery keys.
_GROUPS = re.compile(
    r"(?:key|/ipk|licen[cs]e|serial|activation|product|voucher|coupon|gift card|(?:wallet|gift|redeem|redemption) code|recovery code|序列号|激活码|注册码|授权码|卡密|兑换码|产品密钥|恢复代?码)(?:[^\n]{0,60}+\n)?[^\n]{0,60}?"
    r"(?<![A-Za-z0-9_-])(?P<secret>(?=[A-Z-]{0,40}[0-9])(?:(?:[A-Z]{2}-)?[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,8}|[A-Z0-9]{5}(?:-[A-Z0-9]{5}){2}))(?![\w-])",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9A-F]{8}-(?:[0-9A-F]{4}-){3}")


def _groups(text: str, at: int) -> Span | None:
    match = _GROUPS.match(text, at)
    if match is None or match["secret"] != match["secret"].upper() or _UUID.match(match["secret"]):
        return None
    return match.span("secret")


# The digits that a router has on its label: WLAN-Netzwerkschlüssel (WPA2) 5519 2038 4471 9026 3318
_OF_NETWORK = (
    "netzwerkschlüssel", "wlan-schlüssel", "wlan schlüssel", "wlan-key", "wlan key", "wpa2", "wpa-psk", "wpa psk", "wpa key", "wpa-key", "wifi key", "wi-fi key",
    "wifi-key", "security key", "network key", "clé wifi", "clé du wifi", "clé wi-fi", "clé du wi-fi", "clé wpa", "clé de sécurité", "clave wpa", "clave wifi", "clave de red", "chiave wifi", "chiave wpa",
    "网络密钥", "無線キー", "暗号化キー", "무선 키",
)  # fmt: skip
_NETWORK_KEY = re.compile(
    rf"(?:{either(_OF_NETWORK)})[^\n0-9]{{0,16}}(?:[(（][^()（）\n]{{1,12}}[)）])?[^\n0-9]{{0,40}}?(?<![\w.,/-])(?P<secret>[0-9]{{4}}(?:[ ][0-9]{{4}}){{3,4}}|[0-9]{{16,24}}|(?-i:(?=[A-Z-]{{0,28}}[0-9])[A-Z0-9]{{4}}(?:-[A-Z0-9]{{4}}){{2,5}})|(?-i:(?=[A-F]{{0,19}}[0-9])(?=[0-9]{{0,19}}[A-F])[0-9A-F]{{16,26}}))(?![\w-]|[ ][0-9])",
    re.IGNORECASE,
)

# Chinese: digits after what they unlock or confirm: "锁屏是135792", "验证码收到了，是 781622".
_CHINESE = re.compile(
    r"(?:锁屏|门锁|智能锁|电子锁|大门|房门|保险[箱柜]|门禁|密码锁|验证码|驗證碼|校验码|保安[编編][码碼]|主持人密[钥鑰]|(?<![a-z])(?:pin|puk|pim)2?)"
    r"(?P<middle>[ ]?[一-鿿，, ]{0,16}?(?:[是为係按输成]|改为|[:：])了?|[ ]?[:：])[ ，,「]{0,2}"
    r"(?P<secret>[0-9]{3,8})(?![0-9A-Za-z%]|[.:/-][0-9]|,[0-9]{3}(?![0-9])|[ ]{0,2}[年月日元块个分楼号秒位次条米毫字])",
    re.IGNORECASE,
)
_OF_ERRORS = re.compile("不能|不可|错误|长度|有效|次数|位数|超时|时间|端口|编号|价格|尺寸|宽|高")


def _chinese(text: str, at: int) -> Span | None:
    match = _CHINESE.match(text, at)
    return None if match is None or _OF_ERRORS.search(match["middle"]) else match.span("secret")


RULES = (
    Rule("unseal-key", "key", ("unseal", "recovery"), _matched(_UNSEAL)),
    Rule("pin-said", "code", ("pin",), _matched(_PIN), skips_prose=True),
    Rule("code-said", "code", ("code",), _matched(_CODE), skips_prose=True),
    Rule("code-of-lock", "code", ("code", "pin", "combo", "passcode"), _of_lock, skips_prose=True, needs=Nearby(DIGIT, 0, 120)),
    Rule("code-opens", "code", ("open", "unlock", "disarm", "off with"), _matched(_OPENS)),
    Rule("code-of-card", "code", ("cvv", "cvc", "puk", "sim pin", "voicemail pin", "card pin"), _matched(_OF_CARD)),
    Rule(
        "code-of-lock-chinese",
        "code",
        (
            "锁屏", "门锁", "智能锁", "电子锁", "大门", "房门", "保险箱", "保险柜", "门禁", "密码锁", "验证码", "驗證碼", "校验码",
            "保安编码", "保安編碼", "主持人密钥", "主持人密鑰", "pin", "puk", "pim",
        ),
        _chinese,
        needs=Nearby(re.compile("[:：是为係按输成了，, 「](?=[0-9])"), 0, 28, 2),
    ),
    Rule("code-told-before", "code", ("code",), _code_before),
    Rule(
        "code-taken",
        "code",
        tuple(f"{lock} {takes}" for lock in ("door", "gate", "pad", "lock", "alarm", "safe") for takes in ("takes", "wants", "accepts")),
        _matched(_TAKEN_BY),
    ),
    Rule(
        "code-sent",
        "code",
        tuple(f"code {who} " for who in ("that", "they", "he", "she", "you", "it")),
        _matched(_CODE_SENT),
    ),
    Rule("code-to-log-in", "code", ("code",), _matched(_CODE_TO), skips_prose=True),
    Rule("otp-said", "code", ("otp",), _matched(_OTP), skips_prose=True),
    Rule("code-to-verify", "code", ("verify your", "verify it"), _to_verify),
    Rule(
        "key-groups",
        "key",
        ("key", "/ipk", "licen", "serial", "activation", "product", "voucher", "wallet code", "gift code", "redeem", "recovery code", "序列号", "激活码", "注册码", "授权码", "卡密", "兑换码", "恢复"),
        _groups,
        needs=Nearby(re.compile("-[A-Z0-9]{4,8}-"), 0, 140, 10),
    ),
    Rule(
        "key-in-fours",
        "key",
        ("security", "recovery", "恢复", "安全密钥"),
        _fours,
        needs=Nearby(re.compile("(?:[A-Za-z0-9]{4}[ ]){6}"), 0, _CHARS_OF_FOURS + 20, 30),
    ),
    Rule("code-of-the-next", "code", ("pin", "暗証番号", "비밀번호", "пин"), _next_code, needs=Nearby(DIGIT, 0, 40)),
    Rule("combination-of-lock", "code", ("safe", "lock", "vault"), _matched(_TURNED)),
    Rule("disk-recovery", "key", ("bitlocker", "numerical password", "recovery", "恢复密钥", "恢復金鑰", "wiederherstell"), walk=sought(_OF_DISK, behind=_CHARS_OF_DISK, width=60, is_one=_is_of_disk)),
    Rule("combination-said", "code", ("combination", "combo"), _matched(_COMBINATION)),
    Rule(
        "backup-codes",
        "code",
        ("backup", "recovery", "scratch", "emergency", "rescue", "恢复", "备用", "备份", "应急", "救援", *SECRET_WORDS.recovery),
        _matched(_CODES),
    ),
    Rule(
        "backup-codes-in-series",
        "code",
        ("backup", "recovery", "scratch", "emergency", "rescue", "one-time", "恢复", "备用", "备份", "应急", "救援"),
        _series,
        needs=Nearby(DIGIT, 0, 120),
    ),
    Rule("backup-codes-capital", "code", ("backup", "recovery", "scratch", "emergency", "rescue"), _capital_codes),
    Rule(
        "authenticator-seed",
        "code",
        (
            "authenticator", "authy", "seed", "setup key", "secret key", "this key", "key instead", "key in your app", "manual entry", "totp", "2fa", "mfa", "otp", "two-factor",
            "二次验证", "两步验证", "双重验证", "双因素", "验证器", "动态口令",
        ),
        _seed,
        needs=Nearby(_SEED, _CHARS_OF_SEED, _CHARS_OF_SEED, 112),
    ),
    Rule("network-key-digits", "password", _OF_NETWORK, _matched(_NETWORK_KEY), needs=Nearby(DIGIT, 0, 60)),
)  # fmt: skip
"""What opens a lock, confirms a login or proves a purchase."""
