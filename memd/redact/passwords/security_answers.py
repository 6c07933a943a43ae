"""Finds answers to security questions, and words that are said at a door or on the telephone, in a dozen languages."""

import re

from memd.redact.rule import Rule, Span, line_end, line_start
from memd.redact.values import secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.answers
_NAME = r"(?-i:[A-ZÀ-ÞА-ЯЁ])[^\W\d_][\w'’-]{1,24}(?:[ ](?-i:[A-ZÀ-ÞА-ЯЁ])[\w'’-]{1,24}){0,2}"
# Behind what is asked for only a colon: "my first pet was Rex" is a memory like any other. A word for the question itself has
# more behind it, what is asked for or a word for the answer, and then a colon or a verb.
_ANSWER = re.compile(
    rf"(?:(?:(?:{either(_WORDS.people)})[^\n:：=?？!.;]{{0,40}}|first[ ]pet)[:：=]"
    rf"|(?:{either(_WORDS.questions)})[^\n:：=?？!.;]{{2,40}}(?:[:：=]|[ ](?:is|was|ist|war|est|es|é|è|это)(?=[ ])))[ \u3000]{{0,3}}"
    rf"[\"“„«「『]?(?P<secret>{_NAME}|[一-鿿々ぁ-ヿ가-힣]{{2,8}})[\"”»」』]?[.。]?[ \t]{{0,4}}(?=\n|\Z)",
    re.IGNORECASE,
)


def _answered(text: str, at: int) -> Span | None:
    match = _ANSWER.match(text, at)
    if match is None:
        return None
    said = match["secret"].lower()
    is_none = (
        not {said, *said.split()}.isdisjoint(secret_values.HARMLESS_WORDS)
        or said.split()[0] in _WORDS.asks
        or said.startswith(_WORDS.asks_joined)
        or secret_values.is_about_passwords(said)
    )
    return None if is_none else match.span("secret")


# A word that somebody says on the telephone or at a door: "my magic word for the phone bank is marmalade", "the duress word, ours is pomelo".

_COMES_ALOUD = rf"(?:(?:[,.;]|[ ][–—-])?[ ](?:{either(_WORDS.then_said)})(?:[ ]:)?[ ]{{1,2}}|[ ]?[:：=][ ]{{0,3}}|[ ](?:is|was|ist|war|lautet|est|es|é|è|to|is|это|är)[ ]{{1,2}}|[是为は]|[ ][–—-][ ]|[ ](?=[\"“„«「]|(?<!\w)['‘]))"
_SAID_ALOUD = re.compile(
    rf"(?:{either(_WORDS.words)})(?:[^\n:：=.;!?\"“„«]{{0,50}}?){_COMES_ALOUD}"
    r"(?:[\"“„«「'‘](?P<quoted>[^\n\"“”„«»「」'‘’:=]{3,40})[\"”“»」'’]"
    r"|(?P<secret>[^\W\d_]{4,24}(?:-[^\W\d_]{2,16}){0,4}|(?-i:[A-ZÀ-ÞА-ЯЁ][^\W\d_]{2,16})(?:[ ](?-i:[A-ZÀ-ÞА-ЯЁ][^\W\d_]{2,16})){1,2}|[一-鿿]{2,8})(?=[,;.，。；、)!(](?!\w)|[ ][(–—-]|[ \t]{0,4}(?:\n|\Z)))",
    re.IGNORECASE,
)


def _said_aloud(text: str, at: int) -> Span | None:
    match = (
        None if text[at - 1 : at].isascii() and text[at - 1 : at].isalnum() else _SAID_ALOUD.match(text, at)
    )
    if match is None:
        return None
    begin, end = _line(text, at, match.end())
    if match[0][:5].lower() == "magic" and _BANK.search(text, begin, end) is None:
        return None
    if _OTHERS_SAID.search(text, begin, end) is not None or (
        _SURELY_SAID.match(text, at) is None
        and _SAID_TO.search(text, begin, match.start("secret" if match["quoted"] is None else "quoted"))
        is None
        and _SAID_TO.search(text, match.end(), end) is None
    ):
        return None
    group = "secret" if match["quoted"] is None else "quoted"
    return match.span(group) if _may_be_said(match[group], quoted=group == "quoted") else None


# These are said to nobody but a company, whatever stands around.
_SURELY_SAID = re.compile(
    r"duress|panic|memorable word[ ]?[:=]|verbal|telephone|phone|pick-?up|collection|spoken|voice|alarm|telefonkenn|telefonpass|kundenkenn|hasło telef|contraseña verbal|mot de passe verbal",
    re.IGNORECASE,
)
_BANK = re.compile("bank|phone|alarm", re.IGNORECASE)  # children say a magic word, too
_SAID_TO = re.compile(rf"(?<![^\W\d_])(?:{either(_WORDS.said_to)})", re.IGNORECASE)
_OTHERS_SAID = re.compile(rf"(?<![^\W\d_])(?:{either(_WORDS.others_said)})", re.IGNORECASE)


