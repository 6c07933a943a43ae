"""Passwords and codes that only their sentence tells: a value that looks like one, near a word for what it opens.

The values are read once, however many such words stand around them. A value that could only be a password needs a word for
passwords or for logging in beside it. One that may be something else, too, needs words right before it that say that it
comes ("it's", "changed to", "换成了"), or a question for it in the line before.
"""

import re
import string
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from memd.redact import secret_values
from memd.redact.rule import LEAD_IN, Rule, Span, Walk, stem

_PASSWORDS = (
    "pass", "pwd", "pw", "pasw", "credential", "creds", "secret word", "密码", "密碼", "口令", "passwort", "kennwort", "contrase", "clave", "mot de passe", "mdp",
    "senha", "palavra-passe", "wachtwoord", " ww ", "hasło", "haslo", "şifre", "sifre", "парол", "パスワード", "비밀번호", "비번", "mật khẩu", "كلمة", "الرقم السري",
    "lösenord", "adgangskode", "salasana", "heslo", "jelszó", "parol", "κωδικ", "סיסמ", "kata sandi", "รหัสผ่าน", "पासवर्ड",
)  # fmt: skip
# What has a password of its own, and what opens something: behind one of them even a word with digits is told by a verb.
_OF_SERVICES = (
    "netflix", "hulu", "hbo", "disney", "spotify", "paypal", "icloud", "apple id", "gmail", "dropbox", "admin panel", "control panel", "the nas", "laptop", "macbook", "支付宝", "淘宝", "路由器", "服务器", "电脑",
)  # fmt: skip
_OPENS = (
    "unlock", "wifi", "wi-fi", "wlan", "log in", "logged in", "log into", "login", "logon", "sign in", "sign-in", "signed in", "unzip", "decrypt", "解锁", "登录", "登陆",
    "entsperr", "déverrouill", "desbloque", "sblocc", "odblok", "разблок",
)  # fmt: skip
_ACCESS = (
    "rdp ", "sudo", "ssid", "admin", "root", "登入", "账号", "帐号", "帳號", "账户", "后台", "管理员", "连不上", "invalid", "@ / ", "@ / ", "router", "vpn",
    *_OF_SERVICES, *_OPENS,
)  # fmt: skip
_LOCKS = (
    "door", "gate", "alarm", "keypad", "keybox", "key box", "lockbox", "lock box", "padlock", " lock", "locker", "safe", "vault", "intercom", "buzzer", "storage unit",
    "garage", "voicemail", "pin", "passcode", "one time code", "one-time code", "verification code", "otp", "2fa",
    "combination", "combo", "pincode", "code pin", "unlock", "entsperr", "déverrouill", "desbloque", "sblocc", "odblok", "code", "codice", "código",
    "门锁", "密码锁", "大门", "门禁", "保险柜", "保险箱", "锁屏", "解锁", "验证码", "支付", "楼下门",
    "kluis", "voordeur", "tresor", "haustür", "garage", "digicode", "portail", "coffre", "cadenas", "portal", "portão", "cofre", "caja fuerte", "alarma", "candado",
    "cassaforte", "cancello", "bram", "domofon", "sejf", "домофон", "сейф", "подъезд", "калитк", "ворот", "kapı", "kasa", "باب", "خزنة",
    "현관", "금고", "도어락", "공동현관", "玄関", "金庫",
)  # fmt: skip
CUES = tuple(dict.fromkeys((*_PASSWORDS, *_ACCESS, *_LOCKS)))
"""Words near which a value is looked for."""

_BEFORE, _BEHIND = 80, 180  # signs of a cue
_VISIBLE = string.ascii_letters + string.digits + string.punctuation
# What words have none of: a digit beside a letter, or a sign between two. And what a code begins with.
_OF_VALUE = re.compile(
    r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z!#&%~@$^*+])|[!#&%~@$^*+?_-](?=[A-Za-z0-9])(?<=[A-Za-z0-9].)"
)
_OF_CODE = re.compile(r"[0-9](?<![!#-&+-9:-^a-~].)(?=[0-9-])")
_MAY_ASK = re.compile(
    r"[?？؟]|(?:what|which|can u|could you|remind|send me|wie war|多少|什么|发我|告诉我|再发)"
)
_WORD = re.compile(r"[!-~]{3,64}+(?![!-~])")
_AROUND = "\"'`*_()[]{}<>.,;:"
_ENDS = "!?"
Grade = Literal["sure", "likely", "weak", "digits"]


