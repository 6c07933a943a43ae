"""Finds secrets in sentences in other languages than English: "密码是 ...", "la contraseña es ...". Chinese has patterns of its own."""

import re
import string

from memd.redact.rule import DIGIT, LEAD_IN, Find, Nearby, Rule, Span, in_lower_case, stem
from memd.redact.values import randomness, secret_candidates, secret_values
from memd.redact.values.code_numbers import means_other_pin
from memd.redact.values.secret_values import Strength
from memd.redact.words.secret_words import SECRET_WORDS, CodeWord, either

# Brackets after the word may say what it is for: 密码（测试环境）：
_ABOUT = r"(?:[ ]?[4-8四六八]位(?:数字?)?)?(?:[ ]?[(（【\[][^()（）【】\[\]\n]{1,24}[)）】\]])?"
_NOW = r"(?:(?:我|你|他|她|它|我们|咱|已经|已|就|都|也|刚|刚刚|现在|目前|还|还是|還是|還|先|暂时|后来|今天|昨天|一直|帮你|给你|统一|默认|分别|的话|这里|那边|應該|应该|可能|大概|好像)){0,4}"
_SET = r"(?:从[!-~]{1,80}?)?(?:(?:修|更)?改(?:成|为|到|咗做|咗|做)?|设(?:置|定)?(?:成|为)?|設(?:置|定)?(?:成|為)?|[换換]成?|更新(?:成|为)?|重置(?:成|为)?|配(?:置)?(?:成|为)?|变成|用的?|填|输入|写|发(?:给)?你|给你|告诉你|在这里|在这儿|在此|如下|见下)了?(?:的是|的|是)?"
_EQUALS = rf"(?:(?:改|换|更新|重置)了?[，,]?(?:现在|新的|目前)(?:是|为)[:：]?[ ]?|[ \u3000]?(?:{_NOW}(?:是|为|係|叫|即|等于|就是)|{_NOW}{_SET}|[:：=＝]|=>|->|→|——|\|)[ \t\u3000]{{0,4}}(?:[:：=＝][ \u3000]?)?|[，,][ ]?|[ \u3000]{{1,3}})"
_CHINESE = re.compile(
    rf"[*_`]{{0,3}}{_ABOUT}[*_]{{0,3}}(?P<sep>{_EQUALS})?[*_]{{0,3}}[ \t]{{0,4}}", re.VERBOSE
)
_CHINESE_QUOTE = re.compile(r"""[\\"'`“]{0,8}(?=\s?[:：=＝])""")
_OF_CODES = ("验证码", "驗證碼", "校验码", "动态码")
_CHINESE_WORDS: tuple[tuple[str, str, tuple[str, ...], Strength], ...] = (
    (
        "password-chinese",
        "password",
        (
            "密码",
            "密碼",
            "口令",
            "密 码",
            "密　码",
            "暗号",
            "提取码",
            "提取碼",
            "访问码",
            *SECRET_WORDS.plain.misspelled,
        ),
        "password",
    ),
    ("key-chinese", "api-key", ("密钥", "秘钥", "密鑰", "金鑰", "私钥", "私鑰"), "token"),
    (
        "token-chinese",
        "token",
        ("令牌", "权杖", "權杖", "凭证", "凭据", "授权码", "激活码", "签名校验", "加签"),
        "token",
    ),
    ("plain-chinese", "password", ("明文",), "token"),
    ("code-chinese", "code", _OF_CODES, "password"),
)
_PARTED_CODE = re.compile(
    rf"(?:{either(_OF_CODES)})[ ]?[:：是为]?[ ]?(?P<secret>[0-9]{{3}}[ -][0-9]{{3}})(?![\w-]|[ ][0-9])"
)


def _parted(text: str, at: int) -> Span | None:
    """Return a code of two groups of digits."""
    match = _PARTED_CODE.match(text, at)
    return None if match is None else match.span("secret")


_CODE_VALUE = re.compile(r"[A-Za-z0-9]{4,8}", re.ASCII)


def _behind_anchor(text: str, at: int, anchors: tuple[str, ...]) -> int:
    """Return where the first of the anchors that is at a place, in any case, ends."""
    written = in_lower_case(text[at : at + max(map(len, anchors))])
    return at + next((len(anchor) for anchor in anchors if written.startswith(anchor)), 0)