def _line(text: str, start: int, end: int) -> Span:
    """Return the span of the line around a span, as far as some characters on either side."""
    return line_start(text, start, 80), line_end(text, end, 80)


def _may_be_said(said: str, *, quoted: bool) -> bool:
    """Return whether words may be an answer: they say nothing of it, and without quotes they are neither a participle nor an adverb."""
    words = said.lower().split()
    return not (
        not words
        or said.lower() in secret_values.HARMLESS_WORDS
        or (not (quoted and len(words) > 2) and words[0] in secret_values.HARMLESS_WORDS)
        or words[0] in _WORDS.no_words
        or words[0] in _WORDS.asks
        or (len(words) == 1 and words[0] in SECRET_WORDS.plain.function_words)
        or (not quoted and len(words) == 1 and said.islower() and secret_values.is_participle(said))
        or secret_values.is_about_passwords(said)
        or secret_values.is_reference(said)
    )


# What a form asks to be remembered: "memorable place = Whitby Harbour", "Favourite teacher? they expect 'Dunstan'".
_CAPITALS = r"(?-i:[A-ZÀ-ÞА-ЯЁ])[\w'’.-]{1,24}(?:[ ](?:(?:of|the|de|la|von|van|di)[ ])?(?-i:[A-ZÀ-ÞА-ЯЁ])[\w'’.-]{0,24}){0,3}"
_REMEMBERED = re.compile(
    rf"(?:(?P<sure>{either(_WORDS.remembered)})|{either(_WORDS.perhaps_remembered)})(?![a-z])(?P<between>[^\n:=.;!]{{0,60}}?)"
    rf"(?:[ ]?(?:[:=]|[?])[ ]{{0,2}}(?:{either(_WORDS.then_said)})?[ ]{{0,2}}|[ ](?:is|was)[ ]{{1,2}}|[ ][–—-][ ]|[, ][ ]?(?:{either(_WORDS.then_said)})[ ]{{1,2}})"
    rf"(?:[\"“'‘](?P<quoted>[^\n\"“”'‘’:=]{{2,40}})[\"”'’]|(?P<secret>{_CAPITALS}|[0-9]{{1,2}}[/.][0-9]{{1,2}}[/.](?:[0-9]{{2}}){{1,2}}))(?![\w:=])",
    re.IGNORECASE,
)
_FOR_LOGIN = re.compile(rf"(?<![a-z])(?:{either(_WORDS.for_login)})", re.IGNORECASE)


_FOR_ACCOUNT = re.compile(r"[ ]for[ ][^\n]{0,24}(?:log-?in|account|bank)(?![a-z])", re.IGNORECASE)
_FOR_LOGIN_ONLY = re.compile(rf"(?<![a-z])(?:{either(_WORDS.for_login_only)})", re.IGNORECASE)
_IS_ANSWER = re.compile(
    r"(?:security|secret|reset|recovery|reminder) answer|answer to|password hint answer", re.IGNORECASE
)


