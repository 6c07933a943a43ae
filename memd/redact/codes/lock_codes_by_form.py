"""Finds codes of locks by their form or by what opens with them: "Front gate keypad: #7192", "the safe: 12 right, 34 left, 8 right".

A number that a lock stands beside is often another one: its room, its model, a date. So the form must be that of a code (signs of a
keypad, turns, single digits), or a verb must say that the number opens the lock. A siren that goes without it, the key that ends it and
the number of a locker before it tell a code, too.
"""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start, matching
from memd.redact.values import secret_candidates
from memd.redact.values.code_numbers import ENDS_NUMBER, may_be_code
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.lock_codes
_LOCKS = tuple(dict.fromkeys((*_WORDS.opened, *_WORDS.locks)))
_CLEAR_LOCKS = tuple(word for word in _LOCKS if word not in _WORDS.unclear)
_SIDE = r"(?:right|left|clockwise|anticlockwise|counterclockwise|rechts|links|droite|gauche|derecha|izquierda|destra|sinistra|direita|esquerda)"
# Turns of a dial: "12 right, 34 left, 8 right", "left to 42, right to 17", "左三圈 27 右两圈 61", "L12 R34 L8".
_NUMBER_AND_SIDE = rf"[0-9]{{1,2}}[ ](?:to[ ]the[ ])?{_SIDE}"
_SIDE_AND_NUMBER = rf"(?:[0-9][ ]?[x×][ ]?)?{_SIDE}[ ](?:to[ ]|auf[ ])?[0-9]{{1,2}}"
_NEXT_TURN = r"[ ]?[,;/–-]?[ ](?:then[ ])?"
_TURN_IN_CHINESE = r"[左右](?:[一二两三四0-9]{1,2}圈[到至]?|[转轉到])?[ ]?[0-9]{1,2}[ ,，、]{0,2}"
_TURNS = (
    rf"(?:{_NUMBER_AND_SIDE}(?:{_NEXT_TURN}{_NUMBER_AND_SIDE}){{1,3}}|{_SIDE_AND_NUMBER}(?:{_NEXT_TURN}{_SIDE_AND_NUMBER}){{1,3}}"
    rf"|(?:{_TURN_IN_CHINESE}){{2,5}}(?<=[0-9])|[LR][0-9]{{1,2}}(?:[ ,-]{{1,2}}[LR][0-9]{{1,2}}){{2,3}})"
)
# Other forms of codes: with a key of the pad, digits one by one, three numbers, and what a parcel and a French door have.
_KEYS = r"(?:[#*][0-9]{3,8}[#*]?|[0-9]{3,8}[ ]?[#*])(?![\w/#*])"
_DIGITS_APART = r"[0-9](?:[ -][0-9]){2,5}(?![\w.,:/-]?[0-9])(?![ ]?[A-Za-z])"
_THREE_NUMBERS = r"(?=[0-9 –-]{0,12}[0-9]{2})[0-9]{1,2}(?:[ ]?[-–][ ]?[0-9]{1,2}){2,3}(?![\w.:/-]|[ ](?:are|is|in|of|times|people|cm|mm|days|items|hours|minutes)\b)"
_OF_PARCEL = r"[0-9A-Z]{1,3}-[0-9]{1,3}-[0-9]{2,5}(?![\w-])"
_OF_DIGICODE = r"(?-i:[0-9]{2}[A-ZА-Я][0-9]{2,4}|[0-9]{4,5}[A-Z]|[A-Z][0-9]{4,5})(?!\w)"
_ENDS = r"(?=[\"'”」)]?(?:[,;)，。；、!！(（]|[.](?!\w)|[ \t]{0,4}(?:\n|\Z)|[ ][^\W\d]|[ ]?[一-鿿]|[ ][–—-][ ]|です|だ(?![一-鿿])|입니다|이에요|예요|이야))"
_SAYS = tuple(word for word in _WORDS.says if word != "to")  # "the gate to 12-14" is English
_SEPARATES = rf"(?:[ ]?[:：=][ ]{{0,3}}|[ ](?:is|was|now|{either(_SAYS)})(?:[ ](?:now|still))?[ ]:?|[ ][–—-][ ]|[是为為はは는은][ ]?)[\"'`“「*]{{0,2}}"
# A lock, what is said of where it is, and a number that has the form of a code.
_OF_LOCK = re.compile(
    rf"(?:{either(_CLEAR_LOCKS)})(?:(?<=[^\x00-\x7f])|s?(?![A-Za-z]))(?P<between>[^\n0-9.;:：。；!?#*]{{0,30}}?)"
    rf"(?:{_SEPARATES}(?P<secret>{_KEYS}|{_TURNS}|{_DIGITS_APART}|{_THREE_NUMBERS})"
    # Without a separator, a key behind the digits tells, and turns behind a lock in another script do.
    r"|[ ]?(?P<keys>(?:(?<=[^\x00-\x7f])|(?<=[^\x00-\x7f][ ])|(?<=[ ])(?![#*]))[#*]?[0-9]{3,8}[#*](?![\w#*]))"
    rf"|(?<=[^\x00-\x7f])[ ]?(?P<turns>{_TURNS}))",
    re.IGNORECASE,
)
# Between a lock and a number in a form that dates have, too, only words for codes stand, and where the lock is.
_OF_CODE = re.compile(
    rf"[ ]?(?:的|の|lock|combination|combo|number|{either(_WORDS.codes)})?[ ]?(?:[ ](?:in|of|on|at|for|to|im|am|der|des|du|de|da|del|della)(?:[ ][\w'’-]{{1,16}}){{1,4}})?",
    re.IGNORECASE,
)
# "The side gate opens with 3391*": a verb, its number, and a lock earlier in the line or right behind.
_OPENS_WITH = re.compile(
    rf"(?:{either(_WORDS.opens)})(?:[ ](?:the|a|code|number|el|la|le|den|der|o|il|код|código|codice|pin)){{0,3}}[ ]{{0,2}}[\"'`“「]?"
    rf"(?P<secret>{_KEYS}|{_THREE_NUMBERS}|{_DIGITS_APART}|{_OF_DIGICODE}|[0-9]{{4,8}}(?:[ ]?[#*])?(?![\w%.,:/-]*[0-9]|[ ]?(?:[年月日号元楼米个次秒分]|times|euro|cm|mm|kg)))"
    rf"{_ENDS}",
    re.IGNORECASE,
)
# "2290 eingeben", "1030 解锁": a number, the verb behind it, and a lock in the line.
_BEFORE_VERB = re.compile(
    r"(?<![A-Za-z0-9_.:/#-])(?<![0-9],)(?P<secret>[0-9]{4,8}[#*]?)(?:[ ]?(?:加井号|加#|井号|and[ ]#|[ ]then[ ]#|键))?[\"'”」]?[ ,，]{0,2}(?:就能|就|才能|才|可以|即可|でも)?\Z"
)
# "Zahlenschloss 4-1-9-7": right behind a lock that is turned or typed, without a colon.
_ON_DIAL = re.compile(
    rf"(?:{either(_WORDS.dials)})(?:[ ](?:(?:is|steht|stehen|est|está|è|staat|står)[ ])?(?:set[ ])?(?P<sets>auf|to|at|sur|en|a|su|на|op))?(?:[ :：是为]{{1,3}}|[ ]?(?P<topic>[はは는은])[ ]?)"
    rf"(?P<secret>{_KEYS}|{_TURNS}|{_DIGITS_APART}|{_THREE_NUMBERS}|{_OF_PARCEL}|(?(sets)[0-9]{{3,6}}(?![\w%.,:/-]*[0-9]|[ ]?(?:kg|cm|mm|euro))|(?(topic)(?!(?:19|20)[0-9]{{2}}(?![0-9]))[0-9]{{4,8}}(?![年月日円元個台階人本回号度万千枚ウォ원개층년명번])|(?!)))){_ENDS}",
    re.IGNORECASE,
)
# "a combination lock, 0 4 7 2": digits apart behind a comma or in brackets, maybe with where the lock is between.
_APART_FROM_DIAL = re.compile(
    rf"(?:{either(_WORDS.dial_locks)})(?:[ ](?:on|in|of|for|at|am|an|im|der|des|du|de|da|do|del|della|op|aan|на|у)(?:[ ][\w'’-]{{1,16}}){{1,3}})?(?:[ ]?[（(]|[,，、]?[ ]?)"
    rf"(?P<secret>[0-9](?:[ ][0-9]){{2,5}}|[0-9](?:-[0-9]){{2,5}})(?![\w.,:/-]?[0-9])(?![ ]?[A-Za-z]){_ENDS}",
    re.IGNORECASE,
)
# "The key hangs in a little box by the shed, code B2796, scramble the dials": a code as a clause of its own, in a sentence about a place.
_AS_CLAUSE = re.compile(
    rf"(?:{either(_WORDS.keeps_codes)})[ :：]{{1,2}}(?P<secret>[A-F]?[0-9]{{4,6}}[A-F]?[#*]?)(?=[,;)，。；](?![0-9])|[.!](?!\w)|[ \t]{{0,4}}(?:\n|\Z))",
    re.IGNORECASE,
)
_CLAUSE_BEGINS = re.compile(r"(?:[,;，；]|[ ][–—-]|[ ]?[(（])[ ]?(?:the[ ])?\Z")
_IS_KEPT = re.compile(
    rf"(?<![a-z])(?:{either(_WORDS.keys)})(?![a-z])[^\n.;!?。；！？]{{1,60}}?(?<![a-z])(?:{either(_WORDS.keeps)})",
    re.IGNORECASE,
)
_ANY_LOCK = re.compile(
    rf"(?<![a-z])(?:{either(_LOCKS)})|get[ ]in(?:to|[ ])|(?<=[ ])disarm|to[ ]unlock|parcel", re.IGNORECASE
)
# "type 5519 at the gate": where the digits are typed.
_AT_LOCK = re.compile(
    rf"[#*]?[ ](?:at|on|into|am|an|im|au|à|sur|no|na|al|alla|sul|op|aan|bij)[ ](?:the|der|dem|das|la|le|el|il|o|de|het|our|my|his|her)?[ ]?(?:[\w'’-]{{2,12}}[ ])?(?:{either(_LOCKS)}|keypad|key pad|pad)(?![a-z])",
    re.IGNORECASE,
)
_NO_CODE = re.compile(rf"(?:{either(_WORDS.others)})", re.IGNORECASE)
_HAS_FORM = re.compile(r"[0-9][ ]?[-–#*]|[#*][0-9]|[0-9][ ][0-9a-z]|[LRlrsto左右转到圈はは는은][ ]?[0-9]")
_DATE = re.compile("(?:[0-2]?[0-9]|3[01])-(?:0?[1-9]|1[0-2])-[0-9]{2}")