def _chinese(anchors: tuple[str, ...], strength: Strength, *, is_code: bool) -> Find:
    def find(text: str, at: int) -> Span | None:
        end = _behind_anchor(text, at, anchors)
        was = _FROM.match(text, end)
        if was is not None and (
            secret_values.is_strong(was["secret"])
            or (secret_values.has_symbol(was["secret"]) and not secret_values.is_reference(was["secret"]))
        ):
            return was.span("secret")
        closing = _CHINESE_QUOTE.match(text, end)
        head = _CHINESE.match(text, end if closing is None else closing.end())
        if head is None:
            return None
        if strength == "password" and text[max(0, at - 3) : at].endswith(_OF_BOTH):
            pair = _PAIR.match(text, head.end())
            if pair is not None and (pair["by"] or secret_values.is_strong(pair["secret"])):
                return (
                    None
                    if secret_values.is_reference(pair["secret"])
                    else _bare_end(text, pair.start("secret"))
                )
        value = secret_values.value_at(text, head.end())
        if value is None:
            return _elsewhere(text, end, head.end())
        sep = (head["sep"] or "").strip()
        if sep in {"，", ","} and not (secret_values.is_strong(value.text) and has_both_cases(value.text)):
            return None
        is_named = (text[at - 1 : at] == "的" and _WITH_AT.fullmatch(value.text) is not None) or _is_joined(
            text, head.end()
        )
        if not sep and not is_named and not _is_bound(value, text[head.end() - 1 : head.end()].isspace()):
            return None
        if is_code and _CODE_VALUE.fullmatch(value.text) is None:
            return None
        return _judged(value, strength, sep)

    return find


def _judged(value: secret_values.SecretValue, strength: Strength, sep: str) -> Span | None:
    """Return the span of a value behind a Chinese label and a separator if it is a secret."""
    if strength != "password" and sep and value.quoted and _IN_TWO_SCRIPTS.fullmatch(value.text):
        is_one = _OF_KINDS_OF_KEYS.search(value.text) is None
    else:
        spoken = sep not in {"=", "＝"} and not value.quoted
        is_one = secret_values.is_secret(value, strength, shouts=False, spoken=spoken, english=False)
    return (value.start, value.end) if is_one else None


# "...的密码 admin@laowang": two words with a sign between.
_WITH_AT = re.compile("[A-Za-z]{3,16}[@_][A-Za-z]{3,16}")
# "口令 ops+Lanzhou，": two words, a sign between them, and the end of the clause.
_JOINED_AT_END = re.compile(
    r"(?<=[ ])(?P<first>[A-Za-z]{3,16})[@+#!~$*^](?P<second>[A-Za-z]{3,16})(?=[ ]?(?:[，。；;、）)](?!\w)|[，。；、]|[ \t]{0,4}(?:\n|\Z)))"
)
# A key that somebody made up: "小满2018满月酒Nas".
_IN_TWO_SCRIPTS = re.compile(
    r"(?=[^\n]{0,22}[A-Za-z]{2})(?=[^\n]{0,22}[0-9]{2})(?=[^\n]{0,22}[一-鿿]{2})[一-鿿A-Za-z0-9_@#!.-]{6,24}"
)
_OF_KINDS_OF_KEYS = re.compile(
    "密码|口令|密钥|令牌|公钥|私钥|证书|签名|加密|环境|版|算法|提供|生成|申请|账号|帐号|后台|页面|请|输入|填|的|云|平台|KMS|RSA|AES|SM[234]|HMAC|SHA"
)
# "账号密码：admin / hunter2": the second value is the password.
_OF_BOTH = ("账号", "帐号", "账户", "賬號", "帳號", "号/", "号和", "户名", "户名/", "名/", "号、")
_PAIR = re.compile(
    r"[A-Za-z0-9_.@-]{2,40}(?:[ ]?(?P<by>[/|｜，,])[ ]?|(?P<by_blank>[ ]{1,3}))(?=[!-~]{4})(?P<secret>[!-~]{4,64})",
    re.ASCII,
)
_FROM = re.compile(r"从[ ]?[\"“「`]?(?P<secret>[!-~]{4,64}?)[\"”」`]?[ ]?(?=改|换|变|更|修)")
_BRACKETED = re.compile(r"[ ]?[(（【\[](?P<secret>[!-~]{5,64})[)）】\]]")
_NEXT_LINE = re.compile(
    r"[ \t]{0,4}\n(?:[ \t]{0,8}\n)?(?:[ \t>]{0,8}```[a-z]{0,10}\n)?[ \t>]{0,8}[`「“\"]?(?P<secret>[!-~]{6,128}?)[`」”\"]?[ \t]{0,4}(?=\n|\Z)"
)
_HAN_AND_DIGITS = re.compile(
    r"[ ]?[\"“「『]?(?P<secret>[一-鿿]{2,10}[0-9]{3,8})(?=[\s，。,.!！；;”」』\"]|\Z)"
)
_SAYS = re.compile(r"[:：=＝是为]")


