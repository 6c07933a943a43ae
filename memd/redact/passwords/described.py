"""Finds passwords and codes behind what they are made of, how they are spelled, or a question for them: "dell backwards, so lledlled"."""

import re

from memd.redact.passwords import plain_words
from memd.redact.passwords.beside_a_remark import grade_of
from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_start
from memd.redact.values import secret_candidates, secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.described
_CHARS_OF_LINE = 120  # characters before what is said of it, in which a word for what it opens stands
_OPENED = re.compile(
    rf"(?<![^\W\d_])(?:{either(_WORDS.opened)})[^\n.;!?]{{0,60}}?(?:[ ](?:is|was|ist|war|est|es|è|é|to|to[ ]jest|jest|это)[ ]|c['’]est[ ]|['’]s[ ]|[:=][ ]|(?<=şifresi)[ ])",
    re.IGNORECASE,
)


def _is_told_of_lock(text: str, at: int) -> bool:
    """Return whether something that is opened or logged in to "is" what stands at a place, in the same line."""
    begin = line_start(text, at, _CHARS_OF_LINE)
    return _OPENED.search(text, begin, at) is not None


# --- what it is made of: "grandad's birthday backwards which is 8391", "your middle name and mine joined: RosalindEdgar"

_ENDS = r"(?=[\"'”’»]?(?:[.,;!?)](?!\w)|[ ]?[–—-][ ]|[ ](?:[(]|and|but|then|so|for|don['’]?t|he|she|they|in)\b|[ \t]{0,4}(?:\n|\Z)|[ ][(]))"
_MADE_OF = re.compile(
    rf"(?:{either(_WORDS.made_of)})(?![a-z])(?P<between>[^\n:=]{{0,50}}?)(?P<by>[ ]?[:=][ ]{{1,2}}|[ ]?[–—-][ ]|,?[ ](?:which[ ]is|so|that['’]?s|i\.?e\.?|=|is|also|ist|yani|cioè|donc|o[ ]sea|ou[ ]seja|dus|czyli|то[ ]есть|alltså)[ ](?:now[ ]|it['’]?s[ ])?|,[ ]|[ ](?=[0-9]{{4,8}}(?!\d)))[\"'“‘«]?"
    rf"(?P<secret>[0-9]{{4,8}}|[0-9]{{1,2}}(?:-[0-9]{{1,2}}){{2,3}}|[A-Za-zÀ-ɏЀ-ӿ0-9][^\s\"'“”‘’«»,;:()]{{4,31}}?|(?-i:[A-Z][a-z]{{2,14}})(?:[ ](?-i:[A-Z][a-z]{{2,14}})){{2,5}}){_ENDS}",
    re.IGNORECASE,
)


_HAS_MORE = re.compile("[0-9]|[a-z][A-Z]")