def _of_lock(text: str, at: int) -> Span | None:
    is_inside = text[at].isascii() and text[at - 1 : at].isalpha() and text[at - 1 : at].isascii()
    match = None if is_inside else _OF_LOCK.match(text, at)
    if match is None or _NO_CODE.search(text, line_start(text, at, 70), match.end("between")) is not None:
        return None
    for group in ("keys", "turns"):
        if match[group] is not None:
            return match.span(group)
    said = match["secret"]
    if any(sign in "#*" or sign.isalpha() for sign in said):
        return match.span("secret")
    # A date behind a lock alone is when it was bought or closed.
    is_date = not match["between"].strip() and _DATE.fullmatch(said) is not None
    return match.span("secret") if not is_date and _OF_CODE.fullmatch(match["between"]) is not None else None


def _opens_with(text: str, at: int) -> Span | None:
    match = _OPENS_WITH.match(text, at)
    if match is None or (text[at].isascii() and text[at - 1 : at].isalnum()):
        return None
    begin = line_start(text, at, 70)
    is_locked = (
        _ANY_LOCK.search(text, begin, match.end()) is not None
        or _AT_LOCK.match(text, match.end()) is not None
    )
    is_one = is_locked and _NO_CODE.search(text, begin, at) is None
    return match.span("secret") if is_one else None