def has_both_cases(text: str) -> bool:
    """Return whether a text has letters of both cases."""
    return any(map(str.isupper, text)) and any(map(str.islower, text))


def _bare_end(text: str, start: int) -> Span | None:
    value = secret_values.value_at(text, start)
    return None if value is None else (value.start, value.end)


def _elsewhere(text: str, end: int, after: int) -> Span | None:
    """Return a value that is in brackets, on the next line, before a change, or of Chinese characters with digits."""
    for pattern, at in ((_BRACKETED, end), (_FROM, end), (_NEXT_LINE, after)):
        match = pattern.match(text, at)
        if (
            match is not None
            and secret_values.is_strong(match["secret"])
            and not (pattern is _BRACKETED and _TICKET.fullmatch(match["secret"]))
            and not (pattern is _NEXT_LINE and secret_values.is_statement(match["secret"]))
        ):
            return match.span("secret")
    match = _HAN_AND_DIGITS.match(text, after) if _SAYS.search(text, end, after) else None
    if match is None or secret_values.is_about_passwords(match["secret"]):
        return None
    return match.span("secret")


# Two names or abbreviations are what is used together: "SMS+Email".
_ONE_IS_NAME = re.compile("[a-z]+[^A-Za-z][A-Z][a-z]+|[A-Z][a-z]+[^A-Za-z][a-z]+")


def _is_joined(text: str, at: int) -> bool:
    """Return whether two words that are joined by a sign stand at a place, one of them a name and none a word for what is joined."""
    match = _JOINED_AT_END.match(text, at)
    if match is None or not _ONE_IS_NAME.fullmatch(match[0]):
        return False
    words = {match["first"].lower(), match["second"].lower()}
    return words.isdisjoint(secret_values.HARMLESS_WORDS) and words.isdisjoint(SECRET_WORDS.context.others)


_ASKED = re.compile(
    r"(?:密码|密碼|口令)(?![^?？\n]{0,20}(?:长度|规则|重置|管理))[^?？\n]{0,20}[?？][ \t]{0,4}\n[ \t>]{0,8}(?:[\w.-]{1,16}[:：][ ]?)?"
    + LEAD_IN
    + r"[`「“\"]?(?P<secret>[!-~]{5,64}?)[`」”\"]?[。]?[ \t]{0,4}(?=\n|\Z)",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"(?:密码|口令)短语[ ]?(?:[:：]|是|为)[ ]?[\"“]?(?P<secret>[a-z]{3,10}(?:[ -][a-z]{3,10}){2,9})(?![A-Za-z-])",
    re.IGNORECASE,
)
_FOUR_BY_FOUR = re.compile(
    r"(?:密码|密碼|口令|授权码)[^\n]{0,30}?(?<![A-Za-z-])(?P<secret>[a-z]{4}(?:[ -][a-z]{4}){3})(?![A-Za-z-])"
)


_OF_DOOR = re.compile(r"(?:密码|密碼|口令)[ ：:是为]{0,3}(?P<secret>[0-9]{4,8}#)")


def _in_place(text: str, at: int) -> Span | None:
    """Return a password in answer to a question, as words, or as four groups of four letters."""
    asked = _ASKED.match(text, at)
    if asked is not None and secret_values.is_strong(asked["secret"]):
        return asked.span("secret")
    phrase = _PHRASE.match(text, at)
    if phrase is not None:
        return phrase.span("secret")
    door = _OF_DOOR.match(text, at)
    if door is not None:
        return door.span("secret")
    letters = _FOUR_BY_FOUR.match(text, at)
    if letters is None or not randomness.is_jumble(letters["secret"].replace(" ", "").replace("-", "")):
        return None
    return letters.span("secret")