def _remembered(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _REMEMBERED.match(text, at)
    if match is None:
        return None
    group = "secret" if match["quoted"] is None else "quoted"
    is_date = (
        match[group][0].isdecimal() and "date" not in match[0].lower() and "birth" not in match[0].lower()
    )
    if is_date or not _may_be_said(match[group], quoted=group == "quoted"):
        return None
    begin, end = _line(text, at, match.end())
    if _OTHERS_SAID.search(text, begin, end) is not None:
        return None
    login = _FOR_LOGIN if match["sure"] is not None else _FOR_LOGIN_ONLY
    is_one = (
        login.search(text, begin, match.start(group)) is not None
        or login.search(text, match.end(), end) is not None
        or _FOR_ACCOUNT.search(match["between"]) is not None
        or "answer" in text[at : match.start(group)].lower()
        or _IS_ANSWER.match(text, at) is not None
    )
    return match.span(group) if is_one else None


# A bank asks for some letters of a word: "2nd and 5th letter of Thornbury".
_LETTERS_OF = re.compile(
    r"(?:letters?|characters?)[ ](?:of|from)[ ](?:(?:my|our|the)[ ](?:secret[ ]|memorable[ ])?(?:word|name|place)[ ]?,?[ ])?[\"'“‘]?(?P<secret>[A-ZÀ-Þ][\w'’-]{3,24})(?![\w])"
)
_WHICH = re.compile(r"(?:[0-9](?:st|nd|rd|th)|first|second|third|fourth|fifth|last)[ ,]", re.IGNORECASE)


def _letters_of(text: str, at: int) -> Span | None:
    match = _LETTERS_OF.match(text, at)
    left = line_start(text, at, 60)
    is_one = (
        match is not None
        and len(_WHICH.findall(text[left:at])) > 1
        and (_FOR_LOGIN.search(text, left, at) or _FOR_LOGIN.search(text, match.end(), match.end() + 40))
        is not None
        and _may_be_said(match["secret"], quoted=False)
    )
    return match.span("secret") if match is not None and is_one else None


# "I named the cat Mirabelle, so that's what I put for 'first pet' at the bank".
_NAMED = re.compile(
    r"(?:named|called|call|name[ ](?:is|was)|was[ ]called)[ ](?:(?:the|my|our|him|her|it|a)[ ](?:[a-z]{3,12}[ ])?)?(?P<secret>[A-ZÀ-Þ][\w'’-]{2,24})(?=[ ,])[^\n]{0,70}\Z"
)
_PUT_FOR = re.compile(
    r"(?:put|wrote|gave|used|use|typed|chose|picked)[ ](?:(?:that|it|him|her)[ ])?(?:for|as|to|under|at)[ ](?:(?:the|my)[ ])?[\"'“‘]?\Z",
    re.IGNORECASE,
)


def _named_before(text: str, at: int) -> Span | None:
    left = line_start(text, at, 130)
    match = _NAMED.search(text[left:at])
    begin, end = _line(text, at, at + 12)
    is_of_login = _FOR_LOGIN_ONLY.search(text, begin, at + 24) or _FOR_LOGIN_ONLY.search(text, at, end)
    if match is None or is_of_login is None or _PUT_FOR.search(match[0]) is None:
        return None
    return left + match.start("secret"), left + match.end("secret")


# "Sicherheitsfrage: Straße meiner Kindheit, Amselgrund": what is asked for between the label and the answer.
_ASKED_BETWEEN = re.compile(
    rf"(?:{either(_WORDS.questions)})[^\n:：=?？!.;]{{0,40}}[:：=][ ][^\n:：=?？!.;,\"]{{4,50}}(?:[,→]|[ ][–—-])[ ][\"“„«']?(?P<secret>{_NAME})[\"”»']?[.]?[ \t]{{0,4}}(?=\n|\Z)",
    re.IGNORECASE,
)


def _asked_between(text: str, at: int) -> Span | None:
    match = _ASKED_BETWEEN.match(text, at)
    return match.span("secret") if match is not None and _may_be_said(match["secret"], quoted=False) else None


# 秘密の質問「母の旧姓」の答えはいわさき: the question in brackets, and the answer behind a word for it.
_OF_QUESTION = re.compile(
    rf"(?:{either(_WORDS.questions)})[^\n。；;!！]{{0,30}}?(?:(?:答え|回答|答案|답)(?:[はは是为은는]|[：:])[ ]?[「“\"『]?)(?P<secret>[一-鿿々ぁ-ゖァ-ヶー가-힣A-Za-z0-9]{{2,12}}?)(?=[」”\"』]|に(?:して|設定)|で(?:す|した)|だ|입니다|이야|[，。、,.\s]|\Z)"
)


def _of_question(text: str, at: int) -> Span | None:
    match = _OF_QUESTION.match(text, at)
    if (
        match is None
        or match["secret"].startswith(_WORDS.asks_joined)
        or secret_values.is_about_passwords(match["secret"])
    ):
        return None
    return match.span("secret")


# "进群暗号 月半小夜曲 ,答错不放", "合言葉は「そらまめ三粒」": words in these scripts, in quotes, behind a verb, or between blanks.
_EAST = "一-鿿々ぁ-ヿ가-힣"
_PHRASE_EAST = re.compile(
    rf"(?:{either(_WORDS.words_east)})(?:红包|紅包|短语)?(?:[^\n。；;!?！？A-Za-z0-9]{{0,6}}?(?P<tells>[是为為叫即]|[はは는은]|[:：=])[ ]?(?P<open>[「“\"『'‘])?|(?P<quoted>[「“\"『])|(?P<blank>[ ])"
    r"|[」”]?を(?:聞|求め)\w{1,6}(?:たら|れば|と)[ 、]{0,2}(?P<asked>))"
    rf"(?P<secret>[{_EAST}](?:[{_EAST}A-Za-z]|[ ](?=[가-힣])){{1,17}}[0-9]{{0,6}})"
)
_ENDS_PHRASE = re.compile(r"[ ]?(?:[,，。;；!！](?!\w)|[,，。;；!！](?=[一-鿿])|\n|\Z)|[ ](?=[^ -~])")
_ENDS_QUOTED = re.compile(r"[」”\"』'’]")
_ENDS_VERB = re.compile("[」”]?[ ]?(?:に(?:し|設定|変)|と(?:答|言|伝)|라고|으로|로 )")
_STOPS_PHRASE = re.compile(either(_WORDS.phrase_stops))
_LEAST_OF_PHRASE = 3  # characters without quotes


_OF_ACCESS = re.compile(either(_WORDS.phrase_access), re.IGNORECASE)
_ELSEWHERE = re.compile(either(_WORDS.phrase_elsewhere))
_CHARS_OF_ACCESS = 40


def _is_asked_for(text: str, at: int, start: int, end: int) -> bool:
    """Return whether the line around a label and the words behind it says who asks for them, and speaks of no game or story."""
    left, right = line_start(text, at, _CHARS_OF_ACCESS), line_end(text, end, _CHARS_OF_ACCESS)
    parts = ((left, start), (end, right))
    return any(_OF_ACCESS.search(text, *part) for part in parts) and not any(
        _ELSEWHERE.search(text, *part) for part in parts
    )


def _phrase_east(text: str, at: int) -> Span | None:
    """Return the words that are said or typed behind a label for such, in Chinese, Japanese or Korean."""
    match = None if text[at - 1 : at] in {"绕", "繞"} else _PHRASE_EAST.match(text, at)
    if match is None:
        return None
    said, start, end = match["secret"], match.start("secret"), match.end("secret")
    verb = _ENDS_JAPANESE.search(said)
    if verb is not None:
        said, end = said[: verb.start()].rstrip(), start + len(said[: verb.start()].rstrip())
    if not _is_asked_for(text, at, start, end):
        return None
    if match["open"] or match["quoted"]:
        is_closed = _ENDS_QUOTED.match(text, end) is not None and len(said) >= _LEAST_OF_PHRASE
        return (start, end) if is_closed and not secret_values.is_about_passwords(said) else None
    if len(said) < _LEAST_OF_PHRASE or _STOPS_PHRASE.search(said) is not None or " " in said:
        return None
    if said in secret_values.HARMLESS_WORDS or (match["blank"] and text.startswith("암호 ", at)):
        return None
    if verb is not None or _ENDS_VERB.match(text, end) is not None:
        return (start, end)
    is_one = match["asked"] is None and _ENDS_PHRASE.match(text, end) is not None
    return (start, end) if is_one else None


# What Japanese and Korean have behind the words.
_ENDS_JAPANESE = re.compile(
    "(?:と(?:答え|言|伝え)|に(?:し|設定|変)|(?:[ ](?:라고|으로|로))(?![가-힣])|라고[ ]).{0,12}\\Z"
)


# --- "telephone banking password Heron": a word that a bank asks for

_BANK_WORD = re.compile(
    r"(?:(?:telephone|phone|tele)[ -]?banking[ ](?:password|word|passcode)|memorable[ ](?:word|name))(?:[ ](?:is|was)|[ ]?[:=])?[ ][\"'“]?(?P<secret>(?-i:[A-Z])[a-z]{3,15}[0-9]{0,4})(?=[\"'”]?[.,;!)]?(?:[ \t]{0,4}(?:\n|\Z)|[ ][(–-]))",
    re.IGNORECASE,
)


def _bank_word(text: str, at: int) -> Span | None:
    match = _BANK_WORD.match(text, at)
    if match is None or match["secret"].lower() in secret_values.HARMLESS_WORDS:
        return None
    return match.span("secret")


RULES = (
    Rule("word-said-aloud", "password", shortest_anchors(_WORDS.words), _said_aloud),
    Rule(
        "answer-remembered",
        "password",
        shortest_anchors((*_WORDS.remembered, *_WORDS.perhaps_remembered)),
        _remembered,
    ),
    Rule(
        "answer-by-letters",
        "password",
        ("letter of", "letters of", "letters from", "characters of", "characters from", "character of"),
        _letters_of,
    ),
    Rule("answer-named-before", "password", _WORDS.question_of, _named_before),
    Rule("answer-asked-between", "password", _WORDS.questions, _asked_between),
    Rule("phrase-east-asian", "password", _WORDS.words_east, _phrase_east),
    Rule("answer-in-sentence", "password", _WORDS.questions, _of_question),
    Rule("answer-abroad", "password", ("first pet", *_WORDS.people, *_WORDS.questions), _answered),
)
"""Answers behind a colon, in a sentence, what is remembered, and words that are said on the telephone."""
WORDS_OF_BANKS = (
    Rule("word-of-bank", "password", ("telephone bank", "phone bank", "telebank", "tele-bank", "memorable word", "memorable name"), _bank_word),
)  # fmt: skip
"""Words that a bank asks for on the telephone."""