def _before_verb(text: str, at: int) -> Span | None:
    left = max(0, at - 24)
    match = _BEFORE_VERB.search(text[left:at])
    if match is None:
        return None
    start, end = left + match.start("secret"), left + match.end("secret")
    begin = line_start(text, start, 70)
    is_locked = _ANY_LOCK.search(text, begin, start) or _ANY_LOCK.search(text, at, at + 40)
    is_year = secret_candidates.is_year(match["secret"])
    is_one = is_locked is not None and not is_year and _NO_CODE.search(text, begin, start) is None
    return (start, end) if is_one else None


def _on_dial(text: str, at: int) -> Span | None:
    match = _ON_DIAL.match(text, at)
    is_one = match is not None and _NO_CODE.search(text, line_start(text, at, 70), at) is None
    return match.span("secret") if match is not None and is_one else None


def _apart_from_dial(text: str, at: int) -> Span | None:
    match = _APART_FROM_DIAL.match(text, at)
    is_one = match is not None and _NO_CODE.search(text, line_start(text, at, 70), at) is None
    return match.span("secret") if match is not None and is_one else None


def _as_clause(text: str, at: int) -> Span | None:
    match = (
        _AS_CLAUSE.match(text, at) if _CLAUSE_BEGINS.search(text, max(0, at - 8), at) is not None else None
    )
    if match is None or secret_candidates.is_year(match["secret"]):
        return None
    begin = line_start(text, at, 70)
    is_one = _IS_KEPT.search(text, begin, at) is not None and _NO_CODE.search(text, begin, at) is None
    return match.span("secret") if is_one else None