_BEFORE_IT = re.compile(
    r"(?P<secret>[!-~]{5,64})[\"”」`]?[ ]?(?:(?:就|才)?是(?:我|你|他|她|我们|新|旧)?的?|作为|当作?|做|[，,]?[ ]?(?:这个|这一|这是|那是))\Z"
)

_ENDS_BEFORE_IT = frozenset("是我你他她们新旧的为作当做个一")  # the last characters of such a phrase
_VISIBLE = string.ascii_letters + string.digits + string.punctuation


# Letters without a meaning, right behind the label or behind what its clause says of it.
_LETTERS = re.compile(
    r"(?:密码|密碼|口令)(?:[一-鿿]{0,12}[ ]?[,，:：][ ]?|[一-鿿]{0,3}[ ]{1,2})(?P<secret>[a-z]{8,32})(?![\w.@/=(-])",
    re.ASCII,
)


def _letters(text: str, at: int) -> Span | None:
    match = _LETTERS.match(text, at)
    is_one = match is not None and randomness.is_unlike_words(match["secret"], most=_OF_LETTERS)
    return match.span("secret") if match is not None and is_one else None


_OF_LETTERS = 0.55  # the most that usual pairs of letters may be of them


def _said_before(text: str, at: int) -> Span | None:
    """Return a word that the following words call a password."""
    if text[at - 1 : at] not in _ENDS_BEFORE_IT:
        return None
    # Only the last word before the phrase can be meant, so nothing else is tried.
    left, place = max(0, at - 80), at
    while place > left and not "!" <= text[place - 1] <= "~":
        place -= 1
    if place == left:
        return None
    left = place - len(stem(text, place, place - left, _VISIBLE))
    match = _BEFORE_IT.search(text[left:at])
    if match is None or not secret_values.is_strong(match["secret"].strip("\"'`*,;:()")):
        return None
    return left + match.start("secret"), left + match.end("secret")


# The four characters of a shared folder's code, directly after its label.
_OF_SHARE = re.compile(
    r"(?:提取|访问|訪問)[码碼][ ]?[:：]?[ ]?(?P<secret>[A-Za-z0-9]{4})(?![A-Za-z0-9])", re.ASCII
)
# The same, however its label is written, with letters and digits.
_SHARED_SO = re.compile(
    rf"(?:{either(SECRET_WORDS.plain.share_codes)})[ ]?(?:[:：是为]|\n)?[ ]?(?P<secret>(?![0-9]{{3}}[pk]|h26[45])(?=[a-z]{{0,3}}[0-9])(?=[0-9]{{0,3}}[a-z])[a-z0-9]{{4}})(?![A-Za-z0-9_.-])",
    re.ASCII | re.IGNORECASE,
)


# A link to a shared folder, and its password of four characters.
_BESIDE_SHARE = re.compile(
    r"密[码碼][ ]?[:：]?[ ]?(?P<secret>(?=[A-Za-z]{0,3}[0-9])[A-Za-z0-9]{4})(?![A-Za-z0-9])", re.ASCII
)
_SHARES = re.compile(r"链接|連結|网盘|分享|://")
_CHARS_OF_LINK = 100


def _of_share(text: str, at: int) -> Span | None:
    match = _OF_SHARE.match(text, at) or _SHARED_SO.match(text, at)
    if match is None and _SHARES.search(text, max(0, at - _CHARS_OF_LINK), at) is not None:
        match = _BESIDE_SHARE.match(text, at)
    return None if match is None else match.span("secret")


# The answer to a security question.
_CHINESE_ANSWER = re.compile(
    r"密保(?:问题|答案)?[^\n。；]{0,30}?(?:——|(?:答案(?:我|当时)?(?:填的|写的|设的|填|写)?|填的)(?:是|：|:)?)[ ]?[「“\"]?(?P<secret>[一-鿿A-Za-z0-9]{2,12})(?=[」”\"，。；、\s]|\Z)"
)
_NO_ANSWER = re.compile("[密存填加忘不没写谁]|什么|自己|随便|乱|假|问题|答案")