class _Value(msgspec.Struct, frozen=True):
    """What may be a password or a code, wherever it stands."""

    start: int
    end: int
    said: str
    grade: Grade


# Words that are parts of others, too: of "bypass", "gateway", "pinned".
_SHORT = (
    "pass",
    "pwd",
    "pw",
    "pin",
    "otp",
    "gate",
    "door",
    "safe",
    "root",
    "admin",
    "vault",
    "portal",
    "portail",
    "kasa",
    "combo",
    "hbo",
    "rdp ",
    "clave",
    "parol",
)


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    """A pattern of words that begins where they stand, and that none matches as a part of another word."""
    short = "|".join(map(re.escape, sorted(set(words) & set(_SHORT), key=len, reverse=True)))
    other = "|".join(map(re.escape, sorted(set(words) - set(_SHORT), key=len, reverse=True)))
    ending = r"(?:wor[dt]|wd|code|phrase|number|[esnt])?s?(?![A-Za-z])"
    return re.compile(rf"(?<![A-Za-z_])(?:{short}){ending}|(?:{other})(?![A-Za-z]{{0,6}}_)", re.IGNORECASE)


_OF_PASSWORD = _any_of(_PASSWORDS)
_OF_ACCESS = _any_of(_ACCESS)
_OF_LOCK = _any_of(_LOCKS)
_OF_OPENING = _any_of((*_OF_SERVICES, *_OPENS))
_PASS_ALONE = re.compile(r"pass(?:es)?(?![A-Za-z])", re.IGNORECASE)
_NEAR_PASS = 14  # signs between the word "pass", which is a verb, too, and a value
# Words that say that a value comes, right before it.
_LINK = re.compile(
    r"""(?:(?<![\w])(?:is|was|it['’]?s|its|that['’]?s|to|type|types|try|tried|use|uses|using|used|enter|now|then|be|so|ist|lautet|war|jetzt|auf|es|era
    |ahora|est|était|c['’]est|à|é|agora|para|foi|è|ora|adesso|nu|naar|jest|teraz|это|теперь|на|был|a|takes|wants|with|mit|con|com|avec|met|med|then|dann|still|e|pw|pwd|mdp|ww|admin[ ]?[,/|]|root[ ]?[,/|])[ ]
    |[:：=]|->|→|=>|[ ][–—-][ ]|[(（]|[是为成了叫改用说即]|[는은이가はが][ ]?|，|,[ ])[ ]{0,2}[*_]{0,2}["'`“「『(（]?\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_VERB = re.compile(
    r"(?:(?<![\w])(?:is|was|it['’]?s|try|use|using|still|with|ist|war|es|era|est|c['’]est|é|è|jest|to|это|now|mit|con|com|avec)[ ]|是|->[ ]?|→[ ]?)[\"'`“]?\Z",
    re.IGNORECASE,
)
# Whose code it is, before the word: what else has a code has a place in a program, a country or a file.
_OWNED = re.compile(
    r"(?:(?:your|my|our|ihr|dein|tu|votre|ton|seu|tuo|twój)[ ](?:\w{2,14}[ ]){0,2}|(?:apple[ ]id|google|whatsapp|uber|bank|paypal|amazon|microsoft|telegram|signal|instagram"
    r"|facebook|door|gate|sms|login|verification|security)\]?[ ])\Z",
    re.IGNORECASE,
)
_FOR_IT = re.compile(r"[\"'`”]?[ ](?:for|on|para|pour|für|do|для)[ ]", re.IGNORECASE)
_COMMA = re.compile(r"[，,][ ]{0,2}[\"'`“「]?\Z")
_STOPS = re.compile(
    r"[\"'`”」)）]{0,2}(?:[.,;!?](?!\w)|[，。；！？、井]|[ ](?:and|then|or|en|und|et|y|e|i|puis|luego|dann|ve)[ ]|(?=[ ]?[^\x00-\x7f])|[ \t]{0,8}(?:\n|\Z)|[ ]?[)(（|/–—-])"
)
# A sentence that has ended says nothing more of a value, unless the next one begins by telling it.
_SENTENCE_END = re.compile(r"[.!?;][\"')]?[ ]|[。；！？]")
_TELLS_ANEW = re.compile(
    r"(?:[.!?;][ ]|[。；！？])(?:(?:the[ ])?new(?:[ ]one)?|it['’]?s|it[ ]is|now|use|try|type|just[ ]type|新的?|改成)[ ]?[a-z]{0,4}[ ]?[:：]?[ ]?[\"'`“]?\Z",
    re.IGNORECASE,
)
# Behind a value: "... as a password", "... or was that the old password".
_IS_THEN_CALLED = re.compile(
    r"[\"'`”]?[ ](?:as|is|was|for|or)[ ](?:[\w'’]{1,12}[ ]){0,4}?(?:pass(?:word|code|phrase|wd)?|pwd?|login)(?![a-z])",
    re.IGNORECASE,
)
_MADE_TO_TRY = re.compile(r"(?<![a-z])(?:try|type|use|enter|is[ ]it|was[ ]it)[ ][\"'`“]?\Z", re.IGNORECASE)
_OTHER_NOUN = re.compile(
    r"(?<![a-z])(?:user(?:[ ]?name)?|accounts?|host(?:name)?|server|machine|e-?mail|mail|ssid|network|name|model|version|branch|commit|file|folder|repo|package"
    r"|ids?|url|port|room|order|flight|ticket|issue|pr|sha|hash|digest|build|release|tag|image|serial|part|tracking|regex|format|example|用户名|邮箱|版本|型号)"
    r"[\"'`]?[ ]?(?:is|was|:|=|：|是|为)?[ ]?[\"'`“(]?\Z",
    re.IGNORECASE,
)
_OF_FIELD = re.compile(r"I[dD]s?[\"']?[ ]?[:=][ ]?[\"']?\Z")  # a field that is called an identifier
_NAMED_THING = re.compile(
    r"(?:python|node|java|jdk|ubuntu|debian|windows|win|ios|macos|android|iphone|ipad|pixel|galaxy|server|host|web|db|user|test|version|chrome|postgres|mysql|php"
    r"|ruby|log|covid|usb|hdmi|ipv|wpa|tls|ssl|rtx|room|vlan|eth|wlan|keepass|1password|bcrypt|argon|pbkdf|base|rot|rsa|aes|ed|oauth|saml|fido|sha|md|gpt|claude"
    r"|qwen|llama|gemini|opus|sonnet)[a-z]{0,3}[-_.]?[0-9][\w.-]{0,6}",
    re.IGNORECASE,
)
_OF_PROGRAMS = re.compile(
    r"[(){}\[\]<>=;:,\"'`\\|/]|@[\w-]+\.|\.[a-z]{1,5}\Z|[a-z]\.[a-z]|\A[#@$_-]|\A[A-Z]{2,10}[-#][0-9][0-9-]*\Z|\A0x|\A[0-9a-f]{6,}\Z|\A[A-Z0-9]{1,40}+(?:_[A-Z0-9]{1,40}+){1,10}\Z|&[a-z]{2,6}\b|&#"
)
_SPEAKS_OF_CODE = re.compile(r"[({]\)?[;{]|=>|==|&&|\|\||</|\breturn\b|\bimport\b|regex|\\[dws]|[A-Za-z_]\(")
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]{4,16}_[0-9]{2,6}")
_SYMBOL = re.compile(r"[!#$%&*+?^~]")
_WORD_THEN_NUMBER = re.compile(r"[A-Za-z]{4}[\W_]?[0-9]{2}")
_SYMBOL_OR_BAR = re.compile(r"[!#$%&*+?^~_]")
_NAME_BEFORE = re.compile(r"[\w.@+-]{1,40}[/:|=]")
_DIGITS = re.compile(
    r"[0-9]{3,8}#?|[0-9]{1,2}(?:-[0-9]{1,2}){2,3}|[0-9](?:-[0-9]){3,5}|[0-9]{3,6}[A-F]|[0-9]{3}[ -][0-9]{3}(?:[ -][0-9]{3})?"
)
_OF_ERRORS = re.compile("错误|长度|有效|次数|位数|超时|时间|端口|编号|价格|尺寸")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_COUNTED = re.compile(
    r"[ ]{0,2}(?:%|(?:mm|cm|km|m|kg|g|[gmk]i?b|ms|s|min|h|hrs?|[kmg]?hz|px|pt|k|v|w|usd|eur|gbp|x|[ap]m|st|nd|rd|th)(?![a-z])|lines|bytes|char|digit|time|file|word|token|year|month|week|day|hour"
    r"|minute|second|people|user|euro|dollar|step|item|row|page|request|error|attempt|entries|press|cycle|[年月日元块个位天次分秒条页字度])|[.,:/][0-9]",
    re.IGNORECASE,
)
# A line that asks for something, at its end or by how it begins.
_ASKS = re.compile(
    r"[?？؟][\"'”*_]{0,3}[ \t]{0,4}\Z|what(?:['’]?s|[ ]is|[ ]was|[ ]did)|which|can[ ](?:u|you)|could[ ](?:u|you)|remind[ ]me|send[ ]me|wie[ ]war|多少|什么|发我|告诉我|再发",
    re.IGNORECASE,
)
_SPEAKER = r"[ \t>*_-]{0,6}(?:\[[^\]\n]{1,24}\][ ]?|[0-9/.:, -]{4,24}(?:[AP]M)?[ ]?[-–][ ])?(?:[*_]{0,2}[^\W\d_][\w .-]{0,24}[*_]{0,2}[ ]?[:：][*_]{0,2}[ ]?)?"
_SPEAKER_FIRST = re.compile(_SPEAKER)
_BEGINS_ANSWER = re.compile(
    rf"{_SPEAKER}{LEAD_IN}(?:[\w.@-]{{2,40}}[ ]?[/,|][ ])?[\"'`“「*]{{0,3}}\Z", re.IGNORECASE
)
_TELLS_ANSWER = re.compile(rf"{_SPEAKER}(?:[^.!?\n]|\.(?=\w)){{0,60}}\Z", re.IGNORECASE)
_ALARM_TIME = re.compile(r"(?:[01][0-9]|2[0-3])[0-5][0-9]")


def _near(*, codes: bool) -> Walk:
    """Finds the values that their sentence tells.

    Args:
        codes: True: numbers. False: what has letters, too.
    """

    def walk(text: str, places: Sequence[int]) -> Iterator[Span]:
        search, read = (_OF_CODE.search, _code) if codes else (_OF_VALUE.search, _password)
        cues = _Cues(text, places)
        for start, end in _lines(text, places):
            at = start
            while (sign := search(text, at, end)) is not None:
                begin = sign.start() - len(stem(text, sign.start(), 64, _VISIBLE))
                word = _WORD.match(text, begin)
                at = sign.end() if word is None else max(sign.end(), word.end())
                value = None if word is None else read(word[0], begin)
                if value is not None and _is_told(text, value, cues):
                    yield value.start, value.end

    return walk


def _lines(text: str, places: Sequence[int]) -> Iterator[Span]:
    """The lines that some places stand in, as far as they are near; with those behind one that asks something."""
    end = 0
    for at in places:
        if at < end:
            continue
        left = max(end, at - _BEFORE)
        start = text.rfind("\n", left, at) + 1 or left
        end = text.find("\n", at, at + _BEHIND)
        if end < 0 or _MAY_ASK.search(text, start, end + _BEFORE) is not None:
            end = min(len(text), at + _BEHIND)
        yield start, end


def _code(word: str, at: int) -> _Value | None:
    """A word without the punctuation around it, if it may be a code."""
    said = word.strip(_AROUND + _ENDS)
    if _DIGITS.fullmatch(said) is None:
        return None
    start = at + word.index(said)
    return _Value(start, start + len(said), said, "digits")


def _password(word: str, at: int) -> _Value | None:
    """A word without the punctuation around it, if it may be a password."""
    said = word.lstrip(_AROUND).rstrip(_AROUND + "?")
    if len(said) < 7 or said.isalpha() or said.isdecimal():
        return None
    start = at + len(word) - len(word.lstrip(_AROUND))
    name = _NAME_BEFORE.match(said)
    if name is not None and secret_values.is_generated(said[name.end() :], ends_free=True):
        start, said = start + name.end(), said[name.end() :]
    plain = said.rstrip(_ENDS)
    grade: Grade | None = None
    if _NAMED_THING.fullmatch(plain) is not None or secret_values.is_reference(said):
        return None
    if secret_values.is_generated(said, ends_free=True):
        grade = "sure"
    elif _WORD_AND_NUMBER.fullmatch(plain) is not None and _OF_PASSWORD.match(plain) is None:
        grade = "likely"
    elif _OF_PROGRAMS.search(plain) is None and secret_values.is_strong(said):
        digits = sum(map(str.isdigit, said))
        is_drawn = digits >= 2 and secret_values.mixes(said) and not plain.rstrip("0123456789-_").isalpha()
        if secret_values.is_scrambled(said) or (len(said) >= 8 and is_drawn):
            grade = "sure"
        elif len(said) >= 7 and (
            digits >= 2 or _SYMBOL.search(said) is not None or secret_values.is_unlike_words(said)
        ):
            grade = "likely"
        elif len(said) >= 8:
            grade = "weak"
    return None if grade is None else _Value(start, start + len(said), said, grade)


def _is_told(text: str, value: _Value, cues: "_Cues") -> bool:
    """Whether what stands around a value says that it is a password or a code."""
    start, end = value.start, value.end
    begin = max(0, start - _BEHIND)
    line = text.rfind("\n", begin, start) + 1 or begin
    till = text.find("\n", end, end + _BEFORE)
    till = min(len(text), end + _BEFORE) if till < 0 else till
    before = text[line:start]
    if value.grade == "digits" and (
        not (value.said.endswith("#") or _STOPS.match(text, end)) or _COUNTED.match(text, end) is not None
    ):
        return False
    if _SPEAKS_OF_CODE.search(text, line, till) is not None:
        return False
    if _OF_FIELD.search(before[-24:]) is not None:
        return False
    speaker = _SPEAKER_FIRST.match(before)
    if _OTHER_NOUN.search(before[speaker.end() if speaker else 0 :][-28:]) is not None:
        return False
    near = cues.between(line, start)
    link = _LINK.search(before[-16:])
    if value.grade == "digits":
        is_one = _is_code(text, value, near, before, is_linked=link is not None and "(" not in link[0])
    else:
        is_one = _is_password(text, value, near, cues.between(end, till), before, is_linked=link is not None)
    return is_one or (line > begin and _is_answer(text, value, cues, line, before))


class _Cue(msgspec.Struct, frozen=True):
    """A word near which a value is looked for."""

    at: int
    is_password: bool
    is_lock: bool
    opens: bool  # it speaks of opening or of a service


class _Cues:
    """The words of a text near which values are looked for. Each is classified once, however many values stand near it."""

    def __init__(self, text: str, places: Sequence[int]) -> None:
        """Classify nothing yet.

        Args:
            text: All of it.
            places: Where such words may begin, in order.
        """
        self._text = text
        self._places = places
        self._known: dict[int, _Cue | None] = {}

    def between(self, start: int, end: int) -> list[_Cue]:
        """Return those that begin in a part of the text, in order."""
        found: list[_Cue] = []
        for at in self._places[bisect_left(self._places, start) : bisect_left(self._places, end)]:
            cue = self._known[at] if at in self._known else self._known.setdefault(at, self._classified(at))
            if cue is not None:
                found.append(cue)
        return found

    def _classified(self, at: int) -> _Cue | None:
        text = self._text
        cue = _Cue(
            at,
            _OF_PASSWORD.match(text, at) is not None,
            _OF_LOCK.match(text, at) is not None and _is_owned(text, at),
            _OF_OPENING.match(text, at) is not None,
        )
        return cue if cue.is_password or cue.is_lock or _OF_ACCESS.match(text, at) is not None else None


_CODE_WORD = re.compile(r"cod(?:e|ice)|código", re.IGNORECASE)


def _is_owned(text: str, at: int) -> bool:
    """Whether a word for a lock or a code is no code of a program, a country or an error."""
    return _CODE_WORD.match(text, at) is None or _OWNED.search(text, max(0, at - 40), at) is not None


def _is_password(
    text: str, value: _Value, cues: Sequence[_Cue], behind: Sequence[_Cue], before: str, *, is_linked: bool
) -> bool:
    if value.grade == "sure" and secret_values.is_generated(value.said, ends_free=True):
        return bool(cues or behind)
    if value.grade == "sure" and secret_values.is_scrambled(value.said):
        return any(cue.is_password for cue in (*cues, *behind))
    if _IS_THEN_CALLED.match(text, value.end) is not None:
        return True
    if _MADE_TO_TRY.search(before) is not None and any(cue.is_password for cue in behind):
        return True
    has_verb = _VERB.search(before[-12:]) is not None or (
        before.rstrip(" \"'`").endswith((":", "：")) and _SYMBOL_OR_BAR.search(value.said) is not None
    )
    if (
        value.grade == "likely"
        and has_verb
        and _FOR_IT.match(text, value.end)
        and any(cue.opens for cue in behind)
    ):
        return True
    return any(_is_password_of(text, value, cue, is_linked=is_linked, has_verb=has_verb) for cue in cues[-6:])


_ADJACENT = re.compile(r"[^\W\d_]{2,14}[\"'`*_]{0,3}[ ]{1,2}[\"'`“(*_]{0,3}")


def _is_password_of(text: str, value: _Value, cue: _Cue, *, is_linked: bool, has_verb: bool) -> bool:
    """Whether a word that stands before a value says that it is a password."""
    between = text[cue.at : value.start]
    if not (
        cue.is_password
        or value.grade == "sure"
        or (cue.opens and has_verb and _WORD_THEN_NUMBER.search(value.said))
    ):
        return False
    if value.grade == "weak" and not (has_verb and len(between) <= _SHORT_CLAUSE):
        return False
    if _PASS_ALONE.match(between) is not None and len(between) > _NEAR_PASS:
        return False
    if _ADJACENT.fullmatch(between.lstrip()) is not None:
        return True
    if not is_linked or (
        _COMMA.search(between) and not (len(between) <= _SHORT_CLAUSE and _STOPS.match(text, value.end))
    ):
        return False
    return _SENTENCE_END.search(between) is None or _TELLS_ANEW.search(between) is not None


# "The password of the laptop hunter22", in any language: a preposition, and what it is of.
_OF_SOMETHING = re.compile(
    r"[^\W\d_]{2,14}[ ](?:for|of|to|on|für|vom|von|de|du|del|do|da|voor|van|na|к|от|на|для)[ ](?:(?:the|my|our|la|le|el|l['’])[ ]?)?(?!the|my|our|a|user|account)[^\W\d_]{3,16}[ ]{1,2}[\"'`“]?",
    re.IGNORECASE,
)
_SHORT_CLAUSE = 40  # signs of a clause that tells a value behind a comma
_MEANS_CODE = re.compile("code|kod|код|رمز|cód|pin|combo|combination|密码|密碼|비밀번호|番号", re.IGNORECASE)
_WORDS_BETWEEN = re.compile(r"[^0-9.,;:!?()\n_=]{1,34}")


def _is_code(text: str, value: _Value, cues: Sequence[_Cue], before: str, *, is_linked: bool) -> bool:
    says_code = _MEANS_CODE.search(before) is not None
    return any(_is_code_of(text, value, cue, says_code=says_code, is_linked=is_linked) for cue in cues[-6:])


def _is_code_of(text: str, value: _Value, cue: _Cue, *, says_code: bool, is_linked: bool) -> bool:
    """Whether a word that stands before a number says that it opens something."""
    between = text[cue.at : value.start].lstrip()
    if len(between) > 60 or re.search("[0-9]{2}", between) or "_" in between or _SENTENCE_END.search(between):
        return False
    plain = value.said.rstrip("#")
    if _OF_ERRORS.search(between) or (not is_linked and _YEAR.fullmatch(plain)):
        return False
    if not cue.is_lock:
        # A number behind what is said of a password is one of six to eight digits.
        return (
            cue.is_password
            and is_linked
            and "=" not in between
            and plain.isdecimal()
            and 6 <= len(plain) <= 8
        )
    if len(plain) < 4 and "lock" not in between[:8].lower():
        return False
    is_time = between[:5].lower() == "alarm" and _ALARM_TIME.fullmatch(plain) is not None
    if is_time and not says_code and "off" not in between:
        return False
    is_near = _ADJACENT.fullmatch(between) is not None or between.isalpha()
    return (
        is_linked
        or is_near
        or value.said.endswith("#")
        or (says_code and _WORDS_BETWEEN.fullmatch(between) is not None)
    )


def _is_answer(text: str, value: _Value, cues: _Cues, line: int, before: str) -> bool:
    """Whether a value is what a line begins to answer, where the one before asks for it."""
    if _TELLS_ANSWER.fullmatch(before) is None:
        return False
    begin = text.rfind("\n", max(0, line - 1 - _BEHIND), line - 1) + 1 or max(0, line - 1 - _BEHIND)
    asked = text[begin : line - 1]
    if _ASKS.search(asked) is None:
        return False
    earlier = text.rfind("\n", max(0, begin - 1 - _BEHIND), max(0, begin - 1)) + 1
    near = cues.between(begin, line)
    if not near and value.grade == "sure":
        near = cues.between(earlier, begin)
    if not near:
        return False
    if value.grade == "digits":
        return (
            _BEGINS_ANSWER.fullmatch(before) is not None
            and _STOPS.match(text, value.end) is not None
            and 4 <= len(value.said) <= 8
        )
    return _BEGINS_ANSWER.fullmatch(before) is not None or (
        _LINK.search(before) is not None and _TELLS_ANSWER.fullmatch(before) is not None
    )


RULES = (
    Rule("password-near", "password", CUES, walk=_near(codes=False)),
    Rule("code-near", "code", (*_PASSWORDS, *_LOCKS), walk=_near(codes=True)),
)
"""What is near any of these words is read once for all of them."""