# --- "enter 168185 within 30 seconds or the siren goes"

_ENTER = re.compile(
    rf"(?:enter|type|punch[ ]in|key[ ]in|put[ ]in|tap[ ]in|tippe?|gib|tapez|tape|marca|marque|teclea|digita|digite|toets|wpisz|введи(?:те)?|набери(?:те)?|набрать|tuşla)[ ](?:in[ ]|the[ ]code[ ]|код[ ])?[\"'“]?(?P<secret>[0-9]{{4,8}}[#*]?){ENDS_NUMBER}",
    re.IGNORECASE,
)
_SIREN = re.compile(
    r"siren|(?<![a-z])alarm|disarm|beep|keypad|burglar|sirene|sirène|sirena|allarme|сирен|сигнализац|пищит|бипер|piept|piepst|bipe|pita|suena",
    re.IGNORECASE,
)


def _entered(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _ENTER.match(text, at)
    if match is None or not may_be_code(match["secret"].rstrip("#*")):
        return None
    is_one = (
        _SIREN.search(text, line_start(text, at, 90), at) is not None
        or _SIREN.search(text, match.end(), line_end(text, match.end(), 60)) is not None
    )
    return match.span("secret") if is_one else None


# --- "the barrier wants 7731 then hash": digits, and the key that ends them

_THEN_SIGN = re.compile(
    r"[ ]?,?[ ]?(?:then|and|followed[ ]by|plus|und|dann|puis|et|luego|y|poi|e|depois|en|dan|potem|i|затем|и|потом|再按|然后按|接着按|加)[ ]?(?:press[ ]|hit[ ]|the[ ])?(?:hash|star|pound|asterisk|[#*](?![A-Za-z0-9])|raute|stern|dièse|étoile|almohadilla|asterisco|cancelletto|jogo da velha|hekje|sterretje|krzyżyk|gwiazdka|решётк|решетк|звёздочк|звездочк|井号?键?|星号?键?)[а-я]{0,3}(?=[\"'”)]?[.,;!?](?!\w)|[ \t]{0,4}(?:\n|\Z)|[ ](?:key|button|sign|to[ ]open|at[ ]the[ ]end|taste|drücken)|[ ]?[^\x00-\x7f])",
    re.IGNORECASE,
)
_DIGITS_BEFORE = re.compile(r"(?<![\w.,:/#+€$£-])(?P<secret>[0-9]{3,8})\Z")


def _then_sign(text: str, at: int) -> Span | None:
    left = max(0, at - 12)
    # The anchor may begin with the blank before the word.
    match = _DIGITS_BEFORE.search(text[left:at].rstrip(", "))
    if (
        match is None
        or _THEN_SIGN.match(text, left + match.end()) is None
        or not may_be_code(match["secret"])
    ):
        return None
    return left + match.start("secret"), left + match.end("secret")


# --- behind the number of a locker: "Gym locker 88: 4092"

_LOCKER = re.compile(
    rf"(?:locker|schließfach|spind|casier|taquilla|armadietto|kluisje|szafka|шкафчик|储物柜|更衣柜|柜子|ロッカー)[ ]?(?:no\.?[ ]?|nr\.?[ ]?|n°[ ]?|#)?[A-Z]?[0-9]{{1,3}}[ ]?(?:号|番)?[ ]?(?:[:：,，]|=|->|→)[ ]?(?:code[ ]|密码[ ]?|combo[ ])?(?P<secret>[0-9]{{4,6}}){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _of_locker(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() and text[at].isascii() else _LOCKER.match(text, at)
    return match.span("secret") if match is not None and may_be_code(match["secret"]) else None


_VERBS = (
    "enter ", "type ", "punch in ", "key in ", "put in ", "tap in ", "tippe ", "tipp ", "gib ", "tapez ", "tape ", "marca ", "marque ", "teclea ", "digita ", "digite ", "toets ", "wpisz ", "введи", "набери", "набрать", "tuşla ",
)  # fmt: skip
# A code behind the picture of a key or a lock.
_BEHIND_PICTURE = re.compile(
    r"[🔑🔐🔒🔓🗝][^\w\n]{0,8}(?P<secret>[!-~]{4,40}?)(?=[.,;!)]?[ \t]{0,4}(?:\n|\Z))"
)


# "🔑 TypeScript5", "🔒 closed 2024-05-01"
_NUMBERED_NAME = re.compile(r"[A-Za-z]+[0-9.]+|[A-Z]+-[0-9]+|[0-9]{4}-[0-9-]+")


def _behind_picture(text: str, at: int) -> Span | None:
    match = _BEHIND_PICTURE.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    if secret_candidates.is_year(said) or _NUMBERED_NAME.fullmatch(said) is not None:
        return None
    return (
        match.span("secret")
        if secret_candidates.is_typed_code(said) or secret_candidates.password_alone(said, 0) is not None
        else None
    )


# --- of a lock with buttons: "locker room is now C-2580-X"

_OF_BUTTONS = re.compile(
    r"(?:locker|door|gate|keypad|shutter|lock|digicode|interphone|immeuble|portail)s?(?![a-z])(?![^\n]{0,30}(?:type|model|size|drawing|plan))[^\n]{0,40}?(?:[ ](?:is|now|to|it['’]?s|code|with|est|c['’]est)|[ ]?:)[ ]{1,2}(?P<secret>(?-i:[A-Z]-?[0-9]{3,5}-?[XYZ]|[AB][0-9]{4,5}[AB]))(?![\w-])",
    re.IGNORECASE,
)


RULES = (
    Rule(
        "lock-form",
        "code",
        shortest_anchors(_CLEAR_LOCKS),
        _of_lock,
        needs=Nearby(_HAS_FORM, 0, 60, 3, has_digit=True),
    ),
    Rule("lock-on-dial", "code", _WORDS.dials, _on_dial, needs=Nearby(_HAS_FORM, 0, 24, 3, has_digit=True)),
    Rule(
        "lock-apart",
        "code",
        shortest_anchors(_WORDS.dial_locks),
        _apart_from_dial,
        needs=Nearby(_HAS_FORM, 0, 80, 3, has_digit=True),
    ),
    Rule("lock-clause", "code", _WORDS.keeps_codes, _as_clause, needs=Nearby(DIGIT, 0, 16)),
    Rule("opens-with", "code", shortest_anchors(_WORDS.opens), _opens_with, needs=Nearby(DIGIT, 0, 40)),
    Rule("opened-by", "code", _WORDS.then_opens, _before_verb, needs=Nearby(DIGIT, 24, 0)),
)
"""Codes by their form, by a clause of their own, and by their verb."""
BEFORE_SIREN = (
    Rule("code-entered", "code", _VERBS, _entered, needs=Nearby(re.compile("[0-9]{4}"), 0, 24, 4, has_digit=True)),
)  # fmt: skip
"""Digits that are typed before a siren goes."""
BESIDE_KEY_OR_NUMBER = (
    Rule("code-then-sign", "code", ("then hash", "then star", "then pound", "then #", "then *", "then press #", "then press *", "then the hash", "then the star", "and hash", "and star", "and pound", "and #", "and *", "followed by hash", "followed by #", "followed by star", "plus hash", "plus #", "und raute", "dann raute", "und stern", "dann stern", "puis dièse", "et dièse", "luego almohadilla", "y almohadilla", "luego asterisco", "poi cancelletto", "poi asterisco", "en hekje", "dan hekje", "dan sterretje", "potem krzyżyk", "potem gwiazdka", "затем реш", "и реш", "потом реш", "затем зв", "再按#", "再按井", "再按*", "再按星", "然后按#", "然后按井", "接着按#", "加#", "加井"), _then_sign, needs=Nearby(DIGIT, 12, 0)),
    Rule("code-of-locker", "code", ("locker", "schließfach", "spind", "casier", "taquilla", "armadietto", "kluisje", "szafka", "шкафчик", "储物柜", "更衣柜", "柜子", "ロッカー"), _of_locker, needs=Nearby(re.compile("[0-9]{4}"), 0, 44, 4, has_digit=True)),
)  # fmt: skip
"""Digits before the key that ends them, and behind the number of a locker."""
BEHIND_PICTURE = (Rule("code-behind-picture", "code", ("🔑", "🔐", "🔒", "🔓", "🗝"), _behind_picture),)
"""Codes behind the picture of a key or a lock."""
OF_BUTTONS = (
    Rule("code-of-buttons", "code", ("locker", "door", "gate", "keypad", "shutter", "lock", "digicode", "interphone", "immeuble", "portail"), matching(_OF_BUTTONS), needs=Nearby(re.compile("[A-Z]-?[0-9]{3}"), 0, 60, 5, has_digit=True)),
)  # fmt: skip
"""Codes of locks with buttons."""