def _answered(text: str, at: int) -> Span | None:
    match = _CHINESE_ANSWER.match(text, at)
    return None if match is None or _NO_ANSWER.search(match["secret"]) else match.span("secret")


# The ending of the word, what it is for, and what announces its value: punctuation, a verb, or a particle.
_ENDING = r"\w{0,4}?[\"'`*_)]{0,3}"
_OF_IT = r"(?:[ ][^\W\d_][\w.'’-]{0,20}){0,6}?(?:[ ]\([^()\n]{1,40}\))?"
_COMES = (
    r"(?:[ \u3000]{0,2}[:：=＝][*_]{0,2}[ \u3000]{0,4}"
    r"|[ ](?:ist|lautet|es|sigue[ ]siendo|est|est[ ]toujours|c['’]est|è|è[ ]ancora|é|is|to|jest|это|là|هي|هو|है|är|er|je|on|este|είναι|adalah|คือ)[ ]{1,2}"
    r"|[ ]?(?:는|은|이|가|は|が)[ ]?|(?<=[^\x00-\x7f])[ ]?(?=[「\[【（(])|[ ](?:[-–—]|->|=>|→)[ ])"
)
_BEGINS_TO_COME = r"[ \u3000:：=＝는은이가はが「\[【（(]"
_OPEN = r"(?P<open>[\"'`“„«「\[【（(]{0,3})"
_CLOSE = r"(?=[\"'`”“»」)\]】]|[^\x00-\u024f]|[,;]|[.!?]?(?:\s|\Z))"


# A question for it, and a line below with the answer alone.
_ANSWERED = rf"[^\n?？]{{0,80}}[?？؟][ \t\"'”»]{{0,4}}\n[ \t>]{{0,8}}(?:[\w.-]{{1,20}}[ ]?[:：][ ]?)?{LEAD_IN}[\"'`“「«]?(?P<secret>[!-~]{{5,64}}?)[\"'`”」»]?[.。]?[ \t]{{0,4}}(?=\n|\Z)"