def _made_of(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _MADE_OF.match(text, at)
    if match is None or not _is_told_of_lock(text, at):
        return None
    said = match["secret"]
    if secret_candidates.is_year(said) and match["by"].strip() in {":", "=", ",", "-", "–", "—"}:
        return None
    if said.isdecimal() or " " in said or "-" in said:
        return match.span("secret")
    is_word = (
        (match["by"].strip() in {":", "=", ",", "-", "–", "—"} and _HAS_MORE.search(said) is None)
        or not secret_values.may_be_plain(said)
        or (said.islower() and (secret_values.is_participle(said) or len(said) < 6))
        or said.lower() in _WORDS.no_values
        or secret_values.is_about_passwords(said)
    )
    return None if is_word else match.span("secret")


# --- letter by letter: "s p a t u l a 5 all lowercase no gaps"

_LETTERS = re.compile(
    r"(?<![^\s:\"'“(=])(?P<secret>[A-Za-z0-9!#$%&@_](?:[ -][A-Za-z0-9!#$%&*@_.]){5,30})(?![^\s.,;!?)\"'”])",
    re.ASCII,
)
_LETTER = re.compile("[A-Za-z]")
_THEN_SIGNS = re.compile("[A-Za-z]{5,20}(?!(?:19|20)[0-9]{2})[0-9!#$&@]{1,4}")
_ANY_LABEL = re.compile(rf"(?:{either(plain_words.LABELS)})", re.IGNORECASE)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def _letter_by_letter(text: str, at: int) -> Span | None:
    begin = line_start(text, at, 90)
    end = text.find("\n", at, at + 110)
    for match in _LETTERS.finditer(text, begin, at + 110 if end < 0 else end):
        said = match["secret"].replace(" ", "").replace("-", "")
        # Columns of options, chords and moves are in capitals, or repeat themselves.
        if (
            _ALPHABET.find(said.lower()[:4]) < 0
            and len(_LETTER.findall(said)) >= 5
            and len(set(said.lower())) >= 5
            and not said.isupper()
            and (_THEN_SIGNS.fullmatch(said) or _ANY_LABEL.search(text, begin, match.start()))
        ):
            return match.span("secret")
    return None


# --- how it is spelled, before it: "la password del wifi è tutto attaccato gattonero77"

_SPELLED_FIRST = re.compile(
    rf"(?:{either(SECRET_WORDS.plain.spelling)})(?:[ ](?:again|please|auch|too))?(?:[ ]?[:=,–-])?[ ]{{1,2}}[\"'“«]?(?P<secret>[A-Za-zÀ-ɏЀ-ӿ][^\s\"'“”«»,;:()]{{5,31}}?)(?=[\"'”»]?(?:[.,;!?)](?!\w)|[ \t]{{0,4}}(?:\n|\Z)|[ ][(]))",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    rf"(?:{either((*plain_words.LABELS, *SECRET_WORDS.plain.spelled_labels))})[^\n]{{0,60}}\Z",
    re.IGNORECASE,
)


def _spelled_first(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _SPELLED_FIRST.match(text, at)
    if match is None or not any(map(str.isdigit, match["secret"])):
        return None
    left = line_start(text, at, 80)
    return match.span("secret") if _LABELLED.search(text[left:at]) is not None else None


# --- the line below a question that does not name it: "and to get in?" and "popcornBucket."

_ANSWER = re.compile(
    r"[^\n?]{0,6}\?[\"”]?[ \t]{0,4}\n[ \t>]{0,8}(?:[*_]{0,2}[\w .-]{1,24}[*_]{0,2}[:：][ ])?(?:it['’]?s[ ]|its[ ]|just[ ]|try[ ]|use[ ]|type[ ])?[\"'“`]?(?P<secret>[!-~]{6,64}?)[\"'”`]?[.!]?[ \t]{0,4}(?=\n|\Z)",
    re.IGNORECASE,
)


def _answered(text: str, at: int) -> Span | None:
    match = _ANSWER.match(text, at)
    is_one = match is not None and (
        grade_of(match["secret"]) > 0 or secret_candidates.password_alone(match["secret"], 0) is not None
    )
    return match.span("secret") if match is not None and is_one else None


# --- a remark in brackets between a label and its value: "Kennwort fürs Gäste-WLAN (steht am Kühlschrank): Schneewittchen7"

_REMARKED = re.compile(
    rf"(?:{either((*plain_words.LABELS, 'passphrase'))})[^\n:：=.;!?()]{{0,40}}[(（][^()（）\n]{{1,60}}[)）][ ]?[:：=][ ]{{1,3}}[\"'“«]?(?P<secret>[!-~]{{6,64}}?)(?=[\"'”»]?[.,;!]?(?:\s|\Z))",
    re.IGNORECASE,
)


def _remarked(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _REMARKED.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    return secret_values.strong_span(text, *match.span("secret"))


# --- of which number it is the end: "默认密码是身份证后六位 27041X", "비번은 전화번호 뒤 8자리 48120937"

_LABEL_EAST = r"密码|密碼|口令|パスワード|暗証番号|비밀번호|비번|암호"
_COUNTS = {"四": 4, "五": 5, "六": 6, "七": 7, "八": 8, **{str(count): count for count in range(4, 9)}}
_ENDS_NUMBER = tuple(
    f"{count}{blank}{sign}" for count in _COUNTS for blank in ("", " ") for sign in ("位", "桁", "자리")
)
_END_OF = re.compile(
    r"(?P<count>.)[ ]?(?:位(?:数字?)?|桁|자리)(?:(?!补|補|分机|分機)[^\n0-9A-Za-z，。；,.:：（(]){0,4}[ ]?[（(:：，,「]?[ ]?(?P<secret>(?!(?P<one>[0-9])(?P=one)+(?![0-9]))[0-9]{3,8}[xX]?)(?![0-9A-Za-z年月日位個个])",
)
_NUMBER_BEFORE = re.compile(
    rf"(?:{_LABEL_EAST})[^\n。；;!?！？0-9]{{0,24}}?(?:{either(_WORDS.numbers_east)})[^\n0-9A-Za-z，。；、,.:：]{{0,10}}\Z"
)


def _end_of_number(text: str, at: int) -> Span | None:
    match = _END_OF.match(text, at)
    if match is None or len(match["secret"]) != _COUNTS[match["count"]]:
        return None
    return None if _NUMBER_BEFORE.search(text[max(0, at - 50) : at]) is None else match.span("secret")


# --- put together: "全小写 zhangjie 后面跟两个感叹号，即 zhangjie!!"

_TOGETHER = re.compile(
    rf"(?:{either(_WORDS.then_together)})[ ]?[:：]?[ ]?[“\"「']?(?P<secret>[A-Za-z][^\s(){{}}<>=/\\:\x7f-\U0010ffff]{{4,31}}?)(?=[”\"」']?[ ]?(?:[，。；！、）)]|[,;](?!\w)|[ \t]{{0,4}}(?:\n|\Z)))"
)
_PARTS_EAST = re.compile(rf"(?:{_LABEL_EAST})[^\n]{{0,60}}?(?:{either(_WORDS.parts_east)})[^\n]{{0,40}}\Z")
_SIGN_AT_END = re.compile("[a-zA-Z]{4,20}[!@#?*.~]{1,3}")


def _together(text: str, at: int) -> Span | None:
    match = _TOGETHER.match(text, at)
    left = line_start(text, at, 110)
    if match is None or _PARTS_EAST.search(text[left:at]) is None:
        return None
    said = match["secret"]
    is_one = _SIGN_AT_END.fullmatch(said) or secret_values.is_strong(said)
    if not is_one or secret_values.is_reference(said):
        return None
    # The word before its signs was said first.
    first = text.find(said.rstrip("!@#?*.~"), left, at)
    return match.start("secret") if first < 0 else first, match.end("secret")


# --- behind what it is made of: "비밀번호는 부장님 생일에 이니셜을 붙인 790412HSE 입니다", "密码是老板生日加公司缩写 790412HSE，"

_MADE_EAST = re.compile(
    r"(?:(?:비밀번호|비번|암호|패스워드)(?:는|은)[ ](?P<korean>[^\n.,;:!?A-Za-z0-9]{1,40}[ ])|(?:密码|密碼|口令|パスワード)[ ]?[是为為はは](?P<between>[^\n。，、；,;:：!?！？A-Za-z0-9]{3,40}))"
    r"(?P<secret>[!-~]{6,40}?)[ ]?(?(korean)(?:입니다|이에요|예요|이야|임(?![가-힣])|이고|인데|이며)|(?=です|だ(?![ぁ-ん])|[，。、；)）]|[ \t]{0,4}(?:\n|\Z)))"
)
_OF_OTHERS_EAST = re.compile(either(_WORDS.others_east))
_SAYS_PARTS = re.compile(either(_WORDS.parts_east))


def _made_east(text: str, at: int) -> Span | None:
    match = _MADE_EAST.match(text, at)
    if match is None:
        return None
    is_told = (
        _OF_OTHERS_EAST.search(match["korean"]) is None
        if match["korean"]
        else _SAYS_PARTS.search(match["between"]) is not None
    )
    said = match["secret"].strip("“”\"'()")
    is_one = (
        is_told
        and DIGIT.search(said) is not None
        and re.search("[A-Za-z]", said) is not None
        and not secret_candidates.names_thing(said)
        and not secret_values.names_algorithm(said)
        and not secret_values.is_reference(said)
    )
    start = match.start("secret") + match["secret"].index(said)
    return (start, start + len(said)) if is_one else None


RULES = (
    Rule("password-made-of", "password", _WORDS.made_of, _made_of),
    Rule("password-letter-by-letter", "password", _WORDS.spelled, _letter_by_letter, needs=Nearby(re.compile("[A-Za-z0-9] [A-Za-z0-9] [A-Za-z0-9] [A-Za-z0-9] "), 90, 90, 8)),
    Rule("password-spelled-first", "password", SECRET_WORDS.plain.spelling, _spelled_first, needs=Nearby(re.compile("[0-9]"), 0, 70)),
    Rule("password-asked-for", "password", _WORDS.asks, _answered, needs=Nearby(re.compile(r"\?"), 0, 60)),
    Rule("password-behind-remark", "password", (*plain_words.ANCHORS, "passphrase"), _remarked, needs=Nearby(re.compile("[)）][ ]?[:：=]"), 0, 110, 3)),
    Rule("password-end-of-number", "password", _ENDS_NUMBER, _end_of_number, needs=Nearby(DIGIT, 2, 14)),
    Rule("password-put-together", "password", _WORDS.then_together, _together, needs=Nearby(re.compile("[A-Za-z]"), 0, 10)),
    Rule("password-made-of-east", "password", ("密码", "密碼", "口令", "パスワード", "비밀번호", "비번", "암호", "패스워드"), _made_east, needs=Nearby(DIGIT, 0, 90)),
)  # fmt: skip
"""One rule a way to describe it."""