def _anchors_of(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels that contain no other label."""
    return tuple(label for label in labels if not any(other in label for other in labels if other != label))


def _behind_label(labels: tuple[str, ...], value: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?:{either(labels)}){_ENDING}(?:(?<=:)[ ]{{0,4}}|{_OF_IT}(?={_BEGINS_TO_COME}){_COMES}|(?P<bare>(?:[ ][^\W\d_][\w.'’-]{{0,20}}){{0,3}}?[ ]{{1,2}}))"
        # Without a sign between, the first word that no sentence has is meant.
        rf"{_OPEN}(?(bare)(?=[^\s]{{0,63}}[0-9!@#$%^&*+=?~_]))(?P<secret>{value}){_CLOSE}",
        re.IGNORECASE,
    )


def _abroad(labels: tuple[str, ...], *, strict: bool = False) -> Find:
    """Return a Find for passwords after labels of one language.

    Args:
        labels: The words for passwords.
        strict: Whether the words are ambiguous: values must be strong then.
    """
    pattern = _behind_label(labels, "[!-~À-ɏ]{4,64}?")
    asked = re.compile(rf"(?:{either(labels)}){_ANSWERED}", re.IGNORECASE)

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        if match is None and text.find("\n", at, at + 120) >= 0:
            answer = asked.match(text, at)
            return None if answer is None else secret_values.strong_span(text, *answer.span("secret"))
        if match is None or _is_none(match["secret"], match["open"]):
            return None
        said = match["secret"]
        # "Passwort ändern -> Menü3" is the way through a program.
        if text.endswith(_ARROWS, at, match.start("open")) and _SIGN.search(said) is None:
            return None
        if strict or match["bare"] is not None:
            return (
                match.span("secret") if _is_bare(said, (match["bare"] or "").strip(), strict=strict) else None
            )
        if secret_values.is_strong(said) or (said.isdecimal() and len(said) >= 6):
            return match.span("secret")
        return match.span("secret") if match["open"] and any(map(str.isdigit, said)) else None

    return find


def _is_none(said: str, opened: str) -> bool:
    """Return whether what follows a label is a ticket in brackets, or a word, a type or an expression that is no password."""
    return (
        secret_values.is_something_else(said, quoted=bool(opened), shouts=False)
        or secret_values.is_reference(said)
        or said.lower() in secret_values.HARMLESS_WORDS
        or (not _BRACKETS.isdisjoint(opened) and _TICKET.fullmatch(said) is not None)
    )


_ARROWS = ("-> ", "=> ", "→ ")
_BRACKETS = frozenset("[【(（")
_TICKET = re.compile(r"[A-Z]{2,12}-[0-9]{1,6}")
_OF_PASSWORD = Nearby(DIGIT, 0, 330)  # the longest distance from a label to its value


def _is_made_up(text: str) -> bool:
    """Return whether a text is no word and no name: it has letters of both cases and digits, or a symbol."""
    return secret_values.is_strong(text) and (has_both_cases(text) or _SIGN.search(text) is not None)


# "das alte Passwort war Wald7, das neue ist jetzt Wiese8": the old one and the new one.
_OLD_AND_NEW = re.compile(
    rf"(?:{either(SECRET_WORDS.passwords)}|password){_ENDING}{_OF_IT}[ ](?:war|lautete|était|era|foi|was|var|byl[oa]?|było|был|была|oli)[ ]{_OPEN}(?P<old>[!-~À-ɏ]{{5,64}}?)[\"'`”»]?[,;.][ ]"
    r"(?:(?:und|et|y|e|en|och|og|a|i|и|ja)[ ])?(?:das|le|la|el|il|a|o|het|de|det|den)?[ ]?(?:neue|nouveau|nouvelle|nueva|nuevo|nuova|nuovo|nova|novo|nieuwe|nye|nya|nowe|nové|новый|uusi)[ ]?(?:ist|lautet|est|es|è|é|is|är|er|to|je|on|:|[–-])?[ ]"
    r"(?:(?:jetzt|nun|maintenant|ahora|ora|adesso|agora|nu|teraz|teď|теперь|nyt)[ ])?[\"'`“„«]?(?P<new>[!-~À-ɏ]{5,64}?)[\"'`”»]?(?=[.,;!]{0,2}(?:\s|\Z))",
    re.IGNORECASE,
)


def _old_and_new(text: str, at: int) -> Span | None:
    """Return the span from an old password to the new one."""
    match = _OLD_AND_NEW.match(text, at)
    is_one = match is not None and all(map(secret_values.is_strong, (match["old"], match["new"])))
    return (match.start("old"), match.end("new")) if match is not None and is_one else None


# One noun, maybe behind a preposition: what the password is for.
_NOUN = re.compile(
    rf"(?:(?:{either(SECRET_WORDS.plain.of)})[ ])?(?!(?:{either(SECRET_WORDS.plain.of)})\Z)[^\W\d_][\w.'’-]{{2,20}}",
    re.IGNORECASE,
)


def _is_bare(said: str, between: str, *, strict: bool) -> bool:
    """Return whether a value is a password without a sign before it: right behind its label, or behind a noun and certainly none."""
    if not between:
        return _is_made_up(said) or (not strict and _is_typed(said))
    return (
        not strict
        and _NOUN.fullmatch(between) is not None
        and between.lower().rpartition(" ")[2] not in SECRET_WORDS.plain.function_words
        and has_both_cases(said)
        and _is_typed(said)
        and "%" not in said
    )


def _is_typed(text: str) -> bool:
    """Return whether a word directly behind a label is as people make passwords, and no name with a number."""
    found = secret_candidates.password(text, 0)
    return found is not None and found.grade != "weak" and found.said == text


_SIGN = re.compile(r"[!@#$%^&*+=?~_-]")


_CODE_BEHIND = re.compile(
    rf"{_ENDING}(?:{_OF_IT}{_COMES}|[ ]|(?<=:)[ ]{{0,4}})?{_OPEN}"
    r"(?P<secret>[0-9]{4}[ ][0-9]{4}(?![ ]?[0-9])|(?:[A-Z]-)?[0-9]{4,8}|[0-9]{3,4}[ -][0-9]{3,4}|[0-9](?:-[0-9]){3,5}|(?=[0-9]{0,8}[A-Z])[0-9A-Z]{4,8}(?<=[0-9A-Z][0-9]))(?![A-Za-z0-9_%]|[.,:/-][0-9])",
)


_NO_CODE = re.compile(either(SECRET_WORDS.context.no_codes), re.IGNORECASE)


def _code_abroad(label: CodeWord) -> Find:
    """Return a Find for codes after a label."""
    before = re.compile(rf"(?:{label.before})\Z", re.IGNORECASE) if label.before else None
    after = None if label.after is None else re.compile(label.after, re.IGNORECASE)
    size = len(label.anchor)
    starts_word = label.anchor.isascii() and before is None

    def find(text: str, at: int) -> Span | None:
        # In base64, a match would follow a slash or a plus, and continue.
        if starts_word and (
            text[at - 1 : at].isalnum()
            or (text[at - 1 : at] in {"/", "+"} and text[at + size : at + size + 1].isalnum())
        ):
            return None
        behind = None if after is None else after.match(text, at + size)
        is_meant = before is not None and before.search(text[max(0, at - 32) : at]) is not None
        if not is_meant and (behind is None or (before is not None and not behind[0])):
            return None
        match = _CODE_BEHIND.match(text, at + size if behind is None else behind.end())
        is_one = match is not None and _NO_CODE.search(text, at, match.start("secret")) is None
        is_one = is_one and not means_other_pin(text, at)
        return match.span("secret") if match is not None and is_one else None

    return find


def _is_bound(value: secret_values.SecretValue, apart: bool) -> bool:
    """Return whether a value directly after a label, without a separator, certainly belongs to it."""
    if len(value.text) >= 8 and (
        _HYPHENED.fullmatch(value.text) or (secret_values.is_strong(value.text) and not value.text.isalnum())
    ):
        return True
    has_digit = any(map(str.isdigit, value.text))
    return (
        has_digit
        and len(value.text) >= (6 if apart else 5)
        and (value.quoted or not value.text.isdecimal() or len(value.text) >= 6)
    )


_HYPHENED = re.compile(r"[A-Za-z]{2,12}(?:-[A-Za-z]{2,12}){2,6}")


# The same as a key of a file of settings: mot_de_passe.
_JOINED = tuple(label.replace(" ", "_") for label in SECRET_WORDS.passwords if " " in label)

RULES = (
    *(
        Rule(name, kind, anchors, _chinese(anchors, strength, is_code=kind == "code"))
        for name, kind, anchors, strength in _CHINESE_WORDS
    ),
    Rule(
        "password-chinese-before",
        "password",
        _CHINESE_WORDS[0][2],
        _said_before,
        needs=Nearby(DIGIT, 80, 0),
    ),
    Rule(
        "password-chinese-letters",
        "password",
        ("密码", "密碼", "口令"),
        _letters,
        needs=Nearby(re.compile(r"[a-z]{8}"), 0, 20, 8),
    ),
    Rule("password-chinese-in-place", "password", ("密码", "密碼", "口令", "授权码"), _in_place),
    Rule("code-chinese-parted", "code", _OF_CODES, _parted),
    Rule("answer-chinese", "password", ("密保",), _answered),
    Rule("code-of-share", "code", ("訪問碼", "密码", "密碼", *SECRET_WORDS.plain.share_codes), _of_share),
    Rule(
        "password-abroad-replaced",
        "password",
        _anchors_of(SECRET_WORDS.passwords),
        _old_and_new,
        needs=Nearby(DIGIT, 0, 200),
    ),
    Rule(
        "password-abroad",
        "password",
        _anchors_of((*SECRET_WORDS.passwords, *_JOINED)),
        _abroad((*SECRET_WORDS.passwords, *_JOINED)),
        needs=_OF_PASSWORD,
    ),
    Rule(
        "password-abroad-ambiguous",
        "password",
        _anchors_of(SECRET_WORDS.ambiguous_passwords),
        _abroad(SECRET_WORDS.ambiguous_passwords, strict=True),
        needs=_OF_PASSWORD,
    ),
    *(
        # Most occurrences are not followed by a code.
        Rule(
            f"code-abroad-{number}",
            "code",
            (label.anchor,),
            _code_abroad(label),
            needs=Nearby(DIGIT, 0, len(label.anchor) + 60),
        )
        for number, label in enumerate(SECRET_WORDS.codes)
    ),
)
"""What is said of passwords, tokens and keys, in other languages than English."""
